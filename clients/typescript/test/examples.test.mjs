// The examples as they are: run under Node, with Electron's parts played by the test.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { Client } from "../dist/index.js";
import { program } from "../../../tests/console/support.mjs";
import { main } from "../examples/electron-main.mjs";
import { startDaemon } from "../examples/daemon.mjs";

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

test("the Node example runs to its end, and the daemon with it", async () => {
  const { home, folder, environment } = place();
  const child = spawn(process.execPath, [...flags, new URL("node.mjs", examples).pathname, program, "demo"], { cwd: folder, env: environment, stdio: ["ignore", "pipe", "pipe"] });
  let shown = "";
  child.stdout.on("data", (text) => (shown += text));
  child.stderr.on("data", (text) => (shown += text));
  const [code] = await once(child, "close");
  assert.equal(code, 0, shown);
  assert.match(shown, /\[approving bash \{"command":"ls -la"\}: safe/);
  assert.match(shown, /\[end_turn, 3 turns, 2 calls\]/);
  rmSync(home, { recursive: true });
});

test("when the parent is killed, the daemon and its commands are gone", async () => {
  const { home, folder, environment } = place();
  const script = `
    import { startDaemon } from ${JSON.stringify(new URL("daemon.mjs", examples).href)};
    const daemon = await startDaemon({ program: ${JSON.stringify(program)}, folder: ${JSON.stringify(folder)} });
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
  const handlers = new Map();
  let loaded;
  class BrowserWindow {
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
    program,
    folder,
    preload: "preload.cjs",
  });
  process.env.HOME = before;
  assert.equal(loaded, "app://frontend/index.html");
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

test("a daemon that cannot start says why", async () => {
  const { home, folder } = place();
  await assert.rejects(startDaemon({ program, folder: join(folder, "nowhere") }), (error) => error.code === "configuration" && /nowhere/.test(error.message));
  await assert.rejects(startDaemon({ program: join(home, "nothing"), folder }), /could not be started/);
  rmSync(home, { recursive: true });
});
