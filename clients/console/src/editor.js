// Changes a call's input: texts as they are, in fields of their own; other values, and texts with
// characters that cannot be seen, as JSON.
import { el } from "./dom.js";
import { exposed, exposedJson } from "./visible.js";

/** Most lines that a field is high at first. */
const HIGHEST = 12;

export class Editor {
  /** @param {Record<string, any>} input */
  constructor(input) {
    this.input = input;
    this.element = el("div", { class: "editors" });
    const values = Object.values(input);
    // A field of a page makes line ends alike, and shows nothing of what cannot be seen.
    const isPlain = values.length > 0 && values.every((it) => typeof it !== "string" || (exposed(it) === it));
    if (isPlain) this.#asFields();
    else this.#asJson(input);
  }

  focus() {
    this.first.focus();
  }

  /** Returns the input as it was changed; throws an error that says what is wrong. @returns {Record<string, any>} */
  value() {
    if (this.json) return parsed(this.json.value, "");
    return Object.fromEntries(this.fields.map(({ name, field, isText }) => [name, isText ? field.value : parsed(field.value, name)]));
  }

  #asFields() {
    const entries = Object.entries(this.input);
    /** @type {{name: string, field: any, isText: boolean}[]} */
    this.fields = entries.map(([name, value]) => {
      const isText = typeof value === "string";
      return { name, isText, field: area(isText ? value : JSON.stringify(value), name === "command" ? "Command" : name) };
    });
    const asJson = el("button", { type: "button", class: "quiet small", onclick: () => this.#switch() }, "Edit as JSON");
    const isAlone = this.fields.length === 1;
    this.element.replaceChildren(...this.fields.map(({ name, field }) => (isAlone ? field : el("label", {}, exposed(name), field))), asJson);
    const wanted = ["command", "content", "newText"];
    this.first = (this.fields.find(({ name }) => wanted.includes(name)) ?? this.fields[0])?.field;
  }

  /** @param {any} value */
  #asJson(value) {
    this.json = area(exposedJson(value), "Input as JSON");
    this.json.classList.add("json");
    this.element.replaceChildren(this.json);
    this.first = this.json;
  }

  #switch() {
    let value = this.input;
    try {
      value = this.value();
    } catch {
      // What is no value yet begins anew.
    }
    this.#asJson(value);
    this.focus();
  }
}

/** @param {string} text @param {string} name */
function area(text, name) {
  const rows = Math.min(HIGHEST, text.split("\n").length);
  const field = el("textarea", { class: "editor", rows, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-label": exposed(name) });
  field.value = text;
  return field;
}

/** @param {string} text @param {string} name */
function parsed(text, name) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name && `${name}: `}That is not valid JSON: ${/** @type {Error} */ (error).message}`);
  }
}
