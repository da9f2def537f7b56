// The tree of a Markdown text as nodes of the page. A model's text is other people's text: it becomes
// text nodes and the elements that are named here; links lead to http, https and mail alone, pictures
// are links.
import { common, createLowlight } from "lowlight";
import { Component, h } from "preact";
import { CopyButton } from "../copy.js";
import { Growing } from "./parse.js";

/** Longest block of code that is coloured. */
const LONGEST_COLOURED = 30_000;
const lowlight = createLowlight(common);

/** A text that may still grow. Properties: `text`, `isGrowing`. */
export class Markdown extends Component {
  growing = new Growing();
  timer = 0;

  shouldComponentUpdate(/** @type {any} */ next) {
    return next.text !== this.props.text || next.isGrowing !== this.props.isGrowing;
  }

  componentWillUnmount() {
    clearTimeout(this.timer);
  }

  render(/** @type {any} */ { text, isGrowing }) {
    const nodes = this.growing.update(text, !isGrowing);
    clearTimeout(this.timer);
    if (this.growing.isBehind !== undefined) this.timer = window.setTimeout(() => this.forceUpdate(), this.growing.isBehind);
    return h("div", { class: "markdown" }, nodes.map((node, at) => h(Block, { node, key: at })));
  }
}

/** One block, drawn once for each tree. */
class Block extends Component {
  shouldComponentUpdate(/** @type {any} */ next) {
    return next.node !== this.props.node;
  }

  render(/** @type {any} */ { node }) {
    return element(node);
  }
}

/** @param {import("./parse.js").Node[]} nodes @returns {any[]} */
const elements = (nodes) => nodes.map(element);

/** @param {import("./parse.js").Node} node @returns {any} */
export function element(node) {
  const inside = () => elements(node.children);
  switch (node.type) {
    case "text": return node.content;
    case "softbreak": return "\n";
    case "hardbreak": return h("br", {});
    case "plain": return h("p", { class: "plain" }, node.content);
    case "math": return h("span", { class: "math" }, node.content);
    case "code_inline": return h("code", {}, node.content);
    case "fence":
    case "open_fence":
    case "code_block": return h(Code, { text: node.content.replace(/\n$/, ""), language: node.info.split(/[\s,{]/)[0] ?? "", isOpen: node.type === "open_fence" });
    case "hr": return h("hr", {});
    case "paragraph": return node.isHidden ? inside() : h("p", {}, inside());
    // The page's own heading is the first level.
    case "heading": return h(`h${Math.min(Number(node.tag.slice(1)) + 1, 6)}`, {}, inside());
    case "blockquote": return h("blockquote", {}, inside());
    case "bullet_list": return h("ul", {}, inside());
    case "ordered_list": return h("ol", { start: node.attributes.start }, inside());
    case "list_item": return item(node);
    case "strong": return h("strong", {}, inside());
    case "em": return h("em", {}, inside());
    case "s": return h("s", {}, inside());
    case "link": return link(node.attributes.href ?? "", inside());
    case "image": return link(node.attributes.src ?? "", [node.content || node.attributes.src]);
    case "table": return h("div", { class: "table", tabindex: 0 }, h("table", {}, inside()));
    case "thead": return h("thead", {}, inside());
    case "tbody": return h("tbody", {}, inside());
    case "tr": return h("tr", {}, inside());
    case "th": return h("th", { scope: "col", class: alignment(node) }, inside());
    case "td": return h("td", { class: alignment(node) }, inside());
    case "footnote_ref": return h("sup", { class: "footnote" }, `[${node.meta.id + 1}]`);
    case "footnote_block": return h("section", { class: "footnotes", "aria-label": "Footnotes" }, inside());
    case "footnote": return h("div", {}, h("sup", { class: "footnote" }, `[${node.meta.id + 1}]`), inside());
    case "footnote_anchor": return null;
    // Whatever else there is, is text.
    default: return node.children.length ? h("div", {}, inside()) : node.content;
  }
}

/** @param {import("./parse.js").Node} node */
function alignment(node) {
  return /text-align:(center|right|left)/.exec(node.attributes.style ?? "")?.[1];
}

/** An item of a list; of a task, the box comes first. @param {import("./parse.js").Node} node */
function item(node) {
  const first = node.children[0];
  const words = first?.type === "paragraph" ? first.children[0] : first;
  const task = words?.type === "text" && /^\[([ xX])\] /.exec(words.content);
  if (!task || !words || !first) return h("li", {}, elements(node.children));
  const rest = { ...words, content: words.content.slice(4) };
  const kept = first === words ? rest : { ...first, children: [rest, ...first.children.slice(1)] };
  const box = h("input", { type: "checkbox", disabled: true, checked: task[1] !== " ", "aria-label": "done" });
  return h("li", { class: "task" }, box, elements([kept, ...node.children.slice(1)]));
}

/** @param {string} target @param {any} label */
function link(target, label) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return h("span", { class: "nolink", title: target }, label);
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return h("span", { class: "nolink", title: target }, label);
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
}

/** A block of code: its language, a button that copies it, its text in colours. */
class Code extends Component {
  shouldComponentUpdate(/** @type {any} */ next) {
    return next.text !== this.props.text || next.isOpen !== this.props.isOpen || next.language !== this.props.language;
  }

  render(/** @type {any} */ { text, language, isOpen }) {
    return h(
      "div",
      { class: "codebox" },
      h("div", { class: "codehead" }, h("span", { class: "language" }, language.slice(0, 30)), h(CopyButton, { text: () => text, label: "Copy this code" })),
      h("pre", { class: "code", tabindex: 0 }, h("code", {}, isOpen ? text : coloured(text, language))),
    );
  }
}

/** @param {string} text @param {string} language */
function coloured(text, language) {
  if (text.length > LONGEST_COLOURED || !lowlight.registered(language)) return text;
  try {
    return lowlight.highlight(language, text).children.map(span);
  } catch {
    return text;
  }
}

/** @param {any} node @returns {any} */
function span(node) {
  if (node.type === "text") return node.value;
  return h("span", { class: node.properties?.className?.join(" ") }, node.children.map(span));
}
