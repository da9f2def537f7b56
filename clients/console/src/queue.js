// What waits for its turn, above the composer: each message with what can be done to it. Other pages and programs change
// it, too; the view has what they did.
import { Component, h, render } from "preact";
import { exposed } from "./visible.js";

export class Waiting {
  /**
   * @param {HTMLElement} element
   * @param {(change: {messageId: string, action: string, content?: string, position?: number}) => Promise<boolean>} change false where it failed, and was said
   * @param {() => Promise<any[]>} list the daemon's list
   * @param {(messageId: string, content: string) => void} tell what one says, that nobody knew here
   */
  constructor(element, change, list, tell) {
    this.element = element;
    this.change = change;
    this.list = list;
    this.tell = tell;
    /** Calls that wait, by exchange. @type {Map<string, string>} */
    this.calls = new Map();
    this.asked = "";
  }

  /** @param {any[]} messages of the view @param {boolean} mayChange @param {boolean} mayAsk whether nothing is missing any more */
  show(messages, mayChange, mayAsk) {
    const words = new Map(messages.filter((it) => it.role === "user").map((it) => [it.id, it.blocks[0]?.text]));
    const rows = messages
      .filter((it) => it.role === "assistant" && it.status === "queued" && it.position !== undefined)
      .sort((one, other) => one.position - other.position)
      .map((it) => ({ id: it.id, words: words.get(it.id), toolName: this.calls.get(it.id) }));
    this.element.hidden = rows.length === 0;
    const list = rows.map((row, at) => h(Row, { key: row.id, row, at, change: this.change, mayChange }));
    render(rows.length ? [h("h2", { key: "title" }, rows.length === 1 ? "1 waits" : `${rows.length} wait`), h("ol", { key: "list" }, list)] : null, this.element);
    const unknown = rows.filter((it) => it.words === undefined && it.toolName === undefined);
    const key = unknown.map((it) => it.id).join(" ");
    if (!mayAsk || key === this.asked) return;
    this.asked = key;
    if (key) void this.#ask();
  }

  async #ask() {
    let waiting;
    try {
      waiting = await this.list();
    } catch {
      // It is asked for again when something else waits.
      return;
    }
    this.calls = new Map(waiting.filter((it) => it.toolName).map((it) => [it.messageId, it.toolName]));
    for (const it of waiting) if (!it.toolName) this.tell(it.messageId, it.content);
  }
}

/** One that waits: `row`, its place `at` from 0. */
class Row extends Component {
  state = { isEdited: false, isBusy: false };
  /** @type {any} */
  field = null;

  async act(/** @type {any} */ change) {
    this.setState({ isBusy: true });
    const isDone = await this.props.change({ messageId: this.props.row.id, ...change });
    this.setState({ isBusy: false, isEdited: this.state.isEdited && !isDone });
  }

  save() {
    const content = this.field.value;
    if (content.trim()) void this.act({ action: "edit", content });
  }

  key(/** @type {KeyboardEvent} */ event) {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      // Nothing else is closed or stopped by it.
      event.stopPropagation();
      this.setState({ isEdited: false });
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.save();
    }
  }

  edit() {
    this.setState({ isEdited: true }, () => {
      this.field.value = this.props.row.words;
      this.field.focus();
    });
  }

  render(/** @type {any} */ { row, at, mayChange }) {
    const { isEdited, isBusy } = this.state;
    const button = (/** @type {string} */ label, /** @type {string} */ title, /** @type {() => void} */ onClick, isOff = false) =>
      h("button", { type: "button", class: "quiet small", title, "aria-label": `${label}: place ${at + 1}`, disabled: isOff || isBusy || !mayChange, onClick }, label);
    return h("li", { "data-id": row.id }, [
      isEdited
        ? h("textarea", { "aria-label": `What waits at place ${at + 1}`, rows: 2, ref: (/** @type {any} */ field) => (this.field = field ?? this.field), onKeyDown: (/** @type {KeyboardEvent} */ event) => this.key(event) })
        : h("span", { class: "what" }, row.toolName !== undefined ? `a call of ${exposed(row.toolName)}` : (row.words ?? "…")),
      h("span", { class: "does" }, isEdited
        ? [button("Save", "It waits with these words (Enter)", () => this.save()), button("Cancel", "Leave it as it was (Esc)", () => this.setState({ isEdited: false }))]
        : [
            button("Edit", "Say it otherwise", () => this.edit(), row.words === undefined),
            button("Up", "One place sooner", () => void this.act({ action: "move", position: at }), at === 0),
            button("Send now", "The model gets it with its next step", () => void this.act({ action: "send" })),
            button("Drop", "It waits no longer; what you said yourself is in the message field again", () => void this.act({ action: "remove" })),
          ]),
    ]);
  }
}
