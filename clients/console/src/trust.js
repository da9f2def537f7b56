// Files of the project that would speak for the user: the question, with all that they say.
import { gap } from "./card.js";
import { el } from "./dom.js";
import { exposed } from "./visible.js";

/** Draws the question. @param {any} question @param {import("./card.js").Choice} choice @returns {import("./card.js").Shown} */
export function trust(question, choice) {
  const files = question.files.map((/** @type {any} */ file) =>
    el("div", { class: "file" },
      el("p", { title: `SHA-256 ${file.sha256}` }, `${exposed(file.path)} · ${file.kind === "skill" ? "skill" : "instructions"} · ${file.bytes} bytes · SHA-256 ${file.sha256.slice(0, 12)}…`),
      el("pre", { class: "input", tabindex: "0" }, exposed(file.text))));
  return {
    heading: "Tell the model this as your words?",
    body: [...files, el("p", {}, "These files are the project's. A yes counts for what is shown here; a change of them is asked about again.")],
    buttons: [choice("Tell it", { approved: true }, "primary"), gap(), choice("Do not", { approved: false }, "danger")],
    announced: "The project has instructions for the model. Tell it as your words?",
  };
}
