// What an operator sees on the page, and who does not.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import test from "node:test";

import { idle, say, shot, skip } from "./story.mjs";
import { Daemon, browser, equip, program, watched } from "./support.mjs";

const OBSERVER = "observer-0123456789-0123456789";
const timed = { skip, timeout: 120_000 };
let chromium;
before(async () => {
  if (!skip) chromium = await browser();
});
after(async () => {
  await chromium?.close();
  await Daemon.endAll();
});

test("sessions of all are a table that is read anew", timed, async () => {
  const daemon = await Daemon.start({ script: "steps: [{ play: [{ text: 'You said: {user}' }] }]" });
  const context = await chromium.newContext();
  await equip(context);
  const page = await context.newPage();
  const complaints = watched(page, /^$/);
  await page.goto(daemon.page);
  await page.click("#operator-button");
  const rows = page.locator("#operator tbody tr");
  await rows.first().waitFor();
  assert.equal(await rows.count(), 1);
  // Another one begins a session while this one looks.
  const other = await context.newPage();
  watched(other, /^$/, complaints);
  await other.goto(daemon.page);
  await say(other, "canary-words");
  await idle(other);
  await page.waitForFunction(() => document.querySelectorAll("#operator tbody tr").length === 2);
  const text = await page.locator("#operator").innerText();
  assert.match(text, /2 sessions/);
  assert.match(text, /default/);
  assert.ok(!text.includes("canary-words"), text);
  await shot(page, "operator");
  await page.keyboard.press("Escape");
  assert.ok(await page.locator("#operator").isHidden());
  assert.deepEqual(complaints, []);
  await context.close();
  await daemon.end();
});

test("who may only look has no way to it", timed, async () => {
  const daemon = await Daemon.start({ environment: { OUTRIGGER_SERVER__OBSERVER_TOKEN: OBSERVER } });
  const context = await chromium.newContext();
  await equip(context);
  const driver = await context.newPage();
  await driver.goto(daemon.page);
  await driver.waitForSelector("#operator-button:not([hidden])");
  const { sessionId } = await driver.evaluate(() => JSON.parse(sessionStorage.getItem("outrigger.session")));
  const page = await context.newPage();
  const complaints = watched(page, /^$/);
  await page.goto(`http://127.0.0.1:${daemon.port}/?role=observer&session=${sessionId}#token=${OBSERVER}`);
  await page.locator("#roles").waitFor();
  assert.ok(await page.locator("#operator-button").isHidden());
  assert.deepEqual(complaints, []);
  await context.close();
  await daemon.end();
});

test("a user who is no operator is asked for nothing that is refused", timed, async () => {
  const place = mkdtempSync(join(tmpdir(), "outrigger-page-"));
  const [key, keys] = [join(place, "users.pem"), join(place, "users.jwks.json")];
  const run = (/** @type {string[]} */ ...words) => {
    const { status, stdout, stderr } = spawnSync(program, ["token", ...words], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
    return stdout.trim();
  };
  writeFileSync(keys, run("key", key));
  const token = run("create", "--key", key, "--iss", "me", "--sub", "anna", "--ttl", "1h");
  const environment = { OUTRIGGER_AUTH__JWT__KEYS: keys, OUTRIGGER_AUTH__JWT__ISSUER: "me" };
  const daemon = await Daemon.start({ place, environment, script: "steps: [{ play: [{ text: 'You said: {user}' }] }]" });
  const context = await chromium.newContext();
  await equip(context);
  const page = await context.newPage();
  const complaints = watched(page, /^$/);
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(`http://127.0.0.1:${daemon.port}/#token=${token}`);
  await say(page, "hello");
  await idle(page);
  assert.ok(await page.locator("#operator-button").isHidden());
  assert.ok(asked.includes("/"), String(asked));
  assert.deepEqual(asked.filter((it) => it.startsWith("/admin/")), []);
  assert.deepEqual(complaints, []);
  await context.close();
  await daemon.end();
});
