// The session's defaults: provider, model, trust level, workflow. Models are listed when they are
// asked for, since a provider may take its time.
import { compact, exposed, h, setText } from "./dom.js";

const TRUST = /** @type {Record<string, string>} */ ({
  supervised: "asks for every call",
  guided: "asks before anything that can change something",
  autonomous: "asks only beyond the scope",
});

export class Settings {
  /** @param {HTMLElement} element @param {(type: any, payload: any) => Promise<any>} ask @param {() => void} close @param {(now: any) => void} changed */
  constructor(element, ask, close, changed) {
    this.ask = ask;
    this.changed = changed;
    /** @type {any} */
    this.now = {};
    this.provider = h("select", { id: "set-provider", onchange: () => this.#set({ provider: this.provider.value }) });
    this.model = h("input", { id: "set-model", list: "models", placeholder: "the provider's own", autocomplete: "off", onchange: () => this.#set({ model: this.model.value.trim() }) });
    this.models = h("datalist", { id: "models" });
    this.trust = h(
      "select",
      { id: "set-trust", onchange: () => this.#set({ trustLevel: this.trust.value }) },
      ...Object.entries(TRUST).map(([level, what]) => h("option", { value: level }, `${level}: ${what}`)),
    );
    this.workflow = h("select", { id: "set-workflow", onchange: () => this.#set({ workflow: this.workflow.value }) }, h("option", { value: "" }, "none"));
    this.key = h("input", { id: "set-key", type: "password", autocomplete: "off", placeholder: "kept in the daemon's memory only" });
    this.note = h("p", { class: "aside", role: "status" });
    this.list = h("div", { class: "modellist" });
    const field = (/** @type {string} */ label, /** @type {any} */ control) => h("p", { class: "field" }, h("label", { for: control.id }, label), control);
    element.append(
      h("div", { class: "panel-head" }, h("h2", {}, "Settings"), h("button", { type: "button", class: "quiet", "aria-label": "Close settings", onclick: close }, "✕")),
      field("Provider", this.provider),
      field("Model", this.model),
      this.models,
      field("Trust", this.trust),
      field("Workflow", this.workflow),
      h("form", { class: "field key", onsubmit: (/** @type {Event} */ event) => this.#giveKey(event) }, h("label", { for: "set-key" }, "Key of this provider"), this.key, h("button", { type: "submit", class: "quiet small" }, "Use")),
      this.note,
      this.list,
    );
  }

  /** The session is ready: asks what is in force. @param {any} ready */
  async begin(ready) {
    try {
      // An empty change is answered with all values in force.
      const [now, { providers }] = await Promise.all([this.ask("session:configure", {}), this.ask("provider:list", {})]);
      this.provider.replaceChildren(
        ...providers.map((/** @type {any} */ it) => h("option", { value: it.id }, it.configured ? it.id : `${it.id} (no key)`)),
      );
      this.workflow.replaceChildren(
        h("option", { value: "" }, "none"),
        ...(ready.workflows ?? []).map((/** @type {string} */ name) => h("option", { value: name }, exposed(name))),
      );
      this.#show(now);
    } catch {
      this.trust.value = ready.trustLevel;
    }
  }

  async open() {
    this.provider.focus();
    await this.#listModels();
  }

  async #listModels() {
    const provider = this.provider.value;
    if (!provider) return;
    setText(this.note, "Asking for the models…");
    try {
      const { models } = await this.ask("model:list", { provider });
      this.models.replaceChildren(...models.map((/** @type {any} */ it) => h("option", { value: it.id }, it.displayName)));
      this.list.replaceChildren(
        ...models.slice(0, 60).map((/** @type {any} */ it) =>
          h(
            "button",
            { type: "button", class: "model-row", onclick: () => this.#set({ model: it.id }) },
            h("strong", {}, exposed(it.displayName || it.id)),
            h("span", {}, [it.contextWindow && `${compact(it.contextWindow)} tokens`, it.supportsTools ? "tools" : "no tools", it.supportsThinking && "thinking", it.supportsVision && "pictures"].filter(Boolean).join(" · ")),
          ),
        ),
      );
      setText(this.note, models.length ? "" : "It lists no models; type a name.");
    } catch (error) {
      setText(this.note, /** @type {Error} */ (error).message);
    }
  }

  async #set(/** @type {any} */ values) {
    try {
      this.#show(await this.ask("session:configure", values));
      setText(this.note, "In force from the next message.");
      if (values.provider !== undefined) await this.#listModels();
    } catch (error) {
      this.#show(this.now);
      setText(this.note, /** @type {Error} */ (error).message);
    }
  }

  async #giveKey(/** @type {Event} */ event) {
    event.preventDefault();
    const apiKey = this.key.value.trim();
    this.key.value = "";
    if (!apiKey) return;
    try {
      await this.ask("provider:configure", { provider: this.provider.value, apiKey });
      setText(this.note, "The daemon has the key until it ends.");
      await this.#listModels();
    } catch (error) {
      setText(this.note, /** @type {Error} */ (error).message);
    }
  }

  #show(/** @type {any} */ now) {
    this.now = now;
    if (now.provider !== undefined) this.provider.value = now.provider;
    this.model.value = now.model ?? "";
    this.trust.value = now.trustLevel;
    this.workflow.value = now.workflow ?? "";
    this.changed(now);
  }
}
