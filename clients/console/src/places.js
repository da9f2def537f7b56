// What a message of the view is in what the daemon remembers: its place, which a fork is cut by, and its exchange, which is undone.
import { textOf } from "../../typescript/dist/index.js";

/** Messages of a page that is asked for. */
const PAGE = 200;

/**
 * What the user said, as the daemon remembers it: with a message that has not begun yet, or that there was no room for,
 * it has nothing in common. Each has the message of the view that it belongs to.
 *
 * @param {any[]} messages
 */
function spoken(messages) {
  const answers = new Map(messages.filter((it) => it.role === "assistant").map((it) => [it.id, it]));
  return messages.flatMap((message) => {
    if (message.role === "assistant") return message.blocks.filter((/** @type {any} */ it) => it.type === "steered").map((/** @type {any} */ it) => ({ message, text: textOf(it.content) }));
    const answer = answers.get(message.id);
    // Without a provider it never began.
    const isUnknown = message.status !== "done" || answer?.status === "queued" || (answer?.end && answer.provider === undefined) || answer?.error?.code === "history_full";
    return isUnknown ? [] : [{ message, text: message.blocks[0]?.text ?? "" }];
  });
}

/**
 * Finds what the user said in a message of the view, or after an answer, in the history; it is counted from the end, and
 * compared.
 *
 * @param {(type: any, payload: any) => Promise<any>} ask
 * @param {string} conversationId
 * @param {any[]} messages of the view
 * @param {any} message one of them: of the user, or an answer, after which it is cut
 * @returns {Promise<{place: number, content: any}>} `content` of the user's message; of an answer none
 */
export async function find(ask, conversationId, messages, message) {
  const words = spoken(messages);
  const at = messages.indexOf(message);
  const isAnswer = message.role === "assistant";
  const first = words.findIndex((it) => (isAnswer ? messages.indexOf(it.message) > at : it.message === message));
  // After the last answer: everything.
  const left = first < 0 ? 0 : words.length - first;
  if (left === 0 && !isAnswer) throw gone();
  let found = 0;
  /** @type {number | undefined} */
  let before;
  do {
    const page = await ask("chat:history", { conversationId, limit: PAGE, ...(before !== undefined && { before }) });
    const begins = page.nextBefore ?? 0;
    if (left === 0) return { place: begins + page.messages.length, content: undefined };
    for (let index = page.messages.length - 1; index >= 0; index--) {
      const one = page.messages[index];
      if (one.role !== "user") continue;
      found += 1;
      if (textOf(one.content) !== words.at(-found)?.text) throw gone();
      if (found === left) return { place: begins + index, content: one.content };
    }
    before = page.nextBefore;
  } while (before !== undefined);
  throw gone();
}

/**
 * Returns the exchange of an answer, for `files:revert`. Messages of a history do not name theirs: it is the one of the
 * newest change that a call of the answer made.
 *
 * @param {(type: any, payload: any) => Promise<any>} ask
 * @param {string} conversationId
 * @param {any} message
 * @returns {Promise<string>}
 */
export async function exchangeOf(ask, conversationId, message) {
  if (message.place === undefined) return message.id;
  const calls = new Set(message.blocks.map((/** @type {any} */ it) => it.toolId));
  /** @type {string | undefined} */
  let cursor;
  do {
    const page = await ask("files:changes", { conversationId, limit: PAGE, ...(cursor !== undefined && { cursor }) });
    const change = page.changes.find((/** @type {any} */ it) => calls.has(it.toolId));
    if (change) return change.messageId;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  throw new Error("What the files held before is no longer kept.");
}

const gone = () => new Error("This message is not found in what the daemon remembers. Load the page again, and try once more.");
