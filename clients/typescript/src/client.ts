// The socket to the daemon: requests with answers, events by type, and connecting again where it
// drops. Browsers and Node.js 20 or newer; no dependencies.
//
// Nothing is lost while the session lives: a new socket goes on after the last number that was
// seen, and requests without an answer are sent again under their old id once everything missed
// has come. Nothing is sent twice to effect: the daemon runs a `chat:send` of one id once.

import {
  SUBPROTOCOL,
  type ChatError,
  type ChatSend,
  type Commands,
  type Configure,
  type Content,
  type Events,
  type FilesChanges,
  type Ready,
  type Remember,
  type SocketRole,
  type ServerFrame,
  type SessionError,
  type SessionFormat,
  type SessionFork,
  type SessionList,
  type ToolExecute,
  type ToolExport,
} from "./protocol.js";
import type { Asked } from "./reducer.js";
import type { SessionStore } from "./store.js";
import { Tools, type Tool } from "./tools.js";

/** The fields by which a question is named. */
function asked(question: string | Asked): { toolId: string; host?: string } {
  if (typeof question === "string") return { toolId: question };
  const { toolId, host } = question;
  return { toolId, ...(typeof host === "string" && { host }) };
}

const named = (sessionId: string | undefined) => (sessionId === undefined ? {} : { sessionId });

/** What this client needs of a `WebSocket`; the browser's, Node's and `ws`'s have it. */
export interface Socket {
  readonly readyState: number;
  send(text: string): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: any) => void) | null;
  onmessage: ((event: any) => void) | null;
  onclose: ((event: any) => void) | null;
  onerror: ((event: any) => void) | null;
}

export type SocketConstructor = new (url: string, protocols?: string | string[]) => Socket;

export interface ClientOptions {
  /** The `url` of the ready line, e.g. `ws://127.0.0.1:4517/ws`. */
  url: string;
  /** The token of the ready line, or the one given to the daemon. */
  token?: string;
  /** Where there is no global `WebSocket` (Node.js 20): that of a library. */
  WebSocket?: SocketConstructor;
  /** Goes on with a session that was left, e.g. before a page was loaded again. */
  session?: { sessionId: string; lastSeq: number };
  /** Where the session is kept that is gone on with, where `session` names none, e.g. `webStore()`. */
  store?: SessionStore;
  /**
   * What this socket is for, beside others on the session: `driver`, `approver` or `observer`. Without one it drives, and the
   * socket that drove before is closed.
   */
  role?: SocketRole;
  /** Whether it drives the session also where another socket does, which approves from then on; at the first connection only. */
  takeOver?: boolean;
  /** Whether a dropped socket is connected again; true where absent. */
  reconnect?: boolean;
  /** First and longest pause before connecting again, in milliseconds. */
  pause?: { first: number; longest: number };
  /** How long a connection may take, in milliseconds. */
  connectMs?: number;
}

export type Status =
  /** Trying to get there; `attempt` counts from 1 since the last time it was. */
  | { name: "connecting"; attempt: number }
  | { name: "open" }
  /** Dropped; tried again in so many milliseconds. */
  | { name: "waiting"; delayMs: number; attempt: number }
  /** Over: by `close`, because another window took the session over, or since it cannot go on. */
  | { name: "closed"; code: number; reason: string };

/** What can be listened to besides the daemon's events. */
export interface ClientEvents {
  /** Every frame that counts: no duplicates, in order. */
  frame: ServerFrame;
  /** Every frame as it went over the wire, both ways, duplicates too. */
  wire: { direction: "in" | "out"; text: string };
  status: Status;
  /** The session that was resumed is gone; `ready` tells of the new one. Unanswered requests were rejected. */
  "session-lost": Ready;
  /** All that was missed has come, or there was nothing to miss: what comes now is new. */
  "caught-up": Ready;
}

type AnswerTo<K extends string> = `${K}-result` extends keyof Events ? Events[`${K}-result`] : unknown;

/** A request that was answered by an error, or by nothing any more. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  constructor(
    /** The daemon's code; `session_lost` and `closed` are this client's. */
    readonly code: string,
    message: string,
    readonly payload?: SessionError | ChatError,
  ) {
    super(message);
  }
}

interface Pending {
  text: string;
  sent: boolean;
  resolve(payload: any): void;
  reject(error: Error): void;
}

const OPEN = 1;
const CLOSE = { wish: 1000, unauthorized: 1008, takenOver: 4001, sessionEnded: 4002, driverPresent: 4003 };
/** A piece of a session's file: as much as the daemon gives at once, and, by characters, what fits into a frame whatever they are. */
const EXPORT_BYTES = 1024 * 1024;
const IMPORT_CHARACTERS = 1024 * 1024;
/** Most requests that wait for an answer; more are refused at once. */
const MOST_PENDING = 1024;

export class Client {
  /** The daemon's last `session:ready`. */
  ready: Ready | undefined;
  /** The highest number seen in this session. */
  lastSeq: number;
  /** How the connection stands; listen to `status` for changes. */
  status: Status = { name: "closed", code: 0, reason: "not connected yet" };

  #options: ClientOptions;
  #socket: Socket | undefined;
  #sessionId: string | undefined;
  #listeners = new Map<string, Set<(value: any) => void>>();
  #pending = new Map<string, Pending>();
  #prefix = randomText();
  /** Its name, by which the daemon knows it again: it takes the place of its own dropped socket, and is told its own answers. */
  #name = randomText() + randomText();
  #takesOver: boolean;
  #counter = 0;
  #attempt = 0;
  /** How long the daemon wants it to stay away, in milliseconds, where this socket was told. */
  #told: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #replayEnds: string | undefined;
  #isOver = false;
  #role: SocketRole | undefined;
  #tools: Tools | undefined;
  /** Whether it goes on with a session of which it has nothing: another page was on it before. */
  #isStranger: boolean;
  #waiting: { resolve(ready: Ready): void; reject(error: Error): void }[] = [];
  /** Another session that this socket is to go on in. */
  #opening: { id: string; resolve(ready: Ready): void; reject(error: Error): void } | undefined;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#takesOver = options.takeOver === true;
    this.#sessionId = options.session?.sessionId ?? options.store?.get() ?? undefined;
    this.lastSeq = options.session?.lastSeq ?? 0;
    this.#isStranger = this.#sessionId !== undefined && this.lastSeq === 0;
  }

  /** Whether events come in that were missed. */
  get isReplaying(): boolean {
    return this.status.name !== "open" || this.#replayEnds !== undefined;
  }

  /** What to resume by, after a page was loaded again. */
  get session(): { sessionId: string; lastSeq: number } | undefined {
    return this.#sessionId === undefined
      ? undefined
      : { sessionId: this.#sessionId, lastSeq: this.lastSeq };
  }

  /**
   * Connects; resolves with the daemon's `session:ready`.
   *
   * Rejects where the first attempt fails. Once it was connected, a dropped socket is connected
   * again by itself, for as long as it takes, until `close`.
   */
  connect(): Promise<Ready> {
    this.#isOver = false;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#open();
    });
  }

  /** Ends the connection; the session lives on for its grace period. */
  close(): void {
    this.#over(CLOSE.wish, "closed by this client");
    this.#socket?.close(CLOSE.wish);
  }

  /** Drops the socket and connects again at once, e.g. when a laptop woke up. */
  retryNow(): void {
    if (this.#isOver || this.status.name === "open" || this.status.name === "connecting") return;
    clearTimeout(this.#timer);
    this.#open();
  }

  /** Calls `listener` for each event of a type, or for one of `ClientEvents`; returns what stops it. */
  on<K extends keyof ClientEvents>(type: K, listener: (value: ClientEvents[K]) => void): () => void;
  on<K extends keyof Events>(
    type: K,
    listener: (payload: Events[K], frame: ServerFrame<K>) => void,
  ): () => void;
  on(type: string, listener: (...values: any[]) => void): () => void {
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** Sends a request; resolves with the payload of its answer, rejects with a `RequestError`. */
  request<K extends keyof Commands>(
    type: K,
    payload: Commands[K],
    id: string = `${this.#prefix}-${++this.#counter}`,
  ): Promise<AnswerTo<K>> {
    return new Promise((resolve, reject) => {
      if (this.#isOver) {
        reject(new RequestError("closed", `${type}: the connection is closed`));
        return;
      }
      if (this.#pending.size >= MOST_PENDING) {
        reject(new RequestError("too_many_requests", `${type}: ${MOST_PENDING} requests have no answer yet`));
        return;
      }
      const text = JSON.stringify({ type, id, payload });
      const pending: Pending = { text, sent: false, resolve, reject };
      this.#pending.set(id, pending);
      // While missed events come in, what is new waits for their end as well.
      if (this.status.name === "open" && this.#replayEnds === undefined) this.#transmit(pending);
    });
  }

  /**
   * Says something. `id` makes it safe to repeat: the daemon runs a send of one id once.
   *
   * Resolves when the daemon has admitted it, with the `messageId` of its exchange.
   */
  send(
    content: Content,
    options: Omit<ChatSend, "content"> & { id?: string } = {},
  ): Promise<AnswerTo<"chat:send">> {
    const { id, ...rest } = options;
    return this.request("chat:send", { ...rest, content }, id);
  }

  /** Stops what runs in a conversation. */
  cancel(conversationId = "default", queued = false): Promise<AnswerTo<"chat:cancel">> {
    return this.request("chat:cancel", { conversationId, queued });
  }

  /**
   * Lets a call run, with another input where one is given; or lets it connect to a host. Give it the `chat:tool-confirm`,
   * so that the answer is for that question and no other; an id is for the question whether the call may run.
   */
  approve(
    question: string | Asked,
    options: { input?: Record<string, unknown>; remember?: Remember; folder?: string } = {},
  ): Promise<AnswerTo<"chat:tool-approve">> {
    return this.request("chat:tool-approve", { ...asked(question), approved: true, ...options });
  }

  /** Refuses it; the model reads the reason. With `remember` it is not asked for again. */
  deny(
    question: string | Asked,
    reason?: string,
    options: { remember?: Remember; folder?: string } = {},
  ): Promise<AnswerTo<"chat:tool-approve">> {
    const payload = { ...asked(question), approved: false, ...(reason !== undefined && { reason }), ...options };
    return this.request("chat:tool-approve", payload);
  }

  /** Lists the answers that count for later calls in this session. */
  approvals(scope?: Remember): Promise<AnswerTo<"approval:list">> {
    return this.request("approval:list", { ...(scope !== undefined && { scope }) });
  }

  /** Has one of them count no more, by its id, or all that reach so far. */
  revoke(which: { ruleId: string } | { scope: Remember; conversationId?: string }): Promise<AnswerTo<"approval:revoke">> {
    return this.request("approval:revoke", which);
  }

  /** Gives a server what it asked for in the middle of a call: the fields of a form, nothing for a page. */
  give(requestId: string, content?: Record<string, unknown>): Promise<AnswerTo<"chat:tool-input">> {
    const payload = { requestId, action: "accept" as const, ...(content !== undefined && { content }) };
    return this.request("chat:tool-input", payload);
  }

  /** Does not give it: says no, or closes the question without a decision. */
  refuse(requestId: string, action: "decline" | "cancel" = "decline"): Promise<AnswerTo<"chat:tool-input">> {
    return this.request("chat:tool-input", { requestId, action });
  }

  /** Has more be spent: by so many US dollars, without a cap, or by the first of the choices. */
  spendMore(requestId: string, more: { extendUsd?: number; unlimited?: boolean } = {}): Promise<AnswerTo<"chat:budget-approve">> {
    return this.request("chat:budget-approve", { requestId, ...more });
  }

  /** Has no more be spent: the exchange ends, with `finish` after a last answer. */
  spendNoMore(requestId: string, finish = false): Promise<AnswerTo<"chat:budget-approve">> {
    return this.request("chat:budget-approve", { requestId, approved: false, finish });
  }

  /** Says whether the model is told files of the project as the user's words. */
  trust(requestId: string, approved: boolean): Promise<AnswerTo<"chat:trust-approve">> {
    return this.request("chat:trust-approve", { requestId, approved });
  }

  /**
   * Gives an open question more time, `requestId` for one that a server asks in the middle of the call. Say so while
   * somebody is at it: every 10 s, or at half of the time that is left where that is sooner.
   */
  extend(question: string | Asked, requestId?: string): Promise<AnswerTo<"chat:tool-extend">> {
    return this.request("chat:tool-extend", { ...asked(question), ...(requestId !== undefined && { requestId }) });
  }

  /**
   * Has the model offered tools that this program runs, these and no others, on this connection and on each one after it.
   * Each call is run once: over a socket that drops, its output is sent again, and counts once. Resolves when they are
   * registered, and rejects with what is wrong with them.
   */
  tools(tools: Record<string, Tool>): Promise<AnswerTo<"tool:register">> {
    this.#tools ??= new Tools(this, this.#isStranger);
    return this.#tools.set(tools);
  }

  /**
   * Runs a tool without a model, as a call of this session. Resolves with its `toolId` and `messageId` as soon as it runs or
   * waits; `chat:tool-result` has what it came to. With `inject` the model reads it, with the next message.
   */
  execute(
    toolName: string,
    input: Record<string, unknown> = {},
    options: Omit<ToolExecute, "toolName" | "input"> & { id?: string } = {},
  ): Promise<AnswerTo<"tool:execute">> {
    const { id, ...rest } = options;
    return this.request("tool:execute", { ...rest, toolName, input }, id);
  }

  /** Lists what waits in a conversation. */
  queue(conversationId = "default"): Promise<AnswerTo<"chat:queue">> {
    return this.request("chat:queue", { conversationId });
  }

  /**
   * Changes one that waits: what it says, its place from 1, or that it waits no more (`remove`, or `send`: it becomes part
   * of what runs). Resolves with what waits then.
   */
  changeQueued(
    messageId: string,
    change: { edit: Content } | { move: number } | "remove" | "send",
    conversationId = "default",
  ): Promise<AnswerTo<"chat:queue">> {
    const wanted = { conversationId, messageId };
    if (typeof change === "string") return this.request("chat:queue", { ...wanted, action: change });
    if ("edit" in change) return this.request("chat:queue", { ...wanted, action: "edit", content: change.edit });
    return this.request("chat:queue", { ...wanted, action: "move", position: change.move });
  }

  /** Asks how the session stands, in one word; the layer `status` tells it as `session:status-changed`. */
  sessionStatus(): Promise<AnswerTo<"session:status">> {
    return this.request("session:status", {});
  }

  /** What this socket may do, where it was given a role; listen to `session:roles` for changes. */
  get role(): SocketRole | undefined {
    return this.#role ?? this.#options.role;
  }

  /** Has this socket drive the session; the one that drove approves from then on. */
  takeOver(): Promise<AnswerTo<"session:take-over">> {
    return this.request("session:take-over", {});
  }

  /** Sets defaults of this session. */
  configure(values: Configure): Promise<AnswerTo<"session:configure">> {
    return this.request("session:configure", values);
  }

  /**
   * Lists the sessions that are kept, the one that changed last first; with `query` those in which these words were
   * said. `cursor`, the `nextCursor` of a page, asks for the next one.
   */
  listSessions(wanted: SessionList = {}): Promise<AnswerTo<"session:list">> {
    return this.request("session:list", wanted);
  }

  /** Gives a session a name of 1 to 200 characters; this one where none is named. */
  renameSession(title: string, sessionId?: string): Promise<AnswerTo<"session:rename">> {
    return this.request("session:rename", { ...named(sessionId), title });
  }

  /** Puts a session away, or with `false` takes it back; this one where none is named. */
  archiveSession(archived = true, sessionId?: string): Promise<AnswerTo<"session:archive">> {
    return this.request("session:archive", { ...named(sessionId), archived });
  }

  /** Gives a session labels in the place of those that it has, up to 16; this one where none is named. */
  labelSession(labels: string[], sessionId?: string): Promise<AnswerTo<"session:label">> {
    return this.request("session:label", { ...named(sessionId), labels });
  }

  /** Reads a session as a file, piece by piece; this one where none is named. One file at a time. */
  async exportSession(format: SessionFormat = "jsonl", sessionId?: string): Promise<string> {
    let [text, offset]: [string, number | undefined] = ["", 0];
    while (offset !== undefined) {
      const wanted: Commands["session:export"] = { ...named(sessionId), format, offset, limit: EXPORT_BYTES };
      const piece: Events["session:export-result"] = await this.request("session:export", wanted);
      text += piece.text;
      offset = piece.nextOffset;
    }
    return text;
  }

  /** Makes a new session of such a file of JSON lines, all of it or nothing. Go on in it with `openSession`. */
  async importSession(text: string): Promise<AnswerTo<"session:import">> {
    for (let part = 0, from = 0; ; part += 1) {
      let end = from + IMPORT_CHARACTERS;
      // JSON has no half of a character that is two here.
      if ((text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
      const more = end < text.length;
      const answer = await this.request("session:import", { text: text.slice(from, end), part, more });
      if (!more) return answer;
      from = end;
    }
  }

  /** Deletes a session for good, with what runs in it; not this one. */
  deleteSession(sessionId: string): Promise<AnswerTo<"session:delete">> {
    return this.request("session:delete", { sessionId });
  }

  /**
   * Makes a new session of this one, or of the one named: of all that was said, or with `before` of what was said in
   * one conversation before that place. Go on in it with `openSession`.
   */
  forkSession(wanted: SessionFork = {}): Promise<AnswerTo<"session:fork">> {
    return this.request("session:fork", wanted);
  }

  /**
   * Goes on in another session, or in a new one where none is named. Requests without an answer fail with `closed`. What
   * is drawn begins anew with `emptyView()`, before this is called: events of the session that is left come no more, those
   * of the other one come at once, and `withHistory` has what they do not say.
   *
   * Rejects with `session_not_found` where it is not kept. The client is on the session that it had then, or, with a daemon
   * that has no `session_open` among its `features`, on a new one.
   */
  async openSession(sessionId?: string): Promise<Ready> {
    const isOffered = this.status.name === "open" && this.ready?.features?.includes("session_open");
    if (isOffered && !this.#opening && sessionId !== undefined && sessionId !== this.#sessionId) {
      this.#rejectAll(new RequestError("closed", "another session was opened"));
      return new Promise((resolve, reject) => {
        const id = `${this.#prefix}-${++this.#counter}`;
        this.#opening = { id, resolve, reject };
        this.#write(JSON.stringify({ type: "session:open", id, payload: { sessionId } }));
      });
    }
    this.close();
    this.#sessionId = sessionId;
    this.lastSeq = 0;
    this.ready = undefined;
    const ready = await this.connect();
    if (sessionId === undefined || ready.sessionId === sessionId) return ready;
    throw new RequestError("session_not_found", `no session ${sessionId} is kept; this one is new`);
  }

  /** Lists what calls did to files, newest first, with diffs. */
  fileChanges(wanted: FilesChanges = {}): Promise<AnswerTo<"files:changes">> {
    return this.request("files:changes", wanted);
  }

  /** Undoes what an exchange did to files, or one call, where nobody changed them since; says of each what became of it. */
  revertFiles(which: { messageId: string } | { toolId: string }): Promise<AnswerTo<"files:revert">> {
    return this.request("files:revert", which);
  }

  /** Returns what ran as a file, of this session or of all. */
  exportCalls(wanted: ToolExport): Promise<AnswerTo<"tool:export">> {
    return this.request("tool:export", wanted);
  }

  /** Returns a page of what is remembered, the newest messages first of all; `before` asks for older ones. */
  history(page: { conversationId?: string; limit?: number; before?: number } = {}): Promise<AnswerTo<"chat:history">> {
    return this.request("chat:history", { conversationId: "default", ...page });
  }

  #open(): void {
    const { url, token, connectMs = 10_000 } = this.#options;
    this.#attempt += 1;
    this.#set({ name: "connecting", attempt: this.#attempt });
    let socket: Socket;
    try {
      const Socket = this.#options.WebSocket ?? (globalThis as any).WebSocket;
      if (typeof Socket !== "function") {
        throw new Error("there is no WebSocket here: use Node.js 22, start Node.js 20 with --experimental-websocket, or give the option `WebSocket`, e.g. that of npm's ws");
      }
      const place = new URL(url);
      if (this.#sessionId !== undefined) {
        place.searchParams.set("session", this.#sessionId);
        place.searchParams.set("after", String(this.lastSeq));
      }
      // After a drop it comes as what it was last.
      if (this.role !== undefined) {
        place.searchParams.set("role", this.role);
        place.searchParams.set("client", this.#name);
      }
      // It was asked for once: whoever has taken over since is not thrown out by a line that broke.
      if (this.#takesOver) place.searchParams.set("takeOver", "1");
      socket = new Socket(place.href, token === undefined ? [SUBPROTOCOL] : [SUBPROTOCOL, bearer(token)]);
    } catch (error) {
      this.#over(0, (error as Error).message);
      return;
    }
    this.#socket = socket;
    const late = setTimeout(() => {
      dropped({ code: 1006, reason: `no connection within ${connectMs} ms` });
      socket.close();
    }, connectMs);
    let isGone = false;
    const dropped = (event: { code?: number; reason?: string }) => {
      clearTimeout(late);
      if (isGone || this.#socket !== socket) return;
      isGone = true;
      this.#socket = undefined;
      this.#dropped(event.code ?? 1006, event.reason ?? "");
    };
    socket.onmessage = (event) => {
      clearTimeout(late);
      if (!isGone && this.#socket === socket) this.#take(String(event.data));
    };
    socket.onclose = dropped;
    socket.onerror = () => {
      // Pages do not learn what was wrong. `onclose` follows, but for Node.js 20, which leaves it
      // out where the daemon turned the socket away.
      setTimeout(() => {
        if (socket.readyState !== OPEN) dropped({ code: 1006, reason: "" });
      }, 0);
    };
  }

  #take(text: string): void {
    this.#emit("wire", { direction: "in", text });
    let frame: ServerFrame;
    try {
      frame = JSON.parse(text) as ServerFrame;
    } catch {
      return;
    }
    if (frame.type === "session:error" && this.status.name === "connecting" && frame.payload.retryAfterMs !== undefined) {
      // About this socket, which has no session and is closed next.
      this.#told = frame.payload.retryAfterMs;
      return;
    }
    if (this.#opening && !this.#opened(frame)) return;
    if (frame.type === "session:ready") this.#greeted(frame);
    // Known already: a resumed socket that both sides count differently.
    if (frame.seq !== undefined) {
      if (frame.seq <= this.lastSeq) return;
      this.lastSeq = frame.seq;
    }
    if (frame.type === "session:roles" && frame.payload.role) this.#role = frame.payload.role;
    // A resync without numbers: only when all of it is here, it need not come again.
    if (frame.type === "session:resynced") this.lastSeq = Math.max(this.lastSeq, frame.payload.seq);
    this.#answer(frame);
    this.#emit("frame", frame);
    this.#emit(frame.type, frame.payload, frame);
  }

  /** Whether a frame is the first one of the session that is opened. Those of the one that is left are not drawn. */
  #opened(frame: ServerFrame): boolean {
    const opening = this.#opening;
    if (!opening || String(frame.replyTo) !== opening.id) return false;
    this.#opening = undefined;
    if (frame.type === "session:ready") {
      this.#sessionId = frame.payload.sessionId;
      this.lastSeq = 0;
      this.#replayEnds = undefined;
      this.#waiting.push(opening);
      return true;
    }
    if (frame.type === "session:error") {
      opening.reject(new RequestError(frame.payload.code, frame.payload.message, frame.payload));
    }
    // What was passed over meanwhile comes again.
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close(CLOSE.wish);
    this.#open();
    return false;
  }

  #greeted(frame: ServerFrame<"session:ready">): void {
    const ready = frame.payload;
    const isNew = ready.sessionId !== this.#sessionId;
    const had = this.#sessionId !== undefined;
    // Replayed: the beginning of this very session, as it was then.
    if (frame.seq !== undefined && !isNew) return;
    this.ready = ready;
    this.#sessionId = ready.sessionId;
    this.#attempt = 0;
    this.#takesOver = false;
    if (isNew) this.lastSeq = 0;
    this.#options.store?.set(ready.sessionId);
    this.#set({ name: "open" });
    if (isNew && had) {
      this.#rejectAll(new RequestError("session_lost", "the session is gone; nobody knows whether this was done"));
      this.#emit("session-lost", ready);
    }
    if (ready.resumed) this.#awaitReplay();
    else this.#flush();
    for (const { resolve } of this.#waiting.splice(0)) resolve(ready);
  }

  /** Asks for a sign that comes after everything that was missed, answers to earlier requests included. */
  #awaitReplay(): void {
    this.#replayEnds = `${this.#prefix}-${++this.#counter}`;
    this.#write(JSON.stringify({ type: "session:ping", id: this.#replayEnds, payload: {} }));
  }

  #answer(frame: ServerFrame): void {
    // Answers may be among what was lost, that to an earlier sign too.
    if (frame.type === "session:error" && frame.payload.code === "replay_gap") this.#awaitReplay();
    if (frame.replyTo === undefined) return;
    const id = String(frame.replyTo);
    if (id === this.#replayEnds) {
      this.#flush();
      return;
    }
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    if (frame.type === "session:error" || frame.type === "chat:error") {
      const { code, message } = frame.payload;
      pending.reject(new RequestError(code, message, frame.payload));
    } else {
      pending.resolve(frame.payload);
    }
  }

  /** Sends everything that has no answer although nothing is missing any more. */
  #flush(): void {
    this.#replayEnds = undefined;
    for (const pending of this.#pending.values()) this.#transmit(pending);
    this.#emit("caught-up", this.ready);
  }

  #transmit(pending: Pending): void {
    pending.sent = true;
    this.#write(pending.text);
  }

  #write(text: string): void {
    if (this.#socket?.readyState !== OPEN) return;
    this.#emit("wire", { direction: "out", text });
    this.#socket.send(text);
  }

  #dropped(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#replayEnds = undefined;
    this.#opening?.reject(new RequestError("closed", "the socket dropped before the session was open"));
    this.#opening = undefined;
    const told = this.#told;
    this.#told = undefined;
    const never = this.ready === undefined && this.#waiting.length > 0 && told === undefined;
    const isOrphaned = code === CLOSE.sessionEnded && this.role !== undefined && this.role !== "driver";
    const forGood = isOrphaned || code === CLOSE.takenOver || code === CLOSE.unauthorized || code === CLOSE.driverPresent;
    if (forGood || never || this.#options.reconnect === false) {
      const why = reason || (never ? `no connection to ${this.#options.url}: is the daemon there, and the token right, also for the role?` : "the socket dropped");
      this.#over(code, why);
      return;
    }
    const { first = 200, longest = 5_000 } = this.#options.pause ?? {};
    const most = Math.min(longest, first * 2 ** this.#attempt);
    // Jitter, so that many clients do not come back as one.
    const delayMs = told ?? Math.round(most / 2 + (Math.random() * most) / 2);
    this.#set({ name: "waiting", delayMs, attempt: this.#attempt });
    this.#timer = setTimeout(() => this.#open(), delayMs);
  }

  #over(code: number, reason: string): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#attempt = 0;
    const error = new RequestError("closed", reason);
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#opening?.reject(error);
    this.#opening = undefined;
    this.#rejectAll(error);
    this.#set({ name: "closed", code, reason });
  }

  #rejectAll(error: Error): void {
    for (const [id, pending] of this.#pending) {
      this.#pending.delete(id);
      pending.reject(error);
    }
  }

  #set(status: Status): void {
    this.status = status;
    this.#emit("status", status);
  }

  #emit(type: string, ...values: unknown[]): void {
    for (const listener of [...(this.#listeners.get(type) ?? [])]) {
      (listener as (...values: unknown[]) => void)(...values);
    }
  }
}

/** Browsers cannot set headers on a WebSocket; the token goes as a second subprotocol. */
function bearer(token: string): string {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(token)) {
    throw new Error("this token has characters that a subprotocol cannot carry; use letters, digits, `-` and `_`, e.g. of: openssl rand -hex 32");
  }
  return `bearer.${token}`;
}

/** Not the same in two clients of one session, whose sends the daemon tells apart by their ids. */
function randomText(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
