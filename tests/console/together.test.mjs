// What else the page tries out: tools that a person answers, what waits, and settings while the daemon runs.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { approve, idle, say, shot, skip, stories } from "./story.mjs";

const SCRIPT = `
steps:
  - when: { user: use it, turn: 0 }
    play: [{ call: { name: client__open_file, input: { path: README.md, line: 3 } } }]
  - when: { user: both, turn: 0 }
    play:
      - call: { name: client__open_file, input: { path: one.md } }
      - call: { name: client__open_file, input: { path: two.md } }
  - when: { tool: client__open_file }
    play: [{ text: "I was told: {result}" }]
  - when: { user: work, turn: 0 }
    play: [{ call: { name: bash, input: { command: "echo begun; while [ ! -e go ]; do sleep 0.05; done" } } }]
  - when: { tool: bash }
    play: [{ text: "It is done. You said: {user}" }]
  - when: { user: list, turn: 0 }
    play: [{ call: { name: bash, input: { command: "ls" } } }]
  - play: [{ text: "You said: {user}" }]
`;
const { story } = stories({ script: SCRIPT, files: { "README.md": "# Demo\n" } });
const timed = { skip, timeout: 120_000 };

const answers = (page) => page.locator(".message.assistant .markdown").allInnerTexts();
const waiting = (page) => page.locator("#waiting li .what").allInnerTexts();
/** Waits until what waits is just this. */
const waits = (page, words) => page.waitForFunction((words) => JSON.stringify([...document.querySelectorAll("#waiting li .what")].map((it) => it.textContent)) === JSON.stringify(words), words);

async function register(page, { name = "open_file", approval = "trust", schema } = {}) {
  if (!(await page.locator("#clienttools").isVisible())) await page.click("#clienttools-button");
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Description, for the model").fill("Opens a file.");
  if (schema) await page.getByLabel("JSON schema of its input").fill(schema);
  await page.getByLabel("Whether you are asked first").selectOption(approval);
  await page.click("text=Register >> visible=true");
}

/** Answers a call in the tool's place. */
async function output(page, toolId, text, ...ticks) {
  const card = page.locator(`#clientcalls [data-call="${toolId}"]:not([data-new])`);
  await card.locator("textarea").fill(text);
  for (const tick of ticks) await card.getByLabel(tick).check();
  await card.getByText("Answer", { exact: true }).click();
}

test("a tool is registered by hand, called, answered, and taken away", timed, () =>
  story(async (page) => {
    await register(page, { schema: "{" });
    await page.locator("#tool-note", { hasText: "The schema is not valid JSON" }).waitFor();
    await register(page, { name: "1st", schema: '{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}}}' });
    await page.locator("#tool-note", { hasText: "name" }).waitFor();
    await register(page);
    await page.locator("#clienttools li[data-tool=client__open_file]").waitFor();
    await page.locator("#tool-note", { hasText: "client__open_file is new" }).waitFor();
    await shot(page, "tools");
    await page.keyboard.press("Escape");

    await say(page, "use it");
    await approve(page);
    const card = page.locator("#clientcalls .clientcall");
    await card.waitFor();
    assert.match(await card.innerText(), /The model calls open_file/);
    assert.match(await card.innerText(), /README\.md/);
    assert.match(await card.innerText(), /min left/);
    await card.locator("textarea").fill("typed and not sent");
    await shot(page, "clientcall");

    // Open calls come from `session:state`, and what was typed is there still.
    await page.reload();
    await card.waitFor();
    assert.equal(await card.locator("textarea").inputValue(), "typed and not sent");
    await output(page, "t1", "{", "as JSON");
    await card.locator(".problem", { hasText: "not valid JSON" }).waitFor();
    await output(page, "t1", '{"lines":3}');
    await card.waitFor({ state: "detached" });
    await idle(page);
    assert.match((await answers(page)).at(-1), /I was told: [^]*\{"lines":3\}/);

    // Two at once, the second one first, and as an error.
    await page.click("#settings-button");
    await page.selectOption("#set-policy", "allow_all");
    await page.keyboard.press("Escape");
    await say(page, "both");
    await card.nth(1).waitFor();
    const ids = await card.evaluateAll((cards) => cards.map((it) => it.dataset.call));
    await output(page, ids[1], "no such file", "as an error");
    await page.locator(`[data-call="${ids[1]}"]`).waitFor({ state: "detached" });
    assert.equal(await card.count(), 1);
    await output(page, ids[0], "opened");
    await idle(page);
    const looks = await page.locator("details.call").evaluateAll((calls) => calls.map((it) => it.dataset.look));
    assert.deepEqual(looks.slice(-2), ["success", "error"]);

    // One that is cancelled is gone.
    await say(page, "use it");
    await card.waitFor();
    await page.click("#stop");
    await card.waitFor({ state: "detached" });

    await page.click("#clienttools-button");
    await page.getByLabel("Unregister client__open_file").click();
    await page.locator("#clienttools li", { hasText: "none" }).waitFor();
  }));

test("tools of the page are there again in the next session", timed, () =>
  story(async (page) => {
    await register(page);
    await page.locator("#clienttools li[data-tool=client__open_file]").waitFor();
    await say(page, "hello");
    await idle(page);
    await page.click("#new");
    await page.locator("#welcome:not([hidden])").waitFor();
    await page.keyboard.press("Escape");
    await page.click("#clienttools-button");
    await page.locator("#clienttools li[data-tool=client__open_file]").waitFor();
  }));

test("what waits is edited, moved, sent now and dropped", timed, () =>
  story(async (page, daemon) => {
    await say(page, "work");
    await approve(page);
    await page.locator("details.call .output", { hasText: "begun" }).waitFor();
    for (const text of ["first", "second", "third"]) {
      await page.fill("#input", text);
      await page.click("#queue");
      await page.locator("#waiting li .what", { hasText: text }).waitFor();
    }
    assert.deepEqual(await waiting(page), ["first", "second", "third"]);
    assert.ok(await page.getByLabel("Up: place 1").isDisabled());
    await page.getByLabel("Up: place 3").click();
    await waits(page, ["first", "third", "second"]);
    await page.getByLabel("Edit: place 2").click();
    await page.getByLabel("What waits at place 2").fill("third, in French");
    await shot(page, "queue");
    await page.getByLabel("What waits at place 2").press("Enter");
    await waits(page, ["first", "third, in French", "second"]);
    await page.locator(".message.user .words", { hasText: "third, in French" }).waitFor();
    // Escape leaves it, and stops nothing.
    await page.getByLabel("Edit: place 2").click();
    await page.getByLabel("What waits at place 2").fill("otherwise");
    await page.keyboard.press("Escape");
    await waits(page, ["first", "third, in French", "second"]);
    assert.ok(await page.locator("#stop").isVisible());

    await page.getByLabel("Drop: place 1").click();
    await waits(page, ["third, in French", "second"]);
    assert.equal(await page.inputValue("#input"), "first", "what was said is not lost");
    await page.fill("#input", "");
    await page.getByLabel("Send now: place 2").click();
    await waits(page, ["third, in French"]);
    await page.locator(".message.user[data-status=queued]", { hasText: "second" }).waitFor();
    await page.locator(".aside", { hasText: "the model gets it with its next step" }).waitFor();

    // A reload says the words as they were changed.
    await page.reload();
    await page.locator("#link[data-state=open]").waitFor();
    await waits(page, ["third, in French"]);
    writeFileSync(join(daemon.place, "project", "go"), "");
    await page.locator(".markdown", { hasText: "You said: third, in French" }).waitFor();
    await idle(page);
    assert.equal(await page.locator("#waiting").isVisible(), false);
    assert.match(await page.locator(".steered").innerText(), /second/);
    assert.deepEqual(await page.locator(".message.user .words").allInnerTexts(), ["work", "third, in French"]);
  }));

test("what another client changes in the queue is seen, and a call that waits has its name", timed, () =>
  story(async (page, daemon) => {
    const sessionId = await page.evaluate(async (token) => {
      const { Client } = await import("/test-client/index.js");
      const other = (window.other = new Client({ url: `ws://${location.host}/ws`, token, role: "driver" }));
      await other.connect();
      await other.configure({ approvalPolicy: "allow_all" });
      await other.send("work");
      await other.send("one");
      await other.send("two");
      await other.execute("file_read", { path: "README.md" });
      return other.session.sessionId;
    }, daemon.token);
    const looker = await page.context().newPage();
    await looker.goto(`${new URL("/", daemon.page).href}?role=observer&session=${sessionId}#token=${daemon.token}`);
    await waits(looker, ["one", "two", "a call of file_read"]);
    assert.ok(await looker.getByLabel("Drop: place 1").isDisabled());
    await page.evaluate(async () => {
      const { queue } = await window.other.queue();
      await window.other.changeQueued(queue[1].messageId, { edit: "two, otherwise" });
      await window.other.changeQueued(queue[1].messageId, { move: 1 });
      await window.other.changeQueued(queue[0].messageId, "remove");
    });
    await waits(looker, ["two, otherwise", "a call of file_read"]);
    assert.equal(await looker.inputValue("#input"), "");
    writeFileSync(join(daemon.place, "project", "go"), "");
    await looker.locator(".markdown", { hasText: "You said: two, otherwise" }).waitFor();
    await idle(looker);
    assert.deepEqual(await looker.locator(".message.user .words").allInnerTexts(), ["work", "two, otherwise"]);
  }));

test("the approval policy is set, and the configuration is read again", timed, () =>
  story(async (page, daemon) => {
    await page.click("#settings-button");
    await page.selectOption("#set-policy", "deny_all");
    await page.locator("#settings [role=status]", { hasText: "In force from the next message." }).first().waitFor();
    await page.keyboard.press("Escape");
    await say(page, "list");
    await page.locator("details.call .badge", { hasText: "denied" }).waitFor();
    await idle(page);
    assert.equal(await page.locator("#approval").isVisible(), false);

    await page.click("#settings-button");
    assert.equal(await page.inputValue("#set-policy"), "deny_all");
    await page.click("#config-reload");
    await page.locator("#config-reloaded", { hasText: "Nothing is other than it was." }).waitFor();
    const file = join(daemon.place, "config.json");
    const config = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(file, JSON.stringify({ ...config, chat: { ...config.chat, max_turns: 7 }, session: { resume_grace: "90s" }, server: { max_connections: 11 } }));
    await page.click("#config-reload");
    await page.locator("#config-reloaded", { hasText: /Counts from now on:.*chat\.max_turns/ }).waitFor();
    assert.match(await page.locator("#config-reloaded").innerText(), /started anew:.*server\.max_connections/);
    await page.locator("#config-reload").scrollIntoViewIfNeeded();
    await shot(page, "config-reload");
    writeFileSync(file, JSON.stringify({ ...config, chat: { max_turns: 0 } }));
    await page.click("#config-reload");
    await page.waitForFunction(() => !document.getElementById("config-reloaded").textContent.includes("Counts"));
    assert.match(await page.locator("#config-reloaded").innerText(), /max_turns/);
  }));
