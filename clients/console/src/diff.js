// A unified diff, coloured. Line by line; what is no diff is shown as it is.
import { h } from "preact";
import { exposed } from "./visible.js";

/** Most lines that are drawn; nobody reads more here. */
const MOST_LINES = 2_000;

/** @param {{text: string}} properties */
export function Diff({ text }) {
  const lines = text.replace(/\n$/, "").split("\n");
  const left = lines.length - MOST_LINES;
  return h(
    "pre",
    { class: "diff", tabindex: 0, "aria-label": "Changes" },
    lines.slice(0, MOST_LINES).flatMap((line, at) => [h("span", { class: `line ${at < 2 && isHead(line) ? "file" : kind(line)}` }, exposed(line) || " "), "\n"]),
    left > 0 && h("span", { class: "line hunk" }, `… ${left} more lines`),
  );
}

/** How many lines come and go. @param {string} text */
export function counts(text) {
  const kinds = text.split("\n").map((line, at) => (at < 2 && isHead(line) ? "" : kind(line)));
  return { added: kinds.filter((it) => it === "added").length, removed: kinds.filter((it) => it === "removed").length };
}

/** Whether it names a file; further down a line that goes may begin like that. @param {string} line */
const isHead = (line) => line.startsWith("+++ ") || line.startsWith("--- ");

/** @param {string} line */
function kind(line) {
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return "";
}
