// Files of the project that would speak for the user: the question, with all that they say.
import { Deadline } from "./deadline.js";
import { byId, el, setText } from "./dom.js";
import { Guard } from "./guard.js";
import { exposed } from "./visible.js";

export class Trust {
  /** @param {HTMLElement} element @param {(payload: any) => Promise<void>} answer */
  constructor(element, answer) {
    this.element = element;
    this.answer = answer;
    this.guard = new Guard(element);
    /** @type {any} */
    this.shown = null;
    /** @type {Deadline | null} */
    this.deadline = null;
    this.skew = 0;
  }

  /** Shows the first open question. @param {any[]} open @param {number} skew daemon's clock minus ours */
  show(open, skew) {
    this.skew = skew;
    const first = open[0] ?? null;
    if (first?.requestId !== this.shown?.requestId) this.#change(first);
  }

  #change(/** @type {any} */ question) {
    this.shown = question;
    this.deadline?.stop();
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = question === null;
    this.element.replaceChildren();
    if (question === null) {
      if (hadFocus) byId("input").focus();
      return;
    }
    this.deadline = new Deadline(() => this.skew);
    this.deadline.set(question.expiresAt ?? undefined);
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    const files = question.files.map((/** @type {any} */ file) =>
      el("div", { class: "file" },
        el("p", { title: `SHA-256 ${file.sha256}` }, `${exposed(file.path)} · ${file.kind === "skill" ? "skill" : "instructions"} · ${file.bytes} bytes · SHA-256 ${file.sha256.slice(0, 12)}…`),
        el("pre", { class: "input", tabindex: "0" }, exposed(file.text))));
    this.element.append(
      el("div", { class: "head" }, el("h2", { id: "trust-title" }, "Tell the model this as your words?"), this.deadline.left),
      this.deadline.line,
      ...files,
      el("p", {}, "These files are the project's. A yes counts for what is shown here; a change of them is asked about again."),
      el("div", { class: "foot" }, this.problem, el("div", { class: "buttons" }, this.#button("Tell it", true, "primary"), el("span", { class: "gap" }), this.#button("Do not", false, "danger"))),
    );
    this.guard.begin();
    setText(byId("announce"), "The project has instructions for the model. Tell it as your words?");
  }

  #button(/** @type {string} */ label, /** @type {boolean} */ approved, /** @type {string} */ look) {
    return el("button", { type: "button", class: look, onclick: () => this.#send(approved) }, label);
  }

  async #send(/** @type {boolean} */ approved) {
    const question = this.shown;
    try {
      await this.answer({ requestId: question.requestId, approved });
    } catch (error) {
      if (this.shown !== question || !this.problem) return;
      this.problem.hidden = false;
      setText(this.problem, /** @type {Error} */ (error).message);
    }
  }
}
