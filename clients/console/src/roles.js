// Several pages on one session: as what this one came, who is there, and what it may not do here.
import { byId, el, setText } from "./dom.js";
import { store } from "./store.js";

const DOES = /** @type {Record<string, string>} */ ({ driver: "drive", approver: "approve", observer: "look on" });
/** What a tab keeps of the session that it is on. */
const KEPT = ["said", "outbox", "steering", "withdrawn", "past", "kept", "asked"];
/** Messages among which the last words of the user are looked for. */
const PAGE = 20;

/**
 * What the address asks for: a role, and the session that it is for; nothing where it names no role. `problem` says why it
 * cannot be.
 *
 * @returns {{role: any, sessionId?: string, problem?: string} | null}
 */
export function readJoined() {
  const query = new URLSearchParams(location.search);
  const role = query.get("role");
  if (role === null) return null;
  const sessionId = query.get("session") || undefined;
  if (!(role in DOES)) return { role: "observer", problem: `The address asks for the role “${role}”; there are driver, approver and observer.` };
  if (!sessionId && role !== "driver") return { role, problem: `To ${DOES[role]}, the address names a session: /?role=${role}&session=ID.` };
  // What this tab has kept of another session is none of this one's.
  if (sessionId && store.get("session")?.sessionId !== sessionId) {
    for (const name of KEPT) store.set(name, null);
    store.set("session", { sessionId });
  }
  return { role, ...(sessionId && { sessionId }) };
}

export class Roles {
  /** @param {HTMLElement} element @param {ReturnType<typeof readJoined>} joined @param {() => void} takeOver @param {() => void} driving this page has begun to drive */
  constructor(element, joined, takeOver, driving) {
    this.element = element;
    this.joined = joined;
    this.driving = driving;
    /** What the daemon said that this page is; nothing where it came without a role. @type {string | undefined} */
    this.role = undefined;
    /** Who is there. @type {any} */
    this.there = null;
    /** Whether something is disabled for the role. */
    this.bars = false;
    this.input = byId("input");
    /** What it says where one may type. @type {string} */
    this.placeholder = this.input.placeholder;
    this.text = el("span", { id: "roles-text", role: "status" });
    this.button = el("button", { type: "button", class: "quiet small", id: "take-over", title: "Have this page drive; the one that drives approves from then on", onclick: takeOver }, "Take over");
    element.append(this.text, this.button);
    this.#draw();
  }

  /** Whether this page may do everything. */
  get mayDrive() {
    return (this.role ?? this.joined?.role ?? "driver") === "driver";
  }

  /** Whether this page may answer questions. */
  get mayAnswer() {
    return (this.role ?? this.joined?.role) !== "observer";
  }

  /** Whether somebody else may have said what this page is told of. */
  get isShared() {
    return this.role !== undefined || this.joined !== null;
  }

  /** What the client is to connect as. @param {boolean} takesOver */
  options(takesOver) {
    return this.joined ? { role: this.joined.role, ...(takesOver && { takeOver: true }) } : {};
  }

  /** The page goes on in another session, where it came as nothing. */
  leave() {
    if (this.joined) history.replaceState(null, "", location.pathname);
    this.joined = null;
    this.role = undefined;
    this.there = null;
    this.#draw();
  }

  /** The daemon says who is there, or what this page is. @param {any} payload */
  told(payload) {
    const drove = this.mayDrive;
    this.there = payload;
    this.role = payload.role ?? this.role;
    if (this.joined && payload.role) this.#remember();
    this.#draw();
    if (!drove && this.mayDrive) this.driving();
  }

  /** A page that is loaded anew comes as what it was last. */
  #remember() {
    const query = new URLSearchParams(location.search);
    if (!this.joined || query.get("role") === this.role) return;
    this.joined.role = this.role;
    query.set("role", /** @type {string} */ (this.role));
    history.replaceState(null, "", `${location.pathname}?${query}`);
  }

  /** Why there is no socket, and what can be done; nothing where the role is not the reason. @param {{code: number, reason: string}} status */
  refused({ code, reason }) {
    if (code === 4003) return "Another socket drives this session. ";
    if (code !== 4002) return undefined;
    return reason === "session_ended" ? "This session was ended. " : "The daemon has no such session. ";
  }

  #draw() {
    const { role, there } = this;
    const others = there ? there.approvers + there.observers : 0;
    this.element.hidden = role === undefined && others === 0;
    const many = (/** @type {number} */ count, /** @type {string} */ word) => (count > 0 ? `${count} ${word}${count === 1 ? "" : "s"}` : "");
    const here = there ? [there.driver ? "1 driver" : "no driver", many(there.approvers, "approver"), many(there.observers, "observer")].filter(Boolean).join(", ") : "";
    setText(this.text, `you ${DOES[role ?? "driver"]} · ${here}`);
    this.button.hidden = role === undefined || role === "driver";
    document.body.dataset.role = this.mayDrive ? "driver" : (role ?? this.joined?.role);
    this.apply();
  }

  /** Disables what this page may not do; to be called after each drawing. */
  apply() {
    const { mayDrive, mayAnswer } = this;
    // Who drives may answer, too.
    if (mayDrive && !this.bars) return;
    this.bars = !mayDrive;
    this.input.placeholder = mayDrive ? this.placeholder : `You ${DOES[this.role ?? this.joined?.role]}; the driver says something`;
    for (const id of ["input", "send", "queue", "new", "sessions-button", "settings-button", "clienttools-button"]) bar(byId(id), !mayDrive);
    bar(byId("stop"), !mayAnswer);
    for (const it of document.querySelectorAll("#welcome button, #clientcalls :is(button, textarea, input)")) bar(it, !mayDrive);
    for (const it of document.querySelectorAll(":is(#approval, #money, #trust, #asked) :is(button, input, select, textarea)")) bar(it, !mayAnswer);
    for (const it of document.querySelectorAll("#asked a.button")) /** @type {HTMLElement} */ (it).inert = !mayAnswer;
  }
}

/** Disables a control for the role, or undoes just that. @param {any} control @param {boolean} isBarred */
function bar(control, isBarred) {
  if (isBarred && !control.disabled) {
    control.disabled = true;
    control.dataset.barred = "";
  } else if (!isBarred && "barred" in control.dataset) {
    control.disabled = false;
    delete control.dataset.barred;
  }
}

/**
 * Returns what the user said last, which events do not repeat: another page said it.
 *
 * @param {(type: any, payload: any) => Promise<any>} ask
 * @param {string} conversationId
 */
export async function lastWords(ask, conversationId) {
  const { messages } = await ask("chat:history", { conversationId, limit: PAGE });
  return messages.findLast((/** @type {any} */ it) => it.role === "user")?.content;
}
