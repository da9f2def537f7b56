// For Node.js and Electron's main process: starts the daemon that this program talks to. All of the client is here too, so
// that one import is enough: `outrigger-client/node`.
//
// The token is made here and handed over through stdin, so it is in no argument, no environment and no output. The pipe
// stays open on purpose: however this process dies, its end ends the daemon and every process below it.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { Client } from "./client.js";
import { findBinary, notStarted } from "./binary.js";
export * from "./index.js";
export { findBinary };
/** Why there is no daemon. `message` says what to do. */
export class SpawnError extends Error {
    code;
    log;
    name = "SpawnError";
    constructor(
    /** `not_found`, `not_started`, `ended`, `timeout`, or the daemon's own code, e.g. `configuration`. */
    code, message, 
    /** The end of the daemon's log. */
    log = []) {
        super(message);
        this.code = code;
        this.log = log;
    }
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
/**
 * Starts a daemon on a free port of loopback; resolves once it listens.
 *
 * This process stays alive while the daemon runs: call `close()` to end both.
 *
 * @throws {SpawnError} where there is no program, or it does not get ready
 * @throws {RangeError} where `readyMs` is no time that can be waited for
 */
export async function spawnDaemon(options) {
    const { readyMs = READY_MS } = options;
    if (!(readyMs > 0 && readyMs <= MOST_MS))
        throw new RangeError(`readyMs is ${readyMs}: it has to be above 0, and at most ${MOST_MS}`);
    const found = await findBinary(options);
    if (typeof found !== "string")
        throw new SpawnError("not_found", found.message);
    const origins = (options.allowOrigins ?? []).flatMap((origin) => ["--allow-origin", origin]);
    const args = ["serve", "--port", "0", "--token-stdin", "--ready", "json", "--project-root", options.project, ...origins, ...(options.args ?? [])];
    const env = options.env ?? process.env;
    const child = started(found, args, env);
    const log = [];
    const exited = new Promise((done) => child.once("exit", done));
    const tell = careful(options.log);
    createInterface({ input: child.stderr }).on("line", (line) => {
        if (log.push(line) > LOG_LINES)
            log.shift();
        tell(line);
    });
    child.once("exit", () => letGo(child));
    child.on("error", () => { }); // What is of interest is heard by `ready`.
    child.stdin.on("error", () => { }); // A daemon that could not start reads no token.
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
    }
    catch (error) {
        child.kill();
        // Not waited for: who asked is told at once.
        void ended(child, exited);
        throw error;
    }
}
/** Starts the program. Node.js throws some reasons for which it cannot be started, and tells others later. */
function started(program, args, env) {
    try {
        return spawn(program, args, { env, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
    }
    catch (error) {
        throw new SpawnError("not_started", notStarted(program, error));
    }
}
/** A listener whose failure does no harm to the daemon, and is said once. */
function careful(listener = () => { }) {
    let isTold = false;
    const failed = (error) => {
        if (!isTold)
            process.emitWarning(`the option \`log\` of spawnDaemon failed: ${error}`, "OutriggerWarning");
        isTold = true;
    };
    return (line) => {
        try {
            // It may be an async function.
            Promise.resolve(listener(line)).catch(failed);
        }
        catch (error) {
            failed(error);
        }
    };
}
/** Closes the pipes of a program that has ended, where what it started keeps them open; `close` comes then. */
function letGo(child) {
    const late = setTimeout(() => child.stdio.forEach((pipe) => pipe?.destroy()), LOG_MS).unref();
    child.once("close", () => clearTimeout(late));
}
/** Ends a daemon, by force where it takes too long. */
async function ended(child, exited) {
    child.stdin.end();
    const late = setTimeout(() => child.kill("SIGKILL"), END_MS);
    // A program that was never there has no end to wait for.
    if (child.pid !== undefined)
        await exited;
    clearTimeout(late);
    return child.pid === undefined ? null : exited;
}
/** Waits for the first line. */
async function ready(child, program, log, most) {
    let late;
    try {
        const line = await new Promise((done, failed) => {
            createInterface({ input: child.stdout }).once("line", done);
            child.once("error", (error) => failed(new SpawnError("not_started", notStarted(program, error))));
            // After its streams have ended: the log is whole. `letGo` sees to it that they end.
            child.once("close", (code) => failed(new SpawnError("ended", `${program} ended without a word, exit code ${code}: ${log.at(-1) ?? "its log is empty"}`, log)));
            late = setTimeout(() => failed(new SpawnError("timeout", `${program} was not ready after ${most} ms: ${log.at(-1) ?? "its log is empty"}`, log)), most);
        });
        const start = startOf(line);
        if (start === undefined)
            throw new SpawnError("not_started", `${program} is no Outrigger: its first line is ${JSON.stringify(line.slice(0, SHOWN))}`, log);
        if (start.event === "ready")
            return start;
        throw new SpawnError(start.code ?? "failed", `${start.message}; ${start.hint}`, log);
    }
    finally {
        clearTimeout(late);
    }
}
/** What a first line says, where it is one of Outrigger's. */
function startOf(line) {
    let start;
    try {
        start = JSON.parse(line);
    }
    catch {
        return undefined;
    }
    const isOurs = start?.event === "ready"
        ? // TLS is a proxy's.
            typeof start.url === "string" && /^ws:\/\/[^\s/]+:\d+\/ws$/.test(start.url) && Number.isInteger(start.pid) && typeof start.version === "string"
        : typeof start?.event === "string" && typeof start.message === "string";
    return isOurs ? start : undefined;
}
