// The window: sessions, a chat, questions, a file, changes of files, cost. All that is drawn is the client's view.
import { Client, emptyView, reduce, textOf, webStore, withHistory, withUserMessage } from "./client/index.js";

const at = (id) => document.getElementById(id);
/** An element with texts in it; never markup. */
function el(tag, properties, ...children) {
  const it = Object.assign(document.createElement(tag), properties);
  it.append(...children.filter((child) => child !== undefined && child !== ""));
  return it;
}
const button = (text, does) => el("button", { type: "button", onclick: () => Promise.resolve(does()).catch(failed) }, text);
function failed(error) {
  at("status").textContent = error.message;
}

// In Electron the preload script has put this there; here the key is in the address, for as long as it takes to read it.
if (location.hash) sessionStorage.setItem("desk", location.hash.slice(1));
history.replaceState(null, "", "/");
async function bridge(name, ...given) {
  if (window.desk) return window.desk[name](...given);
  const answer = await fetch(`/bridge/${name}`, { method: "POST", headers: { "x-desk": sessionStorage.getItem("desk") }, body: JSON.stringify(given) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

const client = new Client({ ...(await bridge("connection")), store: webStore(sessionStorage) });
let view = emptyView();
let isDrawn = true;

// --- what is drawn, once for each frame of the screen ---------------------------------------------

function changed() {
  if (!isDrawn) return;
  isDrawn = false;
  requestAnimationFrame(draw);
}

function draw() {
  isDrawn = true;
  const now = view.conversations.default;
  const chat = at("chat");
  const isAtEnd = chat.scrollHeight - chat.scrollTop - chat.clientHeight < 40;
  chat.replaceChildren(...(now?.messages ?? []).map(message));
  if (isAtEnd) chat.scrollTop = chat.scrollHeight;
  at("stop").hidden = (now?.state ?? "idle") === "idle";
  // Cards of questions that are open still stay as they are: somebody may be at one of them.
  const open = new Map(view.approvals.map((it) => [`${it.toolId} ${it.host ?? ""}`, it]));
  for (const card of [...at("questions").children]) if (!open.delete(card.dataset.key)) card.remove();
  for (const [key, it] of open) at("questions").append(question(key, it));
}

function message({ role, status, blocks, error, end }) {
  const facts = end ? [end.stopReason, `${(end.durationMs / 1000).toFixed(1)} s`, end.costUsd && `$${end.costUsd.toFixed(4)}`] : [];
  return el("article", { className: `${role} ${status}` }, ...blocks.map(block), error ? el("p", { className: "error" }, error.message) : "", facts.length ? el("small", {}, facts.filter(Boolean).join(" · ")) : "");
}

function block(it) {
  if (it.type === "text") return el("p", {}, it.text);
  if (it.type === "thinking") return el("p", { className: "thinking" }, it.text);
  if (it.type === "steered") return el("p", { className: "steered" }, textOf(it.content));
  const what = it.input?.command ?? it.input?.path ?? "";
  const shown = it.metadata?.diff ?? it.result ?? it.output;
  return el("details", { className: it.status, open: it.phase !== "done" }, el("summary", {}, `${it.toolName} ${what}`, el("em", {}, it.phase === "done" ? it.status : it.phase)), shown ? el("pre", {}, shown) : "");
}

function question(key, it) {
  const { toolName, input, host, danger, reason, preview, remember = { approval: [], denial: [] } } = it;
  const scope = el("select", { ariaLabel: "Remember" }, ...["once", ...remember.denial].map((value) => el("option", { value }, value)));
  const why = el("input", { ariaLabel: "Why not", placeholder: "Why not" });
  const lasting = (offered) => (offered.includes(scope.value) ? { remember: scope.value } : {});
  const card = el("section", { className: danger.level, ariaLabel: "Question" },
    el("h2", {}, host ? `Connect to ${host}?` : `Run ${toolName}?`, el("em", {}, danger.level)),
    el("pre", {}, preview ?? input.command ?? JSON.stringify(input, null, 2)),
    el("ul", {}, ...[...danger.reasons, reason].map((text) => el("li", {}, text))),
    el("p", {}, button("Allow", () => client.approve(it, lasting(remember.approval))), scope, why, button("Deny", () => client.deny(it, why.value || undefined, lasting(remember.denial)))));
  card.dataset.key = key;
  return card;
}

function openFile(path, text, line) {
  at("path").textContent = path;
  at("file").replaceChildren(...text.split("\n").map((words, index) => el("li", { className: index + 1 === line ? "here" : "" }, words)));
  at("file").querySelector(".here")?.scrollIntoView({ block: "center" });
}

// --- what is asked for -----------------------------------------------------------------------------

async function listSessions() {
  const { sessions } = await client.listSessions({ limit: 30 });
  at("sessions").replaceChildren(...sessions.map((it) => {
    const row = button(it.title || "New", () => goTo(it.sessionId));
    row.ariaCurrent = String(it.sessionId === client.ready.sessionId);
    return el("li", {}, row);
  }));
}

async function listChanges() {
  const { changes } = await client.fileChanges({ limit: 20 });
  at("changes").replaceChildren(...changes.map(({ files, toolId, messageId, diff, reason }) => {
    const said = el("span", { role: "status" });
    const undo = async () => {
      const { files: undone } = await client.revertFiles(toolId ? { toolId } : { messageId });
      said.textContent = undone.map((it) => it.message ?? it.outcome).join(", ");
      await listChanges();
    };
    const names = files.map((it) => `${it.change} ${it.path}`).join(", ");
    return el("li", {}, el("details", {}, el("summary", {}, names), el("pre", {}, diff ?? "")), reason ? el("small", {}, reason) : button("Undo", undo), said);
  }));
}

async function countCost() {
  const { rows } = await client.request("usage:report", { groupBy: "day" });
  const now = view.conversations.default?.costUsd ?? 0;
  at("cost").textContent = `$${now.toFixed(4)} · today $${(rows.at(-1)?.spentUsd ?? 0).toFixed(4)}`;
}

/** What a session begins with, a new one and one that is gone on with. */
async function begun() {
  await client.configure({ layers: ["stream", "state", "sessions"] });
  view = withHistory(view, await client.history({ limit: 100 }));
  changed();
  await Promise.all([listSessions(), listChanges(), countCost()]);
}

async function goTo(sessionId) {
  view = emptyView();
  await client.openSession(sessionId);
  await begun();
}

client.on("status", ({ name }) => (at("status").textContent = name));
client.on("frame", (frame) => {
  view = reduce(view, frame);
  changed();
});
client.on("session:updated", () => void listSessions().catch(failed));
client.on("chat:tool-result", () => void listChanges().catch(failed));
client.on("chat:stream-end", () => void countCost().catch(failed));
at("new").onclick = () => goTo(undefined).catch(failed);
at("stop").onclick = () => client.cancel().catch(failed);
at("say").onsubmit = (event) => {
  event.preventDefault();
  const field = event.target.elements.words;
  const words = field.value.trim();
  field.value = "";
  if (!words) return;
  client.send(words).then(({ messageId }) => {
    view = withUserMessage(view, "default", messageId, words);
    changed();
  }, failed);
};

try {
  await client.connect();
  await client.tools({
    open_file: {
      description: "Shows a file of the project to the user, at a line.",
      inputSchema: { type: "object", properties: { path: { type: "string" }, line: { type: "integer" } }, required: ["path"] },
      readOnly: true,
      approval: "never",
      idempotent: true,
      async run({ path, line = 1 }) {
        openFile(path, await bridge("read", path), line);
        return `${path} is open at line ${line}`;
      },
    },
  });
  await begun();
} catch (error) {
  failed(error);
}
