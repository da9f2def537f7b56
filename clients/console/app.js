// The page: one session, one conversation, its panels. Frames go through the client's reducer; the
// page draws what it gives, once for each frame of the screen however many deltas came.
import { Client, emptyView, reduce, withUserMessage } from "../typescript/dist/index.js";
import { Approval } from "./approval.js";
import { byId, compact, exposed, h, setText } from "./dom.js";
import { Executions } from "./executions.js";
import { Inspector } from "./inspector.js";
import { Messages } from "./messages.js";
import { Settings } from "./settings.js";

const CONVERSATION = "default";
/** Messages of the user that a reload can bring back, and the length of each. */
const KEPT = { messages: 200, characters: 20_000 };
/** Notices that are shown at once. */
const MOST_NOTICES = 4;

const store = {
  get: (/** @type {string} */ name) => {
    try {
      return JSON.parse(sessionStorage.getItem(`outrigger.${name}`) ?? "null");
    } catch {
      return null;
    }
  },
  set: (/** @type {string} */ name, /** @type {unknown} */ value) => {
    try {
      sessionStorage.setItem(`outrigger.${name}`, JSON.stringify(value));
    } catch {
      // Full or switched off: the page works, a reload forgets.
    }
  },
};

/** What percent signs stand for; as it is where they stand for nothing. */
function decoded(/** @type {string} */ text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The token, from the fragment (which is taken out of the address at once) or from before a reload. */
function readToken() {
  // Not by URLSearchParams, to which a plus is a space.
  const written = /[#&]token=([^&]*)/.exec(location.hash)?.[1];
  if (written !== undefined) {
    const given = decoded(written);
    history.replaceState(null, "", location.pathname + location.search);
    store.set("token", given);
    // A token for another daemon belongs to another session.
    store.set("session", null);
    return given;
  }
  return store.get("token");
}

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
/** What was said, by exchange, for a reload: frames do not repeat it. @type {{id: string, text: string}[]} */
let said = store.get("said") ?? [];
/** What is on its way and not admitted yet. @type {{id: string, text: string, whenBusy: string}[]} */
let outbox = store.get("outbox") ?? [];

const ask = (/** @type {any} */ type, /** @type {any} */ payload) =>
  client ? client.request(type, payload) : Promise.reject(new Error("not connected"));
const messages = new Messages(byId("messages"), byId("past"), (toolId) => void ask("tool:cancel", { toolId }).catch(complain));
const approval = new Approval(byId("approval"), async (toolId, verdict) => {
  await ask("chat:tool-approve", { toolId, ...verdict });
});
const frames = new Inspector(byId("frames"), () => toggle("frames", false));
const executions = new Executions(byId("executions"), ask, () => toggle("executions", false));
const settings = new Settings(byId("settings"), ask, () => toggle("settings", false), (now) => {
  setText(byId("model"), [now.provider, now.model, now.trustLevel].filter(Boolean).join(" · "));
});
const input = /** @type {HTMLTextAreaElement} */ (byId("input"));
const scroll = byId("scroll");
let follows = true;

// --- drawing -------------------------------------------------------------------------------------

function changed() {
  if (isDrawing) return;
  isDrawing = true;
  // A tab in the background draws nothing, and everything when it is looked at again.
  requestAnimationFrame(draw);
}

function draw() {
  isDrawing = false;
  const conversation = view.conversations[CONVERSATION];
  const state = conversation?.state ?? "idle";
  const list = conversation?.messages ?? [];
  messages.show(withOutbox(list));
  const isBusy = state !== "idle" && client?.status.name !== "closed";
  byId("welcome").hidden = list.length > 0 || outbox.length > 0 || byId("past").children.length > 0 || !ready;
  byId("stop").hidden = !isBusy;
  byId("queue").hidden = !isBusy;
  setText(byId("send"), isBusy ? "Steer" : "Send");
  byId("spinner").hidden = !isBusy || state === "awaiting-approval";
  setText(byId("state"), told(state, list.at(-1)));
  meters(conversation);
  approval.show(view.approvals, skew);
  if (follows) scroll.scrollTop = scroll.scrollHeight;
}

/** Messages with those that are on their way. @param {any[]} list */
function withOutbox(list) {
  return [
    ...list,
    ...outbox.map((it) => ({ id: `out-${it.id}`, role: "user", status: "queued", blocks: [{ type: "text", turn: 0, text: it.text }] })),
  ];
}

/** @param {string} state @param {any} last */
function told(state, last) {
  const running = last?.blocks.filter((/** @type {any} */ it) => it.type === "tool_call" && it.phase === "executing") ?? [];
  switch (state) {
    case "idle": return "";
    case "thinking": return "Thinking…";
    case "responding": return "Answering…";
    case "tool-planned": return "Writing a call…";
    case "awaiting-approval": return "Waits for your answer";
    case "retrying": return last?.retry ? `Trying again: ${exposed(last.retry.reason)}` : "Trying again…";
    case "queued": return "Queued";
    default: return running.length ? `Running ${running.map((/** @type {any} */ it) => it.toolName).join(", ")}…` : "Working…";
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

/** @param {string} text @param {string} [kind] */
function notice(text, kind = "info") {
  const box = byId("notices");
  const close = h("button", { type: "button", class: "quiet small", "aria-label": "Dismiss", onclick: () => row.remove() }, "✕");
  const row = h("div", { class: `notice ${kind}` }, h("span", {}, exposed(text)), close);
  box.append(row);
  while (box.children.length > MOST_NOTICES) box.firstChild.remove();
  return row;
}

function complain(/** @type {any} */ error) {
  notice(error.message, "error");
}

/** @param {...(Node | string)} parts nothing hides it */
function banner(...parts) {
  byId("banner").hidden = parts.length === 0;
  byId("banner").replaceChildren(...parts);
}

// --- frames --------------------------------------------------------------------------------------

function take(/** @type {any} */ frame) {
  if (frame.timestamp && !isReplaying) skew = Date.parse(frame.timestamp) - Date.now();
  const { type, payload } = frame;
  if (type === "chat:stream-start" || type === "chat:queued") {
    const words = said.find((it) => it.id === payload.messageId);
    if (words) view = withUserMessage(view, payload.conversationId, words.id, words.text);
  }
  view = reduce(view, frame);
  if (type === "session:notice") notice(payload.message, payload.severity);
  if (type === "session:error" && payload.code === "replay_gap") {
    notice("Some events were missed and are no longer kept; this is what the daemon remembers.", "warning");
  }
  if (type === "session:error" && frame.replyTo === undefined && !["replay_gap", "session_not_found"].includes(payload.code)) notice(payload.message, "error");
  if (type === "chat:tool-start" || type === "chat:tool-result") executions.changed();
  if (type === "chat:stream-end") {
    const last = view.conversations[payload.conversationId]?.messages.at(-1);
    const text = last?.blocks.findLast((/** @type {any} */ it) => it.type === "text")?.text ?? "";
    if (!isReplaying) setText(byId("announce"), payload.stopReason === "end_turn" ? `Answer: ${text.slice(0, 400)}` : `Ended: ${payload.stopReason}`);
  }
  changed();
}

// --- saying something ----------------------------------------------------------------------------

/** @param {{id: string, text: string, whenBusy: string}} it */
async function deliver(it) {
  try {
    const { messageId, state } = await client.send(it.text, { id: it.id, whenBusy: it.whenBusy });
    drop(it);
    if (state !== "steered") {
      said = [...said.filter((other) => other.id !== messageId), { id: messageId, text: it.text.slice(0, KEPT.characters) }].slice(-KEPT.messages);
      store.set("said", said);
      view = withUserMessage(view, CONVERSATION, messageId, it.text);
    }
  } catch (error) {
    drop(it);
    giveBack(it.text);
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

/** What was typed is never lost: it goes back in front of what has been typed since. @param {string} text */
function giveBack(text) {
  input.value = input.value ? `${text}\n${input.value}` : text;
  typed();
}

function typed() {
  store.set("draft", input.value);
  input.style.height = "auto";
  input.style.height = `${Math.min(input.scrollHeight + 2, window.innerHeight * 0.4)}px`;
}

function submit(/** @type {boolean} */ mayQueue) {
  const text = input.value;
  if (!text.trim()) return;
  if (!client || client.status.name === "closed") {
    notice("Not connected; what you typed stays here.", "warning");
    return;
  }
  const isBusy = (view.conversations[CONVERSATION]?.state ?? "idle") !== "idle";
  const id = `page-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
  const it = { id, text, whenBusy: isBusy && !mayQueue ? "steer" : "queue" };
  outbox = [...outbox, it];
  store.set("outbox", outbox);
  input.value = "";
  typed();
  follows = true;
  void deliver(it);
  changed();
}

byId("composer").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  submit(/** @type {any} */ (event.submitter)?.value === "queue");
});
input.addEventListener("input", typed);
input.addEventListener("keydown", (event) => {
  // Enter that ends a composition of characters belongs to the input method.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit(event.altKey);
  }
});
byId("stop").addEventListener("click", () => void ask("chat:cancel", { conversationId: CONVERSATION, queued: true }).catch(complain));
byId("new").addEventListener("click", async () => {
  const has = (view.conversations[CONVERSATION]?.messages.length ?? 0) > 0;
  if (has && !window.confirm("Forget this conversation? What runs in it is stopped.")) return;
  try {
    await ask("chat:close", { conversationId: CONVERSATION });
    said = [];
    store.set("said", said);
    input.focus();
  } catch (error) {
    complain(error);
  }
});

// --- panels --------------------------------------------------------------------------------------

const panels = { settings, executions, frames };

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
      const retry = h("button", { type: "button", class: "quiet small", onclick: () => client.retryNow() }, "Try now");
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
        const back = h("button", { type: "button", class: "quiet small", onclick: () => void client.connect() }, "Use it here");
        banner("Another window has taken this session over. ", back);
      }
      break;
  }
  changed();
}

function askForToken(/** @type {string} */ why) {
  const field = h("input", { type: "password", id: "token", autocomplete: "off", "aria-label": "Token", placeholder: "Token" });
  const form = h(
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
    h("span", {}, `${why} It is in the line that the daemon prints when it starts, or the one you gave it.`),
    field,
    h("button", { type: "submit", class: "primary small" }, "Connect"),
  );
  banner(form);
  field.focus();
}

async function begin(/** @type {string | null} */ token) {
  client?.close();
  const session = store.get("session");
  // From the beginning: a page that was loaded anew knows nothing of what it had drawn.
  isReplaying = Boolean(session);
  isFresh = true;
  const options = { url, ...(token && { token }), ...(session && { session: { sessionId: session.sessionId, lastSeq: 0 } }) };
  const mine = (client = new Client(options));
  mine.on("wire", ({ direction, text }) => frames.add(direction, text));
  mine.on("status", (status) => {
    if (client === mine) void standing(status);
  });
  mine.on("session-lost", () => {
    messages.archive("The daemon was restarted, or the session was away for too long. It remembers nothing of what is above.");
    view = emptyView();
    said = [];
    store.set("said", said);
    isReplaying = false;
  });
  mine.on("frame", take);
  mine.on("session:ready", (it) => greeted(it));
  try {
    await mine.connect();
  } catch (error) {
    if (client !== mine) return;
    const { status } = mine;
    if (status.name === "closed" && status.code === 0) {
      // Nothing was sent: the client itself would not.
      askForToken(`There is no way to give this token from a page: ${/** @type {Error} */ (error).message}.`);
    } else if (await isAlive()) {
      askForToken(token ? "The daemon does not accept this token." : "This page needs the daemon's token.");
    } else {
      banner("The daemon does not answer. ", h("button", { type: "button", class: "quiet small", onclick: () => void begin(token) }, "Try again"));
      setTimeout(() => client === mine && void begin(token), 3_000);
    }
  }
}

function greeted(/** @type {any} */ it) {
  const isReplayed = ready?.sessionId === it.sessionId && !it.resumed;
  ready = it;
  setText(byId("project"), it.project.name);
  byId("project").title = it.project.root;
  setText(byId("sandbox"), `sandbox: ${it.sandbox.mode}`);
  byId("sandbox").title = `commands: ${it.sandbox.commands.join(", ") || "nothing around them"}; network: ${it.sandbox.network}`;
  byId("sandbox").dataset.mode = it.sandbox.mode;
  if (isReplayed) return;
  store.set("session", { sessionId: it.sessionId });
  welcome(it);
  // Its answer comes after everything that was missed.
  void ask("session:state", {})
    .then(() => {
      isReplaying = false;
      changed();
    })
    .catch(() => {});
  void settings.begin(it);
  const waiting = isFresh ? outbox : [];
  isFresh = false;
  if (it.resumed) {
    // On its way when the page was loaded anew: safe to send again, the daemon knows its id.
    for (const one of waiting) void deliver(one);
  } else {
    for (const one of waiting.slice().reverse()) {
      drop(one);
      giveBack(one.text);
    }
  }
  changed();
}

function welcome(/** @type {any} */ it) {
  const say = (/** @type {string} */ text) =>
    h("button", { type: "button", class: "quiet", onclick: () => {
      input.value = text;
      submit(false);
    } }, text);
  const isScripted = it.providers.every((/** @type {any} */ provider) => provider.id === "scripted" || !provider.configured);
  byId("welcome").replaceChildren(
    h("h2", {}, "Say something."),
    h("p", {}, "The model works in ", h("code", {}, it.project.root), ` with ${it.tools.length} tools, and asks you before anything dangerous.`),
    isScripted ? h("p", {}, "No key is set, so a built-in script answers. Try ", say("demo"), " ", say("tour"), " or give a key under Settings.") : "",
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

input.value = store.get("draft") ?? "";
typed();
input.focus();
void begin(readToken());
