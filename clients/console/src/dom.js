// Elements made by hand, for panels and cards; messages are made with Preact. Text only ever becomes
// text nodes: nothing on this page parses markup, and its policy has the browser refuse it too.
import { exposed } from "./visible.js";

/**
 * Makes an element. Properties that begin with `on` are listeners; `class`, `data-…`, `aria-…` and
 * the like are attributes; `undefined` and `false` leave one out.
 *
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {any}
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** The element with an id that is in the page. @param {string} id @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}

/** Sets text where it changed. @param {Element} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A sentence of the daemon, in which `this` is code. @param {string} text @returns {(Node | string)[]} */
export function coded(text) {
  const parts = exposed(text).split("`");
  // An odd number of marks has none that pair up for sure.
  if (parts.length % 2 === 0) return [parts.join("`")];
  return parts.map((part, at) => (at % 2 ? el("code", {}, part) : part));
}

// Sequences that colour a terminal, and other controls.
const ESCAPES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[@-_]|[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** A command's output as text: colours dropped, a return to the start of the line is a new one. @param {string} text */
export function plain(text) {
  return text.replace(/\r\n?/g, "\n").replace(ESCAPES, "");
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** @param {number} count */
export function compact(count) {
  if (count < 1000) return String(count);
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}
