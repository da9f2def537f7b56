// Buttons that copy a text.
import { Component, h } from "preact";

/** How long a button says that it has copied, in milliseconds. */
const SAID = 1_500;

/** Copies a text; false where the browser does not let a page do it. @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS there is no clipboard but on this machine; the old way needs a field and a selection.
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "hidden";
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    document.body.append(field);
    field.select();
    const isDone = document.execCommand("copy");
    field.remove();
    before?.focus();
    return isDone;
  }
}

/** Properties: `text`, a function that returns it; `label` for who does not see the button. */
export class CopyButton extends Component {
  state = { said: "" };
  timer = 0;

  componentWillUnmount() {
    clearTimeout(this.timer);
  }

  async click() {
    const isDone = await copy(this.props.text());
    this.setState({ said: isDone ? "Copied" : "Not allowed" });
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.setState({ said: "" }), SAID);
  }

  render(/** @type {any} */ { label }) {
    return h("button", { type: "button", class: "copy", "aria-label": label, title: label, onClick: () => void this.click() }, this.state.said || "Copy");
  }
}
