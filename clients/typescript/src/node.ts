// For Node.js and Electron's main process: starts the daemon that this program talks to. All of the client is here too, so
// that one import is enough: `outrigger-client/node`.
//
// The token is made here and handed over through stdin, so it is in no argument, no environment and no output. The pipe
// stays open on purpose: however this process dies, its end ends the daemon and every process below it.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";

import { Client, type ClientOptions } from "./client.js";
import { findBinary, notStarted } from "./binary.js";

export * from "./index.js";
export { findBinary };

export interface SpawnOptions {
  /** The folder that the model works in. */
  project: string;
  /**
   * The program. Where absent: what `OUTRIGGER_BIN` names, that of the npm package `outrigger`, or `outrigger` on the PATH,
   * in this order.
   */
  bin?: string;
  /** Origins of pages that may connect, e.g. `app://frontend`; loopback's may without. */
  allowOrigins?: readonly string[];
  /** More arguments of `outrigger serve`, e.g. `["--config", "outrigger.toml"]`. */
  args?: readonly string[];
  /** The daemon's environment, in the place of this process's: providers' keys are taken from it. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Is given each line of the daemon's log, a JSON object. Where it throws, a warning of the process says so once. */
  log?: (line: string) => void;
  /** How long the daemon may take to be ready, in milliseconds; 30,000 where absent. */
  readyMs?: number;
  /** What the daemon's `client` is made with besides address and token. */
  client?: Omit<ClientOptions, "url" | "token">;
}

/** Why there is no daemon. `message` says what to do. */
export class SpawnError extends Error {
  override readonly name = "SpawnError";
  constructor(
    /** `not_found`, `not_started`, `ended`, `timeout`, or the daemon's own code, e.g. `configuration`. */
    readonly code: string,
    message: string,
    /** The end of the daemon's log. */
    readonly log: readonly string[] = [],
  ) {
    super(message);
  }
}

/** The line by which a daemon says that it is ready, or why it is not. */
interface Start {
  event: string;
  url: string;
  pid: number;
  version: string;
  console?: string;
  warnings?: string[];
  code?: string;
  message?: string;
  hint?: string;
}

/** Lines of the log that are kept for an error. */
const LOG_LINES = 20;
const READY_MS = 30_000;
/** The longest that a timer can be set to. */
const MOST_MS = 2 ** 31 - 1;
/** How long a daemon may take to end. It gives what runs 5 s by default (`shutdown.grace`). */
const END_MS = 15_000;
/** How long the rest of the log is waited for after the daemon's end: what it started may hold the pipe open for ever. */
const LOG_MS = 1_000;
/** What is shown of a first line that is not Outrigger's. */
const SHOWN = 80;

/** A daemon that this process has started; it ends with it. */
export interface Daemon {
  /** Where it listens, e.g. `ws://127.0.0.1:40123/ws`. */
  readonly url: string;
  readonly token: string;
  /** Both of them: what a window needs to connect. */
  readonly connection: { url: string; token: string };
  readonly pid: number;
  readonly version: string;
  /** Its own page, where it serves one; it asks for the token. */
  readonly console: string | undefined;
  /** What its configuration has that does nothing, or not what it seems to. */
  readonly warnings: readonly string[];
  /** Not connected yet: call its `connect()`, or give `connection` to a window and have that connect. */
  readonly client: Client;
  /** The end of its log, one JSON object a line. */
  readonly log: readonly string[];
  /** Resolves with the exit code, or null where a signal ended it. */
  readonly exited: Promise<number | null>;
  /** Ends the client's connection, then the daemon and all that it runs; resolves as `exited` does. */
  close(): Promise<number | null>;
}

/**
 * Starts a daemon on a free port of loopback; resolves once it listens.
 *
 * This process stays alive while the daemon runs: call `close()` to end both.
 *
 * @throws {SpawnError} where there is no program, or it does not get ready
 * @throws {RangeError} where `readyMs` is no time that can be waited for
 */
export async function spawnDaemon(options: SpawnOptions): Promise<Daemon> {
  const { readyMs = READY_MS } = options;
  if (!(readyMs > 0 && readyMs <= MOST_MS)) throw new RangeError(`readyMs is ${readyMs}: it has to be above 0, and at most ${MOST_MS}`);
  const found = await findBinary(options);
  if (typeof found !== "string") throw new SpawnError("not_found", found.message);
  const origins = (options.allowOrigins ?? []).flatMap((origin) => ["--allow-origin", origin]);
  const args = ["serve", "--port", "0", "--token-stdin", "--ready", "json", "--project-root", options.project, ...origins, ...(options.args ?? [])];
  const env = options.env ?? process.env;
  const child = started(found, args, env);
  const log: string[] = [];
  const exited = new Promise<number | null>((done) => child.once("exit", done));
  const tell = careful(options.log);
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (log.push(line) > LOG_LINES) log.shift();
    tell(line);
  });
  child.once("exit", () => letGo(child));
  child.on("error", () => {}); // What is of interest is heard by `ready`.
  child.stdin.on("error", () => {}); // A daemon that could not start reads no token.
  const token = randomBytes(32).toString("hex");
  child.stdin.write(`${token}\n`);
  try {
    const { url, pid, version, console, warnings = [] } = await ready(child, found, log, readyMs);
    const connection = { url, token };
    const client = new Client({ ...options.client, ...connection });
    const close = () => {
      client.close();
      return ended(child, exited);
    };
    return { ...connection, connection, pid, version, console, warnings, client, log, exited, close };
  } catch (error) {
    child.kill();
    // Not waited for: who asked is told at once.
    void ended(child, exited);
    throw error;
  }
}

/** Starts the program. Node.js throws some reasons for which it cannot be started, and tells others later. */
function started(program: string, args: string[], env: NodeJS.ProcessEnv): ChildProcessWithoutNullStreams {
  try {
    return spawn(program, args, { env, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
  } catch (error) {
    throw new SpawnError("not_started", notStarted(program, error as NodeJS.ErrnoException));
  }
}

/** A listener whose failure does no harm to the daemon, and is said once. */
function careful(listener: (line: string) => unknown = () => {}): (line: string) => void {
  let isTold = false;
  const failed = (error: unknown) => {
    if (!isTold) process.emitWarning(`the option \`log\` of spawnDaemon failed: ${error}`, "OutriggerWarning");
    isTold = true;
  };
  return (line) => {
    try {
      // It may be an async function.
      Promise.resolve(listener(line)).catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}

/** Closes the pipes of a program that has ended, where what it started keeps them open; `close` comes then. */
function letGo(child: ChildProcessWithoutNullStreams): void {
  const late = setTimeout(() => child.stdio.forEach((pipe) => pipe?.destroy()), LOG_MS).unref();
  child.once("close", () => clearTimeout(late));
}

/** Ends a daemon, by force where it takes too long. */
async function ended(child: ChildProcessWithoutNullStreams, exited: Promise<number | null>): Promise<number | null> {
  child.stdin.end();
  const late = setTimeout(() => child.kill("SIGKILL"), END_MS);
  // A program that was never there has no end to wait for.
  if (child.pid !== undefined) await exited;
  clearTimeout(late);
  return child.pid === undefined ? null : exited;
}

/** Waits for the first line. */
async function ready(child: ChildProcessWithoutNullStreams, program: string, log: string[], most: number): Promise<Start> {
  let late: ReturnType<typeof setTimeout> | undefined;
  try {
    const line = await new Promise<string>((done, failed) => {
      createInterface({ input: child.stdout }).once("line", done);
      child.once("error", (error) => failed(new SpawnError("not_started", notStarted(program, error))));
      // After its streams have ended: the log is whole. `letGo` sees to it that they end.
      child.once("close", (code) => failed(new SpawnError("ended", `${program} ended without a word, exit code ${code}: ${log.at(-1) ?? "its log is empty"}`, log)));
      late = setTimeout(() => failed(new SpawnError("timeout", `${program} was not ready after ${most} ms: ${log.at(-1) ?? "its log is empty"}`, log)), most);
    });
    const start = startOf(line);
    if (start === undefined) throw new SpawnError("not_started", `${program} is no Outrigger: its first line is ${JSON.stringify(line.slice(0, SHOWN))}`, log);
    if (start.event === "ready") return start;
    throw new SpawnError(start.code ?? "failed", `${start.message}; ${start.hint}`, log);
  } finally {
    clearTimeout(late);
  }
}

/** What a first line says, where it is one of Outrigger's. */
function startOf(line: string): Start | undefined {
  let start: Partial<Start> | null;
  try {
    start = JSON.parse(line) as Partial<Start> | null;
  } catch {
    return undefined;
  }
  const isOurs =
    start?.event === "ready"
      ? // TLS is a proxy's.
        typeof start.url === "string" && /^ws:\/\/[^\s/]+:\d+\/ws$/.test(start.url) && Number.isInteger(start.pid) && typeof start.version === "string"
      : typeof start?.event === "string" && typeof start.message === "string";
  return isOurs ? (start as Start) : undefined;
}
