// Calls of the tools that this page has by hand: a card for each, which a person answers in the tool's place.
import { h, render } from "preact";
import { Deadline } from "./deadline.js";
import { byId, el, setText } from "./dom.js";
import { Guard } from "./guard.js";
import { ToolInput } from "./input.js";
import { exposed } from "./visible.js";

/** Calls that were handed out and have no output yet. */
export class ClientCalls {
  /**
   * @param {HTMLElement} element
   * @param {(output: any) => Promise<any>} answer
   * @param {{get: (id: string) => any, set: (id: string, values: any) => void}} drafts
   */
  constructor(element, answer, drafts) {
    this.element = element;
    this.answer = answer;
    this.drafts = drafts;
    /** @type {Map<string, any>} */
    this.open = new Map();
    /** What is drawn, by call. @type {Map<string, {card: HTMLElement, deadline: Deadline}>} */
    this.cards = new Map();
    this.skew = 0;
  }

  /** Another session is shown. */
  begin() {
    this.open.clear();
  }

  /** What a frame says about calls. @param {any} frame */
  take({ type, payload }) {
    if (type === "chat:tool-call") this.open.set(payload.toolId, payload);
    else if (type === "chat:tool-cancelled" || type === "chat:tool-result") this.open.delete(payload.toolId);
    else if (type === "session:state-result") this.open = new Map((payload.clientCalls ?? []).map((/** @type {any} */ it) => [it.toolId, it]));
    else if (type === "session:error" && payload.code === "replay_gap") this.open.clear();
  }

  /** Draws what is open; cards that are there stay. @param {boolean} isReplaying what came so far may be over @param {number} skew daemon's clock minus ours */
  show(isReplaying, skew) {
    this.skew = skew;
    const open = isReplaying ? new Map() : this.open;
    for (const [toolId, { card, deadline }] of this.cards) {
      if (open.has(toolId)) continue;
      deadline.stop();
      const hadFocus = card.contains(document.activeElement);
      card.remove();
      this.cards.delete(toolId);
      if (!isReplaying) this.drafts.set(toolId, undefined);
      if (hadFocus) byId("input").focus();
    }
    for (const [toolId, call] of open) if (!this.cards.has(toolId)) this.#draw(call);
    this.element.hidden = this.cards.size === 0;
    return open.size;
  }

  #draw(/** @type {any} */ call) {
    const { toolId, name, input, expiresAt } = call;
    const kept = this.drafts.get(toolId) ?? {};
    const deadline = new Deadline(() => this.skew);
    const body = el("div", { class: "whole" });
    render(h(ToolInput, { input }), body);
    const text = el("textarea", { class: "editor", rows: "3", "aria-label": `Output of ${exposed(name)}`, placeholder: "What the model is to read", spellcheck: "false" });
    text.value = kept.text ?? "";
    const isJson = el("input", { type: "checkbox", checked: kept.isJson });
    const isError = el("input", { type: "checkbox", checked: kept.isError });
    const problem = el("p", { class: "problem", role: "alert", hidden: true });
    const send = el("button", { type: "submit", class: "primary" }, "Answer");
    const keep = () => this.drafts.set(toolId, { text: text.value, isJson: isJson.checked, isError: isError.checked });
    const form = el(
      "form",
      {
        "aria-label": `Answer the call ${toolId}`,
        oninput: keep,
        onsubmit: async (/** @type {Event} */ event) => {
          event.preventDefault();
          send.disabled = true;
          try {
            const said = isJson.checked ? { structured: parsed(text.value, "The output") } : { content: text.value };
            await this.answer({ toolId, ...said, ...(isError.checked && { isError: true }) });
          } catch (error) {
            // What does not fit leaves the call open.
            setText(problem, exposed(/** @type {Error} */ (error).message));
            problem.hidden = false;
            send.disabled = false;
          }
        },
      },
      text,
      problem,
      el("div", { class: "buttons" }, send, el("label", { class: "tick" }, isJson, " as JSON"), el("label", { class: "tick" }, isError, " as an error")),
    );
    const card = el(
      "article",
      { class: "approval clientcall", "data-call": toolId },
      el("div", { class: "head" }, el("h2", {}, "The model calls ", el("code", {}, exposed(name))), el("span", { class: "more" }, toolId), deadline.left),
      deadline.line,
      body,
      form,
    );
    deadline.set(expiresAt);
    new Guard(card).begin();
    this.element.append(card);
    this.cards.set(toolId, { card, deadline });
    setText(byId("announce"), `The model calls ${exposed(name)}, a tool of this page: its output is yours to give.`);
  }
}

/** Reads JSON; throws an error that says what is wrong. @param {string} text @param {string} what */
export function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} is not valid JSON: ${/** @type {Error} */ (error).message}`);
  }
}
