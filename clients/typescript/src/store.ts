// Where a client keeps which session it is on, so that a page that is loaded again goes on with it.

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
export function memoryStore(sessionId: string | null = null): SessionStore {
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
export function webStore(storage?: WebStorage, key = "outrigger.session"): SessionStore {
  // Where it is switched off, looking at it is an error already.
  const use = <T>(what: (it: WebStorage) => T): T | null => {
    try {
      const it = storage ?? (globalThis as { localStorage?: WebStorage }).localStorage;
      return it ? what(it) : null;
    } catch {
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
