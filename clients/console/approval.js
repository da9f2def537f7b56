// The question whether a call may run: what it is, whole; how dangerous and why; how long there is
// left; approve, edit, deny with a reason, remember. It never takes the focus from somebody who is
// typing, and nothing but its own buttons answers it.
import { diff } from "./diff.js";
import { byId, coded, exposed, h, setText } from "./dom.js";

const LEVELS = /** @type {Record<string, string>} */ ({
  safe: "Safe",
  warning: "Take care",
  dangerous: "Dangerous",
  blocked: "Blocked",
});

export class Approval {
  /**
   * @param {HTMLElement} element
   * @param {(toolId: string, verdict: {approved: boolean, input?: any, remember?: any, reason?: string}) => Promise<void>} answer
   */
  constructor(element, answer) {
    this.element = element;
    this.answer = answer;
    /** @type {any} */
    this.shown = null;
    this.clock = 0;
  }

  /** Shows the first of the open questions. @param {any[]} open @param {number} skew daemon's clock minus ours */
  show(open, skew) {
    this.skew = skew;
    const first = open[0] ?? null;
    if (this.more) setText(this.more, open.length > 1 ? `and ${open.length - 1} more` : "");
    if (first?.toolId === this.shown?.toolId) return;
    this.shown = first;
    clearInterval(this.clock);
    const hadFocus = this.element.contains(document.activeElement);
    this.element.hidden = first === null;
    if (first === null) {
      this.element.replaceChildren();
      if (hadFocus) byId("input").focus();
      return;
    }
    this.#draw(first);
    if (open.length > 1) setText(this.more, `and ${open.length - 1} more`);
    setText(byId("announce"), `${first.toolName} asks to run: ${about(first)}. ${LEVELS[first.danger.level] ?? ""}`);
    const idle = document.activeElement === document.body || (document.activeElement === byId("input") && byId("input").value === "");
    if (idle || hadFocus) this.title.focus({ preventScroll: true });
  }

  #draw(/** @type {any} */ confirm) {
    const level = confirm.danger.level;
    this.title = h("h2", { id: "approval-title", tabindex: "-1" }, "Run ", h("code", {}, exposed(confirm.toolName)), "?");
    this.more = h("span", { class: "more" });
    this.left = h("span", { class: "left" });
    this.bar = h("span", { class: "fill" });
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    this.text = h("pre", { class: "input", tabindex: "0", "aria-label": "Input" }, whole(confirm));
    this.editor = h("textarea", { class: "editor", rows: "4", "aria-label": "Input as JSON", hidden: true, spellcheck: "false" });
    this.remember = h(
      "select",
      { "aria-label": "How far an approval reaches" },
      h("option", { value: "once" }, "this once"),
      h("option", { value: "conversation" }, "in this conversation"),
      h("option", { value: "session" }, "in this session"),
    );
    this.reason = h("input", { type: "text", placeholder: "Reason (optional)", "aria-label": "Reason of a refusal", autocomplete: "off" });
    this.reason.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter") this.#deny(confirm);
    });
    this.buttons = h(
      "div",
      { class: "buttons" },
      h("button", { type: "button", class: "primary", id: "approve", onclick: () => this.#approve(confirm) }, "Approve"),
      this.remember,
      h("button", { type: "button", class: "quiet", id: "edit", onclick: () => this.#edit(confirm) }, "Edit"),
      h("span", { class: "gap" }),
      this.reason,
      h("button", { type: "button", class: "danger", id: "deny", onclick: () => this.#deny(confirm) }, "Deny"),
    );
    this.element.dataset.level = level;
    this.element.replaceChildren(
      h("div", { class: "head" }, this.title, h("span", { class: `level ${level}` }, LEVELS[level] ?? level), this.more, this.left),
      h("span", { class: "deadline", "aria-hidden": "true", hidden: !confirm.expiresAt }, this.bar),
      confirm.preview ? diff(confirm.preview) : "",
      // What would be written is in the difference; the input stays to be looked at.
      confirm.preview ? h("details", { class: "raw" }, h("summary", {}, "Input as the model wrote it"), this.text) : this.text,
      this.editor,
      h(
        "ul",
        { class: "reasons" },
        ...confirm.danger.reasons.map((/** @type {string} */ reason) => h("li", {}, ...coded(reason))),
        h("li", { class: "why" }, ...coded(confirm.reason)),
      ),
      this.problem,
      this.buttons,
    );
    if (confirm.expiresAt) {
      const ends = Date.parse(confirm.expiresAt);
      const began = Math.max(1, ends - Date.now() - (this.skew ?? 0));
      const tick = () => {
        const left = Math.max(0, ends - Date.now() - (this.skew ?? 0));
        setText(this.left, left > 90_000 ? `${Math.ceil(left / 60_000)} min left` : `${Math.ceil(left / 1000)} s left`);
        this.bar.style.width = `${(100 * left) / began}%`;
        this.left.classList.toggle("soon", left < 10_000);
      };
      tick();
      this.clock = window.setInterval(tick, 500);
    }
  }

  async #approve(/** @type {any} */ confirm) {
    /** @type {any} */
    const verdict = { approved: true, remember: this.remember.value };
    if (!this.editor.hidden) {
      try {
        verdict.input = JSON.parse(this.editor.value);
      } catch (error) {
        this.#complain(`That is not valid JSON: ${/** @type {Error} */ (error).message}`);
        return;
      }
    }
    await this.#send(confirm, verdict);
  }

  #deny(/** @type {any} */ confirm) {
    const reason = this.reason.value.trim();
    return this.#send(confirm, { approved: false, ...(reason && { reason }) });
  }

  #edit(/** @type {any} */ confirm) {
    this.editor.value = JSON.stringify(confirm.input, null, 2);
    this.editor.rows = Math.min(12, this.editor.value.split("\n").length + 1);
    this.editor.hidden = false;
    this.text.hidden = true;
    setText(byId("approve"), "Approve as edited");
    this.editor.focus();
  }

  async #send(/** @type {any} */ confirm, /** @type {any} */ verdict) {
    for (const button of this.buttons.querySelectorAll("button")) button.disabled = true;
    try {
      await this.answer(confirm.toolId, verdict);
    } catch (error) {
      // An edited input that does not fit leaves the question open.
      if (this.shown?.toolId === confirm.toolId) this.#complain(/** @type {Error} */ (error).message);
    } finally {
      for (const button of this.buttons.querySelectorAll("button")) button.disabled = false;
    }
  }

  #complain(/** @type {string} */ text) {
    setText(this.problem, text);
    this.problem.hidden = false;
  }
}

function about(/** @type {any} */ confirm) {
  return exposed(String(confirm.input.command ?? confirm.input.path ?? JSON.stringify(confirm.input))).slice(0, 200);
}

/** The whole input, with nothing in it that cannot be seen. */
function whole(/** @type {any} */ confirm) {
  const lines = Object.entries(confirm.input).map(([name, value]) => {
    const text = exposed(typeof value === "string" ? value : JSON.stringify(value, null, 2));
    if (name === "command") return `$ ${text}`;
    return text.includes("\n") ? `${exposed(name)}:\n${text}` : `${exposed(name)}: ${text}`;
  });
  return lines.join("\n") || "without input";
}
