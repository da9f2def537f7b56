// Where the window of the model goes: a bar of parts, and what each of them is.
import { byId, compact, el } from "./dom.js";
import { exposed } from "./visible.js";

const NAMES = /** @type {Record<string, string>} */ ({
  system: "System prompt",
  tools: "Tools",
  instructions: "Instructions",
  skills: "Skill",
  history: "What was said",
  results: "Results of calls",
});

/** The panel. */
class ContextPanel {
  /** @param {HTMLElement} element @param {HTMLElement} button @param {() => Promise<any>} ask */
  constructor(element, button, ask) {
    this.element = element;
    this.button = button;
    this.ask = ask;
    this.used = -1;
    button.addEventListener("click", () => void this.toggle(Boolean(element.hidden)));
  }

  /** Shows it, or puts it away. @param {boolean} isOpen */
  async toggle(isOpen) {
    this.element.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) await this.#look();
  }

  /** Looks again where the context has grown. @param {any} context */
  show(context) {
    if (this.element.hidden || context?.used === this.used) return;
    this.used = context?.used ?? -1;
    void this.#look();
  }

  async #look() {
    try {
      const { used, window: most, compactAt, parts } = await this.ask();
      this.used = used;
      const whole = Math.max(most ?? used, used, 1);
      const width = (/** @type {number} */ tokens) => `${(100 * tokens) / whole}%`;
      const bar = el("div", { class: "parts", role: "img", "aria-label": `${compact(used)} of ${compact(whole)} tokens` });
      const list = el("ul", {});
      for (const { kind, name, tokens, count } of parts) {
        if (tokens === 0) continue;
        const words = [NAMES[kind] ?? kind, name && exposed(name)].filter(Boolean).join(": ");
        const piece = el("span", { class: "part", title: `${words}, ${compact(tokens)} tokens` });
        piece.dataset.kind = kind;
        piece.style.width = width(tokens);
        bar.append(piece);
        const mark = el("span", { class: "mark" });
        mark.dataset.kind = kind;
        list.append(el("li", {}, mark, el("span", {}, `${words}${count ? ` (${count})` : ""}`), el("span", { class: "figure" }, compact(tokens))));
      }
      const free = most ? `${compact(Math.max(0, most - used))} of ${compact(most)} tokens are free` : "nobody knows how large the window is";
      const end = compactAt ? `; made shorter from ${compact(compactAt)} on` : "";
      this.element.replaceChildren(bar, list, el("p", {}, `${free}${end}.`));
    } catch (error) {
      this.element.replaceChildren(el("p", {}, /** @type {Error} */ (error).message));
    }
  }
}

/** Returns the panel of the page. @param {(type: any, payload: any) => Promise<any>} ask @param {string} conversationId */
export function contextPanel(ask, conversationId) {
  return new ContextPanel(byId("window"), byId("context"), () => ask("chat:context", { conversationId }));
}
