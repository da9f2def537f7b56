"use strict";
// Where a client keeps which session it is on, so that a page that is loaded again goes on with it.
Object.defineProperty(exports, "__esModule", { value: true });
exports.memoryStore = memoryStore;
exports.webStore = webStore;
/** Returns a store that is gone with this program, for tests and where nothing is to be left behind. */
function memoryStore(sessionId = null) {
    let now = sessionId;
    return {
        get: () => now,
        set: (sessionId) => {
            now = sessionId;
        },
    };
}
/**
 * Returns a store in a browser's storage: `localStorage`, which all tabs share and which outlives them, or
 * `sessionStorage`, which is one tab's. Where it is full or switched off, the client works, and a reload forgets.
 *
 * Two tabs on one session take it from each other; with `localStorage` have one tab at a time, or a `key` for each.
 */
function webStore(storage, key = "outrigger.session") {
    // Where it is switched off, looking at it is an error already.
    const use = (what) => {
        try {
            const it = storage ?? globalThis.localStorage;
            return it ? what(it) : null;
        }
        catch {
            return null;
        }
    };
    return {
        get: () => use((it) => it.getItem(key)),
        set: (sessionId) => {
            use((it) => (sessionId === null ? it.removeItem(key) : it.setItem(key, sessionId)));
        },
    };
}
