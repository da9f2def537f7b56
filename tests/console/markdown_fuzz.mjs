// Random texts of the marks that Markdown is made of, through parser and view, as `markdown.test.mjs` starts it.
import { parentPort, workerData } from "node:worker_threads";

import { Growing, MOST_NESTING, parse } from "../../clients/console/src/markdown/parse.js";
import { element } from "../../clients/console/src/markdown/view.js";

const PIECES = [
  "a", "word ", " ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "*", "**", "_", "__", "~~", "`", "``", "```", "~~~", "```js\n", "#", "# ", "- ", "* ", "+ ", "1. ", "1) ", "> ", ">", "|", "|-|-|", ":-:",
  "[", "]", "(", ")", "](", "![", "[^a]", "[^a]: ", "[a]: ", "<", ">", "<b>", "&amp;", "&#x41;", "&", "\\", "\\(", "\\)", "\\[", "\\]", "$$", "https://a.b/c", "a@b.c", "javascript:", "---", "===", "[x] ", "\u0000", "\u202e", "\u2028", "é", "漢", "\ud83d", "😀", "\ufeff",
];
const { seconds, seed, progress } = workerData;

/** Mulberry32. */
function randomly(state) {
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

function textOf(random) {
  const length = [10, 60, 400, 3_000][random(4)];
  let text = "";
  while (text.length < length) {
    const piece = PIECES[random(PIECES.length)];
    // Often many of one, or of two, since that is what runs away.
    const times = random(8) ? 1 : 1 + random(length);
    const other = random(3) ? "" : PIECES[random(PIECES.length)];
    text += (piece + other).repeat(Math.min(times, Math.ceil(length / piece.length)));
  }
  return text.slice(0, 8_000);
}

/** Walks what would be drawn. */
function check(it, depth) {
  if (depth > 8 * MOST_NESTING) throw new Error("nested too deep");
  if (Array.isArray(it)) for (const one of it) check(one, depth);
  if (!it || typeof it !== "object" || Array.isArray(it)) return;
  const { href, dangerouslySetInnerHTML } = it.props;
  if (dangerouslySetInnerHTML || ["script", "iframe", "img", "style"].includes(it.type)) throw new Error(`draws ${it.type}`);
  if (href !== undefined && !/^(https?|mailto):/.test(href)) throw new Error(`links to ${href}`);
  // Whatever is drawn by itself, code, has been made of text.
  if (typeof it.type === "function") new it.type(it.props).render(it.props);
  else check(it.props.children, depth + 1);
}

const ends = performance.now() + seconds * 1000;
let slowest = 0;
let count = 0;
for (let at = seed; performance.now() < ends; at++) {
  progress[0] = at;
  const random = randomly(at);
  const text = textOf(random);
  const began = performance.now();
  try {
    for (const node of parse(text)) check(element(node), 0);
    const growing = new Growing();
    for (let end = 0; end < text.length; ) {
      end += 1 + random(Math.ceil(text.length / 4));
      const nodes = growing.update(text.slice(0, end), false, 0);
      if (text.length && nodes.some((it) => it === undefined)) throw new Error("a hole among the blocks");
    }
    for (const node of growing.update(text, true)) check(element(node), 0);
  } catch (error) {
    throw new Error(`OUTRIGGER_FUZZ_SEED=${at}: ${error.stack}\n${JSON.stringify(text.slice(0, 2_000))}`);
  }
  slowest = Math.max(slowest, performance.now() - began);
  count += 1;
}
parentPort.postMessage({ count, slowest });
