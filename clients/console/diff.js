// A unified diff, coloured. Line by line; what is no diff is shown as it is.
import { exposed, h } from "./dom.js";

/** Most lines that are drawn; nobody reads more here. */
const MOST_LINES = 2_000;

/**
 * @param {string} text
 * @returns {HTMLElement}
 */
export function diff(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  const pre = h("pre", { class: "diff", tabindex: "0", "aria-label": "Changes" });
  for (const line of lines.slice(0, MOST_LINES)) {
    pre.append(h("span", { class: `line ${kind(line)}` }, exposed(line) || " "), "\n");
  }
  if (lines.length > MOST_LINES) {
    pre.append(h("span", { class: "line hunk" }, `… ${lines.length - MOST_LINES} more lines`));
  }
  return pre;
}

/** How many lines come and go. @param {string} text */
export function counts(text) {
  let added = 0;
  let removed = 0;
  for (const line of text.split("\n")) {
    if (kind(line) === "added") added += 1;
    if (kind(line) === "removed") removed += 1;
  }
  return { added, removed };
}

/** @param {string} line */
function kind(line) {
  if (line.startsWith("+++") || line.startsWith("---")) return "file";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return "";
}
