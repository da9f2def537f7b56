// Sums as bars, each with its figure in words: for the panel of what ran.
import { compact, duration, el } from "./dom.js";
import { exposed } from "./visible.js";

/** How many bars a chart has at most. */
const MOST_BARS = 10;

/** What a bar may stand for: its name, its number of a sum, and how that is said. */
const FIGURES = /** @type {Record<string, [(it: any) => number, (value: number) => string]>} */ ({
  Calls: [(it) => it.count, String],
  "Failure rate": [(it) => it.failureRate, (rate) => `${Math.round(rate * 100)} %`],
  "Processor time": [(it) => it.cpuMs, duration],
  "Most memory": [(it) => it.maxRssBytes, bytes],
  "Bytes of output": [(it) => it.outputBytes, bytes],
  "Bytes of input": [(it) => it.inputBytes, bytes],
});

export class Charts {
  constructor() {
    /** @type {any} */
    this.metrics = {};
    /** @type {HTMLElement[]} */
    this.money = [];
    this.figure = el("select", { "aria-label": "What the charts show", onchange: () => this.#draw() }, ...Object.keys(FIGURES).map((it) => el("option", {}, it)));
    this.charts = el("div", { class: "charts" });
    this.element = el("details", { class: "dashboard", open: true }, el("summary", {}, "In sum"), this.figure, this.charts);
  }

  /** Makes charts of sums that have one figure, by their titles. @param {Record<string, any[]>} all @param {(value: number) => string} text */
  static of(all, text) {
    const charts = Object.entries(all).map(([title, sums]) => section(title, sums, (it) => it.count, text));
    return /** @type {HTMLElement[]} */ (charts.filter((it) => it !== false));
  }

  /** @param {any} metrics what `tool:metrics` answered @param {HTMLElement[]} money charts of what was spent */
  show(metrics, money) {
    this.metrics = metrics;
    this.money = money;
    this.#draw();
  }

  #draw() {
    const { tools = [], providers = [], days = [], commands = [] } = this.metrics;
    const [value, text] = FIGURES[this.figure.value] ?? FIGURES.Calls;
    const most = (/** @type {any[]} */ sums) => [...sums].sort((a, b) => value(b) - value(a)).slice(0, MOST_BARS);
    const chart = (/** @type {string} */ title, /** @type {any[]} */ sums) => section(title, sums, value, text);
    const charts = [chart("By day (UTC)", days.slice(-MOST_BARS)), chart("Commands used most", commands.slice(0, MOST_BARS)), chart("By tool", most(tools)), chart("By provider", most(providers))];
    this.charts.replaceChildren(...charts.filter((it) => it !== false), ...this.money);
    this.element.hidden = this.charts.children.length === 0;
  }
}

/** @param {string} title @param {any[]} sums @param {(it: any) => number} value @param {(value: number) => string} text */
function section(title, sums, value, text) {
  const top = Math.max(...sums.map(value), 0) || 1;
  const bars = sums.map((it) => bar(it.name, value(it) / top, text(value(it))));
  return sums.length > 0 && el("section", {}, el("h3", {}, title), el("ul", {}, ...bars));
}

function bar(/** @type {string} */ name, /** @type {number} */ part, /** @type {string} */ figure) {
  const length = el("span", { class: "length" });
  length.style.width = `${Math.round(part * 100)}%`;
  return el("li", {}, el("span", { class: "name", title: exposed(name) }, exposed(name)), el("span", { class: "track", "aria-hidden": "true" }, length), el("span", { class: "number" }, figure));
}

function bytes(/** @type {number} */ count) {
  return `${compact(count)}B`;
}
