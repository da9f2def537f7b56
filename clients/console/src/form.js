// A form by the flat JSON schema that a server asks with. Whether an answer fits is for the daemon to
// say; here a field only becomes a value of its type, and what was typed stays as it is.
import { el } from "./dom.js";
import { exposed } from "./visible.js";

/** Characters of a server's words that are shown at a field: more is no label. */
const MOST = { label: 200, hint: 1_000 };
/** From this many characters on, a text gets several lines. */
const LONG = 200;
const NUMBER = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i;

/**
 * One field's control.
 *
 * @typedef {object} Control
 * @property {any} element what is put into the form
 * @property {any} first what gets the focus
 * @property {() => any} state what a reload brings back
 * @property {(state: any) => void} restore
 * @property {() => any} value what is sent; nothing where it was left out
 */

export class Form {
  /** @param {any} schema @param {Record<string, any> | undefined} draft @param {(draft: Record<string, any>) => void} changed */
  constructor(schema, draft, changed) {
    const required = Array.isArray(schema?.required) ? schema.required : [];
    /** @type {Field[]} */
    this.fields = Object.entries(schema?.properties ?? {}).map(([name, it], at) => new Field(name, it ?? {}, required.includes(name), `asked-${at}`));
    for (const field of this.fields) {
      if (draft && Object.hasOwn(draft, field.name)) field.restore(draft[field.name]);
    }
    this.element = el("div", { class: "fields" }, ...this.fields.map((field) => field.element));
    for (const kind of ["input", "change"]) {
      this.element.addEventListener(kind, (/** @type {Event} */ event) => {
        const field = this.fields.find((it) => it.element.contains(event.target));
        if (!field) return;
        field.isTouched = true;
        field.mark(false);
        changed(Object.fromEntries(this.fields.filter((it) => it.isTouched).map((it) => [it.name, it.control.state()])));
      });
    }
  }

  /** What is sent: the fields that were filled in, by their names. */
  content() {
    // A field may be called `__proto__`, so not by assignment.
    return Object.fromEntries(this.fields.map((it) => [it.name, it.value()]).filter(([, value]) => value !== undefined));
  }

  /** Marks a field as the wrong one and returns its label; nothing where there is none of this name. @param {string} name */
  blame(name) {
    const field = this.fields.find((it) => it.name === name);
    field?.mark(true);
    field?.control.first.focus();
    return field?.label;
  }
}

class Field {
  /** @param {string} name @param {any} schema @param {boolean} isRequired @param {string} id */
  constructor(name, schema, isRequired, id) {
    this.name = name;
    this.isTouched = false;
    this.isRequired = isRequired;
    this.label = words(schema.title, MOST.label) || words(name, MOST.label);
    const choices = choicesOf(schema);
    const items = schema.type === "array" ? (choicesOf(schema.items) ?? []) : undefined;
    /** @type {Control} */
    this.control = items
      ? several(items, schema.default, id)
      : schema.type === "boolean"
        ? tick(schema.default)
        : choices
          ? chosen(choices, schema.default, isRequired)
          : typed(schema);
    this.fallback = fallback(schema, choices, items);
    const hint = [words(schema.description, MOST.hint), bounds(schema)].filter(Boolean).join(" · ");
    const about = hint && el("span", { class: "hint", id: `${id}-hint` }, hint);
    const mark = isRequired && el("span", { class: "needed" }, " required");
    const { element, first } = this.control;
    this.marked = items ? element : first;
    if (about) this.marked.setAttribute("aria-describedby", `${id}-hint`);
    if (items) {
      element.prepend(el("legend", {}, this.label, mark));
      if (about) element.append(about);
      this.element = element;
      return;
    }
    first.id = id;
    // Of a box that may stay empty, "required" would say that it must be ticked.
    if (isRequired && schema.type !== "boolean") first.setAttribute("aria-required", "true");
    this.element =
      schema.type === "boolean"
        ? el("div", { class: "field" }, el("label", { class: "tick", for: id }, element, this.label), about)
        : el("div", { class: "field" }, el("label", { for: id }, this.label, mark), element, about);
  }

  restore(/** @type {any} */ state) {
    this.control.restore(state);
    this.isTouched = true;
  }

  value() {
    // What nobody touched goes back as it came: a control may show it shorter.
    if (!this.isTouched && this.fallback !== undefined) return this.fallback;
    const value = this.control.value();
    const isNothing = value === undefined || (!this.isTouched && value === false) || (Array.isArray(value) && value.length === 0);
    return isNothing && !this.isRequired ? undefined : value;
  }

  mark(/** @type {boolean} */ isWrong) {
    if (isWrong) this.marked.setAttribute("aria-invalid", "true");
    else this.marked.removeAttribute("aria-invalid");
  }
}

/** A server's words, whole as far as they go. @param {any} text @param {number} most */
function words(text, most) {
  if (typeof text !== "string") return "";
  const shown = exposed(text).trim();
  return shown.length > most ? `${shown.slice(0, most)}…` : shown;
}

/** What may be chosen; nothing where anything may be said. @returns {{value: string, title: string}[] | undefined} */
function choicesOf(/** @type {any} */ schema) {
  const titled = schema?.oneOf ?? schema?.anyOf;
  const all = Array.isArray(schema?.enum)
    ? schema.enum.map((/** @type {any} */ value, /** @type {number} */ at) => ({ value, title: schema.enumNames?.[at] }))
    : Array.isArray(titled)
      ? titled.map((/** @type {any} */ it) => ({ value: it?.const, title: it?.title }))
      : undefined;
  return all
    ?.filter((/** @type {any} */ it) => typeof it.value === "string")
    .map((/** @type {any} */ { value, title }) => ({ value, title: words(title, MOST.label) || words(value, MOST.label) || "(empty)" }));
}

/** The default where it is one of the field's type. */
function fallback(/** @type {any} */ schema, /** @type {any[] | undefined} */ choices, /** @type {any[] | undefined} */ items) {
  const given = schema.default;
  const isOne = (/** @type {any[]} */ all, /** @type {any} */ value) => all.some((it) => it.value === value);
  if (items) return Array.isArray(given) && given.every((it) => isOne(items, it)) ? given : undefined;
  if (choices) return isOne(choices, given) ? given : undefined;
  const wanted = { boolean: "boolean", integer: "number", number: "number" }[/** @type {string} */ (schema.type)] ?? "string";
  return typeof given === wanted ? given : undefined;
}

function bounds(/** @type {any} */ schema) {
  const span = (/** @type {any} */ least, /** @type {any} */ most, /** @type {string} */ unit) => {
    const [from, to] = [least, most].map((it) => (typeof it === "number" ? it : undefined));
    if (from === undefined && to === undefined) return "";
    const range = from === undefined ? `${to} at most` : to === undefined ? `${from} at least` : from === to ? `${from}` : `${from} to ${to}`;
    return unit ? `${range} ${unit}` : range;
  };
  switch (schema.type) {
    case "integer": return ["whole number", span(schema.minimum, schema.maximum, "")].filter(Boolean).join(", ");
    case "number": return ["number", span(schema.minimum, schema.maximum, "")].filter(Boolean).join(", ");
    case "array": return span(schema.minItems, schema.maxItems, "choices");
    case "boolean": return "";
    default: {
      const length = span(schema.minLength, schema.maxLength, "characters");
      const format = { email: "an email address", uri: "an address such as https://example.org/", "date-time": `in your time, ${Intl.DateTimeFormat().resolvedOptions().timeZone}` }[/** @type {string} */ (schema.format)];
      return [format, length].filter(Boolean).join(", ");
    }
  }
}

/** A text or a number. @returns {Control} */
function typed(/** @type {any} */ schema) {
  const isNumber = schema.type === "integer" || schema.type === "number";
  const isTime = !isNumber && schema.format === "date-time";
  const given = fallback(schema, undefined, undefined);
  const shown = given === undefined ? "" : isTime ? local(given) : String(given);
  const isLong = !isNumber && !schema.format && (schema.maxLength > LONG || shown.includes("\n"));
  // Numbers as text: a field for numbers throws away what is none, and no limits of length, which would cut without a word.
  const kind = isNumber ? "text" : ({ email: "email", uri: "url", date: "date", "date-time": "datetime-local" }[/** @type {string} */ (schema.format)] ?? "text");
  const plain = { autocomplete: "off", spellcheck: "false", autocapitalize: "off" };
  const mode = isNumber && { inputmode: schema.type === "integer" && !(schema.minimum < 0) ? "numeric" : "text" };
  const control = isLong ? el("textarea", { rows: "3", ...plain }) : el("input", { type: kind, step: isTime && "1", ...plain, ...mode });
  control.value = shown;
  return {
    element: control,
    first: control,
    state: () => control.value,
    restore: (state) => (control.value = String(state)),
    value: () => {
      const text = isNumber ? control.value.trim() : control.value;
      if (text === "") return undefined;
      if (isTime) return instant(text);
      // What is no number, or has more digits than one, is sent as it is: the daemon says what is wrong with it.
      const isExact = NUMBER.test(text) && Number.isFinite(Number(text)) && (!/^[+-]?\d+$/.test(text) || Number.isSafeInteger(Number(text)));
      return isNumber && isExact ? Number(text) : text;
    },
  };
}

/** A time as the control for it has it: without a zone, in that of whoever looks at it. */
function local(/** @type {string} */ text) {
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function instant(/** @type {string} */ text) {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : at.toISOString();
}

/** @returns {Control} */
function tick(/** @type {any} */ given) {
  const box = el("input", { type: "checkbox" });
  box.checked = given === true;
  return { element: box, first: box, state: () => box.checked, restore: (state) => (box.checked = state === true), value: () => box.checked };
}

/** @param {{value: string, title: string}[]} choices @param {any} given @param {boolean} isRequired @returns {Control} */
function chosen(choices, given, isRequired) {
  // By number: a choice may be the empty text.
  const list = el("select", {}, el("option", { value: "" }, isRequired ? "Choose…" : "no answer"), ...choices.map(({ title }, at) => el("option", { value: at }, title)));
  const set = (/** @type {any} */ value) => {
    const at = choices.findIndex((it) => it.value === value);
    list.value = at < 0 ? "" : String(at);
  };
  set(given);
  const value = () => (list.value === "" ? undefined : choices[Number(list.value)]?.value);
  return { element: list, first: list, state: () => value() ?? null, restore: set, value };
}

/** @param {{value: string, title: string}[]} choices @param {any} given @param {string} id @returns {Control} */
function several(choices, given, id) {
  const boxes = choices.map((_, at) => el("input", { type: "checkbox", id: `${id}-${at}` }));
  const set = (/** @type {any} */ values) => boxes.forEach((box, at) => (box.checked = Array.isArray(values) && values.includes(choices[at]?.value)));
  set(given);
  const value = () => choices.filter((_, at) => boxes[at].checked).map((it) => it.value);
  const rows = choices.map(({ title }, at) => el("label", { class: "tick", for: `${id}-${at}` }, boxes[at], title));
  const element = el("fieldset", { class: "field" }, el("div", { class: "several" }, ...rows));
  return { element, first: boxes[0] ?? element, state: value, restore: set, value };
}
