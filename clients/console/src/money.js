// Money: the question whether more may be spent, and what was spent, as charts by day and by model.
import { gap } from "./card.js";
import { Charts } from "./charts.js";
import { el } from "./dom.js";

/** What a cap is for, in words. */
const SCOPES = /** @type {Record<string, string>} */ ({
  exchange: "this answer",
  conversation: "this conversation",
  session: "this session",
});

/** Draws the question. @param {any} question @param {import("./card.js").Choice} choice @returns {import("./card.js").Shown} */
export function money(question, choice) {
  const words = `${dollars(question.spentUsd)} of ${dollars(question.limitUsd)} are spent of what ${SCOPES[question.scope] ?? question.scope} may cost. The next step takes about ${dollars(question.nextUsd)}.`;
  const more = question.choices.map((/** @type {any} */ it) => choice(it.unlimited ? "No limit" : `${dollars(it.extendUsd)} more`, it, it.unlimited ? "quiet" : "primary"));
  return {
    heading: "More money?",
    body: [el("p", {}, words)],
    buttons: [...more, gap(), choice("Last answer", { approved: false, finish: true }, "quiet"), choice("Stop", { approved: false }, "danger")],
    announced: words,
  };
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
