// Markdown as it streams in, as DOM nodes. A model's text is other people's text: it becomes text
// nodes and a few known elements, links lead to http, https and mail alone, pictures are links.
//
// What is finished (up to the last blank line outside of a fence) is built once; only the tail is
// built again as it grows, so that a long answer stays cheap.
import { grow, h } from "./dom.js";

/** A tail that is longer is cut at a line or a word, whatever it is in the middle of. */
const LONGEST_TAIL = 16_000;

export class Markdown {
  constructor() {
    /** @type {HTMLElement} */
    this.element = h("div", { class: "markdown" });
    this.done = 0;
    this.text = "";
    /** @type {Node[]} */
    this.tail = [];
    /** @type {{text: Text, head: number} | null} */
    this.fence = null;
  }

  /** Shows a text; cheap where it only grew. @param {string} text */
  update(text) {
    if (text === this.text) return;
    if (!text.startsWith(this.text)) {
      this.element.replaceChildren();
      this.done = 0;
      this.tail = [];
      this.fence = null;
    }
    this.text = text;
    if (this.fence && !/\n[ ]{0,3}(```|~~~)/.test(text.slice(Math.max(this.fence.head - 1, this.done)))) {
      grow(this.fence.text, text.slice(this.fence.head));
      return;
    }
    this.fence = null;
    for (const node of this.tail) node.parentNode?.removeChild(node);
    const end = finished(text, this.done);
    if (end > this.done) {
      this.element.append(...blocks(text.slice(this.done, end)));
      this.done = end;
    }
    const rest = text.slice(this.done);
    const open = /^ {0,3}(```|~~~)([^\n`]*)\n/.exec(rest);
    if (open && !rest.slice(open[0].length).match(/(^|\n) {0,3}(```|~~~)[ \t]*(\n|$)/)) {
      const body = document.createTextNode(rest.slice(open[0].length));
      this.tail = [code(body, open[2] ?? "")];
      this.fence = { text: body, head: this.done + open[0].length };
    } else {
      this.tail = blocks(rest);
    }
    this.element.append(...this.tail);
  }
}

/** Where the last finished block ends. @param {string} text @param {number} from */
function finished(text, from) {
  let end = from;
  let fence = "";
  let at = from;
  while (at < text.length) {
    const next = text.indexOf("\n", at);
    if (next < 0) break;
    const line = text.slice(at, next);
    const mark = /^ {0,3}(```|~~~)/.exec(line)?.[1];
    if (mark && !fence) {
      // The block before a fence is whole; the fence itself begins the tail.
      if (at > end) end = at;
      fence = mark;
    } else if (mark && mark === fence) {
      fence = "";
      end = next + 1;
    } else if (!fence && line.trim() === "") {
      // A list may go on after a blank line; what it goes on with is a list of its own then.
      end = next + 1;
    }
    at = next + 1;
  }
  if (!fence && text.length - end > LONGEST_TAIL) {
    const cut = Math.max(text.lastIndexOf("\n"), text.lastIndexOf(" "));
    return cut > end ? cut + 1 : text.length;
  }
  return end;
}

/** @param {Text} body @param {string} language */
function code(body, language) {
  return h(
    "pre",
    { class: "code", tabindex: "0", "data-language": language.trim().slice(0, 30) || undefined },
    h("code", {}, body),
  );
}

const BULLET = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;

/** Builds whole blocks. @param {string} text @returns {Node[]} */
function blocks(text) {
  const lines = text.split("\n");
  /** @type {Node[]} */
  const out = [];
  let at = 0;
  const line = () => lines[at] ?? "";
  while (at < lines.length) {
    const fence = /^ {0,3}(```|~~~)([^`]*)$/.exec(line());
    const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/.exec(line());
    if (line().trim() === "") {
      at += 1;
    } else if (fence) {
      const body = [];
      at += 1;
      while (at < lines.length && !line().trim().startsWith(fence[1] ?? "```")) {
        body.push(line());
        at += 1;
      }
      at += 1;
      out.push(code(document.createTextNode(body.join("\n")), fence[2] ?? ""));
    } else if (heading) {
      // The page's own heading is the first level.
      const level = Math.min((heading[1] ?? "#").length + 1, 6);
      out.push(h(`h${level}`, {}, ...inline(heading[2] ?? "")));
      at += 1;
    } else if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line())) {
      out.push(h("hr"));
      at += 1;
    } else if (/^ {0,3}>/.test(line())) {
      const quoted = [];
      while (at < lines.length && /^ {0,3}>/.test(line())) {
        quoted.push(line().replace(/^ {0,3}> ?/, ""));
        at += 1;
      }
      out.push(h("blockquote", {}, ...blocks(quoted.join("\n"))));
    } else if (BULLET.test(line())) {
      const items = [];
      while (at < lines.length && (BULLET.test(line()) || /^\s{2,}\S/.test(line()))) {
        items.push(line());
        at += 1;
      }
      out.push(list(items));
    } else if (line().includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("|")) {
      const rows = [];
      while (at < lines.length && line().includes("|")) {
        rows.push(line());
        at += 1;
      }
      out.push(table(rows));
    } else {
      const words = [];
      while (at < lines.length && line().trim() !== "" && !/^ {0,3}(```|~~~|#{1,6}\s|>)/.test(line()) && !(words.length && BULLET.test(line()))) {
        words.push(line());
        at += 1;
      }
      out.push(h("p", {}, ...inline(words.join("\n"))));
    }
  }
  return out;
}

/** @param {string[]} lines */
function list(lines) {
  const first = BULLET.exec(lines[0] ?? "");
  const depth = (first?.[1] ?? "").length;
  const isOrdered = /\d/.test(first?.[2] ?? "");
  const start = isOrdered ? Number.parseInt(first?.[2] ?? "1", 10) : 1;
  const element = h(isOrdered ? "ol" : "ul", { start: isOrdered && start !== 1 ? start : undefined });
  /** @type {{text: string[], below: string[]}[]} */
  const items = [];
  for (const line of lines) {
    const bullet = BULLET.exec(line);
    const last = items.at(-1);
    if (bullet && (bullet[1] ?? "").length <= depth + 1) items.push({ text: [bullet[3] ?? ""], below: [] });
    else if (last && (bullet || last.below.length)) last.below.push(line);
    else last?.text.push(line.trim());
  }
  for (const { text, below } of items) {
    const task = /^\[([ xX])\]\s+/.exec(text[0] ?? "");
    const words = task ? [(text[0] ?? "").slice(task[0].length), ...text.slice(1)] : text;
    const box = task && h("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": "done" });
    element.append(h("li", {}, box, ...inline(words.join("\n")), below.length ? list(below) : null));
  }
  return element;
}

/** @param {string[]} rows */
function table(rows) {
  const cells = (/** @type {string} */ row) =>
    row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => inline(cell.trim().replace(/\\\|/g, "|")));
  const [head, , ...body] = rows;
  return h(
    "div",
    { class: "table", tabindex: "0" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...cells(head ?? "").map((cell) => h("th", { scope: "col" }, ...cell)))),
      h("tbody", {}, ...body.map((row) => h("tr", {}, ...cells(row).map((cell) => h("td", {}, ...cell))))),
    ),
  );
}

// Alternatives in the order of their precedence; nothing that can run away on long lines.
const INLINE =
  /\\([\\`*_{}[\]()#+\-.!|~>])|(`+)([^`]|[^`][\s\S]{0,2000}?[^`])\2(?!`)|(!?)\[([^\]\n]{0,500})\]\(\s*<?([^\s)>]{1,2000})>?(?:\s+"[^"\n]{0,200}")?\s*\)|(\*\*|__)(?=\S)([\s\S]{1,2000}?\S)\7|~~(?=\S)([\s\S]{1,2000}?\S)~~|(?<![\w*])(\*|_)(?=[^\s*_])([^*_\n]{0,2000}?[^\s*_])\10(?!\w)|<?(https?:\/\/[^\s<>"'`\])]{1,2000})>?| {2,}\n/g;

/** @param {string} text @returns {(Node | string)[]} */
function inline(text) {
  /** @type {(Node | string)[]} */
  const out = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, escaped, , code, , label, target, , strong, struck, , emphasis, address] = match;
    if (match.index > at) out.push(text.slice(at, match.index));
    at = match.index + whole.length;
    if (escaped) out.push(escaped);
    else if (code !== undefined) out.push(h("code", {}, code));
    else if (target !== undefined) out.push(link(target, label || target));
    else if (strong !== undefined) out.push(h("strong", {}, ...inline(strong)));
    else if (struck !== undefined) out.push(h("s", {}, ...inline(struck)));
    else if (emphasis !== undefined) out.push(h("em", {}, ...inline(emphasis)));
    else if (address !== undefined) {
      const end = /[.,;:!?]+$/.exec(address)?.[0] ?? "";
      out.push(link(address.slice(0, address.length - end.length), address.slice(0, address.length - end.length)), end);
    } else out.push(h("br"));
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

/** @param {string} target @param {string} label */
function link(target, label) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return h("span", { class: "nolink", title: target }, label);
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) {
    return h("span", { class: "nolink", title: target }, label);
  }
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
}
