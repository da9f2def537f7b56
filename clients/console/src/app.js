// The page: one session, one conversation, its panels. Frames go through the client's reducer; the
// page draws what it gives, once for each frame of the screen however many deltas came.
import { Client, emptyView, reduce, textOf, withEarlier, withHistory, withUserMessage } from "../../typescript/dist/index.js";
import { Approval } from "./approval.js";
import { Attachments, extrasOf, wordsOf } from "./attachments.js";
import { Attention } from "./attention.js";
import { Card } from "./card.js";
import { ClientCalls } from "./clientcalls.js";
import { ClientTools } from "./clienttools.js";
import { contextPanel } from "./contextpanel.js";
import { byId, compact, el, setText } from "./dom.js";
import { Executions } from "./executions.js";
import { Inputs } from "./inputs.js";
import { Inspector } from "./inspector.js";
import { showMessages, showPast } from "./messages.js";
import { money } from "./money.js";
import { Operator } from "./operator.js";
import { exchangeOf, find } from "./places.js";
import { servedPrompts } from "./prompts.js";
import { Waiting } from "./queue.js";
import { Roles, lastWords, readJoined } from "./roles.js";
import { Sessions } from "./sessions.js";
import { Settings } from "./settings.js";
import { SignIns } from "./signin.js";
import { drafts, readToken, store, trimmed } from "./store.js";
import { trust } from "./trust.js";
import { exposed } from "./visible.js";
import { spokenEnd } from "./words.js";

const CONVERSATION = "default";
/** Messages of the user that a reload can bring back, and the length of each. */
const KEPT = { messages: 200, characters: 20_000 };
/** Earlier sessions that are shown above this one. */
const MOST_PAST = 2;
/** Messages that were given back, whose ends may come again by a replay. */
const MOST_WITHDRAWN = 50;
/** What is sent to go on after a path that is not allowed. */
const GO_ON = "Go on, without that path.";
/** Messages that are drawn at first, and when more are asked for; of older ones the page is asked for. */
const DRAWN = 60;
/** Messages of a page of the history. */
const PAGE = 100;
/** Notices that are shown at once. */
const MOST_NOTICES = 4;

const url = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;
/** @type {any} */
let client = null;
/** @type {any} */
let view = emptyView();
/** @type {any} */
let ready = null;
let isDrawing = false;
let skew = 0;
let isReplaying = false;
/** Whether the next greeting is the first since this page was loaded, or given another token. */
let isFresh = true;
/** The role and the session that the address asks for. Before anything is read that this tab has kept. */
const joined = readJoined();
/** What was said, by exchange, for a reload: frames do not repeat it. @type {{id: string, text: string}[]} */
let said = store.get("said") ?? [];
/** What is on its way and not admitted yet; `content` where it is more than text. @type {{id: string, text: string, whenBusy: string, content?: any}[]} */
let outbox = store.get("outbox") ?? [];
/** What was said into a running exchange and has not become part of it yet. @type {{id: string, text: string, content?: any}[]} */
let steering = store.get("steering") ?? [];
/** Queued messages that were stopped and are in the composer again. @type {string[]} */
let withdrawn = store.get("withdrawn") ?? [];
/** Sessions that are over. @type {{messages: any[], why: string}[]} */
let past = store.get("past") ?? [];
/** Whether what ends now is to be forgotten. */
let isClosing = false;
/** Whether the daemon lets ports of commands be looked at. */
let exposes = false;
/** Whether the daemon keeps sessions, this one too. */
let keeps = false;
/** Where the page moves to: a session, or with `null` a new one with these settings. @type {{sessionId: string | null, settings?: any} | undefined} */
let moving;
/** Whether what is replayed is of a session that the page has moved to: that not all events are kept is no news there. */
let isMoved = false;
/** The exchange whose words were asked for last. */
let learnt = "";
/** How many messages above those that are drawn are not. */
let undrawn = 0;
/** @type {string | null} */
let token = null;
/** How much of the composer was given back since somebody last typed there. */
let returned = 0;

const ask = (/** @type {any} */ type, /** @type {any} */ payload) =>
  client ? client.request(type, payload) : Promise.reject(new Error("not connected"));
/** @type {import("./messages.js").Actions} */
const actions = {
  cancelTool: (toolId) => void ask("tool:cancel", { toolId }).catch(complain),
  retry: () => {
    const last = conversationNow()?.messages.findLast((/** @type {any} */ it) => it.role === "user");
    if (last) say(wordsOf(last.content ?? last.blocks[0]?.text ?? ""), "queue", extrasOf(last.content));
  },
  goOn: () => say(GO_ON, "queue"),
  openSettings: () => toggle("settings", true),
  undo: async (message, undone) => ask("files:revert", { messageId: undone ?? (await exchangeOf(ask, CONVERSATION, message)) }),
  edit: (message, text) => branch(message, (content) => edited(content, text)),
  again: (message) => {
    const { messages } = conversationNow();
    const asked = messages.slice(0, messages.indexOf(message)).findLast((/** @type {any} */ it) => it.role === "user");
    if (asked) void branch(asked, (content) => content);
    else notice("What this is the answer to is not shown; look at earlier messages first.", "warning");
  },
  fork: (message) => void branch(message),
};
const approval = new Approval(byId("approval"), async ({ toolId, host }, verdict) => {
  if (!roles.mayAnswer) throw new Error("This page looks on: the driver or an approver answers.");
  await ask("chat:tool-approve", { toolId, ...(host !== undefined && { host }), ...verdict });
});
const attention = new Attention(ask, changed);
const inputs = new Inputs(byId("asked"), async (payload) => {
  await ask("chat:tool-input", payload);
}, drafts);
const moneyCard = new Card(byId("money"), async (payload) => {
  await ask("chat:budget-approve", payload);
}, money);
const trustCard = new Card(byId("trust"), async (payload) => {
  await ask("chat:trust-approve", payload);
}, trust);
const parts = contextPanel(ask, CONVERSATION);
const roles = new Roles(byId("roles"), joined, () => void ask("session:take-over", {}).catch(complain), () => {
  // What a socket that only looks on may not ask for.
  void ask("session:configure", wanted(ready)).catch(complain);
  if (ready) void settings.begin(ready);
  sessions.changed();
  operator.begin(client?.ready?.operator ?? false);
});
const queued = new Waiting(
  byId("waiting"),
  (change) => ask("chat:queue", { conversationId: CONVERSATION, ...change }).then(() => true, (error) => (complain(error), false)),
  async () => (await ask("chat:queue", { conversationId: CONVERSATION })).queue,
  (messageId, content) => {
    view = withUserMessage(view, CONVERSATION, messageId, content);
    changed();
  },
);
const clientCalls = new ClientCalls(byId("clientcalls"), (output) => ask("chat:tool-output", output), drafts);
const clientTools = new ClientTools(byId("clienttools"), ask, () => toggle("clienttools", false));
const frames = new Inspector(byId("frames"), () => toggle("frames", false));
const executions = new Executions(byId("executions"), ask, () => toggle("executions", false));
const operator = new Operator(byId("operator"), byId("operator-button"), () => token, () => toggle("operator", false));
const settings = new Settings(byId("settings"), ask, () => toggle("settings", false), (now) => {
  setText(byId("model"), [now.provider, now.model, now.trustLevel].filter(Boolean).join(" · "));
});
const sessions = new Sessions(byId("sessions"), ask, () => toggle("sessions", false), {
  current: () => ready?.sessionId,
  open: (it) => {
    if (it.sessionId !== ready?.sessionId) moveTo(it.sessionId);
    if (window.matchMedia("(max-width: 760px)").matches) toggle("sessions", false);
    input.focus();
  },
  leave: () => moveTo(null),
});
const input = /** @type {HTMLTextAreaElement} */ (byId("input"));
const prompts = servedPrompts((type, payload) => ask(type, payload), (text) => {
  input.value = text;
  returned = 0;
  typed();
  input.focus();
});
const attachments = new Attachments(byId("attached"), (text) => notice(text, "warning"));
const scroll = byId("scroll");
let follows = true;

// --- drawing -------------------------------------------------------------------------------------

function changed() {
  if (isDrawing) return;
  isDrawing = true;
  // A tab in the background draws nothing, and everything when it is looked at again.
  requestAnimationFrame(draw);
}

const conversationNow = () => view.conversations[CONVERSATION];

function draw() {
  isDrawing = false;
  const conversation = conversationNow();
  const state = conversation?.state ?? "idle";
  const list = conversation?.messages ?? [];
  // Not what was asked and settled before this page was loaded anew.
  const approvals = isReplaying ? [] : view.approvals;
  const asked = isReplaying ? [] : view.inputs;
  const budgets = isReplaying ? [] : view.budgets;
  const trusts = isReplaying ? [] : view.trusts;
  if (state === "idle" && steering.length && !isReplaying) setSteering([]);
  const isBusy = state !== "idle" && client?.status.name !== "closed";
  const all = withWaiting(list);
  // Long sessions are drawn from their end on; nothing is taken away from somebody who reads further up.
  if (follows && all.length - undrawn > 2 * DRAWN) undrawn = all.length - DRAWN;
  undrawn = Math.min(undrawn, Math.max(0, all.length - 1));
  showMessages(byId("messages"), all.slice(undrawn), actions, !isBusy && outbox.length === 0);
  byId("earlier").hidden = undrawn === 0 && conversation?.earlier === undefined;
  byId("welcome").hidden = list.length > 0 || outbox.length > 0 || past.length > 0 || !ready;
  byId("stop").hidden = !isBusy;
  byId("queue").hidden = !isBusy;
  setText(byId("send"), isBusy ? "Send now" : "Send");
  byId("send").title = isBusy ? "The model gets it with its next step (Enter)" : "";
  const calls = clientCalls.show(isReplaying, skew);
  const isAsked = approvals.length + asked.length + budgets.length + trusts.length + calls > 0;
  byId("spinner").hidden = !isBusy || isAsked || state.startsWith("awaiting-");
  setText(byId("state"), isAsked ? (roles.mayAnswer ? "Waits for your answer" : "Waits for an answer") : described(state, list));
  meters(conversation);
  attention.show(roles.mayAnswer ? approvals : [], roles.mayAnswer ? asked : [], skew);
  approval.show(approvals, skew, (it) => attention.deadline(it));
  inputs.show(asked, skew, (it) => attention.deadline(it));
  moneyCard.show(budgets, skew);
  trustCard.show(trusts, skew);
  queued.show(list, roles.mayDrive, !isReplaying && client?.status.name === "open");
  roles.apply();
  title(list, approvals.length + asked.length + budgets.length + trusts.length + calls);
  if (follows) scroll.scrollTop = scroll.scrollHeight;
}

/** What the tab is called: what the conversation began with, and how many questions are open. @param {any[]} list @param {number} open */
function title(list, open) {
  const first = list.find((it) => it.role === "user")?.blocks[0]?.text?.trim().split("\n")[0] ?? "";
  const words = first.length > 50 ? `${first.slice(0, 50)}…` : first;
  const named = `${open ? `(${open}) ` : ""}${words || ready?.project?.name || ""}`;
  const now = named ? `${named} · Outrigger` : "Outrigger";
  if (document.title !== now) document.title = now;
}

/** Messages with those that the model does not have yet. @param {any[]} list */
function withWaiting(list) {
  const mine = (/** @type {string} */ id, /** @type {any} */ it, /** @type {string} */ waits) => ({ id, role: "user", status: "queued", waits, blocks: [{ type: "text", turn: 0, text: it.text }], ...(it.content && { content: it.content }) });
  return [
    ...list.filter((it) => !withdrawn.includes(it.id)),
    ...steering.map((it) => mine(`steer-${it.id}`, it, "waits: the model gets it with its next step")),
    ...outbox.map((it) => mine(`out-${it.id}`, it, "on its way")),
  ];
}

/** @param {string} state @param {any[]} list */
function described(state, list) {
  const last = list.findLast((it) => it.status === "streaming") ?? list.at(-1);
  const running = last?.blocks.filter((/** @type {any} */ it) => it.type === "tool_call" && it.phase === "executing") ?? [];
  // What was said last may wait while an exchange before it runs.
  switch (state === "queued" && last?.status === "streaming" ? "responding" : state) {
    case "idle": return "";
    case "thinking": return "Thinking…";
    case "responding": return "Answering…";
    case "tool-planned": return "Writing a call…";
    case "awaiting-approval":
    case "awaiting-input":
    case "awaiting-client":
    case "awaiting-trust":
    case "awaiting-budget": return "Waits for your answer";
    case "compacting": return "Making the conversation shorter…";
    case "retrying": return last?.retry ? `Trying again: ${exposed(last.retry.reason)}` : "Trying again…";
    case "queued": return "Queued";
    default: return running.length ? `Running ${exposed(running.map((/** @type {any} */ it) => it.toolName).join(", "))}…` : "Working…";
  }
}

function meters(/** @type {any} */ conversation) {
  const context = conversation?.context;
  const gauge = byId("gauge");
  gauge.hidden = !context?.window;
  if (context?.window) {
    const percent = Math.min(100, (100 * context.used) / context.window);
    byId("gauge-fill").style.width = `${percent}%`;
    gauge.setAttribute("aria-valuenow", String(Math.round(percent)));
    gauge.dataset.level = percent > 90 ? "full" : percent > 70 ? "high" : "";
  }
  setText(byId("context"), context ? `${compact(context.used)}${context.window ? ` of ${compact(context.window)}` : ""} tokens` : "");
  parts.show(context);
  setText(byId("cost"), conversation?.costUsd ? `$${conversation.costUsd.toFixed(4)}` : "");
}

let lastTop = 0;
scroll.addEventListener("scroll", () => {
  const isAtEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 60;
  // What grows below, as messages do when they are first drawn, is not a person who scrolls up.
  follows = isAtEnd || (follows && scroll.scrollTop >= lastTop);
  lastTop = scroll.scrollTop;
  byId("latest").hidden = follows;
}, { passive: true });
// Messages grow when they are first drawn, and the room shrinks when a question opens.
const grown = new ResizeObserver(() => {
  if (follows) scroll.scrollTop = scroll.scrollHeight;
});
grown.observe(scroll);
grown.observe(byId("messages"));
byId("latest").addEventListener("click", () => {
  follows = true;
  byId("latest").hidden = true;
  scroll.scrollTop = scroll.scrollHeight;
});

byId("earlier").addEventListener("click", async () => {
  const button = byId("earlier");
  button.disabled = true;
  try {
    const { earlier } = conversationNow();
    if (undrawn === 0 && earlier !== undefined) {
      const before = withWaiting(conversationNow().messages).length;
      const of = ready.sessionId;
      const page = await ask("chat:history", { conversationId: CONVERSATION, limit: PAGE, before: earlier });
      // Another session may be shown by now.
      if (of !== ready.sessionId) return;
      view = withEarlier(view, page);
      undrawn = withWaiting(conversationNow()?.messages ?? []).length - before;
    }
    follows = false;
    undrawn = Math.max(0, undrawn - DRAWN);
    const first = byId("messages").firstElementChild;
    const top = first?.getBoundingClientRect().top ?? 0;
    draw();
    // What was read stays where it is.
    if (first?.isConnected) scroll.scrollTop += first.getBoundingClientRect().top - top;
    if (button.hidden) scroll.focus();
  } catch (error) {
    complain(error);
  } finally {
    button.disabled = false;
  }
});

/** @param {string} text @param {string} [kind] @param {...Node} actions */
function notice(text, kind = "info", ...actions) {
  const box = byId("notices");
  const close = el("button", { type: "button", class: "quiet small", "aria-label": "Dismiss", onclick: () => row.remove() }, "✕");
  const row = el("div", { class: `notice ${kind}` }, el("span", {}, exposed(text)), ...actions, close);
  box.append(row);
  while (box.children.length > MOST_NOTICES) box.firstChild.remove();
  return row;
}

function complain(/** @type {any} */ error) {
  notice(error.message, "error");
}

const signIns = new SignIns(notice, ask, complain);

/** What is said of the ports of each command. @type {Map<string, Map<number, HTMLElement>>} */
const portRows = new Map();

/** A command in the background listens on a port; a button has this machine lead there. */
function portOpen(/** @type {any} */ { conversationId, background, port, url }) {
  const rows = portRows.get(background.id) ?? new Map();
  portRows.set(background.id, rows);
  rows.get(port)?.remove();
  const link = (/** @type {string} */ to) => el("a", { href: to, target: "_blank", rel: "noopener noreferrer" }, to);
  const open = url ? link(url) : el("button", { type: "button", class: "small", onclick: expose }, "Open it");
  rows.set(port, notice(`${background.id} listens on port ${port}: ${background.command}`, "info", ...(exposes ? [open] : [])));
  async function expose() {
    open.disabled = true;
    try {
      const { url } = await ask("tool:expose", { conversationId, port });
      open.replaceWith(link(url));
    } catch (error) {
      open.disabled = false;
      complain(error);
    }
  }
}

/** How commands stand after a replay, in which nothing is said of their ports: some have ended since. */
function portsKnown(/** @type {any} */ { conversations }) {
  for (const { conversationId, background: commands } of conversations) {
    for (const background of commands ?? []) {
      portsClosed(background);
      if (background.status !== "running") continue;
      for (const { port, url } of background.ports ?? []) {
        if (!portRows.get(background.id)?.has(port)) portOpen({ conversationId, background, port, url });
      }
    }
  }
}

/** Takes away what is said of ports that a command listens on no more. */
function portsClosed(/** @type {any} */ background) {
  const open = background.status === "running" ? (background.ports ?? []).map((/** @type {any} */ it) => it.port) : [];
  for (const [port, row] of portRows.get(background.id) ?? []) {
    if (open.includes(port)) continue;
    row.remove();
    portRows.get(background.id)?.delete(port);
  }
  if (open.length === 0) portRows.delete(background.id);
}

/** @param {...(Node | string)} parts nothing hides it */
function banner(...parts) {
  byId("banner").hidden = parts.length === 0;
  byId("banner").replaceChildren(...parts);
}

// --- frames --------------------------------------------------------------------------------------

/** What this page wants of a session that it drives. @param {any} it */
function wanted(it) {
  const showsTasks = it?.features?.includes("tasks") ?? false;
  const hearsServers = it?.features?.includes("mcp_prompts") ?? false;
  const more = [...(showsTasks ? ["tasks"] : []), ...(hearsServers ? ["servers"] : [])];
  return { inputRequests: true, trustQuestions: true, ...(more.length > 0 && { layers: [...new Set([...it.layers, ...more])] }) };
}

function take(/** @type {any} */ frame) {
  if (frame.timestamp && !isReplaying) skew = Date.parse(frame.timestamp) - Date.now();
  const { type, payload } = frame;
  if (type === "chat:queued") waits(payload);
  if (type === "session:roles") roles.told(payload);
  clientCalls.take(frame);
  if (type === "chat:stream-start" || type === "chat:queued") {
    const words = withdrawn.includes(payload.messageId) ? undefined : said.find((it) => it.id === payload.messageId);
    if (words) view = withUserMessage(view, payload.conversationId, words.id, words.text);
  }
  if (type === "chat:tool-input-resolved") settled(payload);
  if (type === "chat:tool-resolved") answered(payload);
  if (type === "chat:tool-extended") attention.extended(payload);
  if (type === "chat:steered") taken(textOf(payload.content));
  // The call that began a task shows it.
  const isEnd = type === "chat:stream-end" && frame.taskId === undefined;
  if (isEnd) dropped(payload);
  view = reduce(view, frame);
  if (roles.isShared && !isReplaying && frame.taskId === undefined && isModels(frame)) void learn(payload);
  if (type === "session:ready") exposes = payload.features?.includes("exposed_ports") ?? false;
  if (type === "tool:port-open" && !isReplaying) portOpen(payload);
  if (type === "tool:background") portsClosed(payload.background);
  if (type === "session:notice") notice(payload.message, payload.severity);
  if (type === "mcp:log" && !isReplaying) serverSays(payload);
  if (type === "session:ready" || (type === "mcp:changed" && payload.lists.includes("prompts"))) void prompts.look(frame);
  if (type === "session:notice" && payload.code.startsWith("mcp_")) void signIns.changed().catch(() => {});
  if (type === "session:ready" && !isReplaying) void signIns.look().catch(() => {});
  if (type === "mcp:auth-required" && !isReplaying) signIns.asked(payload);
  if (type === "session:error" && payload.code === "replay_gap" && !isMoved) {
    notice("Some events were missed and are no longer kept; this is what the daemon remembers.", "warning");
  }
  // An answer to another socket has a number, and names no request.
  const isOthers = roles.isShared && frame.seq !== undefined;
  if (type === "session:error" && frame.replyTo === undefined && !isOthers && !["replay_gap", "session_not_found"].includes(payload.code)) notice(payload.message, "error");
  if (type === "chat:tool-start" || type === "chat:tool-result") executions.changed();
  if (isEnd && !isReplaying) sessions.changed();
  if (isEnd) {
    const last = view.conversations[payload.conversationId]?.messages.at(-1);
    const text = last?.blocks.findLast((/** @type {any} */ it) => it.type === "text")?.text ?? "";
    if (!isReplaying) setText(byId("announce"), payload.stopReason === "end_turn" ? `Answer: ${text.slice(0, 400)}` : `Ended: ${spokenEnd(payload.stopReason)}`);
    keep();
  }
  changed();
}

/** A line of a server's log that somebody may have to act on. */
function serverSays(/** @type {any} */ { server, level, text, dropped }) {
  if (["debug", "info", "notice"].includes(level)) return;
  const before = dropped ? ` (${dropped} before it left out)` : "";
  notice(`MCP server ${server} logs ${level}${before}: ${text.slice(0, 400)}`, level === "warning" ? "warning" : "error");
}

/** A question is over: that nobody answered it is said. */
function answered(/** @type {any} */ { toolId, host, outcome }) {
  const question = view.approvals.find((/** @type {any} */ it) => it.toolId === toolId && it.host === host);
  if (!question || isReplaying || outcome !== "expired") return;
  if (host !== undefined) {
    notice(`The question whether ${question.toolName} may connect to ${host} lapsed: nobody answered in time. It did not connect, and the model was told.`, "warning");
    return;
  }
  notice(`The question whether ${question.toolName} may run lapsed: nobody answered in time. It did not run, and the model was told.`, "warning");
}

/** One that waits says something else, or becomes part of what runs. */
function waits(/** @type {any} */ { conversationId, messageId, position, content }) {
  if (content !== undefined && said.some((it) => it.id === messageId)) {
    said = said.map((it) => (it.id === messageId ? { ...it, text: content.slice(0, KEPT.characters) } : it));
    store.set("said", said);
  }
  if (position !== 0 || steering.some((it) => it.id === messageId)) return;
  const words = view.conversations[conversationId]?.messages.find((/** @type {any} */ it) => it.id === messageId && it.role === "user");
  if (words) setSteering([...steering, { id: messageId, text: words.blocks[0].text }]);
}

/** Whether a model was asked: what a client calls by itself has no words of anybody. @param {any} frame */
function isModels({ type, payload }) {
  if (type === "chat:state") return payload.state === "thinking" && payload.messageId !== undefined;
  return ["chat:text-delta", "chat:thinking-delta", "chat:tool-input-delta", "chat:error"].includes(type) && payload.messageId !== undefined;
}

/** Draws what another page said, in front of the answer that begins. */
async function learn(/** @type {any} */ { conversationId, messageId }) {
  if (messageId === learnt) return;
  learnt = messageId;
  const has = () => view.conversations[conversationId]?.messages.some((/** @type {any} */ it) => it.role === "user" && it.id === messageId);
  if (conversationId !== CONVERSATION || has()) return;
  const of = client;
  try {
    const words = await lastWords(ask, conversationId);
    const isStill = of === client && conversationNow()?.messages.at(-1)?.id === messageId;
    if (isStill && words !== undefined) view = withUserMessage(view, conversationId, messageId, textOf(words));
    else if (of === client && !has()) await complete();
  } catch {
    // It is drawn without them.
  }
  changed();
}

/** What was said into the exchange is part of it. @param {string} text */
function taken(text) {
  const at = steering.findIndex((it) => it.text === text);
  if (at >= 0) setSteering(steering.filter((_, index) => index !== at));
}

/** @param {{id: string, text: string}[]} now */
function setSteering(now) {
  steering = now;
  store.set("steering", steering);
}

/** A queued message that was stopped before its turn goes back into the composer. */
function dropped(/** @type {any} */ { conversationId, messageId, stopReason }) {
  if (stopReason !== "cancelled" || isClosing || withdrawn.includes(messageId)) return;
  const message = view.conversations[conversationId]?.messages.find((/** @type {any} */ it) => it.id === messageId && it.role === "assistant");
  const words = said.find((it) => it.id === messageId);
  // What another page said is nobody's here, and was never part of the conversation.
  if (message?.status !== "queued" || !(words || roles.isShared)) return;
  withdrawn = [...withdrawn, messageId].slice(-MOST_WITHDRAWN);
  store.set("withdrawn", withdrawn);
  const content = view.conversations[conversationId]?.messages.find((/** @type {any} */ it) => it.id === messageId && it.role === "user")?.content;
  if (words) giveBack({ text: words.text, ...(content && { content }) });
}

/** A request of a server is over: what was typed into its form is forgotten, and why it is gone is said. */
function settled(/** @type {any} */ { requestId, outcome }) {
  drafts.set(requestId, undefined);
  const request = view.inputs.find((/** @type {any} */ it) => it.requestId === requestId);
  if (!request || isReplaying || outcome === "answered") return;
  const why = outcome === "expired" ? "was not answered in time" : "is void: its call has ended";
  notice(`What the MCP server ${request.server} asked ${why}.`, "warning");
}

// --- saying something ----------------------------------------------------------------------------

/** @param {{id: string, text: string, whenBusy: string, content?: any}} it */
async function deliver(it) {
  try {
    const { messageId, state } = await client.send(it.content ?? it.text, { id: it.id, whenBusy: it.whenBusy });
    drop(it);
    if (state === "steered") {
      const isTaken = conversationNow()?.messages.some((/** @type {any} */ one) => one.blocks.some((/** @type {any} */ block) => block.type === "steered" && textOf(block.content) === it.text));
      if (!isTaken) setSteering([...steering, { id: it.id, text: it.text, ...(it.content && { content: it.content }) }]);
    } else {
      said = [...said.filter((other) => other.id !== messageId), { id: messageId, text: it.text.slice(0, KEPT.characters) }].slice(-KEPT.messages);
      store.set("said", said);
      view = withUserMessage(view, CONVERSATION, messageId, it.content ?? it.text);
    }
  } catch (error) {
    drop(it);
    giveBack(it);
    const { code, message } = /** @type {any} */ (error);
    if (code === "session_lost") notice("The daemon was restarted before it had your message; here it is again.", "warning");
    else notice(message, "error");
  }
  changed();
}

function drop(/** @type {any} */ it) {
  outbox = outbox.filter((other) => other.id !== it.id);
  store.set("outbox", outbox);
}

/** What was typed is never lost: it goes back in front of what has been typed since, and so does what went along. @param {{text: string, content?: any}} it */
function giveBack(it) {
  attachments.restore(extrasOf(it.content));
  const text = wordsOf(it.content ?? it.text);
  const before = input.value.slice(0, returned);
  const after = input.value.slice(returned);
  input.value = before + text + (after ? `\n${after}` : "");
  if (before && !before.endsWith("\n")) input.value = `${before}\n${text}${after}`;
  returned = input.value.length - after.length;
  typed();
}

function typed() {
  store.set("draft", input.value);
  input.style.height = "auto";
  input.style.height = `${Math.min(input.scrollHeight + 2, window.innerHeight * 0.4)}px`;
}

async function submit(/** @type {boolean} */ mayQueue) {
  const text = input.value;
  const extras = attachments.parts;
  const command = prompts.read(text);
  if (command) return void (await usePrompt(text, command, mayQueue));
  if (!text.trim() && extras.length === 0) return;
  const isBusy = (conversationNow()?.state ?? "idle") !== "idle";
  if (!say(text, isBusy && !mayQueue ? "steer" : "queue", extras)) return;
  attachments.clear();
  input.value = "";
  returned = 0;
  typed();
}

/** Says what a prompt of an MCP server says. What was typed stays where that fails. @param {string} text @param {any} command @param {boolean} mayQueue */
async function usePrompt(text, command, mayQueue) {
  try {
    const { content } = await ask("mcp:use-prompt", command);
    const isBusy = (conversationNow()?.state ?? "idle") !== "idle";
    if (input.value !== text || !say("", isBusy && !mayQueue ? "steer" : "queue", [...content, ...attachments.parts])) return;
    attachments.clear();
    input.value = "";
    returned = 0;
    typed();
    prompts.offer("");
  } catch (error) {
    complain(error);
  }
}

/** An id that no other send has. */
const fresh = () => `page-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;

/** Sends a message; false where there is no connection. @param {string} text @param {string} whenBusy @param {any[]} [extras] what goes along */
function say(text, whenBusy, extras = []) {
  if (!client || client.status.name === "closed") {
    notice("Not connected; what you typed stays here.", "warning");
    return false;
  }
  const content = extras.length ? [...(text.trim() ? [{ type: "text", text }] : []), ...extras] : undefined;
  const it = { id: fresh(), text: content ? textOf(/** @type {any} */ (content)) : text, whenBusy, ...(content && { content }) };
  outbox = [...outbox, it];
  store.set("outbox", outbox);
  follows = true;
  void deliver(it);
  changed();
  return true;
}

byId("composer").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  void submit(/** @type {any} */ (event.submitter)?.value === "queue");
});
input.addEventListener("input", () => {
  returned = 0;
  typed();
  prompts.offer(input.value);
});
input.addEventListener("keydown", (event) => {
  // Enter that ends a composition of characters belongs to the input method.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    void submit(event.altKey);
  }
});
input.addEventListener("paste", (event) => {
  const files = event.clipboardData?.files;
  const types = event.clipboardData?.types ?? [];
  // What is copied from a document comes as text and as a picture of it; the text is what is wanted.
  if (!files?.length || (types.includes("text/plain") && types.includes("text/html"))) return;
  event.preventDefault();
  void attachments.add(files);
});
byId("files").addEventListener("change", () => {
  const field = byId("files");
  void attachments.add(field.files).then(() => input.focus());
  field.value = "";
});
const bringsFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") ?? false;
for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (event) => {
    if (!bringsFiles(/** @type {DragEvent} */ (event))) return;
    // Else the browser leaves this page for the file.
    event.preventDefault();
    byId("composer").dataset.drop = "";
  });
}
document.addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) delete byId("composer").dataset.drop;
});
document.addEventListener("drop", (event) => {
  if (!bringsFiles(event)) return;
  event.preventDefault();
  delete byId("composer").dataset.drop;
  void attachments.add(event.dataTransfer?.files ?? []).then(() => input.focus());
});
byId("stop").addEventListener("click", async () => {
  // The daemon remembers them, unanswered; who typed them may want to say them again, or otherwise.
  const waiting = steering;
  try {
    const { cancelled } = await ask("chat:cancel", { conversationId: CONVERSATION, queued: true });
    if (cancelled) for (const it of waiting) giveBack(it);
    setSteering(steering.filter((it) => !waiting.includes(it)));
    changed();
  } catch (error) {
    complain(error);
  }
});
byId("new").addEventListener("click", async () => {
  if (keeps) {
    const isBusy = (conversationNow()?.state ?? "idle") !== "idle";
    const minutes = Math.max(1, Math.round(ready.resumeGraceMs / 60_000));
    if ((conversationNow()?.messages.length ?? 0) > 0) void moveTo(null);
    if (isBusy) notice(`What runs in the session before goes on for ${minutes} min while nobody is there; it is under Sessions.`, "info");
    input.focus();
    return;
  }
  const has = (conversationNow()?.messages.length ?? 0) > 0;
  if (has && !window.confirm("Forget this conversation? What runs in it is stopped.")) return;
  isClosing = true;
  try {
    await ask("chat:close", { conversationId: CONVERSATION });
    said = [];
    withdrawn = [];
    past = [];
    for (const name of ["said", "withdrawn", "past", "kept"]) store.set(name, null);
    setSteering([]);
    showPast(byId("past"), past);
    changed();
    input.focus();
  } catch (error) {
    complain(error);
  } finally {
    isClosing = false;
  }
});

// --- from session to session ---------------------------------------------------------------------

/** Goes on in another session, or in a new one with the settings of this one; what is drawn begins anew. @param {string | null} sessionId */
async function moveTo(sessionId) {
  const { provider, model, trustLevel, workflow } = settings.now;
  const project = ready?.project?.root;
  moving = { sessionId, ...(sessionId === null && { settings: { provider, model, trustLevel, workflow, ...(project && { project }) } }) };
  said = [];
  withdrawn = [];
  past = [];
  for (const name of ["said", "withdrawn", "past", "kept"]) store.set(name, null);
  setSteering([]);
  store.set("session", sessionId === null ? null : { sessionId });
  showPast(byId("past"), past);
  portRows.clear();
  roles.leave();
  clientCalls.begin();
  view = emptyView();
  undrawn = 0;
  follows = true;
  await begin(token);
}

/**
 * Makes a copy of the session that ends before a message of the user's, or with an answer, and goes on in it; nothing is
 * taken from the session that is shown. A first message is said in a new session.
 *
 * @param {any} message
 * @param {(content: any) => any} [words] what is said there, made of what was
 * @returns {Promise<boolean>} false where it failed, and was said
 */
async function branch(message, words) {
  try {
    const from = ready.sessionId;
    const { place, content } = await find(ask, CONVERSATION, conversationNow().messages, message);
    const sessionId = place === 0 ? null : (await ask("session:fork", { conversationId: CONVERSATION, before: place })).sessionId;
    if (words) {
      const said = words(content);
      const text = textOf(said);
      // As on a page that is loaded anew: what is on its way is sent when the session is there.
      outbox = [...outbox, { id: fresh(), text, whenBusy: "queue", ...(typeof said !== "string" && { content: said }) }];
      store.set("outbox", outbox);
    }
    const back = el("button", { type: "button", class: "quiet small", onclick: () => void moveTo(from) }, "Back to it");
    await moveTo(sessionId);
    notice("This is a copy. The session as it was is kept, under Sessions.", "info", back);
    input.focus();
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

/** What was said, with other words; its pictures stay. @param {any} content @param {string} text */
function edited(content, text) {
  if (typeof content === "string") return text;
  return [{ type: "text", text }, ...extrasOf(content)];
}

/** Draws what events do not say: the words of the user, where another client said them, this page before it moved, or they were too long to be kept. */
async function complete() {
  const conversation = conversationNow();
  if (view.gap || !conversation) return;
  const has = (/** @type {any} */ answer) => answer.blocks[0]?.type === "steered" || conversation.messages.some((/** @type {any} */ it) => it.role === "user" && it.id === answer.id);
  const neverBegan = (/** @type {any} */ answer) => answer.status === "queued" || (answer.end && answer.provider === undefined);
  const isWhole = (/** @type {any} */ it) => (it.role === "user" ? it.blocks[0]?.text.length !== KEPT.characters : neverBegan(it) || has(it));
  if (conversation.messages.every(isWhole)) return;
  const of = client;
  const page = await ask("chat:history", { conversationId: CONVERSATION, limit: PAGE });
  if (of === client) view = withHistory(view, page);
}

/** Settings of the session before, as far as the new one has others. @param {any} wanted */
async function carryOver(wanted) {
  const now = await ask("session:configure", {});
  const inForce = { ...now, project: now.project?.root };
  const others = Object.entries(wanted).filter(([name, value]) => value !== undefined && value !== inForce[name]);
  if (others.length) await ask("session:configure", Object.fromEntries(others));
}

/** A tab that was just opened goes on in the last session of the project, unless somebody is on it. */
async function reopen() {
  const { sessions: [last] } = await ask("session:list", { limit: 1, ...(ready.project && { project: ready.project.root }) });
  const isUnused = !conversationNow() && outbox.length === 0;
  if (last && !last.live && isUnused) await moveTo(last.sessionId);
}

// --- what a tab keeps ----------------------------------------------------------------------------

/** Keeps what is shown, for a page that is loaded anew when the daemon has it no more. */
function keep() {
  const list = conversationNow()?.messages ?? [];
  // Before the daemon has answered, what is kept is all there is.
  if (isReplaying || list.length === 0) return;
  store.set("kept", trimmed(list.filter((/** @type {any} */ it) => !withdrawn.includes(it.id))));
}
window.addEventListener("pagehide", keep);

/** Moves what is shown, or was before this page was loaded anew, above a line that says why it is over. @param {any[]} messages @param {string} why */
function archive(messages, why) {
  store.set("kept", null);
  if (!messages.length) return;
  past = [...past, { messages: trimmed(messages), why }].slice(-MOST_PAST);
  store.set("past", past);
  showPast(byId("past"), past);
}

// --- panels --------------------------------------------------------------------------------------

const panels = { sessions, settings, clienttools: clientTools, executions, operator, frames };

function toggle(/** @type {string} */ name, /** @type {boolean | undefined} */ wanted) {
  const isOpen = wanted ?? byId(name).hidden;
  for (const [other, panel] of Object.entries(panels)) {
    const now = other === name && isOpen;
    const was = !byId(other).hidden;
    byId(other).hidden = !now;
    byId(`${other}-button`).setAttribute("aria-expanded", String(now));
    if (now) panel.open();
    else if (was && other === name) byId(`${other}-button`).focus();
  }
}

for (const name of Object.keys(panels)) byId(`${name}-button`).addEventListener("click", () => toggle(name, undefined));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing) return;
  const open = Object.keys(panels).find((name) => !byId(name).hidden);
  if (open) toggle(open, false);
  else if (!byId("stop").hidden && document.activeElement === input) byId("stop").click();
});

// --- connection ----------------------------------------------------------------------------------

/** Why there is no socket: browsers do not say, but the daemon answers `/readyz` without a token. */
async function isAlive() {
  try {
    return (await fetch("/readyz", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

// Whether the daemon was there, when last asked, and whether it was so before the attempt that runs began: it may come
// up between an attempt that found nobody and the question.
let isThere = false;
let wasThere = false;
let askingFor = 0;

async function standing(/** @type {any} */ status) {
  byId("link").dataset.state = status.name;
  switch (status.name) {
    case "open":
      isThere = false;
      setText(byId("link-text"), "connected");
      banner();
      break;
    case "connecting":
      setText(byId("link-text"), ready ? "connecting again" : "connecting");
      wasThere = isThere;
      break;
    case "waiting": {
      setText(byId("link-text"), "away");
      const retry = el("button", { type: "button", class: "quiet small", onclick: () => client.retryNow() }, "Try now");
      banner("The daemon does not answer. What you type is kept. ", retry);
      const asked = ++askingFor;
      const couldHave = wasThere;
      const answers = await isAlive();
      if (asked !== askingFor || client.status.name === "open") break;
      isThere = answers;
      // A daemon that is there, was there before, and took no socket has another token now.
      if (isThere && couldHave) {
        client.close();
        askForToken("The daemon was restarted and has another token now.");
      }
      break;
    }
    case "closed":
      setText(byId("link-text"), "not connected");
      if (status.code === 4001) {
        const back = el("button", { type: "button", class: "quiet small", onclick: () => void client.connect() }, "Use it here");
        banner("Another window has taken this session over. ", back);
      }
      notLetIn(status);
      break;
  }
  changed();
}

function askForToken(/** @type {string} */ why) {
  const field = el("input", { type: "password", id: "token", autocomplete: "off", "aria-label": "Token", placeholder: "Token" });
  const form = el(
    "form",
    {
      class: "token",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        if (!field.value.trim()) return;
        store.set("token", field.value.trim());
        begin(field.value.trim());
      },
    },
    el("span", {}, `${why} It is in the line that the daemon prints when it starts, or the one you gave it.`),
    field,
    el("button", { type: "submit", class: "primary small" }, "Connect"),
  );
  banner(form);
  field.focus();
}

/** The daemon gives this page no place, for its role. @param {any} status */
function notLetIn(status) {
  const why = roles.refused(status);
  if (why === undefined) return false;
  const take = el("button", { type: "button", class: "quiet small", onclick: () => void begin(token, true) }, "Take over");
  banner(why, ...(status.code === 4003 ? [take] : []));
  return true;
}

async function begin(/** @type {string | null} */ given, takesOver = false) {
  token = given;
  if (roles.joined?.problem) {
    banner(roles.joined.problem);
    return;
  }
  client?.close();
  const session = store.get("session");
  // From the beginning: a page that was loaded anew knows nothing of what it had drawn.
  isReplaying = Boolean(session);
  isFresh = true;
  const options = { url, ...roles.options(takesOver), ...(token && { token }), ...(session && { session: { sessionId: session.sessionId, lastSeq: 0 } }) };
  const mine = (client = new Client(options));
  mine.on("wire", ({ direction, text }) => frames.add(direction, text));
  mine.on("status", (status) => {
    if (client === mine) void standing(status);
  });
  // One that is closed may have something to say yet.
  const whileMine = (/** @type {(it: any) => void} */ does) => (/** @type {any} */ it) => {
    if (client === mine) does(it);
  };
  mine.on("session-lost", whileMine((it) => {
    const { messages = [] } = conversationNow() ?? {};
    if (moving) notice("That session is not kept any more; this is a new one.", "warning");
    if (messages.length) archive(messages, gone(it));
    view = emptyView();
    said = [];
    store.set("said", said);
    setSteering([]);
    isReplaying = false;
  }));
  mine.on("frame", whileMine(take));
  mine.on("session:ready", whileMine(greeted));
  try {
    await mine.connect();
  } catch (error) {
    if (client !== mine) return;
    const { status } = mine;
    if (notLetIn(status)) return;
    if (status.name === "closed" && status.code === 0) {
      // Nothing was sent: the client itself would not.
      askForToken(`There is no way to give this token from a page: ${/** @type {Error} */ (error).message}.`);
    } else if (await isAlive()) {
      askForToken(token ? "The daemon does not accept this token." : "This page needs the daemon's token.");
    } else {
      banner("The daemon does not answer. ", el("button", { type: "button", class: "quiet small", onclick: () => void begin(token) }, "Try again"));
      setTimeout(() => client === mine && void begin(token), 3_000);
    }
  }
}

/** Why a conversation is over that the daemon has no more. */
function gone(/** @type {any} */ it) {
  const minutes = Math.max(1, Math.round((it.resumeGraceMs ?? 60_000) / 60_000));
  return `The daemon no longer has the conversation above: it was restarted, or this page was away for longer than it keeps one (${minutes} min). You can still read it; the model remembers nothing of it.`;
}

function greeted(/** @type {any} */ it) {
  const isReplayed = ready?.sessionId === it.sessionId && !it.resumed;
  ready = it;
  setText(byId("project"), it.project?.name ?? "no project");
  byId("link").title = `session ${it.sessionId}`;
  byId("project").title = it.project?.root ?? it.projectError ?? "";
  setText(byId("sandbox"), `sandbox: ${it.sandbox.mode}`);
  const around = it.sandbox.commands.join(", ") || "nothing around them";
  const untried = it.sandbox.mode === "unverified" ? "; built for this system and never tried on a real machine: count on nothing" : "";
  byId("sandbox").title = `commands: ${around}; network: ${it.sandbox.network}${untried}`;
  byId("sandbox").dataset.mode = it.sandbox.mode;
  if (isReplayed) return;
  const had = store.get("session");
  store.set("session", { sessionId: it.sessionId });
  const moved = moving;
  moving = undefined;
  isMoved = Boolean(moved);
  keeps = it.persistent === true && (it.features?.includes("persistent_sessions") ?? false);
  byId("messages").toggleAttribute("data-kept", keeps);
  byId("new").title = keeps ? "Begin another session; this one is kept" : "Forget this conversation and begin another";
  attention.begin();
  if (isFresh && !it.resumed) archive(store.get("kept") ?? [], gone(it));
  welcome(it);
  // Its answer comes after everything that was missed.
  const mine = client;
  void ask("session:state", {})
    .then(portsKnown)
    .then(complete)
    .catch(() => {})
    .then(() => {
      // The page may have moved on meanwhile.
      if (client !== mine) return;
      isReplaying = false;
      isMoved = false;
      changed();
    });
  if (roles.mayDrive) {
    void ask("session:configure", wanted(it)).catch((error) => error.code === "forbidden" || complain(error));
    void clientTools.begin().catch(complain);
    operator.begin(it.operator ?? false);
  }
  const settled = moved?.settings ? carryOver(moved.settings).catch(complain) : Promise.resolve();
  void settled.then(() => settings.begin(it));
  sessions.changed();
  const waiting = isFresh ? outbox : [];
  if (keeps && isFresh && !it.resumed && !had && !moved && !roles.joined) void reopen().catch(complain);
  isFresh = false;
  // A new session, to say there what was said before; or the one that was asked for.
  if (moved && (moved.sessionId ?? it.sessionId) === it.sessionId) {
    void settled.then(() => waiting.forEach((one) => void deliver(one)));
  } else if (it.resumed) {
    // On its way when the page was loaded anew: safe to send again, the daemon knows its id.
    for (const one of waiting) void deliver(one);
  } else {
    for (const one of waiting.slice().reverse()) {
      drop(one);
      giveBack(one);
    }
  }
  changed();
}

function welcome(/** @type {any} */ it) {
  const example = (/** @type {string} */ text) => el("button", { type: "button", class: "quiet", onclick: () => say(text, "queue") }, text);
  const isScripted = it.providers.every((/** @type {any} */ provider) => provider.id === "scripted" || !provider.configured);
  byId("welcome").replaceChildren(
    el("h2", {}, "Say something."),
    it.project
      ? el("p", {}, "The model works in ", el("code", {}, it.project.root), ` with ${it.tools.length} tools, and asks you before anything that can change something.`)
      : el("p", {}, `There is no project, and no tools for files and commands: ${it.projectError ?? ""}`),
    isScripted ? el("p", {}, "No key is set, so a built-in script answers. Try ", example("demo"), " ", example("tour"), " or give a key under Settings.") : "",
  );
}

// The socket of a laptop that slept is dead and does not know it.
window.addEventListener("online", () => client?.retryNow());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    client?.retryNow();
    changed();
  }
});

showPast(byId("past"), past);
input.value = store.get("draft") ?? "";
typed();
input.focus();
void begin(readToken());
