// Tools that this page has by hand, to try how a model takes to them before a frontend has them: a panel that registers
// them. Their calls are answered in `clientcalls.js`.
import { parsed } from "./clientcalls.js";
import { el, setText } from "./dom.js";
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
