// What the tests of the page share: a daemon with a script of its own, and a browser.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const root = resolve(import.meta.dirname, "../..");
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
export const program = process.env.OUTRIGGER_PROGRAM ?? join(target, `debug/outrigger${process.platform === "win32" ? ".exe" : ""}`);
/** Kept as artefacts of the run. */
export const screenshots = join(target, "console-screenshots");
mkdirSync(screenshots, { recursive: true });

const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => existsSync(path));

/** Why there is no test, or nothing. */
export const missing = !chromium ? "Chromium is not installed (apt-get install chromium)" : !existsSync(program) ? `there is no ${program} (cargo build)` : "";

export async function browser() {
  const require = createRequire(join(root, "clients/typescript/package.json"));
  return require("playwright-core").chromium.launch({
    executablePath: chromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
      // What a test hands out in the daemon's place counts as a page from elsewhere.
      ...(process.env.OUTRIGGER_TEST_PAGE ? ["--disable-features=LocalNetworkAccessChecks"] : []),
    ],
  });
}

/** What a page finds besides: the client, for what a test does in the page itself. */
export async function equip(context) {
  await context.route("**/test-client/*.js", (route) =>
    route.fulfill({ path: join(root, "clients/typescript/dist", new URL(route.request().url()).pathname.replace(/.*\//, "")), contentType: "text/javascript" }),
  );
  if (!process.env.OUTRIGGER_TEST_PAGE) return;
  // The page as it is in the folder, not as it was compiled in, with the daemon's headers.
  const page = join(root, "clients/console");
  const files = { "/": "index.html", "/console/app.js": "dist/app.js", "/console/style.css": "dist/style.css" };
  await context.route(
    // Not a server of a command's, which has a page of its own.
    (url) => url.pathname in files && Daemon.isOne(url.port),
    async (route) => {
      const { "content-length": _, ...headers } = (await route.fetch()).headers();
      const body = readFileSync(join(page, files[new URL(route.request().url()).pathname]));
      await route.fulfill({ headers, body });
    },
  );
}

/**
 * Has a page wait as long as these tests do; returns all that it complains about, but for what is expected.
 *
 * @param {any} page
 * @param {RegExp} expected
 * @param {string[]} [complaints] where they are added, of several pages
 */
export function watched(page, expected, complaints = []) {
  page.setDefaultTimeout(Number(process.env.OUTRIGGER_TEST_WAIT ?? 30_000));
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !expected.test(message.text())) complaints.push(message.text());
  });
  return complaints;
}

/** For a daemon whose sessions end with it. */
export const KEEPS_NOTHING = { OUTRIGGER_STORE__ENABLED: "false" };

export class Daemon {
  /** @type {Set<Daemon>} */
  static #running = new Set();

  /** Whether a daemon of these tests listens there. @param {string} port */
  static isOne(port) {
    return [...Daemon.#running].some((daemon) => String(daemon.port) === port);
  }

  /** Those that a failed test left: with one of them the test process would never end. */
  static async endAll() {
    for (const daemon of [...Daemon.#running]) await daemon.end();
  }

  /**
   * @param {{script?: string, files?: Record<string, string>, port?: number, token?: string, environment?: Record<string, string>, place?: string, isAsked?: boolean, config?: object}} options
   *   `config`: more of it, beside the script
   *   `isAsked`: with an MCP server that asks (`asking.mjs`), whose calls need no approval
   */
  static async start(options = {}) {
    const place = options.place ?? mkdtempSync(join(tmpdir(), "outrigger-page-"));
    const project = join(place, "project");
    mkdirSync(project, { recursive: true });
    for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(project, name), text);
    const environment = { PATH: process.env.PATH, HOME: place, OUTRIGGER_APPROVAL__TIMEOUT: "10m", OUTRIGGER_CHAT__DETECT_OLLAMA: "", ...options.environment };
    if (options.token) environment.OUTRIGGER_TOKEN = options.token;
    if (options.script) {
      writeFileSync(join(place, "script.yaml"), options.script);
      const config = { ...options.config, providers: { scripted: { kind: "scripted", script: join(place, "script.yaml") } } };
      if (options.isAsked) {
        const folder = join(place, "asking");
        mkdirSync(folder, { recursive: true });
        Object.assign(config, {
          chat: { trust_level: "autonomous" },
          mcpServers: { asking: { command: "node", args: [join(import.meta.dirname, "asking.mjs"), folder] } },
        });
      }
      writeFileSync(join(place, "config.json"), JSON.stringify(config));
    }
    const args = ["--port", String(options.port ?? 0), "--project-root", project];
    if (options.script) args.push("--config", join(place, "config.json"));
    const child = spawn(program, args, { env: environment, stdio: ["pipe", "pipe", process.env.OUTRIGGER_TEST_LOG ? "inherit" : "ignore"] });
    const [line] = await new Promise((done, failed) => {
      createInterface({ input: child.stdout }).once("line", (text) => done([text]));
      child.once("error", failed);
      child.once("exit", (code, signal) => failed(new Error(`the daemon ended (${code ?? signal}) before it was ready`)));
    });
    const ready = JSON.parse(line);
    if (ready.event !== "ready") throw new Error(line);
    const daemon = Object.assign(new Daemon(), { child, ready, place, port: ready.port, token: options.token ?? ready.token });
    Daemon.#running.add(daemon);
    return daemon;
  }

  get page() {
    return this.ready.token ? this.ready.console : `${this.ready.console}#token=${this.token}`;
  }

  /** Ends it; `keep` for another one in the same place. */
  async end(keep = false) {
    Daemon.#running.delete(this);
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const gone = new Promise((done) => this.child.once("exit", done));
      this.child.kill("SIGKILL");
      await gone;
    }
    if (!keep) rmSync(this.place, { recursive: true, force: true });
  }
}
