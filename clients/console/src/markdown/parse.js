// Markdown as a tree. The parser yields tokens; nothing here, or anywhere on this page, makes markup of
// text. It is bounded: in depth, and in how much is parsed anew while an answer streams in.
import MarkdownIt from "markdown-it";
import footnote from "markdown-it-footnote";

/** Deepest nesting that is drawn; what is deeper is shown as it was written. */
export const MOST_NESTING = 40;
/** A block that is longer is cut at a line or a word while it grows, whatever it is in the middle of. */
const LONGEST_TAIL = 32_000;
/** Up to this length, a text that is all there is parsed once more as a whole: what is defined below changes what is above. */
const LONGEST_WHOLE = 64_000;
/** Parsing takes at most one part in so many of the time. */
const SHARE = 5;

/**
 * One element of a text: a token of the parser, and what is in it.
 *
 * @typedef {object} Node
 * @property {string} type the token's, without `_open`; `open_fence` for a block of code whose end has not come yet
 * @property {string} tag
 * @property {string} content
 * @property {string} info language of a block of code
 * @property {Record<string, string>} attributes
 * @property {any} meta
 * @property {boolean} isHidden a paragraph of a list without blank lines
 * @property {number} line where it begins in what was parsed; -1 where the parser does not say
 * @property {Node[]} children
 */

const parser = new MarkdownIt({ html: false, linkify: true, maxNesting: MOST_NESTING }).use(footnote);
// With a scheme only: `main.rs` and `README.md` are files, though there are such domains.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
parser.inline.ruler.before("escape", "math", math);

/** Formulas stay as they were written: `\(a_1\)`, `\[…\]`, `$$…$$`. @param {any} state @param {boolean} silent */
function math(state, silent) {
  const open = state.src.slice(state.pos, state.pos + 2);
  const close = /** @type {Record<string, string>} */ ({ "\\(": "\\)", "\\[": "\\]", $$: "$$" })[open];
  if (!close) return false;
  // Many that are opened and never closed are looked for once.
  const ends = (state.mathEnds ??= {});
  if (ends[close] === undefined || (ends[close] >= 0 && ends[close] < state.pos + 2)) ends[close] = state.src.indexOf(close, state.pos + 2);
  const end = ends[close];
  if (end < 0 || end === state.pos + 2 || end >= state.posMax) return false;
  if (!silent) state.push("math", "span", 0).content = state.src.slice(state.pos, end + 2);
  state.pos = end + 2;
  return true;
}

/** Parses a text. @param {string} text @returns {Node[]} */
export function parse(text) {
  const tokens = parser.parse(text, {});
  // Below its deepest level the parser leaves text out.
  if (tokens.some((it) => it.level >= MOST_NESTING - 1)) return [node({ type: "plain", content: text, map: [0, 0] })];
  return nested(tokens);
}

/** @param {any[]} tokens @returns {Node[]} */
function nested(tokens) {
  /** @type {Node[]} */
  const top = [];
  const open = [top];
  for (const token of tokens) {
    const siblings = open[open.length - 1] ?? top;
    if (token.nesting < 0) {
      if (open.length > 1) open.pop();
    } else if (token.type === "inline") {
      siblings.push(...nested(token.children ?? []));
    } else {
      const it = node(token);
      // Emphasis in emphasis in emphasis has no bound of the parser's: its text goes on without.
      const isTooDeep = token.nesting > 0 && open.length > MOST_NESTING;
      if (!isTooDeep) siblings.push(it);
      if (token.nesting > 0) open.push(isTooDeep ? siblings : it.children);
    }
  }
  return top;
}

/** @param {any} token @returns {Node} */
function node({ type, tag = "", content = "", info = "", attrs, meta, map, hidden }) {
  return { type: type.replace(/_open$/, ""), tag, content, info, attributes: Object.fromEntries(attrs ?? []), meta, isHidden: hidden === true, line: map?.[0] ?? -1, children: [] };
}

/**
 * The blocks of a text that grows. What is finished is parsed once and keeps its identity; only the
 * last block is parsed again.
 */
export class Growing {
  text = "";
  /** @type {Node[]} */
  finished = [];
  /** @type {Node[]} */
  last = [];
  /** Where the last block begins. */
  at = 0;
  /** How much of the text is in what `update` returned. */
  seen = 0;
  cost = 0;
  when = -Infinity;

  /**
   * Returns the blocks of a text.
   *
   * @param {string} text
   * @param {boolean} isWhole whether it is all there; before, it may return what it had, to save time
   * @param {number} share parsing takes at most one part in so many of the time; 0 for all that is needed
   */
  update(text, isWhole, share = SHARE) {
    const now = performance.now();
    if (!text.startsWith(this.text)) this.#forget();
    this.text = text;
    if (isWhole || now - this.when >= share * this.cost) {
      this.#parse(isWhole);
      this.seen = text.length;
      this.when = performance.now();
      this.cost = this.when - now;
    }
    return [...this.finished, ...this.last];
  }

  /** Milliseconds after which `update` will parse what it left; nothing where it is up to date. */
  get isBehind() {
    return this.seen < this.text.length ? SHARE * this.cost : undefined;
  }

  #forget() {
    Object.assign(this, { text: "", finished: [], last: [], at: 0, seen: 0 });
  }

  /** @param {boolean} isWhole */
  #parse(isWhole) {
    const { text } = this;
    if (isWhole && text.length <= LONGEST_WHOLE) {
      this.finished = [];
      this.at = 0;
      this.last = parse(text);
      return;
    }
    for (;;) {
      const tail = text.slice(this.at);
      const code = openFence(tail, isWhole);
      if (code) {
        this.last = [code];
        return;
      }
      const piece = tail.slice(0, cut(tail));
      const nodes = parse(piece);
      if (piece.length < tail.length) {
        const kept = piece.length;
        this.finished.push(...nodes);
        this.at += kept;
        continue;
      }
      // The last line may become something else as it grows, so what it begins says nothing of what is before.
      const lines = tail.split("\n");
      let first = nodes.length - 1;
      if (nodes[first] && nodes[first].line === lines.length - 1) first -= 1;
      while (first > 0 && nodes[first].line < 0) first -= 1;
      const line = nodes[first]?.line ?? 0;
      if (first > 0 && line > 0) {
        this.finished.push(...nodes.slice(0, first));
        this.at += lines.slice(0, line).join("\n").length + 1;
        const rest = openFence(text.slice(this.at), isWhole);
        this.last = rest ? [rest] : nodes.slice(first);
      } else {
        this.last = nodes;
      }
      return;
    }
  }
}

/** How much of a tail is parsed at once. @param {string} tail */
function cut(tail) {
  if (tail.length <= LONGEST_TAIL) return tail.length;
  const piece = tail.slice(0, LONGEST_TAIL);
  const ends = [piece.lastIndexOf("\n\n") + 2, piece.lastIndexOf("\n") + 1, piece.lastIndexOf(" ") + 1];
  return ends.find((end) => end > LONGEST_TAIL / 2) ?? LONGEST_TAIL;
}

/** A text that begins with a block of code without an end: no parser is needed while it grows. @param {string} text @param {boolean} isWhole */
function openFence(text, isWhole) {
  // All of the run or nothing: a shorter one could only be tried in vain, once for each of its marks.
  const open = /^( {0,3})(`{3,}(?!`)|~{3,}(?!~))([^\n]*)\n/.exec(text);
  if (!open) return undefined;
  const [head, indent = "", fence = "", info = ""] = open;
  if (fence[0] === "`" && info.includes("`")) return undefined;
  const body = text.slice(head.length);
  if (new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*\\r?$`, "m").test(body)) return undefined;
  const content = indent ? body.replace(new RegExp(`^ {0,${indent.length}}`, "gm"), "") : body;
  return node({ type: isWhole ? "fence" : "open_fence", tag: "code", content, info: info.trim(), map: [0, 0] });
}
