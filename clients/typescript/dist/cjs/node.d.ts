import { Client, type ClientOptions } from "./client.js";
import { findBinary } from "./binary.js";
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
export declare class SpawnError extends Error {
    /** `not_found`, `not_started`, `ended`, `timeout`, or the daemon's own code, e.g. `configuration`. */
    readonly code: string;
    /** The end of the daemon's log. */
    readonly log: readonly string[];
    readonly name = "SpawnError";
    constructor(
    /** `not_found`, `not_started`, `ended`, `timeout`, or the daemon's own code, e.g. `configuration`. */
    code: string, message: string, 
    /** The end of the daemon's log. */
    log?: readonly string[]);
}
/** A daemon that this process has started; it ends with it. */
export interface Daemon {
    /** Where it listens, e.g. `ws://127.0.0.1:40123/ws`. */
    readonly url: string;
    readonly token: string;
    /** Both of them: what a window needs to connect. */
    readonly connection: {
        url: string;
        token: string;
    };
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
export declare function spawnDaemon(options: SpawnOptions): Promise<Daemon>;
