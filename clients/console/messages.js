// The conversation: one element for each message, one for each block, changed only where the view
// changed. Blocks of calls are `details`, open while they run.
import { textOf } from "../typescript/dist/index.js";
import { counts, diff } from "./diff.js";
import { duration, exposed, grow, h, plain, setText } from "./dom.js";
import { Markdown } from "./markdown.js";

/** Most characters of a result that are drawn at first. */
const SHOWN_RESULT = 20_000;

const ICONS = /** @type {Record<string, string>} */ ({
  bash: "❯_",
  git: "⎇",
  file_read: "▤",
  file_write: "✎",
  file_edit: "✎",
  file_list: "☰",
  file_search: "⌕",
  web_search: "◍",
});

export class Messages {
  /** @param {HTMLElement} element @param {HTMLElement} past @param {(toolId: string) => void} cancelTool */
  constructor(element, past, cancelTool) {
    this.element = element;
    this.past = past;
    this.cancelTool = cancelTool;
    /** @type {Map<string, {element: any, shown: any, body: any, blocks: any[], foot: any}>} */
    this.known = new Map();
  }

  /** @param {import("../typescript/dist/reducer.js").Message[]} messages */
  show(messages) {
    const there = new Set();
    /** @type {any} */
    let before = null;
    for (const message of messages) {
      const key = `${message.role}-${message.id}`;
      there.add(key);
      const row = this.known.get(key) ?? this.#row(key, message);
      if (row.shown !== message) this.#update(row, message);
      const place = before ? before.nextSibling : this.element.firstChild;
      if (place !== row.element) this.element.insertBefore(row.element, place);
      before = row.element;
    }
    for (const [key, row] of this.known) {
      if (there.has(key)) continue;
      row.element.remove();
      this.known.delete(key);
    }
  }

  /** Keeps what is shown above a line that says why it is over. @param {string} why */
  archive(why) {
    if (!this.element.firstChild) return;
    for (const row of this.known.values()) {
      for (const open of row.element.querySelectorAll("[data-status=running]")) open.dataset.status = "error";
    }
    this.past.append(h("div", { class: "past" }, ...this.element.children), h("p", { class: "divider" }, why));
    // Bounded as the rest is: two earlier sessions are enough to read back.
    while (this.past.children.length > 4) this.past.firstChild?.remove();
    this.known.clear();
  }

  #row(/** @type {string} */ key, /** @type {any} */ message) {
    const isUser = message.role === "user";
    const body = h("div", { class: "body" });
    const foot = h("div", { class: "foot" });
    const element = h(
      "article",
      { class: `message ${message.role}`, "data-id": message.id, "aria-label": isUser ? "You" : "Answer" },
      body,
      foot,
    );
    const row = { element, body, foot, blocks: [], shown: null };
    this.known.set(key, row);
    return row;
  }

  #update(/** @type {any} */ row, /** @type {any} */ message) {
    row.shown = message;
    row.element.dataset.status = message.status;
    message.blocks.forEach((/** @type {any} */ block, /** @type {number} */ at) => {
      let drawn = row.blocks[at];
      const same = drawn && drawn.type === block.type && drawn.toolId === block.toolId;
      if (!same) {
        drawn = this.#block(block, message.role);
        row.blocks[at]?.element.replaceWith(drawn.element);
        if (!row.blocks[at]) row.body.append(drawn.element);
        row.blocks[at] = drawn;
      }
      if (drawn.shown !== block) {
        drawn.shown = block;
        const isLast = at === message.blocks.length - 1;
        drawn.update(block, isLast && message.status === "streaming");
      }
    });
    for (const gone of row.blocks.splice(message.blocks.length)) gone.element.remove();
    // Thinking closes when something follows it.
    row.blocks.forEach((/** @type {any} */ drawn, /** @type {number} */ at) => {
      if (at < row.blocks.length - 1) drawn.passed?.();
    });
    row.foot.replaceChildren(...foot(message));
  }

  #block(/** @type {any} */ block, /** @type {string} */ role) {
    if (block.type === "thinking") return thinking(block);
    if (block.type === "tool_call") return new Call(block, this.cancelTool);
    if (block.type === "steered") {
      const words = exposed(textOf(block.content));
      return { type: "steered", element: h("div", { class: "steered" }, h("span", {}, "You added: "), words), update() {} };
    }
    if (role === "user") {
      // What a user typed is shown as typed.
      const element = h("div", { class: "words" });
      return { type: "text", element, update: (/** @type {any} */ it) => setText(element, it.text) };
    }
    const markdown = new Markdown();
    return { type: "text", element: markdown.element, update: (/** @type {any} */ it) => markdown.update(it.text) };
  }
}

function thinking(/** @type {any} */ block) {
  const text = document.createTextNode("");
  const element = h("details", { class: "thinking", open: true }, h("summary", {}, "Thinking"), h("div", {}, text));
  let isTouched = false;
  element.querySelector("summary").addEventListener("click", () => (isTouched = true));
  return {
    type: block.type,
    element,
    update: (/** @type {any} */ it, /** @type {boolean} */ isRunning) => {
      grow(text, it.text);
      if (!isRunning && !isTouched) element.open = false;
    },
    passed: () => {
      if (!isTouched) element.open = false;
    },
  };
}

/** One call: icon, name, what it is about, state; input, live output, changes, result. */
class Call {
  /** @param {any} block @param {(toolId: string) => void} cancel */
  constructor(block, cancel) {
    this.type = block.type;
    this.toolId = block.toolId;
    this.about = h("span", { class: "about" });
    this.badge = h("span", { class: "badge" });
    this.name = h("span", { class: "name" });
    this.icon = h("span", { class: "icon", "aria-hidden": "true" });
    this.cancel = h("button", { type: "button", class: "quiet small", onclick: () => cancel(block.toolId) }, "End this call");
    this.input = document.createTextNode("");
    this.output = document.createTextNode("");
    this.outputBox = h("pre", { class: "output", tabindex: "0", "aria-label": "Output" }, this.output);
    this.rest = h("div", { class: "rest" });
    this.element = h(
      "details",
      { class: "call", open: true, "data-tool": block.toolId },
      h("summary", {}, this.icon, this.name, this.about, this.badge),
      h("pre", { class: "input", tabindex: "0", "aria-label": "Input" }, this.input),
      this.outputBox,
      this.rest,
      this.cancel,
    );
    this.isTouched = false;
    this.element.querySelector("summary").addEventListener("click", () => (this.isTouched = true));
    /** @type {any} */
    this.shown = null;
    this.isDone = false;
    this.dropped = 0;
    this.seen = 0;
  }

  update(/** @type {any} */ it) {
    setText(this.icon, ICONS[it.toolName] ?? "◆");
    setText(this.name, it.toolName);
    this.element.dataset.status = it.status;
    this.element.dataset.phase = it.phase;
    setText(this.badge, badge(it));
    setText(this.about, about(it));
    grow(this.input, input(it));
    if (it.outputDropped !== this.dropped) this.seen = 0;
    if (it.outputDropped !== this.dropped || it.output.length > this.seen) {
      // A carriage return or a colour that is cut in two is made whole by building the text anew.
      const fresh = this.seen === 0 ? it.output : it.output.slice(this.seen);
      if (this.seen === 0) this.output.data = plain(fresh);
      else this.output.appendData(plain(fresh));
      this.dropped = it.outputDropped;
      this.seen = it.output.length;
      this.outputBox.scrollTop = this.outputBox.scrollHeight;
    }
    this.outputBox.hidden = it.output === "";
    this.cancel.hidden = it.phase !== "executing";
    if (it.phase === "done" && !this.isDone) {
      this.isDone = true;
      this.rest.replaceChildren(...ending(it));
      if (!this.isTouched) this.element.open = it.status === "error" && it.metadata?.cancelled !== true;
    }
  }
}

function badge(/** @type {any} */ it) {
  if (it.phase === "done") {
    const facts = it.metadata ?? {};
    const word = facts.denied ? "denied" : facts.expired ? "expired" : facts.cancelled ? "cancelled" : facts.timedOut ? "timed out" : "failed";
    const what = it.status === "success" ? "done" : word;
    const code = typeof facts.exitCode === "number" && facts.exitCode !== 0 ? ` · exit ${facts.exitCode}` : "";
    return it.durationMs ? `${what}${code} · ${duration(it.durationMs)}` : `${what}${code}`;
  }
  if (it.phase === "queued") return it.waitsFor ? `waits: ${it.waitsFor}` : "waits";
  return { planned: "being written", "awaiting-approval": "waits for you", executing: "running" }[/** @type {string} */ (it.phase)] ?? "";
}

/** What a call is about, in a few words. */
function about(/** @type {any} */ it) {
  const values = it.input ?? {};
  const chosen = values.command ?? values.path ?? values.query ?? values.pattern ?? values.args?.join?.(" ") ?? Object.values(values)[0];
  const text = typeof chosen === "string" ? chosen : chosen === undefined ? "" : JSON.stringify(chosen);
  return exposed(text.replace(/\s+/g, " ")).slice(0, 160);
}

function input(/** @type {any} */ it) {
  if (!it.input) return exposed(it.inputText);
  const { command, ...others } = it.input;
  if (typeof command === "string") {
    const more = Object.keys(others).length ? `\n${JSON.stringify(others, null, 2)}` : "";
    return exposed(`$ ${command}${more}`);
  }
  return exposed(JSON.stringify(it.input, null, 2));
}

function ending(/** @type {any} */ it) {
  const parts = [];
  const changes = it.metadata?.diff ?? (it.status === "success" ? it.confirm?.preview : undefined);
  if (typeof changes === "string" && changes) {
    const { added, removed } = counts(changes);
    parts.push(h("p", { class: "label" }, `Changes +${added} −${removed}`), diff(changes));
  }
  const result = plain(it.result ?? "");
  // Live output was the result, mostly.
  if (result && result.trimEnd() !== plain(it.output).trimEnd()) {
    const text = document.createTextNode(result.slice(0, SHOWN_RESULT));
    parts.push(h("p", { class: "label" }, "Result"), h("pre", { class: "result", tabindex: "0", "aria-label": "Result" }, text));
    if (result.length > SHOWN_RESULT) {
      const more = h("button", { type: "button", class: "quiet small" }, `Show all ${result.length.toLocaleString("en")} characters`);
      more.addEventListener("click", () => {
        text.data = result;
        more.remove();
      });
      parts.push(more);
    }
  }
  return parts;
}

function foot(/** @type {any} */ message) {
  const parts = [];
  if (message.status === "queued") {
    const where = message.position === undefined ? "on its way" : `waits, place ${message.position} in the queue`;
    parts.push(h("p", { class: "aside" }, where));
  }
  if (message.retry) {
    const { attempt, delayMs, reason } = message.retry;
    parts.push(h("p", { class: "aside warn" }, `The provider failed (${exposed(reason)}); attempt ${attempt} in ${duration(delayMs)}.`));
  }
  if (message.error) {
    const { code, message: text, hint } = message.error;
    parts.push(h("div", { class: "error" }, h("strong", {}, code), h("p", {}, exposed(text)), hint && h("p", { class: "hint" }, exposed(hint))));
  }
  if (message.end) {
    const { stopReason, turns, toolCalls, durationMs, usage, costUsd, partial } = message.end;
    const facts = [
      stopReason === "end_turn" ? null : stopReason.replace(/_/g, " "),
      partial ? "cut" : null,
      `${turns} ${turns === 1 ? "turn" : "turns"}`,
      toolCalls ? `${toolCalls} ${toolCalls === 1 ? "call" : "calls"}` : null,
      usage.inputTokens === undefined ? null : `${usage.inputTokens.toLocaleString("en")} in`,
      usage.outputTokens === undefined ? null : `${usage.outputTokens.toLocaleString("en")} out`,
      costUsd === undefined ? null : `$${costUsd.toFixed(4)}`,
      duration(durationMs),
    ];
    parts.push(h("p", { class: "aside" }, facts.filter(Boolean).join(" · ")));
  }
  return parts;
}
