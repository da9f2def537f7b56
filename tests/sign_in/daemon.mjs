// A daemon with one MCP server, and its user: who opens the pages that it names, and may paste where they end.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import WebSocket from "ws";

/** How long anything is waited for, in milliseconds. */
const PATIENCE = 25_000;

export class Daemon {
  /** Starts one. `server` is what stands in its configuration; `folder` one that another left. */
  static async start(server, { folder = mkdtempSync(join(tmpdir(), "outrigger-sign-in-")), hidden = [] } = {}) {
    const daemon = new Daemon();
    daemon.folder = folder;
    mkdirSync(join(folder, "project"), { recursive: true });
    const config = {
      server: { port: 0 },
      project: { root: join(folder, "project"), central: join(folder, "central") },
      store: { path: join(folder, "state/outrigger.db") },
      chat: { provider: "scripted", trust_level: "autonomous" },
      mcp: { tokens: "file", servers: { peer: server } },
    };
    writeFileSync(join(folder, "config.json"), JSON.stringify(config));
    const program = process.env.OUTRIGGER ?? "outrigger";
    daemon.child = spawn(program, ["serve", "--config", join(folder, "config.json")], { stdio: ["pipe", "pipe", "pipe"] });
    daemon.log = "";
    daemon.child.stderr.on("data", (text) => (daemon.log += text));
    const [line] = await within(once(createInterface({ input: daemon.child.stdout }), "line"), "ready line");
    const { url, token, port } = JSON.parse(line);
    daemon.port = port;
    daemon.frames = [];
    daemon.waiting = new Set();
    daemon.hidden = hidden;
    daemon.socket = new WebSocket(url, { headers: { Authorization: `Bearer ${token}` } });
    daemon.socket.on("message", (text) => {
      daemon.frames.push(JSON.parse(text));
      for (const look of daemon.waiting) look();
    });
    await within(once(daemon.socket, "open"), "socket");
    return daemon;
  }

  /** Waits for a frame after the first `from`, also among those that came. */
  async until(what, wanted, from = 0) {
    const found = () => this.frames.slice(from).find(wanted);
    if (found()) return found();
    let look;
    const wait = new Promise((done) => {
      look = () => found() && done(found());
      this.waiting.add(look);
    });
    try {
      return await within(wait, what, () => JSON.stringify(this.frames.slice(-3)) + this.log.slice(-2000));
    } finally {
      this.waiting.delete(look);
    }
  }

  async ask(type, payload = {}) {
    const id = `q${(this.asked = (this.asked ?? 0) + 1)}`;
    this.socket.send(JSON.stringify({ type, id, payload }));
    const answer = await this.until(type, (it) => it.replyTo === id);
    if (answer.type === "session:error") throw new Error(answer.payload.message);
    return answer.payload;
  }

  async row() {
    return (await this.ask("mcp:list")).servers[0];
  }

  /** Waits until the server is in one of these states; returns its row. */
  async settled(...states) {
    for (;;) {
      const seen = this.frames.length;
      const row = await this.row();
      if (states.includes(row.state)) return row;
      const isNews = (it) => it.type === "session:notice" || it.type === "mcp:auth-required";
      await this.until(`${states} and not ${JSON.stringify(row)}`, isNews, seen);
    }
  }

  /** Waits for the server's wish to sign in. */
  async demand(from = 0) {
    return (await this.until("mcp:auth-required", (it) => it.type === "mcp:auth-required", from)).payload;
  }

  /** Runs a tool; returns its result. */
  async call(toolName, input = {}) {
    const { toolId } = await this.ask("tool:execute", { toolName, input });
    return (await this.until(toolName, (it) => it.type === "chat:tool-result" && it.payload.toolId === toolId)).payload;
  }

  /** Ends it; nothing secret may be in what it said. */
  async end({ keep = false } = {}) {
    this.socket.terminate();
    this.child.stdin.end();
    if (this.child.exitCode === null) await within(once(this.child, "exit"), "its end");
    for (const secret of this.hidden) {
      if (this.log.includes(secret)) throw new Error(`the log holds ${secret}`);
      const frames = JSON.stringify(this.frames);
      if (frames.includes(secret)) throw new Error(`a frame holds ${secret}`);
    }
    if (!keep) rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function within(promise, what, more = () => "") {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`waited ${PATIENCE / 1000} s for ${what}: ${more()}`)), PATIENCE);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Opens a page as a browser would whose user says yes; returns where it ended and what stands there. */
export async function browse(url, { stop = () => false } = {}) {
  const cookies = new Map();
  let at = new URL(url);
  let form = null;
  for (let step = 0; step < 20; step += 1) {
    if (stop(at)) return { url: at.href };
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { ...(cookie ? { cookie } : {}), ...(form ? { "content-type": "application/x-www-form-urlencoded" } : {}) };
    const answer = await fetch(at, { redirect: "manual", method: form ? "POST" : "GET", body: form, headers });
    for (const set of answer.headers.getSetCookie()) {
      const [pair] = set.split(";");
      const [name, ...value] = pair.split("=");
      cookies.set(name, value.join("="));
    }
    form = null;
    const to = answer.headers.get("location");
    const text = await answer.text();
    if (to) {
      at = new URL(to, at);
      continue;
    }
    const action = /<form[^>]*action="([^"]+)"/.exec(text)?.[1];
    const prompt = /name="prompt" value="([^"]+)"/.exec(text)?.[1];
    if (!action || !prompt) return { url: at.href, status: answer.status, text };
    at = new URL(action.replaceAll("&amp;", "&"), at);
    form = new URLSearchParams({ prompt, login: "anna", password: "x" }).toString();
  }
  throw new Error(`too many steps from ${url}`);
}
