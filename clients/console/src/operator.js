// What an operator sees: the sessions of all, how they stand and what they cost; read anew as long as it is open.
import { compact, el, setText } from "./dom.js";
import { dollars } from "./money.js";
import { exposed } from "./visible.js";

/** How often it is read, in milliseconds. */
const EVERY = 2000;

export class Operator {
  /** @param {HTMLElement} element @param {HTMLElement} button that opens it @param {() => string | null} token @param {() => void} close */
  constructor(element, button, token, close) {
    this.element = element;
    this.button = button;
    this.token = token;
    this.timer = 0;
    this.nodes = el("ul", { class: "aside nodes", "aria-label": "Daemons" });
    this.rows = el("tbody");
    this.note = el("p", { class: "aside" });
    const head = ["User", "Session", "State", "Project", "Node", "Sockets", "Tokens", "Cost", "Since"];
    this.close = el("button", { type: "button", class: "quiet", "aria-label": "Close operator", onclick: close }, "✕");
    element.append(
      el("div", { class: "panel-head" }, el("h2", {}, "Operator"), this.close),
      this.nodes,
      el(
        "div",
        { class: "table grow", tabindex: "0", "aria-label": "Sessions of all" },
        el("table", {}, el("thead", {}, el("tr", {}, ...head.map((it) => el("th", { scope: "col" }, it)))), this.rows),
      ),
      this.note,
    );
  }

  /** Shows the way to it to operators. @param {boolean} mayOperate as the daemon says of this page's token */
  begin(mayOperate) {
    this.button.hidden = !mayOperate;
  }

  open() {
    void this.load();
    this.close.focus();
  }

  async load() {
    clearTimeout(this.timer);
    try {
      const [{ nodes }, { sessions, unanswered, silent = [] }] = await Promise.all([this.#ask("nodes"), this.#ask("sessions")]);
      this.nodes.replaceChildren(...nodes.map((/** @type {any} */ it) => node(it, nodes.length > 1)));
      this.rows.replaceChildren(...sessions.map(row));
      const notes = silent.map((/** @type {string} */ it) => `${exposed(it)} did not answer: its sessions are not among these.`);
      if (unanswered) notes.push(`${unanswered} more did not answer in time.`);
      setText(this.note, notes.join(" "));
    } catch (error) {
      setText(this.note, /** @type {Error} */ (error).message);
    }
    // Not before the answer is there: a slow daemon is not asked the faster.
    if (!this.element.hidden) this.timer = window.setTimeout(() => void (this.element.hidden || this.load()), EVERY);
  }

  /** @param {string} what */
  async #ask(what) {
    const answer = await fetch(`/admin/${what}`, { headers: { Authorization: `Bearer ${this.token() ?? ""}` } });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.message);
    return body;
  }
}

/** @param {any} it @param {boolean} hasOthers whether there are several */
function node(it, hasOthers) {
  const words = [`${it.sessions} ${it.sessions === 1 ? "session" : "sessions"}`];
  if (it.running !== undefined) words.push(`${it.running} running`);
  if (it.state !== "ready") words.push({ unknown: "did not answer", gone: "gone: its lease is over" }[it.state] ?? it.state);
  if (it.since) words.push(`since ${new Date(it.since).toLocaleString()}`);
  if (hasOthers && it.renewedMs !== undefined) words.push(`lease renewed ${Math.floor(it.renewedMs / 1000)} s ago`);
  if (hasOthers && it.here) words.push("answers here");
  const name = [exposed(it.node), it.version].filter(Boolean).join(" ");
  return el("li", { "data-node": it.node, title: exposed(it.url ?? "") }, `${name}: ${words.join(", ")}`);
}

function row(/** @type {any} */ it) {
  const folder = it.project?.split(/[\\/]/).at(-1) ?? "";
  return el(
    "tr",
    { "data-session": it.sessionId },
    el("td", {}, exposed(it.user)),
    el("td", { title: it.sessionId }, it.sessionId.slice(0, 8)),
    el("td", {}, it.state.replace("_", " ")),
    el("td", { title: exposed(it.project ?? "") }, exposed(folder)),
    el("td", {}, exposed(it.node)),
    el("td", {}, String(it.sockets)),
    el("td", {}, `${compact(it.inputTokens)} / ${compact(it.outputTokens)}`),
    el("td", {}, dollars(it.spentUsd)),
    el("td", {}, new Date(it.since).toLocaleTimeString()),
  );
}
