// What a reload of the page finds again. It is this tab's alone, and gone with it.

export const store = {
  get: (/** @type {string} */ name) => {
    try {
      return JSON.parse(sessionStorage.getItem(`outrigger.${name}`) ?? "null");
    } catch {
      return null;
    }
  },
  set: (/** @type {string} */ name, /** @type {unknown} */ value) => {
    try {
      sessionStorage.setItem(`outrigger.${name}`, JSON.stringify(value));
    } catch {
      // Full or switched off: the page works, a reload forgets.
    }
  },
};

/** Most characters of messages that are kept, and of one call's output. */
const KEPT = { all: 1_000_000, call: 4_000 };

/** The newest messages, as far as a tab may keep them. @param {any[]} messages */
export function trimmed(messages) {
  /** @type {any[]} */
  const kept = [];
  let room = KEPT.all;
  for (const message of messages.toReversed()) {
    const blocks = message.blocks.map((/** @type {any} */ it) =>
      it.type === "tool_call" ? { ...it, content: undefined, inputText: "", output: it.output.slice(-KEPT.call), ...(it.result !== undefined && { result: it.result.slice(0, KEPT.call) }) } : it,
    );
    // Pictures and documents are too large for it; the text names them.
    const short = { ...message, content: undefined, blocks };
    room -= JSON.stringify(short).length;
    if (room < 0) break;
    kept.unshift(short);
  }
  return kept;
}

/** What is in the forms of servers and not sent yet, by request. A request's id is one of its session's. */
export const drafts = {
  get: (/** @type {string} */ requestId) => {
    const kept = store.get("asked");
    return kept?.session === session() ? kept?.drafts[requestId] : undefined;
  },
  /** @param {string} requestId @param {Record<string, unknown> | undefined} values none, to forget them */
  set: (requestId, values) => {
    const kept = store.get("asked");
    const others = kept?.session === session() ? kept?.drafts : {};
    store.set("asked", { session: session(), drafts: { ...others, [requestId]: values } });
  },
};

const session = () => store.get("session")?.sessionId;

/** What percent signs stand for; as it is where they stand for nothing. */
function decoded(/** @type {string} */ text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The token, from the fragment (which is taken out of the address at once) or from before a reload. */
export function readToken() {
  // Not by URLSearchParams, to which a plus is a space.
  const written = /[#&]token=([^&]*)/.exec(location.hash)?.[1];
  if (written !== undefined) {
    const given = decoded(written);
    history.replaceState(null, "", location.pathname + location.search);
    store.set("token", given);
    return given;
  }
  return store.get("token");
}
