// A question of the daemon that is shown as a card until it is answered or over: one at a time, with its deadline.
import { Deadline } from "./deadline.js";
import { byId, el, setText } from "./dom.js";
import { Guard } from "./guard.js";

/** What a card says. @typedef {{ heading: string, body: HTMLElement[], buttons: HTMLElement[], announced: string }} Shown */
/** Makes a button that answers. @typedef {(label: string, answer: any, look: string) => HTMLElement} Choice */

export class Card {
  /**
   * @param {HTMLElement} element
   * @param {(payload: any) => Promise<void>} answer
   * @param {(question: any, choice: Choice) => Shown} draw
   */
  constructor(element, answer, draw) {
    this.element = element;
    this.answer = answer;
    this.draw = draw;
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
    const { heading, body, buttons, announced } = this.draw(question, (label, answer, look) =>
      el("button", { type: "button", class: look, onclick: () => this.#send(answer) }, label));
    this.element.append(
      el("div", { class: "head" }, el("h2", { id: `${this.element.id}-title` }, heading), this.deadline.left),
      this.deadline.line,
      ...body,
      el("div", { class: "foot" }, this.problem, el("div", { class: "buttons" }, ...buttons)),
    );
    this.guard.begin();
    setText(byId("announce"), announced);
  }

  async #send(/** @type {any} */ answer) {
    const question = this.shown;
    try {
      await this.answer({ requestId: question.requestId, ...answer });
    } catch (error) {
      if (this.shown !== question || !this.problem) return;
      this.problem.hidden = false;
      setText(this.problem, /** @type {Error} */ (error).message);
    }
  }
}

/** The room between what goes on and what does not. */
export function gap() {
  return el("span", { class: "gap" });
}
