// The console page in a real browser against a real daemon, which plays a script.
//
//   node --test tests/console/page.test.mjs      needs Chromium, a built daemon, and npm install in clients/typescript
//   OUTRIGGER_TEST_PAGE=1 …                      with the page that is in clients/console/dist, without building the daemon again
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { approve, give, idle, press, say, shot, skip, stories } from "./story.mjs";
import { Daemon, KEEPS_NOTHING, equip } from "./support.mjs";

const HOSTILE = `<img src=x onerror="window.hurt=1"><script>window.hurt=2</script><svg onload=window.hurt=3>`;
const SCRIPT = `
chunk: 6
context_window: 32768
steps:
  - when: { user: run it, turn: 0 }
    play:
      - thinking: The user wants it run.
      - text: "I would like to run a **command**."
      - call: { name: bash, input: { command: "for i in 1 2 3; do echo line $i; sleep 0.2; done" } }
  - when: { user: plain, turn: 0 }
    play:
      - call: { name: bash, input: { command: "echo plain" } }
  - when: { user: write it, turn: 0 }
    play:
      - call: { name: file_write, input: { path: notes.md, content: "# Notes\\nnew\\n" } }
  - when: { user: hidden, turn: 0 }
    play:
      - call: { name: bash, input: { command: "echo safe\\u202e\\u200b; true" } }
  - when: { user: hostile, turn: 0 }
    play:
      - text: '${HOSTILE} [click](javascript:window.hurt=4) ![p](https://example.org/x.png) [ok](https://example.org/)'
      - call: { name: file_read, input: { path: hostile.html } }
  - when: { user: hang, turn: 0 }
    play:
      - call: { name: bash, input: { command: "echo begun; sleep 60" } }
  - when: { user: fail, turn: 0 }
    play: [{ error: { kind: quota, message: "your credit balance is too low", status: 400 } }]
  - when: { user: flood, turn: 0 }
    play: [{ text: "${"All work and no play makes a long answer. ".repeat(12_000)}" }]
${["form", "rude", "page", "likeness", "two"].map((kind) => `  - when: { user: ask ${kind}, turn: 0 }
    play: [{ call: { name: mcp__asking__ask, input: { kind: ${kind} } } }]
`).join("")}  - when: { user: [run it, plain, hidden, hang], turn: 1 }
    play: [{ text: "It ran:\\n\\n\`\`\`\\n{result}\\n\`\`\`\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n" }]
  - play: [{ text: "You said: {user}" }]
`;
const FILES = { "hostile.html": `${HOSTILE}\n`, "notes.md": "# Notes\nold\n", "README.md": "# Demo\n" };

const { story, launched } = stories({ script: SCRIPT, files: FILES });
const timed = { skip, timeout: 120_000 };

test("a whole exchange with an approval, and a reload in its middle", timed, () =>
  story(async (page) => {
    assert.equal(new URL(page.url()).hash, "", "the token is gone from the address");
    await shot(page, "welcome");
    await say(page, "run it");
    const card = page.locator("#approval");
    await card.waitFor();
    assert.match(await card.innerText(), /for i in 1 2 3; do echo line \$i/);
    assert.match(await card.innerText(), /left/);
    await shot(page, "approval");

    await page.fill("#input", "typed and not sent");
    await page.reload();
    await card.waitFor();
    assert.equal(await page.inputValue("#input"), "typed and not sent");
    assert.equal(await page.locator(".message.user .words").innerText(), "run it");
    assert.match(await page.locator(".message.assistant .markdown").first().innerText(), /run a command/);
    assert.equal(await page.locator(".message.assistant strong").innerText(), "command");

    await approve(page);
    const call = page.locator("details.call");
    await page.locator("details.call[data-phase=executing][open] .output", { hasText: "line 2" }).waitFor();
    await shot(page, "running");
    await idle(page);
    assert.equal(await call.getAttribute("data-status"), "success");
    assert.equal(await call.getAttribute("open"), null, "closed when it is done");
    assert.match(await page.locator(".message.assistant pre.code").innerText(), /line 1\nline 2\nline 3/);
    assert.equal(await page.locator(".message.assistant td").count(), 2);
    assert.equal(await page.locator("#gauge").getAttribute("aria-valuenow") !== null, true);

    await page.click("#executions-button");
    await page.locator("#executions tbody tr").first().waitFor();
    assert.match(await page.locator("#executions tbody").innerText(), /bash/);
    const charts = page.locator("#executions .charts");
    assert.match(await charts.innerText(), /Commands used most/);
    // Each bar has its figure as text.
    assert.match(await charts.locator("li", { hasText: "sleep" }).innerText(), /sleep\s+1$/);
    await page.selectOption("#executions .dashboard select", "Processor time");
    assert.match(await charts.locator("li", { hasText: "bash" }).innerText(), /bash\s+[\d.]+ m?s$/);
    await shot(page, "executions");
    await page.selectOption("#executions select[aria-label='Whose calls']", "daemon");
    await page.locator("#executions tbody td[title*=session]").first().waitFor();
    for (const [button, begins] of [["CSV", "sessionId,conversationId,"], ["JSON lines", '{"toolId":']]) {
      const [file] = await Promise.all([page.waitForEvent("download"), page.click(`#executions button:text-is("${button}")`)]);
      const text = readFileSync(await file.path(), "utf8");
      assert.ok(text.startsWith(begins) && text.includes("for i in 1 2 3"), text);
    }
    await page.selectOption("#executions select[aria-label='Status']", "error");
    await page.locator("#executions", { hasText: "nothing that fits" }).waitFor();
    await page.click("#frames-button");
    await page.fill("#frames input", "tool-approve");
    await page.locator("#frames li.out").waitFor();
    assert.match(await page.locator("#frames li.out").first().innerText(), /chat:tool-approve/);
    await shot(page, "frames");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#frames").isVisible(), false);
  }));

test("what the model and a tool say is text, whatever it looks like", timed, () =>
  story(async (page) => {
    await say(page, "hostile");
    // While a call runs it is open by itself, and a click would close it.
    await page.locator("details.call[data-phase=done]").waitFor({ state: "attached" });
    await idle(page);
    await page.locator("details.call summary").click();
    const answer = page.locator(".message.assistant");
    assert.match(await answer.innerText(), /<img src=x onerror=/);
    assert.match(await page.locator("details.call .result").innerText(), /<script>window.hurt=2<\/script>/);
    assert.equal(await page.locator(".scroll img, .scroll script, .scroll svg, .scroll iframe").count(), 0);
    assert.deepEqual(await answer.locator("a").evaluateAll((links) => links.map((a) => a.href)), ["https://example.org/x.png", "https://example.org/"]);
    // And where the page had a hole, the policy would hold.
    const policy = (await page.request.get(page.url())).headers()["content-security-policy"];
    for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"]) assert.ok(policy.includes(part), policy);
    const refused = await page.evaluate(() => {
      try {
        document.createElement("div").innerHTML = "<b>x</b>";
        return "";
      } catch (error) {
        return error.name;
      }
    });
    assert.equal(refused, "TypeError");
  }, { expected: /TrustedHTML/ }));

test("who approves sees what is there, edits it, or denies it with a reason", timed, () =>
  story(async (page) => {
    await say(page, "hidden");
    const card = page.locator("#approval");
    await card.waitFor();
    assert.match(await card.locator("pre.input").innerText(), /\\u\{202e\}\\u\{200b\}/);
    await press(page, "#edit");
    // What cannot be seen can be changed, as JSON alone.
    assert.match(await page.inputValue("#approval .editor"), /safe\\u202e\\u200b/);
    await page.fill("#approval .editor", "{ broken");
    await approve(page);
    await card.locator(".problem", { hasText: "JSON" }).waitFor();
    await page.fill("#approval .editor", '{"commnad":"echo edited"}');
    await approve(page);
    await card.locator(".problem", { hasText: "command" }).waitFor();
    await page.fill("#approval .editor", '{"command":"echo edited"}');
    await approve(page);
    await idle(page);
    assert.match(await page.locator(".message.assistant pre.code").innerText(), /edited/);

    await say(page, "write it");
    await card.locator("pre.diff .added", { hasText: "new" }).waitFor();
    assert.equal(await card.locator("pre.diff .removed").innerText(), "-old");
    await page.emulateMedia({ colorScheme: "dark" });
    await shot(page, "approval-dark");
    await page.locator("#approval:not([data-new])").waitFor();
    await page.fill("#approval .buttons input", "not on a Friday");
    await page.press("#approval .buttons input", "Enter");
    await idle(page);
    const denied = page.locator("details.call[data-status=error]");
    assert.match(await denied.innerText(), /not on a Friday/);
    assert.match(await denied.locator(".badge").innerText(), /denied/);
    await shot(page, "denied-dark");
  }));

test("steering, stopping, queueing and an error", timed, () =>
  story(async (page) => {
    await say(page, "hang");
    await page.locator("#approval").waitFor();
    await approve(page);
    await page.locator("details.call .output", { hasText: "begun" }).waitFor();
    await page.fill("#input", "later");
    await page.click("#queue");
    await page.locator(".aside", { hasText: "in the queue" }).waitFor();
    await page.fill("#input", "another way, please");
    await page.click("#send");
    await page.click("text=End this call");
    await page.locator(".steered", { hasText: "another way" }).waitFor();
    await idle(page);
    await page.locator(".message.assistant", { hasText: "You said: later" }).waitFor();

    await say(page, "hang");
    await page.locator("#approval").waitFor();
    await approve(page);
    await page.locator("details.call[data-phase=executing]").waitFor();
    await page.locator("#stop").click();
    await idle(page);
    assert.match(await page.locator(".message.assistant .foot").last().innerText(), /stopped/);

    await say(page, "fail");
    await page.locator(".error", { hasText: "credit is used up" }).waitFor();
    await idle(page);
    await shot(page, "error");
  }));

/** Says something, and ends the daemon after its answer. */
async function greetAndEnd(page, daemon) {
  await say(page, "hello");
  await page.locator(".markdown", { hasText: "You said: hello" }).waitFor();
  await idle(page);
  await daemon.end(true);
  await page.locator("#banner", { hasText: "does not answer" }).waitFor();
}

test("a page goes on where it was after its daemon was started anew", timed, () =>
  story(
    async (page, daemon) => {
      await greetAndEnd(page, daemon);
      await say(page, "typed while it was away");
      await page.locator(".message.user[data-status=queued]", { hasText: "typed while" }).waitFor();
      const again = await Daemon.start({ script: SCRIPT, token: daemon.token, port: daemon.port, place: daemon.place });
      await page.locator(".markdown", { hasText: "You said: typed while it was away" }).waitFor();
      assert.match(await page.locator("#messages").innerText(), /You said: hello/);
      assert.equal(await page.locator(".divider", { hasText: "restarted" }).count(), 0);
      return again;
    },
    { daemon: { token: "a-token-that-stays-the-same" } },
  ));

test("a daemon that keeps nothing, goes away and comes back loses nothing that was typed", timed, () =>
  story(
    async (page, daemon) => {
      await greetAndEnd(page, daemon);
      await page.fill("#input", "typed while it was away");
      await page.press("#input", "Enter");
      await page.locator(".message.user[data-status=queued]", { hasText: "typed while" }).waitFor();
      await shot(page, "away");
      const again = await Daemon.start({ script: SCRIPT, token: daemon.token, port: daemon.port, place: daemon.place, environment: KEEPS_NOTHING });
      await page.locator("#link[data-state=open]").waitFor();
      await page.locator(".divider", { hasText: "restarted" }).waitFor();
      assert.equal(await page.inputValue("#input"), "typed while it was away");
      await page.press("#input", "Enter");
      await page.locator(".markdown", { hasText: "You said: typed while it was away" }).waitFor();
      assert.match(await page.locator("#past").innerText(), /You said: hello/);
      await shot(page, "restarted");
      return again;
    },
    { daemon: { token: "a-token-that-stays-the-same", environment: KEEPS_NOTHING } },
  ));

test("a daemon that comes up just after an attempt is not taken for one with another token", timed, () =>
  story(
    async (page, daemon) => {
      await daemon.end(true);
      let asked = 0;
      let isHeld = true;
      // What the page hears as long as it is held: twice the daemon was away for the attempt and is there when it asks.
      await page.route("**/readyz", async (route) => {
        asked += 1;
        if (isHeld && (asked === 2 || asked === 4)) await route.fulfill({ status: 200, body: "" });
        else await (isHeld ? route.abort() : route.continue());
      });
      while (asked < 6) await page.waitForRequest("**/readyz");
      isHeld = false;
      const again = await Daemon.start({ script: SCRIPT, token: daemon.token, port: daemon.port, place: daemon.place });
      await page.locator("#link[data-state=open]").waitFor();
      await again.end(true);
      // One that has another token is known by the second attempt at the latest.
      const other = await Daemon.start({ script: SCRIPT, token: "another-token-than-before", port: daemon.port, place: daemon.place });
      await page.locator("#banner", { hasText: "has another token now" }).waitFor();
      return other;
    },
    { daemon: { token: "a-token-that-stays-the-same" }, expected: /401|ERR_FAILED|ERR_CONNECTION_RESET/ },
  ));

test("a token that a page cannot give is told from one that is wrong", timed, async () => {
  const daemon = await Daemon.start({ script: SCRIPT, token: "with+plus-and-more-than-20" });
  const page = await launched().newPage();
  try {
    await page.goto(`${daemon.ready.console}#token=${daemon.token}`);
    await page.locator("#link[data-state=open]").waitFor();
    await page.goto("about:blank");
    await page.goto(`${daemon.ready.console}#token=${encodeURIComponent("two words/")}`);
    await page.locator("#banner", { hasText: "no way to give this token" }).waitFor();
  } finally {
    await page.close();
    await daemon.end();
  }
});

test("without a token, or with a wrong one, it is asked for", timed, async () => {
  const daemon = await Daemon.start({ script: SCRIPT });
  const page = await launched().newPage();
  try {
    await page.goto(daemon.page.replace(/#.*/, "#token=wrong"));
    await page.locator("#banner", { hasText: "does not accept this token" }).waitFor();
    await page.fill("#token", daemon.token);
    await page.press("#token", "Enter");
    await page.locator("#link[data-state=open]").waitFor();
    // Another window with the same session: one of them has it.
    await page.reload();
    await page.locator("#link[data-state=open]").waitFor();
  } finally {
    await page.close();
    await daemon.end();
  }
});

test("what was done to files before the daemon was started anew is undone, and the session forked after that", timed, () =>
  story(
    async (page, daemon) => {
      await say(page, "plain");
      await approve(page);
      await idle(page);
      await say(page, "write it");
      await approve(page);
      await idle(page);
      await say(page, "thanks");
      await page.locator(".markdown", { hasText: "You said: thanks" }).waitFor();
      await idle(page);
      await daemon.end(true);
      const again = await Daemon.start({ script: SCRIPT, token: daemon.token, port: daemon.port, place: daemon.place });
      await page.reload();
      await page.locator(".markdown", { hasText: "You said: thanks" }).waitFor();
      assert.equal(await page.locator(".undo").count(), 1, "one answer wrote a file");
      await page.click(".undo button");
      await page.locator(".undo .result", { hasText: "notes.md: put back" }).waitFor();
      assert.equal(readFileSync(join(daemon.place, "project", "notes.md"), "utf8"), "# Notes\nold\n");
      await page.locator(".message.assistant", { hasText: "You said: thanks" }).getByText("Fork").click();
      await page.locator(".notice", { hasText: "This is a copy" }).waitFor();
      return again;
    },
    { daemon: { token: "a-token-that-stays-the-same" } },
  ));

test("what a project's file would tell the model is shown whole, and the window says where it goes", timed, () =>
  story(async (page, daemon) => {
    writeFileSync(join(daemon.place, "project", "AGENTS.md"), "Indent with <b>tabs</b>.\n");
    await say(page, "hello");
    const card = page.locator("#trust");
    await card.waitFor();
    assert.match(await card.innerText(), /AGENTS\.md[^]*Indent with <b>tabs<\/b>\./);
    await shot(page, "trust");
    await page.locator("#trust:not([data-new])").waitFor();
    await page.click("#trust .primary");
    await card.waitFor({ state: "hidden" });
    await page.getByText("You said: hello", { exact: true }).waitFor();
    await idle(page);
    await page.click("#context");
    const parts = page.locator("#window");
    await parts.getByText("Instructions: AGENTS.md").waitFor();
    assert.ok((await parts.locator(".part").count()) >= 4);
    await shot(page, "window");
    await page.click("#context");
    assert.equal(await parts.isVisible(), false);
  }));

test("an approval that is remembered is not asked for again", timed, () =>
  story(async (page) => {
    await say(page, "plain");
    await page.locator("#approval").waitFor();
    await page.selectOption("#approval select", "conversation");
    await approve(page);
    await idle(page);
    await say(page, "plain");
    await page.locator("details.call[data-status=success]").nth(1).waitFor({ state: "attached" });
    await idle(page);
    assert.equal(await page.locator("#approval").isVisible(), false);
    page.on("dialog", (dialog) => dialog.accept());
    await page.click("#new");
    await page.locator("#welcome:not([hidden])").waitFor();
    assert.equal(await page.locator("article.message").count(), 0);
  }));

test("what was done to files is undone below the answer, and that in turn", timed, () =>
  story(async (page, daemon) => {
    const notes = () => readFileSync(join(daemon.place, "project", "notes.md"), "utf8");
    await say(page, "plain");
    await page.locator("#approval").waitFor();
    await approve(page);
    await idle(page);
    assert.equal(await page.locator(".undo").count(), 0, "nothing was changed");
    await say(page, "write it");
    await page.locator("#approval").waitFor();
    await approve(page);
    await idle(page);
    assert.equal(notes(), "# Notes\nnew\n");
    await page.click(".undo button");
    await page.locator(".undo .result", { hasText: "notes.md: put back" }).waitFor();
    assert.equal(notes(), "# Notes\nold\n");
    await shot(page, "undone");
    const done = await page.locator(".undo").getAttribute("data-done");
    await page.click(".undo button:text('Undo that')");
    await page.locator(`.undo:not([data-done="${done}"])`).waitFor();
    assert.equal(notes(), "# Notes\nnew\n");
    writeFileSync(join(daemon.place, "project", "notes.md"), "mine\n");
    await page.click(".undo button");
    await page.locator(".undo .result", { hasText: "notes.md: left, it was changed since" }).waitFor();
    assert.equal(notes(), "mine\n");
  }));

test("a refusal that is remembered, and a folder", timed, () =>
  story(async (page) => {
    await say(page, "plain");
    await page.locator("#approval:not([data-new])").waitFor();
    assert.equal(await page.locator("#approval select").count(), 1, "no file, no folders");
    await page.selectOption("#approval select", "conversation");
    await page.click("#deny");
    await idle(page);
    await say(page, "plain");
    await page.locator("details.call").nth(1).waitFor({ state: "attached" });
    await idle(page);
    assert.equal(await page.locator("#approval").isVisible(), false, "it is refused without a question");
    await say(page, "write it");
    await page.locator("#approval:not([data-new])").waitFor();
    const [reach, folder] = [page.locator("#approval select").first(), page.locator("#approval select").nth(1)];
    assert.equal(await folder.isVisible(), false);
    await reach.selectOption("session");
    await folder.selectOption(".");
    await approve(page);
    await idle(page);
    await say(page, "write it");
    await page.locator("details.call[data-status=success]").nth(1).waitFor({ state: "attached" });
    await idle(page);
    assert.equal(await page.locator("#approval").isVisible(), false, "any file below the folder is written");
    await page.click("#settings-button");
    const answers = page.locator("#settings .remembered li");
    await answers.filter({ hasText: "denied, conversation: bash: echo plain" }).waitFor();
    assert.equal(await answers.count(), 2);
    await shot(page, "remembered");
    await answers.filter({ hasText: "denied" }).getByText("Revoke").click();
    await answers.filter({ hasText: "denied" }).waitFor({ state: "detached" });
    await say(page, "plain");
    await approve(page);
    await idle(page);
  }));

test("a phone, in both schemes, and the keyboard alone", timed, () =>
  story(
    async (page) => {
      await say(page, "run it");
      await page.locator("#approval").waitFor();
      await shot(page, "phone");
      await page.emulateMedia({ colorScheme: "dark" });
      await shot(page, "phone-dark");
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
      assert.equal(wide, false, "nothing is wider than the phone");
      await page.locator("#approval:not([data-new])").waitFor();
      // From the message back to the card: its last control is the one before.
      await page.focus("#approval-title");
      await page.keyboard.press("Tab");
      for (let steps = 0; steps < 8; steps++) {
        if (await page.evaluate(() => document.activeElement?.id === "approve")) break;
        await page.keyboard.press("Tab");
      }
      await page.keyboard.press("Enter");
      await idle(page);
      assert.equal(await page.evaluate(() => document.activeElement?.id), "input", "who answered goes on typing");
      await shot(page, "phone-done-dark");
      await page.click("#settings-button");
      await page.locator("#set-trust").waitFor();
      await page.selectOption("#set-trust", "supervised");
      await page.locator("#model", { hasText: "supervised" }).waitFor();
      await shot(page, "phone-settings-dark");
    },
    { context: { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true } },
  ));

/** Waits until the server that asks is there, in a session of its own: the page shows none of that. */
const attended = (page, daemon) =>
  page.evaluate(async (token) => {
    const { Client } = await import("/test-client/index.js");
    const client = new Client({ url: `ws://${location.host}/ws`, token });
    let wake = () => {};
    client.on("session:notice", () => wake());
    await client.connect();
    for (;;) {
      // A state is emitted after it was taken.
      const emitted = new Promise((done) => (wake = done));
      const { servers } = await client.request("mcp:list", {});
      if (servers.every((it) => it.state === "ready")) break;
      await emitted;
    }
    client.close();
  }, daemon.token);

/** What the server was given, as its call's result has it. */
const given = async (page) => {
  await idle(page);
  const result = await page.locator("details.call .result").last().textContent();
  return JSON.parse(result.split("\n").find((line) => line.startsWith("[")));
};
const asked = { daemon: { isAsked: true } };

test("a server's form is filled in, corrected, found again after a reload, and sent", timed, () =>
  story(async (page, daemon) => {
    await attended(page, daemon);
    await say(page, "ask form");
    const card = page.locator("#asked");
    const problem = card.locator(".problem");
    const field = (label) => card.getByLabel(label, { exact: true });
    await card.waitFor();
    assert.match(await card.innerText(), /The MCP server asking asks[^]*left[^]*Who is it for\?\nEverything but/);
    assert.equal(await page.locator("#state").innerText(), "Waits for your answer");
    await page.locator("#announce", { hasText: "asking asks: Who is it for?" }).waitFor({ state: "attached" });
    await shot(page, "asked");

    await give(page, "#asked-send");
    await problem.filter({ hasText: "Name: is missing" }).waitFor();
    const name = card.getByLabel("Name required");
    assert.equal(await name.getAttribute("aria-invalid"), "true");
    assert.equal(await name.evaluate((it) => it === document.activeElement), true);
    assert.match(await name.evaluate((it) => document.getElementById(it.getAttribute("aria-describedby")).textContent), /As on the parcel · 2 to 20 characters/);
    await name.fill("Ada");
    await field("Age").fill("old");
    await field("It is a gift").check();
    await field("Card").check();
    await field("Stamp").check();
    await field("Colour").selectOption("blue");
    await give(page, "#asked-send");
    await problem.filter({ hasText: "Age: must be a whole number" }).waitFor();
    assert.equal(await field("Age").inputValue(), "old", "what was typed stays");
    await page.emulateMedia({ colorScheme: "dark" });
    await shot(page, "asked-dark");

    await page.reload();
    await card.waitFor();
    assert.equal(await name.inputValue(), "Ada");
    assert.equal(await field("Age").inputValue(), "old");
    assert.equal(await field("Stamp").isChecked(), true);
    assert.equal(await field("Ribbon").isChecked(), false);
    await field("Age").fill("36");
    await field("Day").fill("2026-12-10");
    await give(page, "#asked-send");
    const content = { name: "Ada", age: 36, weight: 1.5, day: "2026-12-10", at: "2026-11-20T08:00:00.250Z", gift: true, way: "exp", colour: "blue", extras: ["a", "c"] };
    assert.deepEqual(await given(page), [{ action: "accept", content }]);
    await card.waitFor({ state: "hidden" });
    assert.doesNotMatch(await page.evaluate(() => sessionStorage.getItem("outrigger.asked")), /Ada/, "nothing of it is kept");
    // Another reload replays the question, which is settled.
    await page.reload();
    await page.locator("details.call[data-status=success]").waitFor({ state: "attached" });
    await idle(page);
    assert.equal(await card.isVisible(), false);
  }, asked));

test("the words of a server are text, whatever they look like", timed, () =>
  story(async (page, daemon) => {
    await attended(page, daemon);
    await say(page, "ask rude");
    const card = page.locator("#asked");
    await card.waitFor();
    assert.match(await card.locator(".words").innerText(), /^<img src=x onerror="window.hurt=5"><b>bold<\/b> safe\\u\{202e\}\\u\{200b\}$/);
    assert.match(await card.locator("label").first().innerText(), /^<img src=x/);
    assert.equal(await card.locator("img, b, script, iframe").count(), 0);
    assert.ok((await card.locator("label").nth(1).innerText()).length < 250, "a title is not the whole page");
    await shot(page, "asked-hostile");
    await card.getByLabel("constructor").fill("7");
    await give(page, "#asked-send");
    const [{ content }] = await given(page);
    assert.deepEqual(Object.entries(content).map(([name]) => name), ["__proto__", "constructor"]);
  }, asked));

test("a page is opened by a click alone, in a tab that knows nothing of this one", timed, () =>
  story(async (page, daemon) => {
    const context = page.context();
    const reached = [];
    await context.route(/example/, (route) => {
      reached.push(route.request().headers().referer);
      return route.fulfill({ contentType: "text/html", body: "<title>pay</title>" });
    });
    await attended(page, daemon);
    await say(page, "ask page");
    const card = page.locator("#asked");
    await card.waitFor();
    assert.equal(await card.locator(".host").innerText(), "pay.example.org:8443");
    assert.match(await card.locator(".place pre").innerText(), /^https:\/\/bank\.example\.com@pay\.example\.org:8443\/checkout\?order=7$/);
    assert.match(await card.innerText(), /before the @ is no part of the place/);
    assert.deepEqual(reached, []);
    await shot(page, "asked-page");
    const [opened] = await Promise.all([context.waitForEvent("page"), give(page, "#asked-open")]);
    await opened.waitForLoadState();
    assert.equal(await opened.evaluate(() => window.opener), null);
    assert.deepEqual(reached, [undefined]);
    await opened.close();
    assert.deepEqual(await given(page), [{ action: "accept" }]);

    await say(page, "ask likeness");
    await card.waitFor();
    assert.equal(await card.locator(".host").innerText(), "xn--bnk-6cd.example");
    assert.match(await card.innerText(), /Not encrypted[^]*letters of other scripts/);
    await give(page, "#asked-decline");
    assert.deepEqual(await given(page), [{ action: "decline" }]);
    assert.equal(reached.length, 1);
  }, asked));

test("requests queue, and the keyboard alone answers them, on a phone", timed, () =>
  story(
    async (page, daemon) => {
      await attended(page, daemon);
      await say(page, "ask form");
      const card = page.locator("#asked");
      await card.waitFor();
      await shot(page, "asked-phone");
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth), false, "nothing is wider than the phone");
      await give(page, "#asked-cancel");
      assert.deepEqual(await given(page), [{ action: "cancel" }]);

      await say(page, "ask two");
      await card.locator(".more", { hasText: "and 1 more" }).waitFor();
      // They were asked at once, so either may be the first.
      const first = (await card.locator(".words").innerText()) === "The first?";
      const settled = page.locator("#asked:not([data-new])");
      await settled.waitFor();
      // The question took the focus, since nobody was typing; its words and its field come next.
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.type("by hand");
      await page.keyboard.press("Enter");
      await card.locator(".words", { hasText: first ? "The second?" : "The first?" }).waitFor();
      assert.equal(await card.locator(".more").innerText(), "");
      await settled.waitFor();
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      for (let steps = 0; steps < 4 && (await page.evaluate(() => document.activeElement?.id)) !== "asked-decline"; steps++) await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      const accepted = { action: "accept", content: { [first ? "one" : "two"]: "by hand" } };
      const declined = { action: "decline" };
      assert.deepEqual(await given(page), first ? [accepted, declined] : [declined, accepted]);
      assert.equal(await page.evaluate(() => document.activeElement?.id), "input");
    },
    { ...asked, context: { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true, colorScheme: "dark" } },
  ));

test("a request that is void or late is taken away, and that is said", timed, async () => {
  await story(async (page, daemon) => {
    await attended(page, daemon);
    await say(page, "ask form");
    const card = page.locator("#asked");
    await card.waitFor();
    await card.getByLabel("Name").fill("half a na");
    writeFileSync(join(daemon.place, "asking/end"), "");
    await page.locator(".notice", { hasText: "What the MCP server asking asked is void: its call has ended." }).waitFor();
    await card.waitFor({ state: "hidden" });
    await idle(page);
    assert.match(await page.locator("details.call").innerText(), /ended during the call/);
  }, asked);
  await story(
    async (page, daemon) => {
      await attended(page, daemon);
      await say(page, "ask form");
      await page.locator(".notice", { hasText: "What the MCP server asking asked was not answered in time." }).waitFor();
      assert.deepEqual(await given(page), [{ action: "cancel" }]);
      await page.locator("#asked").waitFor({ state: "hidden" });
    },
    { daemon: { isAsked: true, environment: { OUTRIGGER_APPROVAL__TIMEOUT: "2s", OUTRIGGER_APPROVAL__MAX_TIMEOUT: "2s" } } },
  );
});

test("half a million characters in small pieces do not freeze it", timed, () =>
  story(async (page) => {
    await page.evaluate(() => {
      window.longest = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
      }).observe({ entryTypes: ["longtask"] });
    });
    await say(page, "flood");
    await page.locator(".message.assistant .foot", { hasText: "1 turn" }).waitFor({ timeout: 60_000 });
    const { length, longest, paint } = await page.evaluate(() => ({
      length: document.querySelector(".message.assistant .markdown").textContent.replaceAll(/\s/g, "").length,
      longest: window.longest,
      paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
    }));
    assert.equal(length, 33 * 12_000, "all of it is there, but for blanks at which a block was cut");
    // Printed, not asserted: the machine may be busy with something else.
    console.log(`flood: ${length} characters, longest task ${Math.round(longest)} ms; first paint ${Math.round(paint)} ms`);
  }));

test("10,000 deltas a second leave it usable", timed, async () => {
  const daemon = await Daemon.start({ script: SCRIPT });
  const page = await launched().newPage();
  await equip(page.context());
  // A socket of the test's own: no real one brings so many without merging them.
  await page.addInitScript(() => {
    window.WebSocket = class {
      readyState = 0;
      seq = 0;
      constructor() {
        window.fake = this;
        setTimeout(() => {
          this.readyState = 1;
          this.tell("session:ready", { protocolVersion: 1, daemonVersion: "0", sessionId: "s", resumed: false, resumeGraceMs: 1, trustLevel: "guided", project: { name: "p", root: "/p", central: "/c" }, sandbox: { mode: "full", paths: "kernel", commands: [], network: "off" }, providers: [], tools: [], layers: [] });
        }, 0);
      }
      tell(type, payload) {
        this.onmessage({ data: JSON.stringify({ type, seq: ++this.seq, timestamp: new Date().toISOString(), payload }) });
      }
      close() {}
      send() {}
      flood(count) {
        const of = { conversationId: "default", messageId: "m1", turn: 0 };
        this.tell("chat:stream-start", { ...of, provider: "p", model: "m" });
        let sent = 0;
        const timer = setInterval(() => {
          // Ten milliseconds' worth; words, lines, a fence now and then.
          for (let n = 0; n < 100; n++, sent++) this.tell("chat:text-delta", { ...of, index: sent, content: sent % 997 === 0 ? "\n\n" : "word " });
          if (sent < count) return;
          clearInterval(timer);
          this.tell("chat:stream-end", { ...of, stopReason: "end_turn", partial: false, turns: 1, toolCalls: 0, usage: {}, durationMs: 1 });
          window.done = performance.now();
        }, 10);
      }
    };
  });
  try {
    await page.goto(daemon.page);
    await page.locator("#link[data-state=open]").waitFor();
    await page.evaluate(() => {
      Object.assign(window, { drawn: 0, longest: 0, began: performance.now() });
      const count = () => {
        window.drawn += 1;
        requestAnimationFrame(count);
      };
      requestAnimationFrame(count);
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
      }).observe({ entryTypes: ["longtask"] });
      window.fake.flood(30_000);
    });
    await page.locator("#input").pressSequentially("typed while it floods", { delay: 20 });
    await page.locator(".message.assistant .foot", { hasText: "1 turn" }).waitFor({ timeout: 60_000 });
    assert.equal(await page.inputValue("#input"), "typed while it floods");
    const { words, seconds, drawn, longest } = await page.evaluate(() => ({
      words: document.querySelector(".message.assistant .markdown").textContent.match(/word/g).length,
      seconds: (window.done - window.began) / 1000,
      drawn: window.drawn,
      longest: window.longest,
    }));
    assert.equal(words, 30_000 - Math.ceil(30_000 / 997));
    console.log(`10,000/s: 30,000 deltas in ${seconds.toFixed(1)} s, ${Math.round(drawn / seconds)} pictures a second, longest task ${Math.round(longest)} ms`);
  } finally {
    await page.close();
    await daemon.end();
  }
});

test("what is no longer kept is shown from what the daemon remembers, and that is said", timed, () =>
  story(
    async (page) => {
      await say(page, "hello");
      await page.locator(".markdown", { hasText: "You said: hello" }).waitFor();
      await say(page, "flood");
      await page.locator(".message.assistant .foot", { hasText: "1 turn" }).nth(1).waitFor({ timeout: 60_000 });
      await page.reload();
      await page.locator(".notice", { hasText: "no longer kept" }).waitFor();
      await page.locator(".message.user", { hasText: "flood" }).waitFor();
      assert.deepEqual(await page.locator(".message.user .words").allTextContents(), ["hello", "flood"]);
      assert.match(await page.locator(".message.assistant").first().textContent(), /You said: hello/);
      await say(page, "and now");
      await page.locator(".markdown", { hasText: "You said: and now" }).waitFor();
    },
    { daemon: { environment: { OUTRIGGER_SESSION__BUFFER_BYTES: "64KiB" } } },
  ));

test("the page is off where it is switched off", timed, async () => {
  const daemon = await Daemon.start({ environment: { OUTRIGGER_SERVER__CONSOLE: "false" } });
  const answer = await fetch(`http://127.0.0.1:${daemon.port}/`);
  assert.equal(answer.status, 404);
  await daemon.end();
});
