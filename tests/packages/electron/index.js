// What the application of docs/electron.md has of Electron, played in Node.js: npm's `electron` fetches a browser when it is
// installed, which cannot be had everywhere. A window is an address of loopback, which is printed for the test to open in Chromium.
//
// As in Electron: schemes are registered before `ready` and handled after it, the preload script is run before the page's own, and
// what it exposes reaches `ipcMain`. Not as in Electron: the page's origin, and all that a real window does.
"use strict";
const assert = require("node:assert/strict");
const { EventEmitter } = require("node:events");
const { readFile } = require("node:fs/promises");
const { createServer } = require("node:http");
const { extname } = require("node:path");
const { fileURLToPath } = require("node:url");

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };
let isReady = false;
const schemes = new Map();
const handlers = new Map();

exports.app = Object.assign(new EventEmitter(), {
  async whenReady() {
    await new Promise((done) => setTimeout(done, 1));
    isReady = true;
  },
  quit() {
    exports.app.emit("will-quit");
    process.exit(0);
  },
  exit: (code) => process.exit(code),
});
exports.protocol = {
  registerSchemesAsPrivileged(list) {
    assert.equal(isReady, false, "schemes are registered before the application is ready");
    for (const { scheme, privileges } of list) {
      assert.ok(privileges.standard && privileges.secure, scheme);
      schemes.set(scheme, undefined);
    }
  },
  handle(scheme, handler) {
    assert.ok(isReady && schemes.has(scheme), "a scheme is handled once the application is ready");
    schemes.set(scheme, handler);
  },
};
exports.ipcMain = { handle: (name, handler) => handlers.set(name, handler) };
exports.dialog = { showErrorBox: (title, text) => console.error(`${title}\n${text}`) };
exports.net = {
  async fetch(url) {
    const path = fileURLToPath(url);
    return new Response(await readFile(path), { headers: { "content-type": TYPES[extname(path)] ?? "application/octet-stream" } });
  },
};

/** The preload script, with Electron's parts of a page. */
const preloaded = (text) => `<script>(() => {
  const invoke = async (name, ...values) => (await fetch("/ipc", { method: "POST", body: JSON.stringify([name, ...values]) })).json();
  const electron = { contextBridge: { exposeInMainWorld: (name, value) => (window[name] = value) }, ipcRenderer: { invoke } };
  ((require) => { ${text} })(() => electron);
})()</script>`;

exports.BrowserWindow = class BrowserWindow extends EventEmitter {
  #preload;
  constructor({ webPreferences: { preload, contextIsolation = true, nodeIntegration = false, sandbox = true } }) {
    super();
    assert.deepEqual([contextIsolation, nodeIntegration, sandbox], [true, false, true], "a page has nothing of Node.js");
    this.#preload = preload;
  }

  async loadURL(url) {
    const { protocol, host, pathname } = new URL(url);
    const handler = schemes.get(protocol.slice(0, -1));
    assert.ok(handler, `${protocol} is handled`);
    const preload = preloaded(await readFile(this.#preload, "utf8"));
    const server = createServer(async (request, response) => {
      try {
        if (request.url === "/ipc") {
          const [name, ...values] = JSON.parse((await request.toArray()).join(""));
          response.end(JSON.stringify((await handlers.get(name)({}, ...values)) ?? null));
          return;
        }
        const answer = await handler({ url: `${protocol}//${host}${request.url}` });
        const type = answer.headers.get("content-type");
        response.writeHead(answer.status, { "content-type": type });
        const body = Buffer.from(await answer.arrayBuffer());
        response.end(type?.startsWith("text/html") ? preload + body : body);
      } catch (error) {
        response.writeHead(404).end(error.message);
      }
    }).listen(0, "127.0.0.1", () => console.log(`window http://127.0.0.1:${server.address().port}${pathname}`));
    this.close = () => {
      server.close();
      server.closeAllConnections();
      this.emit("closed");
      exports.app.emit("window-all-closed");
    };
    process.once("SIGTERM", this.close);
  }
};
