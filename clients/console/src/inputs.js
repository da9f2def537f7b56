// What an MCP server asks in the middle of a call: who asks, in its own words, which are text and
// nothing else; its form, or the page that it wants opened; how long there is left. It never takes
// the focus from somebody who is typing.
import { Deadline } from "./deadline.js";
import { byId, el, setText } from "./dom.js";
import { Form } from "./form.js";
import { Guard } from "./guard.js";
import { exposed } from "./visible.js";

/** What the daemon says of a field that does not fit. */
const MISFIT = /^field `content`: `(.+?)` (.*?)(?:; the question stays open)?$/s;

/** What sends a yes, where the model is asked in the place of the user. @type {Record<string, string>} */
const SENDS = { sampling: "Ask the model", sampledAnswer: "Give the answer" };

export class Inputs {
  /**
   * @param {HTMLElement} element
   * @param {(payload: {requestId: string, action: string, content?: Record<string, unknown>}) => Promise<void>} answer
   * @param {{get: (requestId: string) => any, set: (requestId: string, values: any) => void}} drafts
   */
  constructor(element, answer, drafts) {
    this.element = element;
    this.answer = answer;
    this.drafts = drafts;
    this.guard = new Guard(element);
    /** @type {any} */
    this.shown = null;
    /** @type {Deadline | null} */
    this.deadline = null;
    this.skew = 0;
  }

  /** Shows the first of the open requests. @param {any[]} open @param {number} skew daemon's clock minus ours @param {(question: any) => string | undefined} deadlineOf */
  show(open, skew, deadlineOf) {
    this.skew = skew;
    const first = open[0] ?? null;
    if (first?.requestId !== this.shown?.requestId) this.#change(first);
    if (!first) return;
    setText(this.more, open.length > 1 ? `and ${open.length - 1} more` : "");
    this.deadline?.set(deadlineOf(first));
  }

  #change(/** @type {any} */ request) {
    this.shown = request;
    this.deadline?.stop();
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = request === null;
    if (request === null) {
      this.element.replaceChildren();
      if (hadFocus) byId("input").focus();
      return;
    }
    this.#draw(request);
    this.guard.begin();
    setText(byId("announce"), `The MCP server ${exposed(request.server)} asks: ${exposed(request.message).slice(0, 400)}`);
    const idle = document.activeElement === document.body || (document.activeElement === byId("input") && byId("input").value === "");
    if (idle || hadFocus) this.title.focus({ preventScroll: true });
  }

  #draw(/** @type {any} */ request) {
    this.isSending = false;
    this.deadline = new Deadline(() => this.skew);
    const asksModel = request.purpose !== undefined;
    this.title = el("h2", { id: "asked-title", tabindex: "-1" }, "The MCP server ", el("code", {}, exposed(request.server)), asksModel ? " asks the model" : " asks");
    this.more = el("span", { class: "more" });
    this.problem = el("p", { class: "problem", role: "alert", id: "asked-problem", hidden: true });
    this.form = request.mode === "form" ? new Form(request.requestedSchema, this.drafts.get(request.requestId), (draft) => this.drafts.set(request.requestId, draft)) : null;
    const page = this.form ? null : pageOf(request.url);
    const send = this.form
      ? el("button", { type: "submit", class: "primary", id: "asked-send" }, SENDS[request.purpose] ?? "Send")
      : page && el("a", { class: "primary button", id: "asked-open", href: page.href, target: "_blank", rel: "noopener noreferrer", onclick: () => this.#open(request), onauxclick: (/** @type {MouseEvent} */ event) => event.button === 1 && this.#open(request) }, `Open ${page.host}`);
    this.buttons = el(
      "div",
      { class: "buttons" },
      send,
      el("span", { class: "gap" }),
      el("button", { type: "button", class: "quiet", id: "asked-cancel", title: "Close this without a decision", onclick: () => this.#send(request, "cancel") }, "Cancel"),
      el("button", { type: "button", class: "danger", id: "asked-decline", title: "Tell the server no; its call goes on", onclick: () => this.#send(request, "decline") }, "Decline"),
    );
    this.element.replaceChildren(
      el("div", { class: "head" }, this.title, this.more, this.deadline.left),
      this.deadline.line,
      el("p", { class: "words", tabindex: "0", role: "group", "aria-label": "Words of the server" }, exposed(request.message)),
      el(
        "form",
        { novalidate: true, autocomplete: "off", "aria-labelledby": "asked-title", onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          if (this.form) void this.#send(request, "accept", this.form.content());
        } },
        this.form ? this.form.element : place(page),
        el("p", { class: "aside" }, asksModel ? "What is set in is the server's or the model's, which nobody vouches for." : this.form ? "These are the server's own words, which nobody vouches for. What you send goes to it alone." : "These are the server's own words, which nobody vouches for. What you do on that page does not pass through here."),
        el("div", { class: "foot" }, this.problem, this.buttons),
      ),
    );
  }

  /** Opening the page is the consent; the browser opens it by itself. */
  #open(/** @type {any} */ request) {
    void this.#send(request, "accept");
  }

  /** @param {any} request @param {string} action @param {Record<string, unknown>} [content] */
  async #send(request, action, content) {
    if (this.isSending) return;
    this.#busy(true);
    try {
      await this.answer({ requestId: request.requestId, action, ...(content && { content }) });
    } catch (error) {
      // What does not fit leaves the question open.
      if (this.shown === request) this.#complain(/** @type {Error} */ (error).message);
    } finally {
      if (this.shown === request) this.#busy(false);
    }
  }

  #busy(/** @type {boolean} */ isSending) {
    this.isSending = isSending;
    // Not `disabled`, which would take the focus away from who pressed it.
    for (const button of this.buttons.querySelectorAll("button, a")) button.setAttribute("aria-disabled", String(isSending));
  }

  #complain(/** @type {string} */ text) {
    const [, name, what] = MISFIT.exec(text) ?? [];
    const label = name === undefined ? undefined : this.form?.blame(name);
    setText(this.problem, label === undefined ? exposed(text) : `${label}: ${exposed(what ?? "")}`);
    this.problem.hidden = false;
  }
}

/** The address of a web page; nothing where it is none, though the daemon passes no others on. @returns {URL | null} */
function pageOf(/** @type {any} */ url) {
  try {
    const page = new URL(url);
    return ["https:", "http:"].includes(page.protocol) ? page : null;
  } catch {
    return null;
  }
}

/** Where a link leads, as the browser understands it and not as it is made to look. @param {URL | null} page */
function place(page) {
  if (!page) return el("p", { class: "problem" }, "It asks to open something that is not the address of a web page.");
  const warnings = [
    page.protocol === "http:" && "Not encrypted: others on the way can read it and change it.",
    page.host.includes("xn--") && "This name has letters of other scripts, and may look like another name.",
    (page.username || page.password) && "What stands before the @ is no part of the place.",
  ].filter(Boolean);
  return el(
    "div",
    { class: "place" },
    el("p", {}, "It wants you to open a page at"),
    el("p", { class: "host" }, page.host),
    el("pre", { class: "input", tabindex: "0", "aria-label": "Whole address" }, exposed(page.href)),
    ...warnings.map((it) => el("p", { class: "warning" }, /** @type {string} */ (it))),
  );
}
