// docs/electron.md as somebody reads it: its commands and files in an empty folder, up to the first approval on screen.
//
//   node tests/packages/electron.mjs PLACE     with npm's settings for the registry in the environment; 77 where Chromium is missing
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";

import { browser, missing, screenshots } from "../console/support.mjs";

/** How long each step may take. */
const MOST_MS = 60_000;

const place = resolve(process.argv[2]);
const document = readFileSync(new URL("../../docs/electron.md", import.meta.url), "utf8");
const section = document.split(/^## /m).find((it) => it.startsWith("From an empty folder"));
/** The blocks in their order: commands, and files by the name that the line before them begins with. */
const blocks = [...section.matchAll(/(?:^`([\w./]+)`[^\n]*\n\n)?^```(\w+)\n([^]*?)^```$/gm)].map(([, name, kind, text]) => ({ name, kind, text }));
assert.ok(blocks.every(({ name, kind }) => (kind === "sh") !== Boolean(name)), "each file has a name, and no command has");

const env = { ...process.env, OUTRIGGER_CHAT__DETECT_OLLAMA: "" };
const [install, start] = blocks.filter(({ kind }) => kind === "sh");
console.log(install.text.trimEnd().replace(/^/gm, "$ "));
const installed = spawnSync("bash", ["-euc", install.text], { cwd: place, env, encoding: "utf8", timeout: 2 * MOST_MS });
assert.equal(installed.status, 0, installed.stdout + installed.stderr);
const folder = join(place, /^cd (.+)$/m.exec(install.text)[1]);
writeFileSync(join(folder, "README.md"), "# My app\n");
for (const { name, text } of blocks.filter((it) => it.name)) {
  console.log(`> ${name}, ${text.split("\n").length - 1} lines`);
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}
if (missing) {
  console.log(`*** SKIPPED: the window: ${missing} ***`);
  process.exit(77);
}

console.log(start.text.trimEnd().replace(/^/gm, "$ "));
const application = spawn("bash", ["-euc", `exec ${start.text}`], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"], detached: true });
const ended = once(application, "exit");
const late = setTimeout(() => process.kill(-application.pid, "SIGKILL"), 3 * MOST_MS);
try {
  const lines = createInterface({ input: application.stdout });
  const [line] = await Promise.race([once(lines, "line"), ended.then(([code]) => assert.fail(`the application ended with ${code}`))]);
  const chromium = await browser();
  const page = await chromium.newPage({ viewport: { width: 760, height: 560 } });
  page.setDefaultTimeout(MOST_MS);
  page.on("pageerror", (error) => console.error(`the page: ${error.message}`));
  await page.goto(line.replace("window ", ""));
  await page.getByText("Send").click();
  await page.getByText("May bash run? safe:").waitFor();
  assert.match(await page.locator("#questions pre").innerText(), /"command": "ls -la"/);
  const picture = join(screenshots, "electron-first-approval.png");
  await page.screenshot({ path: picture });
  console.log(`the first approval is on screen: ${picture}`);
  await page.getByText("Allow").click();
  await page.getByText("Thank you. The command ran").waitFor();
  assert.match(await page.locator("#messages").innerText(), /page/);
  await chromium.close();
  console.log("it was allowed, and the command ran");
} finally {
  const daemons = children(application.pid);
  process.kill(-application.pid, "SIGTERM");
  await ended;
  clearTimeout(late);
  for (const pid of daemons) while (existsSync(`/proc/${pid}/exe`)) await new Promise((done) => setTimeout(done, 10));
  console.log("the application has ended, and the daemon with it");
}

/** All processes below one. */
function children(pid) {
  const { stdout } = spawnSync("ps", ["-e", "-o", "pid=,ppid="], { encoding: "utf8" });
  const pairs = stdout.trim().split("\n").map((it) => it.trim().split(/\s+/).map(Number));
  const below = (one) => pairs.filter(([, parent]) => parent === one).flatMap(([child]) => [child, ...below(child)]);
  return below(pid);
}
