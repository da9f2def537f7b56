// The conversation. Messages that did not change keep their identity in the view, and are not drawn again.
import { Component, h, render } from "preact";
import { extrasOf, pictureOf, size, sizeOf, wordsOf } from "./attachments.js";
import { CopyButton } from "./copy.js";
import { Diff, counts } from "./diff.js";
import { duration, plain } from "./dom.js";
import { ToolInput, about, inputOf } from "./input.js";
import { Markdown } from "./markdown/view.js";
import { exposed } from "./visible.js";
import { describeEnd, describeError, stateOf } from "./words.js";

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
  web_fetch: "◍",
  task: "↳",
});

/** Tools whose changes of files can be undone. */
const WRITERS = new Set(["file_write", "file_edit"]);

/**
 * What can be done from a message.
 *
 * @typedef {object} Actions
 * @property {(toolId: string) => void} cancelTool
 * @property {() => void} retry sends again what the last exchange was about
 * @property {() => void} goOn after a path outside of the project
 * @property {() => void} openSettings
 * @property {(message: any, undone?: string) => Promise<import("../../typescript/dist/index.js").FilesReverted>} undo puts back what an answer's calls did to files, or undoes that undoing
 * @property {(message: any, text: string) => Promise<boolean>} edit says it otherwise in a copy of the session; false where that failed
 * @property {(message: any) => void} again has what an answer is to answered anew, in a copy
 * @property {(message: any) => void} fork goes on in a copy that ends with this answer
 */

/**
 * Draws messages into an element.
 *
 * @param {HTMLElement} element
 * @param {any[]} messages
 * @param {Actions} actions
 * @param {boolean} isIdle whether nothing runs, so that the last message may offer to go on
 */
export function showMessages(element, messages, actions, isIdle) {
  const last = messages.at(-1);
  const rows = messages.map((message) => h(Row, { key: `${message.role}-${message.id}`, message, actions, isLast: isIdle && message === last }));
  render(rows, element);
}

/** What is over, and why. @param {HTMLElement} element @param {{messages: any[], why: string}[]} past */
export function showPast(element, past) {
  const none = /** @type {any} */ ({});
  render(
    past.map(({ messages, why }, at) => [
      h("div", { class: "past", key: `past-${at}` }, messages.map((message) => h(Row, { key: `${message.role}-${message.id}`, message: settled(message), actions: none, isLast: false }))),
      h("p", { class: "divider", key: `why-${at}` }, why),
    ]),
    element,
  );
}

/** A message of a session that is gone: nothing in it runs. @param {any} message */
function settled(message) {
  return {
    ...message,
    status: "done",
    retry: undefined,
    blocks: message.blocks.map((/** @type {any} */ it) => (it.type === "tool_call" && it.phase !== "done" ? { ...it, phase: "done", status: "error", metadata: { cancelled: true } } : it)),
  };
}

class Row extends Component {
  state = { isEdited: false };

  shouldComponentUpdate(/** @type {any} */ next, /** @type {any} */ state) {
    return next.message !== this.props.message || next.isLast !== this.props.isLast || state !== this.state;
  }

  render(/** @type {any} */ { message, actions, isLast }) {
    const isUser = message.role === "user";
    const blocks = message.blocks;
    const words = message.content ? wordsOf(message.content) : blocks.filter((/** @type {any} */ it) => it.type === "text").map((/** @type {any} */ it) => it.text).join("\n\n");
    return h(
      "article",
      { class: `message ${message.role}`, "data-id": message.id, "data-status": message.status, "aria-label": isUser ? "You" : "Answer" },
      h(
        "div",
        { class: "body" },
        isUser && message.status === "done" && !this.state.isEdited && h(CopyButton, { text: () => words, label: "Copy this message" }),
        isUser && message.status === "done" && !this.state.isEdited && actions.edit && h("button", { type: "button", class: "act kept", title: "Edit this message and send it again, in a copy of the session", onClick: () => this.setState({ isEdited: true }) }, "Edit"),
        this.state.isEdited ? h(Editing, { words, send: (/** @type {string} */ text) => actions.edit(message, text), close: () => this.setState({ isEdited: false }) }) : isUser && message.content ? h(Said, { content: message.content }) : blocks.map((/** @type {any} */ block, /** @type {number} */ at) => {
          const isRunning = message.status === "streaming" && at === blocks.length - 1;
          return h(Block, { key: `${at}-${block.toolId ?? block.type}`, block, role: message.role, isRunning, cancelTool: actions.cancelTool, isStopped: message.end?.stopReason === "cancelled" && at === blocks.length - 1 });
        }),
      ),
      h("div", { class: "foot" }, foot(message, actions, isLast, words)),
    );
  }
}

/** What the user said with pictures and documents. @param {any} properties */
function Said({ content }) {
  const words = wordsOf(content);
  return [words && h("div", { class: "words", key: "words" }, words), h(Extras, { key: "extras", parts: content })];
}

/** Pictures, and a chip for each document and whatever is no picture that is shown. @param {any} properties */
function Extras({ parts }) {
  const extras = extrasOf(parts);
  if (!extras.length) return null;
  return h("div", { class: "extras" }, extras.map((part, at) => {
    const picture = pictureOf(part);
    if (picture) return h("img", { class: "picture", key: at, src: picture, alt: `Picture ${at + 1}` });
    const pages = part.pages ? `, ${part.pages} ${part.pages === 1 ? "page" : "pages"}` : "";
    return h("span", { class: "chip", key: at }, h("span", { class: "name" }, exposed(part.name ?? part.mediaType)), h("span", { class: "size" }, `${size(sizeOf(part))}${pages}`));
  }));
}

/** A message of the user's in a field. Enter sends it, Escape leaves it as it was. */
class Editing extends Component {
  /** @type {any} */
  field = null;

  componentDidMount() {
    this.field.value = this.props.words;
    this.field.focus();
  }

  async send() {
    const { words, send, close } = this.props;
    const text = this.field.value;
    if (!text.trim()) return;
    if (text === words) return close();
    this.field.disabled = true;
    if (await send(text)) return close();
    this.field.disabled = false;
    this.field.focus();
  }

  key(/** @type {KeyboardEvent} */ event) {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      // Nothing else is closed or stopped by it.
      event.stopPropagation();
      this.props.close();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      void this.send();
    }
  }

  render(/** @type {any} */ { close }) {
    return h(
      "div",
      { class: "editing", onKeyDown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
      h("textarea", { "aria-label": "Your message", rows: 3, ref: (/** @type {any} */ field) => (this.field = field ?? this.field) }),
      h("div", { class: "buttons" }, h("button", { type: "button", class: "primary small", onClick: () => void this.send() }, "Send"), h("button", { type: "button", class: "quiet small", onClick: close }, "Cancel")),
    );
  }
}

class Block extends Component {
  shouldComponentUpdate(/** @type {any} */ next) {
    return next.block !== this.props.block || next.isRunning !== this.props.isRunning || next.isStopped !== this.props.isStopped;
  }

  render(/** @type {any} */ { block, role, isRunning, cancelTool, isStopped }) {
    if (block.type === "thinking") return h(Thinking, { text: block.text, isRunning });
    if (block.type === "tool_call") return h(Call, { it: block, cancel: cancelTool });
    if (block.type === "steered") {
      return h("div", { class: "steered" }, h("span", {}, isStopped ? "You added, and it was stopped before an answer: " : "You added: "), exposed(wordsOf(block.content)), h(Extras, { parts: block.content }));
    }
    // What a user typed is shown as typed.
    if (role === "user") return h("div", { class: "words" }, block.text);
    return h(Markdown, { text: block.text, isGrowing: isRunning });
  }
}

/** `details` that open and close by themselves, until somebody does it. */
class Folding extends Component {
  /** @type {{isOpen?: boolean}} */
  state = {};

  folded(/** @type {any} */ attributes, /** @type {boolean} */ isOpen, /** @type {any} */ summary, /** @type {any} */ inside) {
    const now = this.state.isOpen ?? isOpen;
    const toggle = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.setState({ isOpen: !now });
    };
    return h("details", { ...attributes, open: now }, h("summary", { onClick: toggle }, summary), inside);
  }

  /** @param {any} _ @returns {any} */
  render(_) {
    return null;
  }
}

class Thinking extends Folding {
  render(/** @type {any} */ { text, isRunning }) {
    return this.folded({ class: "thinking" }, isRunning, "Thinking", h("div", {}, text));
  }
}

/** One call: icon, name, what it is about, state; input, live output, changes, result. */
class Call extends Folding {
  render(/** @type {any} */ { it, cancel }) {
    const { look, words } = stateOf(it);
    // What is asked is in the question.
    const isOpen = it.phase === "done" ? look === "error" || it.metadata?.denied === true : it.phase !== "awaiting-approval";
    const changes = changesOf(it);
    const summary = [
      h("span", { class: "icon", "aria-hidden": "true" }, ICONS[it.toolName] ?? "◆"),
      h("span", { class: "name" }, it.toolName),
      h("span", { class: "about" }, about(it)),
      h("span", { class: "badge" }, words),
    ];
    return this.folded({ class: "call", "data-tool": it.toolId, "data-status": it.status, "data-phase": it.phase, "data-look": look }, isOpen, summary, [
      h(ToolInput, { input: inputOf(it), inputText: it.inputText, isDrawn: Boolean(changes) }),
      it.task ? h(Task, { messages: it.task, cancel }) : it.output !== "" && h(Output, { text: it.output, dropped: it.outputDropped }),
      it.phase === "done" && ending(it, changes),
      it.phase === "executing" && cancel && h("button", { type: "button", class: "quiet small", onClick: () => cancel(it.toolId) }, "End this call"),
    ]);
  }
}

/** The calls of a task, in the call that began it; what it says in the end is its result. @param {any} properties */
function Task({ messages, cancel }) {
  const calls = messages.flatMap((/** @type {any} */ it) => it.blocks.filter((/** @type {any} */ block) => block.type === "tool_call"));
  const last = messages.at(-1);
  if (!calls.length && !last?.error) return null;
  return h(
    "div",
    { class: "task", role: "group", "aria-label": "Calls of the task" },
    calls.map((/** @type {any} */ it) => h(Call, { key: it.toolId, it, cancel })),
    last?.error && h("p", { class: "aside warn" }, exposed(last.error.message)),
  );
}

/** What a call changes, as far as that is known. */
function changesOf(/** @type {any} */ it) {
  const changes = it.metadata?.diff ?? (it.phase !== "done" || it.status === "success" ? it.confirm?.preview : undefined);
  return typeof changes === "string" && changes !== "" ? changes : undefined;
}

/** Live output. It is appended to as it comes: there may be much of it. */
class Output extends Component {
  /** @type {any} */
  box = null;
  node = document.createTextNode("");
  seen = 0;
  dropped = 0;

  shouldComponentUpdate(/** @type {any} */ next) {
    this.draw(next);
    return false;
  }

  componentDidMount() {
    this.box.append(this.node);
    this.draw(this.props);
  }

  draw(/** @type {any} */ { text, dropped }) {
    if (dropped !== this.dropped || text.length < this.seen) this.seen = 0;
    const fresh = plain(text.slice(this.seen));
    if (this.seen === 0) this.node.data = fresh;
    else if (fresh) this.node.appendData(fresh);
    this.seen = text.length;
    this.dropped = dropped;
    this.box.scrollTop = this.box.scrollHeight;
  }

  render() {
    return h("pre", { class: "output", tabindex: 0, "aria-label": "Output", ref: (/** @type {any} */ box) => (this.box = box ?? this.box) });
  }
}

function ending(/** @type {any} */ it, /** @type {string | undefined} */ changes) {
  const parts = [];
  if (changes) {
    const { added, removed } = counts(changes);
    parts.push(h("p", { class: "label" }, `Changes +${added} −${removed}`), h(Diff, { text: changes }));
  }
  const files = changedFiles(it.metadata?.changed);
  if (files) parts.push(h("p", { class: "label" }, "Changed files"), h("pre", { class: "result", tabindex: 0, "aria-label": "Changed files" }, files));
  const result = plain(it.result ?? "");
  const masked = it.metadata?.redacted ? ` · ${it.metadata.redacted} ${it.metadata.redacted === 1 ? "secret" : "secrets"} masked` : "";
  // Live output was the result, mostly.
  if (result && result.trimEnd() !== plain(it.output).trimEnd()) parts.push(h("p", { class: "label" }, `Result${masked}`), h(Result, { text: result }));
  else if (masked) parts.push(h("p", { class: "label" }, masked.slice(3)));
  if (it.content) parts.push(h(Extras, { key: "extras", parts: it.content }));
  if (it.metadata?.task) parts.push(h("p", { class: "label" }, tookOf(it.metadata.task)));
  return parts;
}

/** What a task took. @param {any} task */
function tookOf({ turns, toolCalls, model, spentUsd }) {
  const counted = (/** @type {number} */ count, /** @type {string} */ word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  return [counted(turns, "turn"), counted(toolCalls, "call"), spentUsd > 0 && `$${spentUsd.toFixed(4)}`, exposed(model)].filter(Boolean).join(" · ");
}

const MARKS = { created: "+", modified: "~", deleted: "−" };

/** A line for each file that a command changed. @param {any} changed */
function changedFiles(changed) {
  if (!changed) return "";
  const lines = changed.files.map((/** @type {{path: string, change: "created" | "modified" | "deleted"}} */ it) => `${MARKS[it.change] ?? "~"} ${JSON.stringify(it.path).slice(1, -1)}`);
  if (changed.more) lines.push(`and ${changed.more.toLocaleString("en")} more`);
  if (changed.incomplete) lines.push("Not all files could be compared.");
  return plain(lines.join("\n"));
}

/** Puts back what an exchange did to files, and says what became of each. */
class Undo extends Component {
  /** @type {{isBusy?: boolean, said?: string[], messageId?: string}} */
  state = {};

  async click() {
    this.setState({ isBusy: true });
    const { undo, message } = this.props;
    try {
      const { files, more, messageId: again } = await undo(message, this.state.messageId);
      const said = files.map((it) => `${JSON.stringify(it.path).slice(1, -1)}: ${it.outcome === "reverted" ? "put back" : `${it.outcome === "partly" ? "put back in part" : "left"}, ${it.message ?? it.reason}`}`);
      if (more) said.push(`and ${more.toLocaleString("en")} more that commands changed`);
      // What was undone can be done again, and so on.
      this.setState({ isBusy: false, said, messageId: again ?? this.state.messageId });
    } catch (error) {
      this.setState({ isBusy: false, said: [error instanceof Error ? error.message : String(error)] });
    }
  }

  render() {
    const { isBusy, said, messageId } = this.state;
    return h("div", { class: "undo", "data-done": messageId }, [
      h("button", { type: "button", class: "quiet small", disabled: isBusy, onClick: () => void this.click() }, messageId ? "Undo that" : "Undo changes of files"),
      said && h("pre", { class: "result", role: "status", tabindex: 0, "aria-label": "What became of the files" }, plain(said.join("\n"))),
    ]);
  }
}

class Result extends Component {
  state = { isAll: false };

  render(/** @type {any} */ { text }) {
    const isCut = text.length > SHOWN_RESULT && !this.state.isAll;
    return [
      h("pre", { class: "result", tabindex: 0, "aria-label": "Result" }, isCut ? text.slice(0, SHOWN_RESULT) : text),
      isCut && h("button", { type: "button", class: "quiet small", onClick: () => this.setState({ isAll: true }) }, `Show all ${text.length.toLocaleString("en")} characters`),
    ];
  }
}

/** @param {any} message @param {Actions} actions @param {boolean} isLast @param {string} words */
function foot(message, actions, isLast, words) {
  const parts = [];
  if (message.waits) parts.push(h("p", { class: "aside" }, message.waits));
  else if (message.status === "queued") {
    parts.push(h("p", { class: "aside" }, message.position === undefined ? "on its way" : `waits, place ${message.position} in the queue`));
  }
  if (message.retry) {
    const { attempt, delayMs, reason } = message.retry;
    parts.push(h("p", { class: "aside warn" }, `The provider failed (${exposed(reason)}); attempt ${attempt} in ${duration(delayMs)}.`));
  }
  const buttons = [];
  if (message.error) {
    const { title, needsSettings, mayRetry } = describeError(message.error);
    const { code, message: text, hint } = message.error;
    parts.push(h("div", { class: "error", "data-code": code }, h("strong", {}, title), h("p", {}, exposed(text)), hint && h("p", { class: "hint" }, exposed(hint))));
    if (isLast && mayRetry) buttons.push(h("button", { type: "button", class: "quiet small", onClick: actions.retry }, "Try again"));
    if (isLast && needsSettings) buttons.push(h("button", { type: "button", class: "quiet small", onClick: actions.openSettings }, "Open Settings"));
  }
  if (isLast && message.end?.stopReason === "sandbox_violation") {
    buttons.push(h("button", { type: "button", class: "primary small", title: "Sends “Go on, without that path.”", onClick: actions.goOn }, "Go on"));
  }
  if (buttons.length) parts.push(h("div", { class: "buttons" }, buttons));
  const isDone = message.status === "done";
  // A history has no differences.
  const changed = (/** @type {any} */ it) => it.metadata?.diff || (message.place !== undefined && WRITERS.has(it.toolName));
  const wrote = message.blocks.some((/** @type {any} */ it) => it.type === "tool_call" && it.status === "success" && changed(it));
  if (isDone && wrote && actions.undo) parts.push(h(Undo, { key: "undo", undo: actions.undo, message }));
  const facts = message.end ? describeEnd(message.end) : "";
  if (isDone && message.role !== "user" && (words || facts || actions.fork)) {
    const does = (/** @type {string} */ label, /** @type {string} */ title, /** @type {() => void} */ onClick) => h("button", { type: "button", class: "act kept", title, onClick }, label);
    parts.push(
      h(
        "p",
        { class: "aside ending" },
        h("span", {}, facts),
        words && h(CopyButton, { text: () => words, label: "Copy this answer" }),
        actions.again && does("Ask again", "Have it answered anew, in a copy of the session; this answer stays in this one", () => actions.again(message)),
        actions.fork && does("Fork", "Go on from here in a copy of the session", () => actions.fork(message)),
      ),
    );
  }
  return parts;
}
