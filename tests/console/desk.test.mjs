// A new team's first month as a walk: the small frontend of `clients/examples/desk`, as its README says, in Chromium, against
// a model that plays a script.
//
//   OUTRIGGER_UPDATE=1 node --test tests/console/desk.test.mjs      makes docs/desk.png anew; then pngquant, see CONTRIBUTING
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import test, { after, before } from "node:test";

import { browser, missing, program, screenshots, watched } from "./support.mjs";

const root = resolve(import.meta.dirname, "../..");
const desk = join(root, "clients/examples/desk");
const PICTURE = join(root, "docs/desk.png");

const PRICES = `// What the shop takes for an order.
export function total(items) {
  return items.reduce((sum, it) => sum + it.price, 0);
}

export const VAT = 0.19;
`;
const SCRIPT = `
chunk: 5
pace: 4ms
context_window: 200000
steps:
  - when: { user: quantities, turn: 0 }
    play:
      - thinking: The sum leaves something out. I look for where it is made.
      - text: "An order is added up in src/prices.js. I open it for you."
      - call: { name: client__open_file, input: { path: src/prices.js, line: 3 } }
  - when: { user: quantities, turn: 1 }
    play:
      - text: "Line 3 takes each price once. It has to be multiplied."
      - call: { name: file_edit, input: { path: src/prices.js, oldText: "sum + it.price", newText: "sum + it.price * (it.quantity ?? 1)" } }
  - when: { user: quantities, turn: 2 }
    play:
      - text: "That is done. I would publish it now."
      - call: { name: bash, input: { command: "git push --force origin main" } }
  - when: { user: quantities, turn: 3 }
    play: [{ text: "I leave that to you. An order of three pens is three times a pen now." }]
  - when: { user: what does }
    play: [{ text: "It adds up orders: src/prices.js has the sum and the tax." }]
  - when: { user: tax, turn: 0 }
    play: [{ call: { name: file_edit, input: { path: src/prices.js, oldText: "0.19", newText: "0.2" } } }]
  - when: { user: tax, turn: 1 }
    play: [{ text: "The rate is 20 % now." }]
  - when: { user: outside, turn: 0 }
    play: [{ call: { name: client__open_file, input: { path: ../secret } } }]
  - when: { user: outside, turn: 1 }
    play: [{ text: "I was told: {result}" }]
  - play: [{ text: "You said: {user}" }]
`;

let chromium;
before(async () => {
  if (missing) console.error(`*** SKIPPED: the desk: ${missing} ***`);
  else chromium = await browser();
});
after(() => chromium?.close());

/** The project that a team has, and the desk on it, as \`npm start\` starts it. */
async function begin() {
  const place = mkdtempSync(join(tmpdir(), "outrigger-desk-"));
  const project = join(place, "shop");
  mkdirSync(join(project, "src"), { recursive: true });
  writeFileSync(join(project, "src/prices.js"), PRICES);
  writeFileSync(join(project, "README.md"), "# Shop\n");
  writeFileSync(join(place, "secret"), "not for the page\n");
  writeFileSync(join(place, "script.yaml"), SCRIPT);
  const pricing = { input: 3, output: 15 };
  const providers = { scripted: { kind: "scripted", script: join(place, "script.yaml"), pricing } };
  writeFileSync(join(place, "config.json"), JSON.stringify({ providers, approval: { timeout: "10m" } }));
  const environment = { PATH: process.env.PATH, HOME: place, OUTRIGGER_BIN: program, OUTRIGGER_CHAT__DETECT_OLLAMA: "" };
  const main = spawn(process.execPath, [join(desk, "main.mjs"), project, "--config", join(place, "config.json")], { env: environment, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  main.stderr.on("data", (text) => (log += text));
  const address = await new Promise((done, failed) => {
    createInterface({ input: main.stdout }).once("line", done).once("close", () => failed(new Error(`the desk ended: ${log}`)));
  });
  return { place, project, main, address };
}

/** The daemon that a process started. */
function childOf(pid) {
  const parent = (one) => /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${one}/status`, "utf8"))?.[1];
  return readdirSync("/proc").find((one) => /^\d+$/.test(one) && existsSync(`/proc/${one}/status`) && parent(one) === String(pid));
}

const say = async (page, text) => {
  await page.getByLabel("Message").fill(text);
  await page.getByLabel("Message").press("Enter");
};

test("it is as small as its README says", () => {
  const lines = (name) => readFileSync(join(desk, name), "utf8").trimEnd().split("\n").length;
  const names = readdirSync(desk).filter((name) => name !== "node_modules" && name !== "README.md" && !name.startsWith("."));
  const code = names.filter((name) => !name.endsWith(".css"));
  assert.deepEqual(code.sort(), ["index.html", "main.mjs", "package.json", "page.js"]);
  const sum = code.reduce((all, name) => all + lines(name), 0);
  assert.ok(sum <= 300, `${sum} lines`);
  assert.ok(lines("style.css") <= 120);
  if (existsSync(PICTURE)) assert.ok(readFileSync(PICTURE).length < 200_000);
});

test("a new team's first month as a walk", { skip: missing || false, timeout: 180_000 }, async () => {
  const added = spawnSync("npm", ["install", "--offline", "--no-audit", "--no-fund", "--silent"], { cwd: desk, encoding: "utf8" });
  assert.equal(added.status, 0, added.stderr);
  const { place, project, main, address } = await begin();
  const file = () => readFileSync(join(project, "src/prices.js"), "utf8");
  const context = await chromium.newContext({ viewport: { width: 1180, height: 720 }, deviceScaleFactor: 1.5 });
  const page = await context.newPage();
  // What is outside of the project is 404, and the model reads why.
  const complaints = watched(page, /status of 404/);
  try {
    // The first day: the window opens, and nothing of how it talks to the daemon is in its address.
    await page.goto(address);
    await page.locator("#status", { hasText: "open" }).waitFor();
    assert.equal(new URL(page.url()).hash, "");

    await say(page, "What does this project do?");
    await page.locator("article.assistant.done", { hasText: "It adds up orders" }).waitFor();
    await page.locator("#cost", { hasText: /^\$0\.\d*[1-9]\d* · today \$0\.\d*[1-9]/ }).waitFor();
    await page.getByText("New", { exact: true }).first().click();
    await page.locator("article").first().waitFor({ state: "detached" });

    // The first week: a question in words; the answer streams, and the model opens the file in the pane.
    await say(page, "Orders ignore quantities. Can you mend that?");
    await page.locator("article.assistant.streaming p", { hasText: "An order" }).waitFor();
    await page.locator("#file .here", { hasText: "return items.reduce" }).waitFor();
    assert.equal(await page.locator("#path").innerText(), "src/prices.js");

    // A change is asked for, with its danger and why; yes, for this session.
    const question = page.getByLabel("Question", { exact: true });
    await question.waitFor();
    assert.match(await question.innerText(), /Run file_edit\?\s*warning/);
    assert.match(await question.innerText(), /\+  return items\.reduce\(\(sum, it\) => sum \+ it\.price \* \(it\.quantity \?\? 1\), 0\);/);
    assert.match(await question.innerText(), /removes 1 of 6 lines, adds 1/);
    await question.getByLabel("Remember").selectOption("session");
    await question.getByText("Allow").click();

    // What is dangerous says so; no, with a reason that the model reads.
    await question.filter({ hasText: "git push --force" }).waitFor();
    assert.match(await question.innerText(), /dangerous/);
    await question.getByLabel("Why not").fill("we publish by hand");
    const changes = page.locator("#changes > li");
    await changes.first().waitFor();
    await page.screenshot({ path: join(screenshots, "desk.png"), animations: "disabled" });
    if (process.env.OUTRIGGER_UPDATE) await page.screenshot({ path: PICTURE, animations: "disabled" });
    await question.getByText("Deny").click();
    await page.locator("article.assistant.done", { hasText: "three times a pen now" }).waitFor();
    assert.match(file(), /quantity \?\? 1/);
    await page.locator("details.error", { hasText: "git push" }).waitFor();

    // What it cost is known.
    await page.locator("#cost", { hasText: /^\$0\.\d*[1-9]\d* · today \$0\.\d*[1-9]/ }).waitFor();

    // The second week: the same sort of change is not asked for again.
    await say(page, "The tax is 20 % now.");
    await page.locator("article.assistant.done", { hasText: "The rate is 20 % now." }).waitFor();
    assert.match(file(), /VAT = 0\.2;/);
    assert.equal(await question.count(), 0);

    // It was a mistake: the change is undone, and the one before it stays.
    await changes.nth(1).waitFor();
    await changes.first().getByText("Undo").click();
    await page.waitForFunction(() => document.querySelectorAll("#changes > li").length === 3);
    assert.match(file(), /VAT = 0\.19;/);
    assert.match(file(), /quantity \?\? 1/);

    // The third week: another conversation beside the first, and back.
    await page.getByText("New", { exact: true }).first().click();
    await page.locator("article").first().waitFor({ state: "detached" });
    await say(page, "Show me what is outside.");
    await page.locator("article.assistant.done", { hasText: "../secret is not in the folder" }).waitFor();
    assert.doesNotMatch(await page.locator("body").innerText(), /not for the page/);
    const sessions = page.locator("#sessions button");
    await sessions.nth(2).waitFor();
    await sessions.filter({ hasText: "Orders ignore" }).click();
    await page.locator("article.user", { hasText: "The tax is 20 % now." }).waitFor();

    // The fourth: the window is closed and opened again, and goes on where it was.
    await page.reload();
    await page.locator("article.user", { hasText: "Orders ignore quantities" }).waitFor();
    await page.locator("article.assistant", { hasText: "three times a pen now" }).waitFor();
    await say(page, "Thank you");
    await page.locator("article.assistant.done", { hasText: "You said: Thank you" }).waitFor();

    // Another page of this machine gets nothing of the window's.
    const { origin } = new URL(address);
    for (const [path, options] of [["/bridge/connection", { method: "POST", body: "[]" }], ["/main.mjs", {}], ["/client/..%2f..%2fpackage.json", {}], ["/%2e%2e/desk/README.md", {}]]) {
      assert.equal((await fetch(origin + path, options)).status, 404, path);
    }
    assert.deepEqual(complaints, []);

    // The application ends, and the daemon with it.
    const daemon = childOf(main.pid);
    assert.ok(daemon);
    await context.close();
    main.kill("SIGTERM");
    await once(main, "exit");
    assert.equal(existsSync(`/proc/${daemon}/exe`), false);
  } catch (error) {
    if (complaints.length) error.message += `\nthe page said: ${complaints.join("\n")}`;
    throw error;
  } finally {
    main.kill("SIGKILL");
    rmSync(place, { recursive: true, force: true });
  }
});
