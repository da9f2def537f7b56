// The session's defaults: provider, model, trust level, workflow. Models are listed when they are
// asked for, since a provider may take its time.
import { compact, el, setText } from "./dom.js";
import { exposed } from "./visible.js";

const TRUST = /** @type {Record<string, string>} */ ({
  supervised: "asks for every call",
  guided: "asks before anything that can change something",
  autonomous: "asks only beyond the scope",
});

const POLICY = /** @type {Record<string, string>} */ ({
  ask: "you are asked",
  auto_approve_safe: "what is proven to read only runs; the rest is asked",
  deny_all: "refused, and nobody is asked",
  allow_all: "run, and nobody is asked",
});

const VIOLATION = /** @type {Record<string, string>} */ ({
  stop: "A path that tools may not reach stops the run (tools.on_violation = “stop”).",
  error: "A path that tools may not reach is an error that the model reads; the third stops the run (tools.on_violation = “error”).",
});

export class Settings {
  /** @param {HTMLElement} element @param {(type: any, payload: any) => Promise<any>} ask @param {() => void} close @param {(now: any) => void} changed */
  constructor(element, ask, close, changed) {
    this.ask = ask;
    this.changed = changed;
    /** @type {any} */
    this.now = {};
    this.provider = el("select", { id: "set-provider", onchange: () => this.#set({ provider: this.provider.value }) });
    this.model = el("input", { id: "set-model", list: "models", placeholder: "the provider's own", autocomplete: "off", onchange: () => this.#set({ model: this.model.value.trim() }) });
    this.models = el("datalist", { id: "models" });
    this.trust = el(
      "select",
      { id: "set-trust", onchange: () => this.#set({ trustLevel: this.trust.value }) },
      ...Object.entries(TRUST).map(([level, what]) => el("option", { value: level }, `${level}: ${what}`)),
    );
    this.policy = el(
      "select",
      { id: "set-policy", onchange: () => this.#set({ approvalPolicy: this.policy.value }) },
      ...Object.entries(POLICY).map(([policy, what]) => el("option", { value: policy }, `${policy}: ${what}`)),
    );
    this.reload = el("button", { type: "button", class: "quiet small", id: "config-reload", onclick: () => this.#reload() }, "Read the configuration again");
    this.reloaded = el("ul", { class: "remembered", id: "config-reloaded", role: "status", "aria-label": "What the configuration changed" });
    this.workflow = el("select", { id: "set-workflow", onchange: () => this.#set({ workflow: this.workflow.value }) }, el("option", { value: "" }, "none"));
    this.violation = el("p", { class: "aside", id: "on-violation", hidden: true });
    this.key = el("input", { id: "set-key", type: "password", autocomplete: "off", placeholder: "kept in the daemon's memory only" });
    this.note = el("p", { class: "aside", role: "status" });
    this.list = el("div", { class: "modellist" });
    this.remembered = el("ul", { class: "remembered", "aria-label": "Remembered answers" });
    const field = (/** @type {string} */ label, /** @type {any} */ control) => el("p", { class: "field" }, el("label", { for: control.id }, label), control);
    element.append(
      el("div", { class: "panel-head" }, el("h2", {}, "Settings"), el("button", { type: "button", class: "quiet", "aria-label": "Close settings", onclick: close }, "✕")),
      field("Provider", this.provider),
      field("Model", this.model),
      this.models,
      field("Trust", this.trust),
      (this.policyField = field("Calls that you would be asked about", this.policy)),
      field("Workflow", this.workflow),
      this.violation,
      el("form", { class: "field key", onsubmit: (/** @type {Event} */ event) => this.#giveKey(event) }, el("label", { for: "set-key" }, "Key of this provider"), this.key, el("button", { type: "submit", class: "quiet small" }, "Use")),
      this.note,
      el("h3", {}, "Remembered answers"),
      this.remembered,
      (this.configuration = el("div", {}, el("h3", {}, "Configuration"), this.reload, this.reloaded)),
      this.list,
    );
  }

  /** The session is ready: asks what is in force. @param {any} ready */
  async begin(ready) {
    // A daemon that is older knows nothing of either.
    const isLive = ready.features?.includes("live_settings") ?? false;
    this.policyField.hidden = !isLive;
    this.configuration.hidden = !isLive;
    try {
      // An empty change is answered with all values in force.
      const [now, { providers }] = await Promise.all([this.ask("session:configure", {}), this.ask("provider:list", {})]);
      this.provider.replaceChildren(
        ...providers.map((/** @type {any} */ it) => el("option", { value: it.id }, it.configured ? it.id : `${it.id} (no key)`)),
      );
      this.workflow.replaceChildren(
        el("option", { value: "" }, "none"),
        ...(ready.workflows ?? []).map((/** @type {string} */ name) => el("option", { value: name }, exposed(name))),
      );
      this.#show({ ...(ready.onViolation && { onViolation: ready.onViolation }), ...now });
    } catch {
      this.#show({ ...this.now, trustLevel: ready.trustLevel, onViolation: ready.onViolation });
    }
  }

  async open() {
    this.provider.focus();
    await Promise.all([this.#listModels(), this.#listRemembered()]);
  }

  async #listModels() {
    const provider = this.provider.value;
    if (!provider) return;
    setText(this.note, "Asking for the models…");
    try {
      const { models } = await this.ask("model:list", { provider });
      this.models.replaceChildren(...models.map((/** @type {any} */ it) => el("option", { value: it.id }, it.displayName)));
      this.list.replaceChildren(
        ...models.slice(0, 60).map((/** @type {any} */ it) =>
          el(
            "button",
            { type: "button", class: "model-row", onclick: () => this.#set({ model: it.id }) },
            el("strong", {}, exposed(it.displayName || it.id)),
            el("span", {}, [it.contextWindow && `${compact(it.contextWindow)} tokens`, it.supportsTools ? "tools" : "no tools", it.supportsThinking && "thinking", it.supportsVision && "pictures"].filter(Boolean).join(" · ")),
          ),
        ),
      );
      setText(this.note, models.length ? "" : "It lists no models; type a name.");
    } catch (error) {
      setText(this.note, /** @type {Error} */ (error).message);
    }
  }

  async #listRemembered() {
    try {
      const { rules } = await this.ask("approval:list", {});
      this.remembered.replaceChildren(
        ...rules.map((/** @type {any} */ it) =>
          el(
            "li",
            {},
            el("span", {}, `${it.approved ? "approved" : "denied"}, ${it.scope}${it.inForce ? "" : ", not in force"}: `, el("code", {}, exposed(it.matches)), it.reason ? ` (${exposed(it.reason)})` : ""),
            el("button", { type: "button", class: "quiet small", onclick: () => void this.#revoke(it.ruleId) }, "Revoke"),
          ),
        ),
      );
      if (!rules.length) this.remembered.append(el("li", { class: "aside" }, "none"));
    } catch (error) {
      this.remembered.replaceChildren(el("li", { class: "aside" }, /** @type {Error} */ (error).message));
    }
  }

  async #revoke(/** @type {string} */ ruleId) {
    try {
      await this.ask("approval:revoke", { ruleId });
    } catch (error) {
      setText(this.note, /** @type {Error} */ (error).message);
    }
    await this.#listRemembered();
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

  async #reload() {
    this.reload.disabled = true;
    const line = (/** @type {string} */ text, /** @type {string[]} */ names) => el("li", {}, el("span", {}, text, ...names.flatMap((it, at) => [at ? ", " : " ", el("code", {}, exposed(it))])));
    try {
      const { changed, restart = [], warnings = [] } = await this.ask("config:reload", {});
      this.reloaded.replaceChildren(
        ...(changed.length ? [line("Counts from now on:", changed)] : []),
        ...(restart.length ? [line("Counts when the daemon is started anew:", restart)] : []),
        ...(changed.length + restart.length ? [] : [line("Nothing is other than it was.", [])]),
        ...warnings.map((/** @type {string} */ it) => line(exposed(it), [])),
      );
      this.#show(await this.ask("session:configure", {}));
    } catch (error) {
      this.reloaded.replaceChildren(line(exposed(/** @type {Error} */ (error).message), []));
    } finally {
      this.reload.disabled = false;
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
    if (now.approvalPolicy !== undefined) this.policy.value = now.approvalPolicy;
    this.workflow.value = now.workflow ?? "";
    // A daemon that is older does not say.
    this.violation.hidden = !now.onViolation;
    if (now.onViolation) setText(this.violation, VIOLATION[now.onViolation] ?? `A path outside of the project: ${exposed(now.onViolation)}.`);
    this.changed(now);
  }
}
