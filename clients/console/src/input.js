// What a call would do, for people: a command as a command line, a file's content as lines, an edit
// as its difference, anything else by name. Everything that cannot be seen is shown as an escape.
import { h } from "preact";
import { Diff } from "./diff.js";
import { exposed } from "./visible.js";

/** Most characters of one value that are drawn. */
const MOST = 20_000;

/**
 * Properties: `input`; `inputText`, what the model has written of it so far; `isDrawn`, whether its
 * difference is shown beside it, so that contents are left out; `isWhole` for nothing but the values.
 *
 * @param {any} properties
 */
export function ToolInput({ input, inputText, isDrawn, isWhole }) {
  if (!input) return inputText ? h("pre", { class: "input", tabindex: 0, "aria-label": "Input" }, exposed(inputText.slice(0, MOST))) : null;
  const parts = [];
  const rest = { ...input };
  if (typeof input.command === "string") {
    parts.push(h("pre", { class: "input command", tabindex: 0, "aria-label": "Command" }, shown(`$ ${input.command}`)));
    delete rest.command;
  }
  if (isDrawn) for (const name of CONTENTS) delete rest[name];
  else if (!isWhole && typeof input.oldText === "string" && typeof input.newText === "string") {
    delete rest.oldText;
    delete rest.newText;
    parts.push(h(Diff, { text: asDiff(input.oldText, input.newText) }));
  }
  const named = Object.entries(rest).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value, null, 2)]);
  const short = named.filter(([, text]) => !text.includes("\n"));
  const long = named.filter(([, text]) => text.includes("\n"));
  if (short.length) parts.unshift(h("dl", { class: "values" }, short.map(([name, text]) => h("div", { key: name }, h("dt", {}, exposed(name)), h("dd", {}, shown(text) || "(empty)")))));
  for (const [name, text] of long) {
    parts.push(h("p", { class: "label" }, exposed(name)), h("pre", { class: "input", tabindex: 0, "aria-label": name }, shown(text)));
  }
  if (!parts.length) parts.push(h("p", { class: "label" }, "without input"));
  return h("div", { class: "toolinput" }, parts);
}

/** Fields of the file tools that a difference shows. */
const CONTENTS = ["content", "oldText", "newText"];

/** @param {string} text */
function shown(text) {
  return text.length > MOST ? `${exposed(text.slice(0, MOST))}\n… ${(text.length - MOST).toLocaleString("en")} more characters` : exposed(text);
}

/** What goes and what comes, as lines of a difference. @param {string} before @param {string} after */
function asDiff(before, after) {
  const lines = (/** @type {string} */ text, /** @type {string} */ mark) => (text === "" ? [] : text.replace(/\n$/, "").split("\n").map((line) => mark + line));
  return [...lines(before, "-"), ...lines(after, "+")].join("\n");
}

/** The input of a call; where it never ran, what the model had written of it. @param {any} it */
export function inputOf(it) {
  if (it.input || it.phase !== "done") return it.input;
  try {
    return JSON.parse(it.inputText);
  } catch {
    return undefined;
  }
}

/** What a call is about, on one line. @param {any} it a call: its input, or what there is of it */
export function about(it) {
  const values = inputOf(it) ?? {};
  const chosen = values.command ?? values.path ?? values.query ?? values.pattern ?? values.args?.join?.(" ") ?? Object.values(values)[0];
  const text = typeof chosen === "string" ? chosen : chosen === undefined ? "" : JSON.stringify(chosen);
  return exposed(text.slice(0, 1_000).trim().replace(/[ \t]*\r?\n\s*/g, " ↵ ").replace(/[ \t]+/g, " ")).slice(0, 200);
}
