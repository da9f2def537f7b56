// Sessions that are kept: a list to search, to go on in one, to name it, put it away and delete it.
import { el, setText } from "./dom.js";
import { exposed } from "./visible.js";

/** Sessions that are asked for at once. */
const PAGE = 50;
/** How long nobody has typed before it is searched, in milliseconds. */
const PAUSE = 250;
/** Longest name, in characters. */
const MOST_TITLE = 200;

/**
 * What a session can be used for.
 *
 * @typedef {object} Uses
 * @property {(session: any) => void} open goes on in it
 * @property {() => Promise<void>} leave goes on in a new one, before the one that is shown is deleted
 * @property {() => string | undefined} current the one that is shown
 */

export class Sessions {
  /** @param {HTMLElement} element @param {(type: any, payload: any) => Promise<any>} ask @param {() => void} close @param {Uses} uses */
  constructor(element, ask, close, uses) {
    this.element = element;
    this.ask = ask;
    this.uses = uses;
    this.isAway = false;
    this.timer = 0;
    /** Which answer counts: that to the last question. */
    this.asked = 0;
    /** @type {string | undefined} */
    this.cursor = undefined;
    this.query = el("input", { type: "search", placeholder: "Search what was said", "aria-label": "Search sessions", oninput: () => this.#later(PAUSE) });
    this.away = el("button", { type: "button", class: "quiet small", "aria-pressed": "false", onclick: () => this.#toggleAway() }, "Archived");
    this.list = el("ul", { class: "sessions", "aria-label": "Sessions", onkeydown: (/** @type {KeyboardEvent} */ event) => this.#step(event) });
    this.note = el("p", { class: "aside", role: "status" });
    this.more = el("button", { type: "button", class: "quiet small", hidden: true, onclick: () => this.load(this.cursor) }, "More");
    element.append(
      el("div", { class: "panel-head" }, el("h2", {}, "Sessions"), el("button", { type: "button", class: "quiet", "aria-label": "Close sessions", onclick: close }, "✕")),
      el("div", { class: "panel-tools" }, this.query, this.away),
      this.note,
      this.list,
      this.more,
    );
  }

  open() {
    void this.load();
    this.query.focus();
  }

  /** Something was said, or a session has another name: what is open is loaded again, but not for each of many. */
  changed() {
    if (!this.element.hidden) this.#later(500);
  }

  #later(/** @type {number} */ pause) {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.load(), pause);
  }

  #toggleAway() {
    this.isAway = !this.isAway;
    this.away.setAttribute("aria-pressed", String(this.isAway));
    void this.load();
  }

  /** @param {string} [cursor] */
  async load(cursor) {
    // Not under the hands of somebody who types a name.
    if (this.list.querySelector("form")) return;
    const asked = ++this.asked;
    const query = this.query.value.trim();
    try {
      const wanted = { limit: PAGE, archived: this.isAway, ...(query && { query }), ...(cursor && { cursor }) };
      const { sessions, nextCursor } = await this.ask("session:list", wanted);
      if (asked !== this.asked) return;
      const rows = sessions.map((/** @type {any} */ it) => this.#row(it));
      if (cursor) this.list.append(...rows);
      else this.#replace(rows);
      this.cursor = nextCursor;
      this.more.hidden = !nextCursor;
      const count = this.list.children.length;
      const none = query ? "Nothing was found." : this.isAway ? "Nothing was put away." : "Nothing is kept yet: a session is from the first thing that is said in it.";
      setText(this.note, count === 0 ? none : `${count}${nextCursor ? " or more" : ""} ${count === 1 ? "session" : "sessions"}`);
    } catch (error) {
      if (asked !== this.asked) return;
      this.list.replaceChildren();
      this.more.hidden = true;
      setText(this.note, /** @type {Error} */ (error).message);
    }
  }

  /** Puts rows in the place of those that are there; the focus stays on what it was on. @param {HTMLElement[]} rows */
  #replace(rows) {
    const focused = /** @type {HTMLElement | null} */ (this.list.contains(document.activeElement) ? document.activeElement : null);
    const of = /** @type {HTMLElement | undefined} */ (focused?.closest("li") ?? undefined)?.dataset.session;
    this.list.replaceChildren(...rows);
    const row = rows.find((it) => it.dataset.session === of);
    if (focused) /** @type {HTMLElement} */ (row?.querySelector(`[data-does="${focused.dataset.does}"]`) ?? this.query).focus();
  }

  #row(/** @type {any} */ it) {
    const title = exposed(it.title || "without a name");
    const isHere = it.sessionId === this.uses.current();
    const does = (/** @type {string} */ what, /** @type {string} */ label, /** @type {() => void} */ onclick) =>
      el("button", { type: "button", class: "quiet small", "data-does": what, "aria-label": `${label}: ${title}`, onclick }, label);
    const folder = it.project?.split(/[\\/]/).at(-1);
    const facts = [time(it.updatedAt), `${it.messages} ${it.messages === 1 ? "message" : "messages"}`, folder && exposed(folder), it.live && !isHere && "somebody is on it, or was just now"].filter(Boolean).join(" · ");
    const row = el(
      "li",
      { "data-session": it.sessionId },
      el(
        "button",
        { type: "button", class: "session", "data-does": "open", "aria-current": isHere && "true", title: exposed(it.project ?? ""), onclick: () => this.uses.open(it) },
        el("strong", {}, title),
        el("span", {}, facts),
        it.snippet && el("span", { class: "snippet" }, exposed(it.snippet.text)),
      ),
      el(
        "span",
        { class: "uses" },
        does("rename", "Rename", () => this.#rename(row, it)),
        does("archive", it.archived ? "Take back" : "Archive", () => void this.#change("session:archive", { sessionId: it.sessionId, archived: !it.archived })),
        does("delete", "Delete", () => void this.#delete(it, title)),
      ),
    );
    return row;
  }

  /** A field in the place of the row. @param {HTMLElement} row @param {any} it */
  #rename(row, it) {
    const field = el("input", { "aria-label": "Name", maxlength: MOST_TITLE, value: it.title ?? "" });
    const back = () => {
      place.replaceWith(row);
      /** @type {HTMLElement} */ (row.querySelector("[data-does=rename]")).focus();
    };
    const form = el(
      "form",
      {
        class: "panel-tools",
        onsubmit: async (/** @type {Event} */ event) => {
          event.preventDefault();
          const wanted = field.value.trim();
          back();
          if (wanted && wanted !== it.title) await this.#change("session:rename", { sessionId: it.sessionId, title: wanted });
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Escape" || event.isComposing) return;
          // The panel stays.
          event.stopPropagation();
          back();
        },
      },
      field,
      el("button", { type: "submit", class: "primary small" }, "Save"),
      el("button", { type: "button", class: "quiet small", onclick: back }, "Cancel"),
    );
    const place = el("li", {}, form);
    row.replaceWith(place);
    field.select();
  }

  async #delete(/** @type {any} */ it, /** @type {string} */ title) {
    if (!window.confirm(`Delete “${title}” for good? What runs in it is stopped.`)) return;
    // Nobody deletes the session that he is on.
    if (it.sessionId === this.uses.current()) await this.uses.leave();
    await this.#change("session:delete", { sessionId: it.sessionId });
  }

  /** @param {string} type @param {any} payload */
  async #change(type, payload) {
    try {
      await this.ask(type, payload);
      await this.load();
    } catch (error) {
      setText(this.note, /** @type {Error} */ (error).message);
    }
  }

  /** Up and down go from session to session. @param {KeyboardEvent} event */
  #step(event) {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const all = [...this.list.querySelectorAll("[data-does=open]")];
    const at = all.findIndex((it) => it.closest("li") === /** @type {Element} */ (event.target).closest("li"));
    if (!by || at < 0) return;
    event.preventDefault();
    /** @type {HTMLElement | undefined} */ (all[at + by])?.focus();
  }
}

/** When something was said last: of today the time, else the day. @param {string} at */
function time(at) {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : date.toLocaleDateString();
}
