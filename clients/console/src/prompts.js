// Prompts of MCP servers, which are commands of the composer: `/SERVER:PROMPT` and its arguments.

import { byId, el } from "./dom.js";
import { exposed } from "./visible.js";

/** The most that are asked for, and the most that are offered at once. */
const MOST = { known: 200, offered: 8 };

/**
 * @param {(type: string, payload?: any) => Promise<any>} ask
 * @param {(text: string) => void} fill puts a text into the composer
 */
export function servedPrompts(ask, fill) {
  /** @type {any[]} */
  let known = [];
  const list = el("ul", { id: "prompts", class: "prompts", "aria-label": "Prompts of MCP servers", hidden: true });
  byId("composer").before(list);

  /** Learns which there are. @param {any} frame the first of a session, or one that says that they changed */
  async function look({ type, payload }) {
    if (type === "session:ready") known = [];
    if (type === "session:ready" && !payload.features?.includes("mcp_prompts")) return;
    try {
      known = (await ask("mcp:list-prompts", { limit: MOST.known })).prompts;
    } catch {
      // A server that comes later tells so.
    }
  }

  /** The request that a text is; nothing where it is a message. @param {string} text */
  function read(text) {
    const [, command, line] = /^\s*\/([^\s/:]+:[^\s/]+)(?:\s+([\s\S]*))?$/.exec(text) ?? [];
    return command === undefined ? undefined : { command, line: (line ?? "").trim() };
  }

  /** Offers those that begin as the text does. @param {string} text */
  function offer(text) {
    const begun = /^\/(\S*)$/.exec(text)?.[1];
    const found = begun === undefined ? [] : known.filter((it) => it.command.startsWith(begun) && it.command !== begun);
    list.hidden = found.length === 0;
    list.replaceChildren(...found.slice(0, MOST.offered).map(row));
  }

  /** @param {any} prompt */
  function row(prompt) {
    const words = (prompt.arguments ?? []).map((/** @type {any} */ it) => (it.required ? it.name.toUpperCase() : `[${it.name.toUpperCase()}]`));
    const choose = () => {
      list.hidden = true;
      fill(`/${prompt.command} `);
    };
    const about = prompt.description ?? prompt.title ?? "";
    return el("li", {}, el("button", { type: "button", class: "small", onclick: choose }, exposed([`/${prompt.command}`, ...words].join(" "))), ` ${exposed(about)}`);
  }

  return { look, read, offer };
}
