// Somebody who approves must see what is there: characters that cannot be seen, look like a blank and
// are none, or reorder text, are shown as escapes.

/**
 * First and last code point of each range. The daemon has the same list, in
 * `crates/outrigger-shell/src/characters.rs`; `tests/repository` compares them.
 */
const RANGES = [
  [0x0, 0x8], [0xb, 0x1f], [0x7f, 0xa0], [0xad, 0xad], [0x34f, 0x34f], [0x61c, 0x61c], [0x115f, 0x1160], [0x1680, 0x1680], [0x17b4, 0x17b5],
  [0x180b, 0x180f], [0x2000, 0x200f], [0x2028, 0x202f], [0x205f, 0x206f], [0x2800, 0x2800], [0x3000, 0x3000], [0x3164, 0x3164],
  [0xfe00, 0xfe0f], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff0, 0xfffb], [0x1bca0, 0x1bca3], [0x1d173, 0x1d17a], [0xe0000, 0xe0fff],
];
const HIDDEN = new RegExp(`[${RANGES.map(([first, last]) => `\\u{${first?.toString(16)}}-\\u{${last?.toString(16)}}`).join("")}]`, "gu");

/** A text in which everything can be seen; line ends and tabs stay. @param {string} text */
export function exposed(text) {
  return text.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`);
}

/** A value as JSON in which everything can be seen, and changed. @param {any} value */
export function exposedJson(value) {
  const units = (/** @type {string} */ c) => [...Array(c.length).keys()].map((at) => `\\u${c.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");
  return JSON.stringify(value, null, 2).replace(HIDDEN, units);
}
