// The page's list of sessions, and what goes on in a copy of one: see page.test.mjs for what is needed.
import assert from "node:assert/strict";
import test from "node:test";

import { approve, idle, say, shot, stories, skip } from "./story.mjs";
import { Daemon, KEEPS_NOTHING } from "./support.mjs";

const SCRIPT = `
chunk: 6
steps:
  - when: { user: hang, turn: 0 }
    play:
      - text: "I wait."
      - call: { name: bash, input: { command: "echo begun; sleep 60" } }
  - play: [{ text: "You said: {user}" }]
`;
const { story } = stories({ script: SCRIPT, files: { "README.md": "# Demo\n" } });
const timed = { skip, timeout: 120_000 };

const words = (page) => page.locator("#messages .message.user .words").allTextContents();
const answers = (page) => page.locator("#messages .message.assistant .markdown").allTextContents();
const said = async (page, text) => {
  await say(page, text);
  await page.locator(".markdown", { hasText: `You said: ${text}` }).last().waitFor();
  await idle(page);
};
const titles = (page) => page.locator("#sessions .session strong").allTextContents();
/** Opens the list, and waits until it has so many. */
const list = async (page, count) => {
  if (!(await page.locator("#sessions").isVisible())) await page.click("#sessions-button");
  await page.locator("#sessions [role=status]", { hasText: count === 1 ? "1 session" : `${count} sessions` }).waitFor();
};
const row = (page, title) => page.locator("#sessions li", { hasText: title });

test("sessions are listed, searched, named, put away and deleted", timed, () =>
  story(async (page) => {
    await page.click("#sessions-button");
    await page.locator("#sessions [role=status]", { hasText: "Nothing is kept yet" }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Search sessions");
    await said(page, "<b>first</b> about login");
    await page.click("#new");
    await page.locator("#welcome:not([hidden])").waitFor();
    await said(page, "second about poems");
    await list(page, 2);
    assert.deepEqual(await titles(page), ["second about poems", "<b>first</b> about login"]);
    assert.equal(await page.locator("#sessions b").count(), 0);
    assert.equal(await page.locator("#sessions [aria-current=true] strong").innerText(), "second about poems");
    await shot(page, "sessions");

    await page.fill("#sessions input[type=search]", "login \" *");
    await page.locator("#sessions .snippet", { hasText: "about login" }).waitFor();
    await page.fill("#sessions input[type=search]", "nowhere");
    await page.locator("#sessions [role=status]", { hasText: "Nothing was found" }).waitFor();
    await page.fill("#sessions input[type=search]", "");
    await list(page, 2);

    await row(page, "login").getByText("Rename").click();
    await page.keyboard.type("Not this");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#sessions").isVisible(), true, "the panel stays");
    assert.match(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), /^Rename: <b>first/);
    await page.keyboard.press("Enter");
    await page.keyboard.type("Login page");
    await page.keyboard.press("Enter");
    await row(page, "Login page").waitFor();

    await row(page, "Login page").getByText("Archive").click();
    await list(page, 1);
    await page.click("#sessions >> text=Archived");
    await row(page, "Login page").getByText("Take back").click();
    await page.locator("#sessions [role=status]", { hasText: "Nothing was put away" }).waitFor();
    await page.click("#sessions >> text=Archived");
    await list(page, 2);

    // The one that is shown can be deleted, and another one: nothing of either is left.
    page.on("dialog", (dialog) => dialog.accept());
    await row(page, "second about poems").getByText("Delete").click();
    await list(page, 1);
    await page.locator("#welcome:not([hidden])").waitFor();
    assert.equal(await page.locator("article.message").count(), 0);
    await row(page, "Login page").getByText("Delete").click();
    await page.locator("#sessions [role=status]", { hasText: "Nothing is kept yet" }).waitFor();
  }));

test("a session of the list is gone on in, also one that is still there", timed, () =>
  story(async (page) => {
    await said(page, "one");
    await said(page, "two");
    await page.click("#new");
    await page.locator("#welcome:not([hidden])").waitFor();
    await page.fill("#input", "typed and not sent");
    await list(page, 1);
    await row(page, "one").locator(".session").click();
    await page.locator(".markdown", { hasText: "You said: two" }).waitFor();
    // Events do not repeat what the user said.
    await page.locator(".words", { hasText: "two" }).waitFor();
    assert.deepEqual(await words(page), ["one", "two"]);
    assert.deepEqual(await answers(page), ["You said: one", "You said: two"]);
    assert.equal(await page.inputValue("#input"), "typed and not sent");
    await said(page, "three");
    await page.reload();
    await page.locator(".markdown", { hasText: "You said: three" }).waitFor();
    // The history comes after the events.
    await page.locator(".words", { hasText: "one" }).waitFor();
    assert.deepEqual(await words(page), ["one", "two", "three"]);
  }));

test("what runs goes on while another session is shown, and its question is found again", timed, () =>
  story(async (page) => {
    await said(page, "before");
    await say(page, "hang");
    await page.locator("#approval").waitFor();
    await page.click("#new");
    await page.locator(".notice", { hasText: "goes on for" }).waitFor();
    await page.locator("#approval").waitFor({ state: "hidden" });
    await said(page, "elsewhere");
    await list(page, 2);
    await row(page, "before").locator(".session").click();
    await approve(page);
    await page.locator("details.call .output", { hasText: "begun" }).waitFor();
    assert.deepEqual(await words(page), ["before", "hang"]);
    assert.deepEqual(await answers(page), ["You said: before", "I wait."]);
    await page.click("#stop");
    await idle(page);
  }));

test("a message is edited, an answer asked for again, and a fork made: in copies, which take nothing away", timed, () =>
  story(async (page) => {
    for (const text of ["one", "two", "three"]) await said(page, text);
    const edit = page.locator(".message.user", { hasText: "two" }).getByText("Edit");
    await edit.focus();
    await page.keyboard.press("Enter");
    const field = page.getByLabel("Your message");
    assert.equal(await field.inputValue(), "two");
    await page.keyboard.press("Escape");
    assert.deepEqual(await words(page), ["one", "two", "three"]);
    await edit.click();
    await field.fill("two, otherwise");
    await shot(page, "editing");
    await field.press("Enter");
    await page.locator(".markdown", { hasText: "You said: two, otherwise" }).waitFor();
    await idle(page);
    assert.deepEqual(await words(page), ["one", "two, otherwise"]);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "input");
    await page.locator(".notice", { hasText: "This is a copy" }).getByText("Back to it").click();
    await page.locator(".words", { hasText: "three" }).waitFor();
    assert.deepEqual(await words(page), ["one", "two", "three"]);

    await page.locator(".message.assistant", { hasText: "You said: two" }).getByText("Ask again").click();
    await page.locator(".words", { hasText: "three" }).waitFor({ state: "detached" });
    await page.locator(".markdown", { hasText: "You said: two" }).waitFor();
    await idle(page);
    assert.deepEqual(await words(page), ["one", "two"]);

    await page.locator(".message.assistant", { hasText: "You said: one" }).getByText("Fork").click();
    await page.locator(".words", { hasText: "two" }).waitFor({ state: "detached" });
    await page.locator(".markdown", { hasText: "You said: one" }).waitFor();
    assert.deepEqual(await answers(page), ["You said: one"]);
    await said(page, "four");

    // The first message: in a new session, with the settings of this one.
    await page.click("#settings-button");
    await page.selectOption("#set-trust", "supervised");
    await page.locator("#model", { hasText: "supervised" }).waitFor();
    await page.locator(".message.user", { hasText: "one" }).getByText("Edit").click();
    await field.fill("first of all");
    await field.press("Enter");
    await page.locator(".markdown", { hasText: "You said: first of all" }).waitFor();
    await idle(page);
    assert.deepEqual(await words(page), ["first of all"]);
    await page.locator("#model", { hasText: "supervised" }).waitFor();
    await list(page, 5);
  }));

test("a tab that is opened anew goes on where the last one was, and takes it from nobody", timed, () =>
  story(
    async (page, daemon) => {
      await said(page, "hello");
      const other = await page.context().newPage();
      await other.goto(daemon.page);
      await other.locator("#welcome:not([hidden])").waitFor();
      assert.equal(await page.locator("#banner").isVisible(), false);
      await other.close();
      await daemon.end(true);
      const again = await Daemon.start({ script: SCRIPT, place: daemon.place });
      const later = await page.context().newPage();
      await later.goto(again.page);
      await later.locator(".markdown", { hasText: "You said: hello" }).waitFor();
      assert.deepEqual(await words(later), ["hello"]);
      assert.equal(await later.locator(".notice").count(), 0, "that not all events are kept is no news here");
      await said(later, "and now");
      assert.deepEqual(await words(later), ["hello", "and now"]);
      return again;
    },
  ));

test("of a long session the end is drawn, and the rest when it is asked for", timed, () =>
  story(async (page, daemon) => {
    const sessionId = await page.evaluate(async (token) => {
      const { Client } = await import("/test-client/index.js");
      const client = new Client({ url: `ws://${location.host}/ws`, token });
      await client.connect();
      const history = Array.from({ length: 500 }, (_, at) => ({ role: at % 2 ? "assistant" : "user", content: `message ${at}` }));
      const ended = new Promise((done) => client.on("chat:stream-end", done));
      await client.send("the last", { history });
      await ended;
      client.close();
      return client.session.sessionId;
    }, daemon.token);
    await list(page, 1);
    await page.locator(`#sessions [data-session="${sessionId}"] .session`).click();
    await page.locator(".words", { hasText: "the last" }).waitFor();
    const count = () => page.locator("#messages article").count();
    await page.locator("#earlier").waitFor();
    const first = await count();
    assert.ok(first > 0 && first <= 120, `${first} are drawn`);
    for (let pages = 0; pages < 12 && (await page.locator("#earlier").isVisible()); pages++) {
      const before = await count();
      await page.click("#earlier");
      await page.waitForFunction((before) => document.querySelectorAll("#messages article").length > before, before);
    }
    assert.equal(await page.locator("#earlier").isVisible(), false);
    const all = await page.locator("#messages article").evaluateAll((rows) => rows.map((it) => /message \d+|the last|You said/.exec(it.textContent)?.[0]));
    assert.deepEqual(all, [...Array.from({ length: 500 }, (_, at) => `message ${at}`), "the last", "You said"]);
    // One from far up is edited: it is found among all that is remembered.
    await page.locator(".message.user").nth(2).getByText("Edit").click();
    await page.getByLabel("Your message").fill("otherwise");
    await page.getByLabel("Your message").press("Enter");
    await page.locator(".markdown", { hasText: "You said: otherwise" }).waitFor();
    assert.deepEqual(await words(page), ["message 0", "message 2", "otherwise"]);
  }));

test("a daemon that keeps nothing offers nothing of it, and says why", timed, () =>
  story(
    async (page) => {
      await said(page, "hello");
      assert.equal(await page.getByText("Fork").isVisible(), false);
      assert.equal(await page.getByText("Edit", { exact: true }).isVisible(), false);
      await page.click("#sessions-button");
      await page.locator("#sessions [role=status]", { hasText: "not kept here" }).waitFor();
      page.on("dialog", (dialog) => dialog.accept());
      await page.click("#new");
      await page.locator("#welcome:not([hidden])").waitFor();
    },
    { daemon: { environment: KEEPS_NOTHING } },
  ));

test("the list on a phone, with the keyboard alone", timed, () =>
  story(
    async (page) => {
      await said(page, "a title that is quite long, and longer than a phone is wide, so that it has to be cut somewhere or other");
      await page.click("#new");
      await page.locator("#welcome:not([hidden])").waitFor();
      await said(page, "short");
      await list(page, 2);
      await shot(page, "phone-sessions");
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth), false, "nothing is wider than the phone");
      const focused = () => page.evaluate(() => document.activeElement?.querySelector("strong")?.textContent);
      await page.locator("#sessions .session").first().focus();
      await page.keyboard.press("ArrowDown");
      assert.match(await focused(), /^a title/);
      await page.keyboard.press("ArrowUp");
      assert.equal(await focused(), "short");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await page.locator("#sessions").waitFor({ state: "hidden" });
      assert.equal(await page.evaluate(() => document.activeElement?.id), "input");
      await page.locator(".words", { hasText: "a title" }).waitFor();
    },
    { context: { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true, colorScheme: "dark" } },
  ));
