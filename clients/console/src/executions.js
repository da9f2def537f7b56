// What ran, in this session or in all: the execution records with filters, their sums, and both as files.
import { Charts } from "./charts.js";
import { duration, el, setText } from "./dom.js";
import { spent } from "./money.js";
import { exposed } from "./visible.js";

const STATUSES = ["", "queued", "running", "success", "error", "denied", "cancelled"];

export class Executions {
  /** @param {HTMLElement} element @param {(type: any, payload: any) => Promise<any>} ask @param {() => void} close */
  constructor(element, ask, close) {
    this.element = element;
    this.ask = ask;
    this.scope = el("select", { "aria-label": "Whose calls", onchange: () => this.load() }, el("option", { value: "session" }, "this session"), el("option", { value: "daemon" }, "all sessions"));
    this.status = el("select", { "aria-label": "Status", onchange: () => this.load() }, ...STATUSES.map((it) => el("option", { value: it }, it || "any status")));
    this.tool = el("input", { type: "search", placeholder: "Tool", "aria-label": "Tool", onchange: () => this.load() });
    this.provider = el("input", { type: "search", placeholder: "Provider", "aria-label": "Provider", onchange: () => this.load() });
    this.sums = el("div", { class: "sums" });
    this.charts = new Charts();
    this.rows = el("tbody");
    this.more = el("button", { type: "button", class: "quiet small", hidden: true, onclick: () => this.load(this.cursor) }, "More");
    this.note = el("p", { class: "aside", role: "status" });
    /** @type {string | undefined} */
    this.cursor = undefined;
    this.timer = 0;
    const head = ["Started", "Tool", "Input", "Status", "Took", "Danger", "Asked", "Output"];
    element.append(
      el("div", { class: "panel-head" }, el("h2", {}, "Executions"), el("button", { type: "button", class: "quiet", "aria-label": "Close executions", onclick: close }, "✕")),
      el("div", { class: "panel-tools" }, this.scope, this.status, this.tool, this.provider, button("Refresh", () => this.load()), button("CSV", () => this.save("csv")), button("JSON lines", () => this.save("jsonl"))),
      this.sums,
      this.charts.element,
      el(
        "div",
        { class: "table grow", tabindex: "0", "aria-label": "Execution records" },
        el("table", {}, el("thead", {}, el("tr", {}, ...head.map((it) => el("th", { scope: "col" }, it)))), this.rows),
      ),
      this.note,
      this.more,
    );
  }

  open() {
    this.load();
    this.status.focus();
  }

  /** A call began or ended: what is open is loaded again, but not for each of many. */
  changed() {
    if (this.element.hidden || this.timer) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.load();
    }, 500);
  }

  /** @param {string} [cursor] */
  async load(cursor) {
    const wanted = { ...this.#filter(), ...(cursor && { cursor }), limit: 50 };
    try {
      const [{ executions, nextCursor }, metrics, money] = await Promise.all([this.ask("tool:history", wanted), this.ask("tool:metrics", { scope: this.scope.value }), spent(this.ask)]);
      const rows = executions.map(row);
      if (cursor) this.rows.append(...rows);
      else this.rows.replaceChildren(...rows);
      this.cursor = nextCursor;
      this.more.hidden = !nextCursor;
      setText(this.note, this.rows.children.length ? "" : "Nothing ran yet, or nothing that fits.");
      this.sums.replaceChildren(...sums(metrics));
      this.charts.show(metrics, money);
    } catch (error) {
      setText(this.note, /** @type {Error} */ (error).message);
    }
  }

  /** Gives the records that fit to the browser as a file. @param {"csv" | "jsonl"} format */
  async save(format) {
    try {
      const pieces = [];
      for (let cursor; ; ) {
        const { text, nextCursor } = await this.ask("tool:export", { ...this.#filter(), format, ...(cursor && { cursor }) });
        pieces.push(text);
        if (!nextCursor) break;
        cursor = nextCursor;
      }
      const url = URL.createObjectURL(new Blob(pieces, { type: format === "csv" ? "text/csv" : "application/x-ndjson" }));
      el("a", { href: url, download: `outrigger-executions.${format}` }).click();
      // The browser has begun to read it by then.
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      setText(this.note, /** @type {Error} */ (error).message);
    }
  }

  #filter() {
    return {
      scope: this.scope.value,
      ...(this.status.value && { status: this.status.value }),
      ...(this.tool.value.trim() && { toolName: this.tool.value.trim() }),
      ...(this.provider.value.trim() && { provider: this.provider.value.trim() }),
    };
  }
}

function button(/** @type {string} */ label, /** @type {() => void} */ onclick) {
  return el("button", { type: "button", class: "quiet small", onclick }, label);
}

function row(/** @type {any} */ it) {
  const input = exposed(it.input.command ?? it.input.path ?? JSON.stringify(it.input));
  const bytes = it.stdoutBytes + it.stderrBytes;
  const asked = it.approval.asked ? `${it.approval.outcome ?? "open"}, ${duration(it.approval.waitedMs)}` : "no";
  return el(
    "tr",
    { "data-status": it.status },
    el("td", { title: `${new Date(it.startedAt).toLocaleString()}${it.sessionId ? `, session ${it.sessionId}` : ""}` }, new Date(it.startedAt).toLocaleTimeString()),
    el("td", { class: "tool", title: exposed(it.toolName) }, exposed(it.toolName)),
    el("td", { class: "input", title: input.slice(0, 2000) }, input.slice(0, 200)),
    el("td", {}, el("span", { class: "badge" }, it.exitCode === undefined || it.exitCode === 0 ? it.status : `${it.status} (${it.exitCode})`)),
    el("td", { class: "number" }, duration(it.durationMs)),
    el("td", { title: it.danger.reasons.join("; ") }, el("span", { class: `level ${it.danger.level}` }, it.danger.level)),
    el("td", { class: "wrap" }, asked),
    el("td", { class: "number wrap" }, bytes ? `${bytes.toLocaleString("en")} B${it.truncated ? ", cut" : ""}` : ""),
  );
}

function sums(/** @type {any} */ metrics) {
  const total = metrics.tools.reduce((/** @type {number} */ sum, /** @type {any} */ it) => sum + it.count, 0);
  const failed = metrics.tools.reduce((/** @type {number} */ sum, /** @type {any} */ it) => sum + it.failed, 0);
  const tile = (/** @type {string} */ label, /** @type {string | number} */ value) => el("div", { class: "tile" }, el("strong", {}, String(value)), el("span", {}, label));
  return [
    tile("calls", total),
    tile("failed", failed),
    tile("running", metrics.running),
    tile("queued", metrics.queued),
  ];
}
