// What ran: the execution records with filters, and the sums.
import { duration, exposed, h, setText } from "./dom.js";

const STATUSES = ["", "queued", "running", "success", "error", "denied", "cancelled"];

export class Executions {
  /** @param {HTMLElement} element @param {(type: any, payload: any) => Promise<any>} ask @param {() => void} close */
  constructor(element, ask, close) {
    this.element = element;
    this.ask = ask;
    this.status = h("select", { "aria-label": "Status", onchange: () => this.load() }, ...STATUSES.map((it) => h("option", { value: it }, it || "any status")));
    this.tool = h("input", { type: "search", placeholder: "Tool", "aria-label": "Tool", onchange: () => this.load() });
    this.provider = h("input", { type: "search", placeholder: "Provider", "aria-label": "Provider", onchange: () => this.load() });
    this.sums = h("div", { class: "sums" });
    this.rows = h("tbody");
    this.more = h("button", { type: "button", class: "quiet small", hidden: true, onclick: () => this.load(this.cursor) }, "More");
    this.note = h("p", { class: "aside", role: "status" });
    /** @type {string | undefined} */
    this.cursor = undefined;
    this.timer = 0;
    const head = ["Started", "Tool", "Input", "Status", "Took", "Danger", "Asked", "Output"];
    element.append(
      h("div", { class: "panel-head" }, h("h2", {}, "Executions"), h("button", { type: "button", class: "quiet", "aria-label": "Close executions", onclick: close }, "✕")),
      h("div", { class: "panel-tools" }, this.status, this.tool, this.provider, h("button", { type: "button", class: "quiet small", onclick: () => this.load() }, "Refresh")),
      this.sums,
      h(
        "div",
        { class: "table grow", tabindex: "0", "aria-label": "Execution records" },
        h("table", {}, h("thead", {}, h("tr", {}, ...head.map((it) => h("th", { scope: "col" }, it)))), this.rows),
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
    const wanted = {
      ...(this.status.value && { status: this.status.value }),
      ...(this.tool.value.trim() && { toolName: this.tool.value.trim() }),
      ...(this.provider.value.trim() && { provider: this.provider.value.trim() }),
      ...(cursor && { cursor }),
      limit: 50,
    };
    try {
      const [{ executions, nextCursor }, metrics] = await Promise.all([this.ask("tool:history", wanted), this.ask("tool:metrics", {})]);
      const rows = executions.map(row);
      if (cursor) this.rows.append(...rows);
      else this.rows.replaceChildren(...rows);
      this.cursor = nextCursor;
      this.more.hidden = !nextCursor;
      setText(this.note, this.rows.children.length ? "" : "Nothing ran yet, or nothing that fits.");
      this.sums.replaceChildren(...sums(metrics));
    } catch (error) {
      setText(this.note, /** @type {Error} */ (error).message);
    }
  }
}

function row(/** @type {any} */ it) {
  const input = exposed(it.input.command ?? it.input.path ?? JSON.stringify(it.input));
  const bytes = it.stdoutBytes + it.stderrBytes;
  const asked = it.approval.asked ? `${it.approval.outcome ?? "open"}, ${duration(it.approval.waitedMs)}` : "no";
  return h(
    "tr",
    { "data-status": it.status },
    h("td", {}, new Date(it.startedAt).toLocaleTimeString()),
    h("td", { class: "tool", title: exposed(it.toolName) }, exposed(it.toolName)),
    h("td", { class: "input", title: input.slice(0, 2000) }, input.slice(0, 200)),
    h("td", {}, h("span", { class: "badge" }, it.exitCode === undefined || it.exitCode === 0 ? it.status : `${it.status} (${it.exitCode})`)),
    h("td", { class: "number" }, duration(it.durationMs)),
    h("td", { title: it.danger.reasons.join("; ") }, h("span", { class: `level ${it.danger.level}` }, it.danger.level)),
    h("td", { class: "wrap" }, asked),
    h("td", { class: "number wrap" }, bytes ? `${bytes.toLocaleString("en")} B${it.truncated ? ", cut" : ""}` : ""),
  );
}

function sums(/** @type {any} */ metrics) {
  const total = metrics.tools.reduce((/** @type {number} */ sum, /** @type {any} */ it) => sum + it.count, 0);
  const failed = metrics.tools.reduce((/** @type {number} */ sum, /** @type {any} */ it) => sum + it.failed, 0);
  const tile = (/** @type {string} */ label, /** @type {string | number} */ value) => h("div", { class: "tile" }, h("strong", {}, String(value)), h("span", {}, label));
  return [
    tile("calls", total),
    tile("failed", failed),
    tile("running", metrics.running),
    tile("queued", metrics.queued),
    ...metrics.tools.map((/** @type {any} */ it) =>
      h(
        "div",
        { class: "tile tool", title: `${it.denied} denied, ${it.cancelled} cancelled, longest ${duration(it.maxDurationMs)}` },
        h("strong", {}, exposed(it.name)),
        h("span", {}, `${it.count} × ${duration(it.meanDurationMs)}${it.failed ? `, ${Math.round(it.failureRate * 100)} % failed` : ""}`),
      ),
    ),
  ];
}
