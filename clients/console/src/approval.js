// The question whether a call may run: what it is, whole; how dangerous and why; how long there is
// left; approve, edit, deny with a reason, remember. It never takes the focus from somebody who is
// typing, and nothing answers it but its own buttons and keys, after it has been seen.
import { h, render } from "preact";
import { Deadline } from "./deadline.js";
import { Diff } from "./diff.js";
import { byId, coded, el, setText } from "./dom.js";
import { Editor } from "./editor.js";
import { Guard } from "./guard.js";
import { ToolInput, about } from "./input.js";
import { exposed } from "./visible.js";

const LEVELS = /** @type {Record<string, string>} */ ({
  safe: "Safe",
  warning: "Take care",
  dangerous: "Dangerous",
  blocked: "Blocked",
});

const SCOPES = /** @type {Record<string, string>} */ ({
  conversation: "in this conversation",
  session: "in this session",
  project: "in this project",
  always: "always, everywhere",
});

export class Approval {
  /**
   * @param {HTMLElement} element
   * @param {(confirm: any, verdict: {approved: boolean, input?: any, remember?: any, folder?: string, reason?: string}) => Promise<void>} answer
   */
  constructor(element, answer) {
    this.element = element;
    this.answer = answer;
    this.guard = new Guard(element);
    /** @type {any} */
    this.shown = null;
    /** @type {Editor | null} */
    this.editor = null;
    /** @type {Deadline | null} */
    this.deadline = null;
    this.skew = 0;
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.editor || event.isComposing) return;
      event.stopPropagation();
      this.#leave();
    });
    // Two keys at once, which nothing else on the page has: no letter that is typed answers anything.
    document.addEventListener("keydown", (event) => {
      if (!this.shown || !event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.repeat || event.isComposing) return;
      const letter = letterOf(event);
      if (letter !== "y" && letter !== "n") return;
      event.preventDefault();
      if (this.guard.isQuiet) return;
      if (letter === "y") void this.#approve(this.shown);
      else void this.#deny(this.shown);
    });
  }

  /** Shows the first of the open questions. @param {any[]} open @param {number} skew daemon's clock minus ours @param {(question: any) => string | undefined} deadlineOf */
  show(open, skew, deadlineOf) {
    this.skew = skew;
    const first = open[0] ?? null;
    if (!isShown(first, this.shown)) this.#change(first);
    if (!first) return;
    setText(this.more, open.length > 1 ? `and ${open.length - 1} more` : "");
    this.deadline?.set(deadlineOf(first));
  }

  #change(/** @type {any} */ confirm) {
    this.shown = confirm;
    this.editor = null;
    this.deadline?.stop();
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = confirm === null;
    if (confirm === null) {
      this.element.replaceChildren();
      if (hadFocus) byId("input").focus();
      return;
    }
    this.#draw(confirm);
    this.guard.begin();
    const what = confirm.host ? `asks to connect to ${exposed(confirm.host)}` : `asks to run: ${about(confirm)}`;
    setText(byId("announce"), `${exposed(confirm.toolName)} ${what}. ${LEVELS[confirm.danger.level] ?? ""}`);
    const idle = document.activeElement === document.body || (document.activeElement === byId("input") && byId("input").value === "");
    if (idle || hadFocus) this.title.focus({ preventScroll: true });
  }

  #draw(/** @type {any} */ confirm) {
    this.isSending = false;
    const level = confirm.danger.level;
    const name = el("code", {}, exposed(confirm.toolName));
    const asked = confirm.host ? ["Let ", name, " connect to ", el("code", {}, exposed(confirm.host)), "?"] : ["Run ", name, "?"];
    this.title = el("h2", { id: "approval-title", tabindex: "-1" }, ...asked);
    this.more = el("span", { class: "more" });
    this.deadline = new Deadline(() => this.skew);
    this.problem = el("p", { class: "problem", role: "alert", hidden: true });
    this.body = el("div", { class: "whole" });
    render(whole(confirm), this.body);
    const offer = confirm.remember ?? { approval: [], denial: [] };
    const options = offer.denial.map((/** @type {string} */ scope) =>
      el("option", { value: scope }, `${SCOPES[scope] ?? scope}${offer.approval.includes(scope) ? "" : " (if denied)"}`),
    );
    this.remember = el("select", { "aria-label": "How far the answer reaches" }, el("option", { value: "once" }, "this once"), ...options);
    const folders = (offer.folders ?? []).map((/** @type {string} */ folder) =>
      el("option", { value: folder }, folder === "." ? "any file of the project" : `any file below ${exposed(folder)}`),
    );
    this.folder = el("select", { "aria-label": "Which files the answer is for", hidden: true }, el("option", { value: "" }, "any file (if denied: this one)"), ...folders);
    this.remember.addEventListener("change", () => {
      this.folder.hidden = folders.length === 0 || this.remember.value === "once";
    });
    this.reason = el("input", { type: "text", placeholder: "Reason (optional)", "aria-label": "Reason of a refusal", autocomplete: "off" });
    this.reason.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && !event.isComposing) void this.#deny(confirm);
    });
    this.approveText = el("span", {}, "Approve");
    // What runs already has no input to change.
    this.edit = el("button", { type: "button", class: "quiet", id: "edit", hidden: confirm.host !== undefined, onclick: () => (this.editor ? this.#leave() : this.#edit(confirm)) }, "Edit");
    this.buttons = el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", class: "primary", id: "approve", "aria-keyshortcuts": "Alt+Y", title: "Alt+Y", onclick: () => this.#approve(confirm) }, this.approveText, el("kbd", { "aria-hidden": "true" }, "Alt Y")),
      this.remember,
      ...(folders.length > 0 ? [this.folder] : []),
      this.edit,
      el("span", { class: "gap" }),
      this.reason,
      el("button", { type: "button", class: "danger", id: "deny", "aria-keyshortcuts": "Alt+N", title: "Alt+N", onclick: () => this.#deny(confirm) }, "Deny", el("kbd", { "aria-hidden": "true" }, "Alt N")),
    );
    this.element.dataset.level = level;
    this.element.replaceChildren(
      el("div", { class: "head" }, this.title, el("span", { class: `level ${level}` }, LEVELS[level] ?? level), this.more, this.deadline.left),
      this.deadline.line,
      this.body,
      el(
        "ul",
        { class: "reasons" },
        ...(confirm.changedBy ? [el("li", { class: "changed" }, "A hook changed the input: ", el("code", {}, exposed(confirm.changedBy)))] : []),
        ...confirm.danger.reasons.map((/** @type {string} */ reason) => el("li", {}, ...coded(reason))),
        el("li", { class: "why" }, ...coded(confirm.reason)),
      ),
      this.problem,
      this.buttons,
    );
  }

  async #approve(/** @type {any} */ confirm) {
    /** @type {any} */
    const verdict = { approved: true, ...this.#lasting(confirm.remember?.approval) };
    try {
      if (this.editor) verdict.input = this.editor.value();
    } catch (error) {
      this.#complain(/** @type {Error} */ (error).message);
      return;
    }
    await this.#send(confirm, verdict);
  }

  #deny(/** @type {any} */ confirm) {
    const reason = this.reason.value.trim();
    return this.#send(confirm, { approved: false, ...this.#lasting(confirm.remember?.denial), ...(reason && { reason }) });
  }

  /** How far the answer reaches, and for which folder, where it may. @param {string[] | undefined} scopes */
  #lasting(scopes) {
    const remember = this.remember.value;
    if (!scopes?.includes(remember)) return {};
    const folder = this.folder.value;
    return { remember, ...(folder !== "" && { folder }) };
  }

  #edit(/** @type {any} */ confirm) {
    this.editor = new Editor(confirm.input);
    render(null, this.body);
    this.body.replaceChildren(this.editor.element);
    setText(this.approveText, "Approve as edited");
    setText(this.edit, "Cancel");
    this.edit.title = "Leave it as the model wrote it (Esc)";
    this.editor.focus();
  }

  /** Leaves the editor; the question is as it was. */
  #leave() {
    this.editor = null;
    this.body.replaceChildren();
    render(whole(this.shown), this.body);
    this.problem.hidden = true;
    setText(this.approveText, "Approve");
    setText(this.edit, "Edit");
    this.edit.title = "";
    this.edit.focus();
  }

  async #send(/** @type {any} */ confirm, /** @type {any} */ verdict) {
    if (this.isSending || !isShown(confirm, this.shown)) return;
    this.#busy(true);
    try {
      await this.answer(confirm, verdict);
    } catch (error) {
      // An edited input that does not fit leaves the question open.
      if (isShown(confirm, this.shown)) this.#complain(/** @type {Error} */ (error).message);
    } finally {
      if (isShown(confirm, this.shown)) this.#busy(false);
    }
  }

  #busy(/** @type {boolean} */ isSending) {
    this.isSending = isSending;
    // Not `disabled`, which would take the focus away from who pressed it.
    for (const button of this.buttons.querySelectorAll("button")) button.setAttribute("aria-disabled", String(isSending));
  }

  #complain(/** @type {string} */ text) {
    setText(this.problem, exposed(text));
    this.problem.hidden = false;
  }
}

/** Whether it is the one on the screen: questions for hosts have the id of their call. @param {any} confirm @param {any} shown */
const isShown = (confirm, shown) => confirm?.toolId === shown?.toolId && confirm?.host === shown?.host;

/** What would be done: where there is a difference it says so, and the input stays to be looked at. @param {any} confirm */
function whole({ input, preview }) {
  if (!preview) return h(ToolInput, { input });
  return [
    h(ToolInput, { input, isDrawn: true }),
    h(Diff, { text: preview }),
    h("details", { class: "raw" }, h("summary", {}, "Input as the model wrote it"), h(ToolInput, { input, isWhole: true })),
  ];
}

/** The letter of a key, also where Alt makes another character of it. @param {KeyboardEvent} event */
function letterOf(event) {
  const key = event.key.toLowerCase();
  return /^[a-z]$/.test(key) ? key : event.code.replace(/^Key/, "").toLowerCase();
}
