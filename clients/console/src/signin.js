// Signing in at MCP servers: a row for each that asks, with the host that it is at, a link there, and a place for the address
// that the page ended on where the browser is on another machine than the daemon.
import { el } from "./dom.js";
import { exposed } from "./visible.js";

export class SignIns {
  /**
   * @param {(text: string, kind?: string, ...actions: Node[]) => HTMLElement} notice
   * @param {(type: string, payload: any) => Promise<any>} ask
   * @param {(error: unknown) => void} complain
   */
  constructor(notice, ask, complain) {
    this.notice = notice;
    this.ask = ask;
    this.complain = complain;
    /** The row of each server. @type {Map<string, HTMLElement>} */
    this.rows = new Map();
  }

  /** Shows a button for each server that waited before this page was open. */
  async look() {
    const { servers } = await this.ask("mcp:list", {});
    for (const { name, state } of servers) {
      if (state !== "signIn" || this.rows.has(name)) continue;
      const begin = el("button", { type: "button", class: "small", onclick: () => this.#begin(name) }, "Sign in");
      this.#put(name, this.notice(`The MCP server ${name} asks you to sign in.`, "warning", begin));
    }
  }

  /** @param {string} server */
  async #begin(server) {
    try {
      // The event that comes of it shows where.
      await this.ask("mcp:auth", { server });
    } catch (error) {
      this.complain(error);
    }
  }

  /** Shows where to sign in. @param {any} asked the payload of `mcp:auth-required` */
  asked({ server, url, host, scopes, more, wasAt }) {
    if (!mayOpen(url)) return;
    const what = more ? `The MCP server ${server} wants more rights.` : `The MCP server ${server} asks you to sign in.`;
    const rights = scopes?.length ? ` Rights: ${exposed(scopes.join(" "))}.` : "";
    const before = wasAt ? ` It was at ${wasAt} before: make sure that this is meant.` : "";
    const link = el("a", { href: url, target: "_blank", rel: "noopener noreferrer", class: "button small" }, `Sign in at ${exposed(host)}`);
    const field = el("input", { type: "text", "aria-label": `The address that the page of ${server} ended on`, placeholder: "Paste the address it ended on", autocomplete: "off" });
    const paste = el("form", { class: "paste" }, field, el("button", { class: "small" }, "Done"));
    paste.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await this.ask("mcp:auth", { server, url: /** @type {HTMLInputElement} */ (field).value });
        this.over(server);
      } catch (error) {
        this.complain(error);
      }
    });
    const anew = el("button", { type: "button", class: "small quiet", onclick: () => this.#begin(server) }, "Begin anew");
    const elsewhere = el("details", {}, el("summary", {}, "Not on this machine, or too late?"), paste, anew);
    this.#put(server, this.notice(what + rights + before, "warning", link, elsewhere));
  }

  /** Takes the row away. @param {string} server */
  over(server) {
    this.rows.get(server)?.remove();
    this.rows.delete(server);
  }

  /** Looks which servers wait no more. */
  async changed() {
    if (this.rows.size === 0) return;
    const { servers } = await this.ask("mcp:list", {});
    for (const { name, state } of servers) if (state === "ready") this.over(name);
  }

  /** @param {string} server @param {HTMLElement} row */
  #put(server, row) {
    this.over(server);
    this.rows.set(server, row);
  }
}

/** Whether an address is one that a browser may be sent to. @param {string} url */
export function mayOpen(url) {
  try {
    const { protocol, hostname } = new URL(url);
    const isHere = hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]" || hostname.startsWith("127.");
    return protocol === "https:" || (protocol === "http:" && isHere);
  } catch {
    return false;
  }
}
