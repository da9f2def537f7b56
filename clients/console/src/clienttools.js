// Tools that this page has by hand, to try how a model takes to them before a frontend has them: a panel that registers
// them, and a card for each call, which a person answers in the tool's place.
import { h, render } from "preact";
import { Deadline } from "./deadline.js";
import { byId, el, setText } from "./dom.js";
import { Guard } from "./guard.js";
import { ToolInput } from "./input.js";
import { store } from "./store.js";
import { exposed } from "./visible.js";

const SCHEMA = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const APPROVAL = /** @type {Record<string, string>} */ ({
  trust: "as the trust level says",
  always: "always, each time",
  never: "only under supervised, where the operator allows it",
});
/** How long a call waits, in seconds, unless somebody says otherwise: a person is to answer. */
const PATIENCE = 300;

export class ClientTools {
  /** @param {HTMLElement} element @param {(type: any, payload: any) => Promise<any>} ask @param {() => void} close */
  constructor(element, ask, close) {
    this.ask = ask;
    this.name = el("input", { id: "tool-name", autocomplete: "off", spellcheck: "false", required: true, placeholder: "open_file" });
    this.description = el("input", { id: "tool-description", autocomplete: "off", required: true, placeholder: "Opens a file in the editor." });
    this.schema = el("textarea", { id: "tool-schema", class: "editor", rows: "5", spellcheck: "false", autocomplete: "off" });
    this.schema.value = JSON.stringify(SCHEMA);
    this.approval = el("select", { id: "tool-approval" }, ...Object.entries(APPROVAL).map(([value, what]) => el("option", { value }, `${value}: ${what}`)));
    this.patience = el("input", { id: "tool-patience", type: "number", min: "1", step: "1", value: String(PATIENCE) });
    this.readOnly = el("input", { id: "tool-readonly", type: "checkbox" });
    this.note = el("p", { class: "aside", role: "status", id: "tool-note" });
    this.list = el("ul", { class: "remembered", "aria-label": "Tools of the client" });
    const field = (/** @type {string} */ label, /** @type {any} */ control) => el("p", { class: "field" }, el("label", { for: control.id }, label), control);
    element.append(
      el("div", { class: "panel-head" }, el("h2", {}, "Tools of this page"), el("button", { type: "button", class: "quiet", "aria-label": "Close tools", onclick: close }, "✕")),
      el("p", { class: "aside" }, "Give the model a tool, and answer its calls yourself, as a frontend would."),
      el(
        "form",
        { class: "toolform", onsubmit: (/** @type {Event} */ event) => this.#register(event) },
        field("Name", this.name),
        field("Description, for the model", this.description),
        field("JSON schema of its input", this.schema),
        field("Whether you are asked first", this.approval),
        field("Seconds that a call waits", this.patience),
        el("label", { class: "tick" }, this.readOnly, " It changes nothing"),
        el("button", { type: "submit", class: "primary small" }, "Register"),
      ),
      this.note,
      el("h3", {}, "Registered"),
      this.list,
    );
  }

  /** A session is there: it gets the tools that this tab has. */
  async begin() {
    const tools = Object.values(store.get("tools") ?? {});
    if (tools.length) await this.ask("tool:register", { tools });
  }

  async open() {
    this.name.focus();
    await this.#list();
  }

  async #register(/** @type {Event} */ event) {
    event.preventDefault();
    try {
      const tool = {
        name: this.name.value.trim(),
        description: this.description.value.trim(),
        inputSchema: parsed(this.schema.value, "The schema"),
        approval: this.approval.value,
        timeoutMs: Math.round(Number(this.patience.value) * 1000),
        interactive: true,
        ...(this.readOnly.checked && { readOnly: true }),
      };
      const { tools: [answer] } = await this.ask("tool:register", { tools: [tool] });
      store.set("tools", { ...store.get("tools"), [answer.name]: tool });
      setText(this.note, `${answer.name} is ${answer.state}; the model may call it from its next turn on, and a call waits ${Math.round(answer.timeoutMs / 1000)} s.`);
    } catch (error) {
      setText(this.note, exposed(/** @type {Error} */ (error).message));
      return;
    }
    await this.#list();
  }

  async #unregister(/** @type {string} */ name) {
    try {
      await this.ask("tool:unregister", { names: [name] });
      const { [name]: _, ...others } = store.get("tools") ?? {};
      store.set("tools", others);
      setText(this.note, `${name} is offered no more.`);
    } catch (error) {
      setText(this.note, exposed(/** @type {Error} */ (error).message));
    }
    await this.#list();
  }

  async #list() {
    try {
      const { tools } = await this.ask("tool:list", {});
      const rows = tools
        .filter((/** @type {any} */ it) => it.origin === "client")
        .map((/** @type {any} */ it) =>
          el(
            "li",
            { "data-tool": it.name },
            el("span", {}, el("code", {}, exposed(it.name)), ` ${exposed(it.description)}`),
            el("button", { type: "button", class: "quiet small", "aria-label": `Unregister ${it.name}`, onclick: () => void this.#unregister(it.name) }, "Unregister"),
          ),
        );
      this.list.replaceChildren(...(rows.length ? rows : [el("li", { class: "aside" }, "none")]));
    } catch (error) {
      this.list.replaceChildren(el("li", { class: "aside" }, exposed(/** @type {Error} */ (error).message)));
    }
  }
}

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

/** @param {string} text @param {string} what */
function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} is not valid JSON: ${/** @type {Error} */ (error).message}`);
  }
}
