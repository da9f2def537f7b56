// The window's side: connects, shows answers as they come, asks for approvals.
import { Client, emptyView, reduce, withUserMessage } from "./client/index.js";

const at = (id) => document.getElementById(id);
const client = new Client(await window.outrigger.connection());
let view = emptyView();

/** An element with text in it; never markup. */
function element(tag, text) {
  return Object.assign(document.createElement(tag), { textContent: text });
}

function button(text, press) {
  return Object.assign(element("button", text), { onclick: press });
}

function block(it) {
  if (it.type === "text") return element("p", it.text);
  if (it.type === "tool_call") return element("pre", `${it.toolName} ${it.inputText}: ${it.phase}\n${it.result ?? it.output}`);
  return "";
}

function draw() {
  const messages = view.conversations.default?.messages ?? [];
  at("messages").replaceChildren(
    ...messages.flatMap((it) => [element("h2", it.role), ...it.blocks.map(block), it.error ? element("p", it.error.message) : ""]),
  );
  // All that is asked, before the buttons.
  at("approvals").replaceChildren(
    ...view.approvals.flatMap((confirm) => [
      element("p", `${confirm.toolName}: ${confirm.danger.level}, ${confirm.reason}`),
      element("pre", `${JSON.stringify(confirm.input, null, 2)}\n${confirm.preview ?? ""}`),
      button("Allow", () => client.approve(confirm).catch(failed)),
      button("Deny", () => client.deny(confirm, "the user said no").catch(failed)),
    ]),
  );
}

function failed(error) {
  at("status").textContent = error.message;
}

client.on("status", ({ name }) => (at("status").textContent = name));
client.on("frame", (frame) => {
  const before = view;
  view = reduce(view, frame);
  if (view !== before) draw();
});
at("say").onsubmit = (event) => {
  event.preventDefault();
  const field = event.target.elements.words;
  const words = field.value || "demo";
  field.value = "";
  client.send(words).then(({ messageId }) => {
    view = withUserMessage(view, "default", messageId, words);
    draw();
  }, failed);
};
await client.connect().catch(failed);
