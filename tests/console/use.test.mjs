// The page as people use it: questions that come in pairs, lapse and are edited; messages that are stopped;
// conversations that are gone; what looks like a fault and is none.
import assert from "node:assert/strict";
import test from "node:test";

import { approve, idle, press, say, shot, skip, stories } from "./story.mjs";
import { Daemon, KEEPS_NOTHING } from "./support.mjs";

const BLANKS = "a\u2028b\u00a0c\u3000d\u2800e";
const ANSWER = [
  "Some **b** and ~~x~~, `README.md` and \\(a_1^2\\).", "", "```rust", "fn main() { let n = 1; }", "```", "",
  "| name | amount |", "|:--|--:|", "| one | 1,000 |", "", "- [x] done", "- [ ] open", "", "See[^n].", "", "[^n]: a note",
].join("\n");
/** As JSON that YAML reads alike. */
const quoted = (value) => JSON.stringify(value).replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const SCRIPT = `
steps:
  - when: { user: pair, turn: 0 }
    play:
      - call: { name: bash, input: { command: "ls -la" } }
      - call: { name: bash, input: { command: "rm -rf important" } }
  - when: { user: blanks, turn: 0 }
    play: [{ call: { name: bash, input: ${quoted({ command: `echo ${BLANKS}` })} } }]
  - when: { user: lines, turn: 0 }
    play: [{ call: { name: bash, input: { command: "echo one\\necho two" } } }]
  - when: { user: write, turn: 0 }
    play: [{ call: { name: file_write, input: { path: notes.md, content: "# Notes\\nsomething new\\n" } } }]
  - when: { user: search, turn: 0 }
    play: [{ call: { name: file_search, input: { pattern: "nowhere to be found" } } }]
  - when: { user: hang, turn: 0 }
    play: [{ call: { name: bash, input: { command: "echo begun; sleep 60" } } }]
  - when: { user: serve, turn: 0 }
    play: [{ call: { name: bash, input: { command: "exec perl serve.pl", background: true } } }]
  - when: { user: outside, turn: 0 }
    play: [{ call: { name: file_read, input: { path: ../secret } } }]
  - when: { user: key }
    play: [{ error: { kind: authentication, message: "invalid x-api-key", status: 401 } }]
  - when: { user: markdown, turn: 0 }
    play: [{ text: ${quoted(ANSWER)} }]
  - when: { user: [pair, blanks, lines, write, search, hang, serve], turn: 1 }
    play: [{ text: "It said: {result}" }]
  - play: [{ text: "You said: {user}" }]
`;
/** Says one page to whoever asks, on a port that the system chooses. */
const SERVER = `use IO::Socket::INET;
my $s = IO::Socket::INET->new(Listen => 9, LocalAddr => "127.0.0.1:0") or die $@;
while (my $c = $s->accept) {
  while (<$c>) { last if /^\\s*$/ }
  print $c "HTTP/1.0 200 OK\\r\\nContent-Type: text/html\\r\\n\\r\\n<p>It is served.</p>";
}
`;
const { story } = stories({ script: SCRIPT, files: { "notes.md": "# Notes\nold\n", "serve.pl": SERVER } });
const timed = { skip, timeout: 120_000 };

/** The frames of a type that the page sent. */
async function sent(page, type) {
  if (!(await page.locator("#frames").isVisible())) await page.click("#frames-button");
  await page.fill("#frames input", `"type":"${type}"`);
  // What is drawn next comes from all that was kept.
  const count = await page.locator("#frames li.out").count();
  await page.click("#frames-button");
  return count;
}

test("a double click on Approve answers one question, and the focus stays off the next", timed, () =>
  story(async (page) => {
    await say(page, "pair");
    const card = page.locator("#approval");
    await card.locator("pre.command", { hasText: "ls -la" }).waitFor();
    // Whoever is quickest: a click and both keys at the moment at which a question is there.
    await page.evaluate(() => {
      window.hasty = 0;
      const at = document.getElementById("approval");
      new MutationObserver(() => {
        if (!at.textContent.includes("important") || window.hasty) return;
        window.hasty += 1;
        document.getElementById("approve").click();
        for (const key of ["y", "n"]) document.dispatchEvent(new KeyboardEvent("keydown", { key, altKey: true, bubbles: true }));
        window.focused = document.activeElement?.id;
      }).observe(at, { childList: true });
    });
    await approve(page);
    await page.locator("#approval:not([data-new]) pre.command", { hasText: "rm -rf important" }).waitFor();
    assert.equal(await page.evaluate("window.hasty"), 1);
    assert.notEqual(await page.evaluate("window.focused"), "approve");
    assert.notEqual(await page.evaluate(() => document.activeElement?.id), "approve");
    assert.equal(await sent(page, "chat:tool-approve"), 1);
    await press(page, "#deny");
    await idle(page);
    const looks = await page.locator("details.call").evaluateAll((calls) => calls.map((it) => it.dataset.look));
    assert.deepEqual(looks, ["success", "neutral"], "what was denied is no fault");
  }));

test("blanks that are none are written out, in a question and in its call", timed, () =>
  story(async (page) => {
    await say(page, "blanks");
    const expected = "echo a\\u{2028}b\\u{a0}c\\u{3000}d\\u{2800}e";
    assert.equal(await page.locator("#approval pre.command").textContent(), `$ ${expected}`);
    assert.equal(await page.locator("details.call .about").textContent(), expected);
    await press(page, "#edit");
    assert.match(await page.inputValue("#approval .editor"), /a\\u2028b\\u00a0c\\u3000d\\u2800e/);
    await page.keyboard.press("Escape");
    await press(page, "#deny");
    await idle(page);
  }));

test("a command is edited as it is; Escape and Cancel leave it; keys answer", timed, () =>
  story(async (page) => {
    await say(page, "lines");
    const editor = page.locator("#approval .editor");
    assert.equal(await page.locator("#approval pre.command").textContent(), "$ echo one\necho two");
    await press(page, "#edit");
    assert.equal(await editor.inputValue(), "echo one\necho two");
    await editor.fill("rm everything");
    await page.keyboard.press("Escape");
    await editor.waitFor({ state: "detached" });
    assert.equal(await page.locator("#approval pre.command").textContent(), "$ echo one\necho two");
    await press(page, "#edit");
    await page.click("#edit");
    await editor.waitFor({ state: "detached" });
    await press(page, "#edit");
    await shot(page, "edit");
    await editor.fill("");
    await page.keyboard.press("Alt+y");
    await page.locator("#approval .problem:not([hidden])").waitFor();
    await editor.fill("echo edited");
    // Letters alone answer nothing.
    await page.locator("#approval-title").focus();
    for (const key of ["y", "n", "a", "Enter"]) await page.keyboard.press(key);
    await page.keyboard.press("Alt+y");
    await idle(page);
    assert.match(await page.locator(".message.assistant .markdown").last().innerText(), /It said: edited/);

    await say(page, "lines");
    await page.locator("#approval:not([data-new]):not([hidden])").waitFor();
    await page.keyboard.press("Alt+n");
    await idle(page);
    assert.match(await page.locator("details.call .badge").last().innerText(), /denied/);
    assert.equal(await page.locator("details.call").last().getAttribute("data-look"), "neutral");
  }));

test("what would be written is shown once, and levels have looks of their own", timed, () =>
  story(async (page) => {
    await say(page, "write");
    await page.locator("#approval pre.diff").waitFor();
    assert.equal((await page.locator("body").innerText()).split("something new").length - 1, 1);
    assert.doesNotMatch(await page.locator("#approval").innerText(), /\\n/);
    const looks = [];
    for (const level of ["safe", "warning", "dangerous"]) {
      looks.push(
        await page.evaluate((level) => {
          const card = document.getElementById("approval");
          card.dataset.level = level;
          const badge = card.querySelector(".level");
          badge.className = `level ${level}`;
          return getComputedStyle(card).borderLeftColor + getComputedStyle(badge).backgroundColor;
        }, level),
      );
      await shot(page, `level-${level}`);
    }
    assert.equal(new Set(looks).size, 3);
    await approve(page);
    await idle(page);
    await page.locator("details.call > summary").click();
    assert.equal((await page.locator("details.call").innerText()).split("something new").length - 1, 1);
    await say(page, "search");
    const search = page.locator("details.call", { has: page.locator(".badge", { hasText: "nothing found" }) });
    await search.waitFor();
    assert.equal(await search.getAttribute("data-look"), "neutral");
  }));

test("an open question gets more time while somebody is there, and it is said where it lapsed", timed, async () => {
  const asked = [];
  const daemon = { environment: { OUTRIGGER_APPROVAL__TIMEOUT: "4s" } };
  await story(
    async (page) => {
      await say(page, "lines");
      await page.locator("#approval .left", { hasText: "10 min left" }).waitFor();
      // This daemon was not really asked.
      await page.locator(".notice", { hasText: "The question whether bash may run lapsed: nobody answered in time." }).waitFor();
      await idle(page);
      assert.equal(await page.locator("details.call").getAttribute("data-look"), "neutral");
      assert.deepEqual(asked, [{ toolId: asked[0].toolId }]);
    },
    {
      daemon,
      equip: (context) =>
        context.routeWebSocket(/\/ws/, (socket) => {
          const server = socket.connectToServer();
          socket.onMessage((text) => {
            const { type, id, payload } = JSON.parse(text);
            if (type !== "chat:tool-extend") return server.send(text);
            asked.push(payload);
            const expiresAt = new Date(Date.now() + 600_000).toISOString();
            socket.send(JSON.stringify({ type: "chat:tool-extend-result", replyTo: id, timestamp: new Date().toISOString(), payload: { ...payload, expiresAt } }));
          });
        }),
    },
  );
});

test("a daemon that knows nothing of more time is asked once", timed, () => {
  const asked = [];
  return story(
    async (page) => {
      await say(page, "lines");
      await page.locator(".notice", { hasText: "lapsed" }).waitFor();
      await idle(page);
      assert.equal(asked.length, 1);
      assert.equal(await page.locator(".notice.error").count(), 0);
    },
    {
      daemon: { environment: { OUTRIGGER_APPROVAL__TIMEOUT: "4s" } },
      equip: (context) =>
        context.routeWebSocket(/\/ws/, (socket) => {
          const server = socket.connectToServer();
          socket.onMessage((text) => {
            const { type, id } = JSON.parse(text);
            if (type !== "chat:tool-extend") return server.send(text);
            asked.push(type);
            socket.send(JSON.stringify({ type: "session:error", replyTo: id, timestamp: new Date().toISOString(), payload: { code: "unknown_type", message: "unknown type `chat:tool-extend`" } }));
          });
        }),
    },
  );
});

test("what the model has not taken stays in sight, and Stop gives it back", timed, () =>
  story(async (page) => {
    await say(page, "hang");
    await approve(page);
    await page.locator("details.call .output", { hasText: "begun" }).waitFor();
    await page.fill("#input", "another way");
    assert.equal(await page.locator("#send").innerText(), "Send now");
    await page.click("#send");
    await page.locator(".message.user[data-status=queued]", { hasText: "another way" }).waitFor();
    await page.locator(".aside", { hasText: "the model gets it with its next step" }).waitFor();
    await page.fill("#input", "and later this");
    await page.click("text=Send after");
    await page.locator(".aside", { hasText: "in the queue" }).waitFor();
    await page.reload();
    await page.locator(".message.user", { hasText: "and later this" }).waitFor();
    await page.locator(".message.user[data-status=queued]", { hasText: "another way" }).waitFor();
    await shot(page, "waiting");
    await page.fill("#input", "typed since");
    await page.click("#stop");
    await idle(page);
    await page.locator(".message.user", { hasText: "and later this" }).waitFor({ state: "detached" });
    await page.waitForFunction(() => document.getElementById("input").value.includes("another way"));
    const lines = (await page.inputValue("#input")).split("\n");
    assert.deepEqual(lines.toSorted(), ["and later this", "another way", "typed since"]);
    assert.equal(lines.at(-1), "typed since");
    await shot(page, "stopped");
    await page.reload();
    await page.locator("#link[data-state=open]").waitFor();
    await idle(page);
    await page.locator("details.call").waitFor();
    assert.deepEqual((await page.inputValue("#input")).split("\n"), lines, "not given back again");
    assert.equal(await page.locator(".message.user", { hasText: "and later this" }).count(), 0);
  }));

test("after a path that is not allowed one click goes on", timed, () =>
  story(async (page) => {
    await say(page, "outside");
    await idle(page);
    await page.locator(".error strong", { hasText: "Stopped at the edge of the project" }).waitFor();
    await shot(page, "violation");
    await page.click("text=Go on");
    await page.locator(".markdown", { hasText: "You said: Go on, without that path." }).waitFor();
    assert.equal(await page.locator("text=Go on >> visible=true").locator("xpath=self::button").count(), 0);
  }));

test("an error is said in words, and leads to what mends it", timed, () =>
  story(async (page) => {
    await say(page, "key");
    const error = page.locator(".error");
    await error.waitFor();
    await idle(page);
    assert.equal(await error.locator("strong").innerText(), "The provider does not accept the key");
    assert.doesNotMatch(await page.locator("article.assistant").innerText(), /provider_auth|0 turns/);
    await page.emulateMedia({ colorScheme: "dark" });
    await shot(page, "error-dark");
    await page.click("text=Open Settings");
    await page.locator("#set-key").waitFor();
    await page.keyboard.press("Escape");
    await page.click("text=Try again");
    await error.nth(1).waitFor();
    assert.deepEqual(await page.locator(".message.user .words").allTextContents(), ["key", "key"]);
    assert.equal(await page.title(), "key · Outrigger");
  }));

test("a conversation that the daemon has no more can still be read", timed, () =>
  story(
    async (page, daemon) => {
      await say(page, "hello there");
      await page.locator(".markdown", { hasText: "You said: hello there" }).waitFor();
      await idle(page);
      await page.goto("about:blank");
      await daemon.end(true);
      const again = await Daemon.start({ script: SCRIPT, token: daemon.token, port: daemon.port, place: daemon.place, environment: KEEPS_NOTHING });
      for (let times = 0; times < 2; times++) {
        await page.goto(new URL("/", daemon.page).href);
        await page.locator("#link[data-state=open]").waitFor();
        await page.locator(".divider", { hasText: "The daemon no longer has the conversation above" }).waitFor();
        assert.deepEqual(await page.locator("#past .words").allTextContents(), ["hello there"]);
        assert.match(await page.locator("#past .markdown").innerText(), /You said: hello there/);
        await page.goto("about:blank");
      }
      await page.goto(new URL("/", daemon.page).href);
      await shot(page, "gone");
      await say(page, "again");
      await page.locator("#messages .markdown", { hasText: "You said: again" }).waitFor();
      return again;
    },
    { daemon: { token: "a-token-that-stays-the-same", environment: KEEPS_NOTHING } },
  ));

test("Markdown has colours, tables, tasks and buttons that copy", timed, () =>
  story(
    async (page) => {
      await say(page, "markdown");
      await idle(page);
      const answer = page.locator(".message.assistant .markdown");
      await answer.locator(".hljs-keyword", { hasText: "fn" }).waitFor();
      assert.equal(await answer.locator("td").nth(1).evaluate((it) => getComputedStyle(it).textAlign), "right");
      assert.equal(await answer.locator("li.task input").count(), 2);
      assert.match(await answer.locator(".math").innerText(), /^\\\(a_1\^2\\\)$/);
      assert.match(await answer.locator(".footnotes").innerText(), /a note/);
      await answer.locator(".copy").click();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "fn main() { let n = 1; }");
      await page.locator(".message.assistant .ending .copy").click();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), ANSWER);
      await shot(page, "markdown");
      await page.emulateMedia({ colorScheme: "dark" });
      await page.setViewportSize({ width: 390, height: 800 });
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth), false);
      await shot(page, "markdown-phone-dark");
    },
    { context: { permissions: ["clipboard-read", "clipboard-write"] } },
  ));

test("a server in the background is looked at by a click", timed, (t) =>
  story(async (page) => {
    await say(page, "serve");
    await approve(page);
    await idle(page);
    const result = await page.locator("#messages").textContent();
    if (!/b1 is running/.test(result)) return t.skip(`no server runs here: ${result}`);
    const row = page.locator("#notices .notice", { hasText: "listens on port" });
    await row.waitFor();
    const reload = async () => {
      await page.reload();
      await page.locator("#link[data-state=open]").waitFor();
      await row.waitFor();
      assert.equal(await row.count(), 1);
    };
    // The page knows of it again, and later of where it was exposed.
    await reload();
    await row.getByRole("button", { name: "Open it" }).click();
    const link = row.locator("a");
    await link.waitFor();
    await reload();
    await link.waitFor();
    assert.match(await link.getAttribute("href"), /^http:\/\/127\.0\.0\.1:\d+\/$/);
    const [tab] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
    await tab.locator("p", { hasText: "It is served." }).waitFor();
    await shot(page, "a-server-in-the-background");
  }));
