/** Keeps the id of one session; give a client one of its own. */
export interface SessionStore {
    /** Returns the session to go on with; nothing for a new one. */
    get(): string | null;
    /** Keeps the session that the client is on from now on; `null` forgets it. */
    set(sessionId: string | null): void;
}
/** What `webStore` needs of a `Storage`. */
export interface WebStorage {
    getItem(key: string): string | null;
    setItem(key: string, value: string): void;
    removeItem(key: string): void;
}
/** Returns a store that is gone with this program, for tests and where nothing is to be left behind. */
export declare function memoryStore(sessionId?: string | null): SessionStore;
/**
 * Returns a store in a browser's storage: `localStorage`, which all tabs share and which outlives them, or
 * `sessionStorage`, which is one tab's. Where it is full or switched off, the client works, and a reload forgets.
 *
 * Two tabs on one session take it from each other; with `localStorage` have one tab at a time, or a `key` for each.
 */
export declare function webStore(storage?: WebStorage, key?: string): SessionStore;
