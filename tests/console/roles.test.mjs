// Several pages on one session: what each may do, how soon all know of an answer, and one that slept.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import test from "node:test";

import { approve, idle, say, shot, skip } from "./story.mjs";
import { Daemon, browser, equip, watched } from "./support.mjs";

/** The daemon keeps as much of what happened; what the sleeper misses is many times as much. */
const KEPT_EVENTS = "64KiB";
/** So many lines of output. */
const LINES = 1_500_000;
const OUTPUT = (String(LINES).length * 1.1 * LINES) / 1e6;
const SCRIPT = `
chunk: 12
steps:
  - when: { user: ask, turn: 0 }
    play:
      - text: "May I?"
      - call: { name: bash, input: { command: "echo it ran" } }
  - when: { user: ask, turn: 1 }
    play: [{ text: "It said: {result}" }]
  - when: { user: flood, turn: 0 }
    play: [{ call: { name: bash, input: { command: "seq 1 ${LINES}" } } }]
  - when: { user: flood, turn: 1 }
    play: [{ text: "THE END" }]
  - when: { user: hang, turn: 0 }
    play: [{ call: { name: bash, input: { command: "sleep 60" } } }]
  - play: [{ text: "You said: {user}" }]
`;
const timed = { skip, timeout: 180_000 };
/** When each frame came, and when somebody clicked, by one clock for all pages of this machine. */
const WATCH = `{
  const now = () => performance.timeOrigin + performance.now();
  window.seen = {};
  addEventListener("click", (event) => { if (event.target.closest("#approve")) window.seen.click = now(); }, true);
  const Real = window.WebSocket;
  window.WebSocket = class extends Real {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", ({ data }) => {
        const type = /"type":"([^"]+)"/.exec(data.slice(0, 200))?.[1];
        window.seen[type] ??= now();
        if (data.includes('"code":"replay_gap"')) window.seen.gap = true;
      });
    }
  };
}`;

let chromium;
/** Another browser, whose pages can be stopped without the others. */
let sleepy;
before(async () => {
  if (!skip) [chromium, sleepy] = await Promise.all([browser(), browser()]);
});
after(async () => {
  await chromium?.close();
  await sleepy?.close();
  await Daemon.endAll();
});

/** Opens the page of a daemon in a browser window of its own; whatever it complains about fails the test. */
async function opened(daemon, query, complaints, where = chromium) {
  const context = await where.newContext({ viewport: { width: 1100, height: 760 } });
  await equip(context);
  await context.addInitScript(WATCH);
  const page = await context.newPage();
  watched(page, /WebSocket connection/, complaints);
  await page.goto(`${new URL("/", daemon.page).href}${query}#token=${daemon.token}`);
  return page;
}

/** A driver, an approver and an observer on one session. */
async function three(run, environment = {}) {
  const daemon = await Daemon.start({ script: SCRIPT, files: { "README.md": "# Demo\n" }, environment });
  const complaints = [];
  const pages = [];
  try {
    const driver = await opened(daemon, "?role=driver", complaints);
    pages.push(driver);
    await driver.locator("#link[data-state=open]").waitFor();
    const { sessionId } = await driver.evaluate(() => JSON.parse(sessionStorage.getItem("outrigger.session")));
    for (const role of ["approver", "observer"]) pages.push(await opened(daemon, `?role=${role}&session=${sessionId}`, complaints, role === "observer" ? sleepy : chromium));
    for (const page of pages) await page.locator("#roles-text", { hasText: "1 driver, 1 approver, 1 observer" }).waitFor();
    await run({ daemon, driver, approver: pages[1], observer: pages[2], pages, sessionId, complaints });
    assert.deepEqual(complaints, []);
  } finally {
    for (const page of pages) await page.context().close();
    await daemon.end();
  }
}

const said = (page) => page.locator(".message.user .words").allInnerTexts();
const isDisabled = (page, selectors) => Promise.all(selectors.map((it) => page.locator(it).isDisabled()));
const CONTROLS = ["#input", "#send", "#new", "#settings-button", "#clienttools-button", "#sessions-button"];

test("a driver, an approver and an observer: one answers, and all know at once", timed, () =>
  three(async ({ driver, approver, observer, pages }) => {
    assert.deepEqual(await isDisabled(driver, CONTROLS), CONTROLS.map(() => false));
    for (const page of [approver, observer]) assert.deepEqual(await isDisabled(page, CONTROLS), CONTROLS.map(() => true));
    assert.equal(await driver.locator("#take-over").isVisible(), false);

    const times = { approver: [], driver: [], observer: [] };
    for (let round = 0; round < 5; round++) {
      for (const page of pages) await page.evaluate("window.seen = {}");
      await say(driver, `ask ${round}`);
      for (const page of pages) {
        await page.locator("#approval:not([data-new]) pre.command", { hasText: "echo it ran" }).waitFor();
        await page.locator(".message.user .words", { hasText: `ask ${round}` }).waitFor();
      }
      assert.deepEqual(await isDisabled(observer, ["#approve", "#deny", "#edit"]), [true, true, true]);
      assert.ok(await observer.locator("#stop").isDisabled() && (await approver.locator("#stop").isEnabled()));
      // Keys of one that looks on answer nothing.
      await observer.keyboard.press("Alt+y");
      await observer.locator("#approval .problem:not([hidden])").waitFor();
      if (round === 0) for (const [name, page] of Object.entries({ driver, approver, observer })) await shot(page, `role-${name}`);
      await approve(approver);
      for (const page of pages) {
        await page.locator("#approval").waitFor({ state: "hidden" });
        await page.locator(".message.assistant", { hasText: "It said: it ran" }).nth(round).waitFor();
        await idle(page);
      }
      const clicked = await approver.evaluate("window.seen.click");
      for (const [name, page] of Object.entries({ approver, driver, observer })) {
        times[name].push((await page.evaluate(`window.seen["chat:tool-resolved"]`)) - clicked);
      }
    }
    for (const page of pages) assert.deepEqual(await said(page), [0, 1, 2, 3, 4].map((it) => `ask ${it}`));
    for (const [name, values] of Object.entries(times)) {
      assert.ok(values.every(Number.isFinite), `${name} saw each answer`);
      console.log(`# the approver's click to chat:tool-resolved at the ${name}: ${values.map((it) => it.toFixed(1)).join(", ")} ms`);
    }

    // The approver drives from now on, and the driver approves.
    await approver.click("#take-over");
    await approver.locator("#roles-text", { hasText: "you drive" }).waitFor();
    await driver.locator("#roles-text", { hasText: "you approve" }).waitFor();
    assert.deepEqual(await isDisabled(approver, CONTROLS), CONTROLS.map(() => false));
    assert.deepEqual(await isDisabled(driver, CONTROLS), CONTROLS.map(() => true));
    await say(approver, "hello from here");
    for (const page of pages) {
      await page.locator(".markdown", { hasText: "You said: hello from here" }).waitFor();
      await page.locator(".message.user .words", { hasText: "hello from here" }).waitFor();
    }
    // What the driver asks for is answered to all, and changes nothing elsewhere.
    await approver.reload();
    await approver.locator("#roles-text", { hasText: "you drive" }).waitFor();
    await observer.reload();
    // What came since is drawn from events, what was before from the history, which is asked for.
    await observer.locator(".message.user .words").nth(5).waitFor();
    await observer.locator(".markdown", { hasText: "You said: hello from here" }).waitFor();
    assert.deepEqual(await said(observer), [...[0, 1, 2, 3, 4].map((it) => `ask ${it}`), "hello from here"]);
  }));

test("an approver stops what runs, and a second driver is told that there is one", timed, () =>
  three(async ({ daemon, driver, approver, observer, sessionId, pages, complaints }) => {
    await say(driver, "hang");
    await approve(driver);
    await approver.locator("details.call[data-phase=executing]").waitFor();
    await approver.click("#stop");
    for (const page of pages) await page.locator("details.call .badge", { hasText: "stopped" }).waitFor();

    const second = await opened(daemon, `?role=driver&session=${sessionId}`, complaints);
    pages.push(second);
    await second.locator("#banner", { hasText: "Another socket drives this session." }).waitFor();
    await second.click("#banner >> text=Take over");
    await second.locator("#roles-text", { hasText: "you drive · 1 driver, 2 approvers, 1 observer" }).waitFor();
    await second.locator("#banner").waitFor({ state: "hidden" });
    await driver.locator("#roles-text", { hasText: "you approve" }).waitFor();
    await second.locator(".message.user .words").first().waitFor();
    assert.deepEqual(await said(second), ["hang"]);
    // An observer may take over as well.
    await observer.click("#take-over");
    await observer.locator("#roles-text", { hasText: "you drive" }).waitFor();
    await second.locator("#roles-text", { hasText: "you approve" }).waitFor();
    // A session of its own is one that the page drives as ever.
    await observer.click("#new");
    await observer.locator("#roles").waitFor({ state: "hidden" });
    await say(observer, "elsewhere");
    await observer.locator(".markdown", { hasText: "You said: elsewhere" }).waitFor();
    assert.equal(new URL(observer.url()).search, "");
  }));

test("an address that cannot be says why", timed, async () => {
  const daemon = await Daemon.start({ script: SCRIPT });
  const complaints = [];
  for (const [query, why] of [
    ["?role=observer", "names a session"],
    ["?role=boss&session=x", "boss"],
    ["?role=observer&session=nothing", "no such session"],
  ]) {
    const page = await opened(daemon, query, complaints);
    await page.locator("#banner", { hasText: why }).waitFor();
    assert.ok(await page.locator("#input").isDisabled());
    await page.context().close();
  }
  assert.deepEqual(complaints, []);
  await daemon.end();
});

test("a page that slept is told how things stand, and holds up nobody", timed, () =>
  three(
    async ({ driver, approver, observer, pages }) => {
      await say(driver, "before");
      for (const page of pages) await page.locator(".markdown", { hasText: "You said: before" }).waitFor();
      const devtools = await sleepy.newBrowserCDPSession();
      const { processInfo } = await devtools.send("SystemInfo.getProcessInfo");
      const renderers = processInfo.filter((it) => it.type === "renderer").map((it) => it.id);
      for (const pid of renderers) process.kill(pid, "SIGSTOP");
      const begun = performance.now();
      await say(driver, "flood");
      await approve(driver);
      for (const page of [driver, approver]) {
        await page.locator(".markdown", { hasText: "THE END" }).waitFor({ timeout: 120_000 });
      }
      await idle(driver);
      console.log(`# ${OUTPUT.toFixed(0)} MB of output went to the two that are awake in ${((performance.now() - begun) / 1000).toFixed(1)} s, of which the daemon keeps ${KEPT_EVENTS}`);
      await say(driver, "ask after");
      await approve(approver);
      await driver.locator(".markdown", { hasText: "It said: it ran" }).waitFor();
      await idle(driver);
      for (const pid of renderers) process.kill(pid, "SIGCONT");
      await observer.locator(".markdown", { hasText: "It said: it ran" }).waitFor();
      assert.equal(await observer.evaluate("window.seen.gap"), true, "it had missed events for good");
      await idle(observer);
      await observer.locator(".message.user .words", { hasText: "ask after" }).waitFor();
      assert.deepEqual(await said(observer), ["before", "flood", "ask after"]);
      const calls = (page) => page.locator("details.call .name").allTextContents();
      assert.deepEqual(await calls(observer), await calls(driver));
      await observer.locator(".markdown", { hasText: "THE END" }).waitFor();
      // It is there as before.
      await say(driver, "and now");
      await observer.locator(".markdown", { hasText: "You said: and now" }).waitFor();
      await observer.locator(".message.user .words", { hasText: "and now" }).waitFor();
    },
    { OUTRIGGER_SESSION__BUFFER_BYTES: KEPT_EVENTS },
  ));
