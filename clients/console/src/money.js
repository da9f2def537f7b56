// Money: the question whether more may be spent, and what was spent, as charts by day and by model.
import { Charts } from "./charts.js";
import { Deadline } from "./deadline.js";
import { byId, el, setText } from "./dom.js";
import { Guard } from "./guard.js";

/** What a cap is for, in words. */
const SCOPES = /** @type {Record<string, string>} */ ({
  exchange: "this answer",
  conversation: "this conversation",
  session: "this session",
});

export class Money {
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
    const words = `${dollars(question.spentUsd)} of ${dollars(question.limitUsd)} are spent of what ${SCOPES[question.scope] ?? question.scope} may cost. The next step takes about ${dollars(question.nextUsd)}.`;
    this.deadline = new Deadline(() => this.skew);
    this.deadline.set(question.expiresAt ?? undefined);
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    const choices = question.choices.map((/** @type {any} */ choice) => this.#button(choice.unlimited ? "No limit" : `${dollars(choice.extendUsd)} more`, choice, choice.unlimited ? "quiet" : "primary"));
    this.element.append(
      el("div", { class: "head" }, el("h2", { id: "money-title" }, "More money?"), this.deadline.left),
      this.deadline.line,
      el("p", {}, words),
      el("div", { class: "foot" }, this.problem, el("div", { class: "buttons" }, ...choices, el("span", { class: "gap" }), this.#button("Last answer", { approved: false, finish: true }, "quiet"), this.#button("Stop", { approved: false }, "danger"))),
    );
    this.guard.begin();
    setText(byId("announce"), words);
  }

  #button(/** @type {string} */ label, /** @type {any} */ answer, /** @type {string} */ look) {
    return el("button", { type: "button", class: look, onclick: () => this.#send(answer) }, label);
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

/** Returns the charts of what was spent; a daemon that keeps nothing has none. @param {(type: any, payload: any) => Promise<any>} ask */
export async function spent(ask) {
  const sums = async (/** @type {string} */ groupBy) => {
    const { rows } = await ask("usage:report", { groupBy });
    return rows.map((/** @type {any} */ { key, spentUsd }) => ({ name: key || "(deleted)", count: spentUsd }));
  };
  try {
    const [days, models] = await Promise.all([sums("day"), sums("model")]);
    return Charts.of({ "Spent by day": days.slice(-10), "Spent by model": models.slice(0, 10) }, dollars);
  } catch {
    return [];
  }
}

/** @param {number} amount */
export function dollars(amount) {
  return `$${amount.toFixed(amount < 0.1 ? 4 : 2)}`;
}
