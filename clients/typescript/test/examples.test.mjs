// The examples as they are: run under Node, with Electron's parts played by the test.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import test from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { Client } from "../dist/index.js";
import { program } from "../../../tests/console/support.mjs";
import { main } from "../examples/electron-main.mjs";
import { spawnDaemon } from "../dist/node.js";

const examples = new URL("../examples/", import.meta.url);
const flags = process.execArgv.filter((flag) => flag.includes("websocket"));

function place() {
  const home = mkdtempSync(join(tmpdir(), "outrigger-example-"));
  const folder = join(home, "project");
  mkdirSync(folder);
  writeFileSync(join(folder, "README.md"), "# Demo\n");
  // Nothing of this shell's environment: a key in it would choose another provider.
  return { home, folder, environment: { PATH: process.env.PATH, HOME: home } };
}

/** Whether a process is there; one that nobody has waited for yet is not. */
const isThere = (pid) => existsSync(`/proc/${pid}/exe`) && (() => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
})();

/** Runs a program of Node to its end. */
async function run(args, folder, environment) {
  const child = spawn(process.execPath, [...flags, ...args], { cwd: folder, env: environment, stdio: ["ignore", "pipe", "pipe"] });
  let shown = "";
  child.stdout.on("data", (text) => (shown += text));
  child.stderr.on("data", (text) => (shown += text));
  const [code] = await once(child, "close");
  return { code, shown };
}

const node = new URL("node.mjs", examples).pathname;

test("the Node example runs to its end, and the daemon with it", async () => {
  const { home, folder, environment } = place();
  const { code, shown } = await run([node, program, "demo"], folder, environment);
  assert.equal(code, 0, shown);
  assert.match(shown, /\[approving bash \{"command":"ls -la"\}: safe/);
  assert.match(shown, /\[end_turn, 3 turns, 2 calls\]/);
  rmSync(home, { recursive: true });
});

test("the Node example writes what the tour says that it wrote", async () => {
  const { home, folder, environment } = place();
  const { code, shown } = await run([node, program, "tour"], folder, environment);
  assert.equal(code, 0, shown);
  assert.match(shown, /\[approving file_write [^]*\[approving file_edit [^]*\[denying bash \{"command":"rm outrigger-tour.md && git push --force"\}/);
  assert.match(readFileSync(join(folder, "outrigger-tour.md"), "utf8"), /at the end of the tour it will be/);
  rmSync(home, { recursive: true });
});

test("the Node example finds the program from wherever it is run", async () => {
  const { home, folder, environment } = place();
  const { code, shown } = await run([node], folder, environment);
  const built = join(import.meta.dirname, "../../../target/release/outrigger");
  if (existsSync(built)) assert.equal(code, 0, shown);
  else assert.ok(code === 2 && shown.includes(`${built} could not be started`), shown);
  rmSync(home, { recursive: true });
});

test("the client is added by its path, and what the READMEs show runs as it stands", async () => {
  const { home, folder, environment } = place();
  const added = spawnSync("npm", ["install", "--offline", "--no-audit", "--no-fund", join(import.meta.dirname, "..")], { cwd: folder, env: environment, encoding: "utf8" });
  assert.equal(added.status, 0, added.stderr);
  const snippet = (name, which = 0) => {
    const text = readFileSync(new URL(name, import.meta.url), "utf8");
    const snippets = [...text.matchAll(/```js\n([^]*?)```/g)];
    writeFileSync(join(folder, "snippet.mjs"), snippets[which][1]);
    return join(folder, "snippet.mjs");
  };
  const onPath = { ...environment, PATH: `${dirname(program)}${delimiter}${environment.PATH}` };
  const whole = await run([snippet("../../../README.md")], folder, onPath);
  assert.ok(whole.code === 0 && whole.shown.includes("hello"), whole.shown);

  const started = await run([snippet("../README.md")], folder, onPath);
  assert.ok(started.code === 0 && started.shown.includes("hello"), started.shown);

  const daemon = await spawnDaemon({ bin: program, project: folder });
  const given = { ...environment, OUTRIGGER_URL: daemon.url, OUTRIGGER_TOKEN: daemon.token };
  const client = await run([snippet("../README.md", 1)], folder, given);
  assert.ok(client.code === 0 && client.shown.includes("type: 'text'"), client.shown);
  const tools = await run([snippet("../README.md", 2)], folder, given);
  assert.equal(tools.code, 0, tools.shown);
  assert.match(tools.shown, /^opening README.md$/m);
  assert.match(tools.shown, /^README.md is open at line 3$/m);
  await daemon.close();
  rmSync(home, { recursive: true });
});

test("when the parent is killed, the daemon and its commands are gone", async () => {
  const { home, folder, environment } = place();
  const script = `
    import { spawnDaemon } from ${JSON.stringify(new URL("../dist/node.js", examples).href)};
    const daemon = await spawnDaemon({ bin: ${JSON.stringify(program)}, project: ${JSON.stringify(folder)} });
    console.log(daemon.pid);
    setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", script], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
  const [text] = await once(parent.stdout, "data");
  const pid = Number(String(text));
  assert.ok(isThere(pid));
  parent.kill("SIGKILL");
  await once(parent, "exit");
  while (isThere(pid)) await pause(10);
  rmSync(home, { recursive: true });
});

test("Electron's main process hands the connection on, and ends the daemon with the application", async () => {
  const { home, folder } = place();
  const app = Object.assign(new EventEmitter(), { exit: () => assert.fail("no error"), quit: () => app.emit("quit") });
  let isReady = false;
  app.whenReady = async () => {
    await pause(1);
    isReady = true;
  };
  const schemes = new Map();
  const protocol = {
    registerSchemesAsPrivileged(list) {
      assert.equal(isReady, false, "schemes are registered before ready");
      for (const { scheme, privileges } of list) schemes.set(scheme, { privileges });
    },
    handle(scheme, handler) {
      assert.equal(isReady, true, "a scheme is handled once the application is ready");
      schemes.get(scheme).handler = handler;
    },
  };
  const handlers = new Map();
  let loaded;
  class BrowserWindow {
    webContents = Object.assign(new EventEmitter(), { setWindowOpenHandler: (handler) => assert.equal(handler({ url: "https://example.org" }).action, "deny") });
    constructor({ webPreferences }) {
      assert.deepEqual([webPreferences.contextIsolation, webPreferences.nodeIntegration, webPreferences.sandbox], [true, false, true]);
    }
    async loadURL(url) {
      loaded = url;
    }
  }
  const before = process.env.HOME;
  process.env.HOME = home;
  const daemon = await main({
    app,
    BrowserWindow,
    ipcMain: { handle: (name, handler) => handlers.set(name, handler) },
    dialog: { showErrorBox: (title, text) => assert.fail(`${title}: ${text}`) },
    protocol,
    program,
    folder,
    preload: "preload.cjs",
  });
  process.env.HOME = before;
  assert.equal(loaded, "app://frontend/index.html");
  const { privileges, handler } = schemes.get("app");
  assert.deepEqual(privileges, { standard: true, secure: true, supportFetchAPI: true });
  const page = await handler({ url: loaded });
  assert.ok(page.status === 200 && (await page.text()).includes('src="page.js"'));
  for (const path of ["page.js", "client/index.js", "client/client.js"]) {
    const { status, headers } = await handler({ url: `app://frontend/${path}` });
    assert.deepEqual([status, headers.get("content-type")], [200, "text/javascript"], path);
  }
  // Each of these is a file that is there, or would be one, outside of the page's folders.
  for (const path of ["../main.mjs", "..%2fpreload.cjs", "%2e%2e%2f..%2fdaemon.mjs", "client/..%2f..%2ftest%2frun.mjs", "client/..%2fdist%2findex.js", "..%5cmain.js", "", "%", "%00"]) {
    assert.equal((await handler({ url: `app://frontend/${path}` })).status, 404, path);
  }
  assert.equal((await handler({ url: "app://elsewhere/index.html" })).status, 404);
  const client = new Client(handlers.get("outrigger:connection")());
  assert.equal((await client.connect()).project.name, "project");
  client.close();
  const quit = once(app, "quit");
  let isPrevented = false;
  app.emit("before-quit", { preventDefault: () => (isPrevented = true) });
  await quit;
  assert.equal(isPrevented, true);
  assert.equal(await daemon.exited, 0);
  rmSync(home, { recursive: true });
});
