// Every frame, both ways, as it went over the wire. The newest are kept, each up to a length.
import { el, setText } from "./dom.js";
import { exposed } from "./visible.js";

/** Frames that are kept. */
const MOST_FRAMES = 1_000;
/** Characters of one frame that are kept. */
const MOST_CHARS = 64 * 1024;
/** How often the list is drawn while frames come, in milliseconds. */
const DRAW_EVERY = 200;
/** Rows that are drawn. */
const ROWS = 300;

export class Inspector {
  /** @param {HTMLElement} element @param {() => void} close */
  constructor(element, close) {
    /** @type {{number: number, direction: string, type: string, seq: string, text: string}[]} */
    this.frames = [];
    this.count = 0;
    this.isPaused = false;
    this.timer = 0;
    this.total = el("span", { class: "aside" });
    this.filter = el("input", { type: "search", placeholder: "Filter by type or text", "aria-label": "Filter frames", oninput: () => this.#draw() });
    this.pause = el("button", { type: "button", class: "quiet small", "aria-pressed": "false", onclick: () => this.#pause() }, "Pause");
    this.list = el("ol", { class: "frames", tabindex: "0", "aria-label": "Frames, newest first" });
    this.element = element;
    element.append(
      el("div", { class: "panel-head" }, el("h2", {}, "Frames"), this.total, el("button", { type: "button", class: "quiet", "aria-label": "Close frames", onclick: close }, "✕")),
      el("div", { class: "panel-tools" }, this.filter, this.pause, el("button", { type: "button", class: "quiet small", onclick: () => this.#clear() }, "Clear")),
      this.list,
    );
  }

  /** @param {"in" | "out"} direction @param {string} text */
  add(direction, text) {
    this.count += 1;
    if (this.isPaused) return;
    this.frames.push({
      number: this.count,
      direction,
      type: /"type":"([^"]{1,60})"/.exec(text.slice(0, 200))?.[1] ?? "?",
      seq: /"seq":(\d+)/.exec(text.slice(0, 200))?.[1] ?? "",
      // A key that was just typed in is not put on show.
      text: masked(text.slice(0, MOST_CHARS)) + (text.length > MOST_CHARS ? `… ${text.length - MOST_CHARS} more characters` : ""),
    });
    if (this.frames.length > MOST_FRAMES * 1.2) this.frames.splice(0, this.frames.length - MOST_FRAMES);
    if (!this.element.hidden && !this.timer) {
      this.timer = window.setTimeout(() => {
        this.timer = 0;
        this.#draw();
      }, DRAW_EVERY);
    }
  }

  open() {
    this.#draw();
    this.filter.focus();
  }

  #draw() {
    setText(this.total, `${this.count.toLocaleString("en")} so far, the last ${Math.min(this.frames.length, MOST_FRAMES)} kept`);
    const wanted = this.filter.value.toLowerCase();
    const rows = [];
    const drawn = new Map([...this.list.children].map((row) => [row.dataset.number, row]));
    for (let at = this.frames.length - 1; at >= 0 && rows.length < ROWS; at--) {
      const frame = /** @type {any} */ (this.frames[at]);
      if (wanted && !frame.text.toLowerCase().includes(wanted)) continue;
      rows.push(drawn.get(String(frame.number)) ?? row(frame));
    }
    this.list.replaceChildren(...rows);
  }

  #pause() {
    this.isPaused = !this.isPaused;
    this.pause.setAttribute("aria-pressed", String(this.isPaused));
    setText(this.pause, this.isPaused ? "Go on" : "Pause");
  }

  #clear() {
    this.frames = [];
    this.#draw();
  }
}

function row(/** @type {any} */ frame) {
  const body = el("pre", { tabindex: "0" });
  const details = el(
    "details",
    {},
    el(
      "summary",
      {},
      el("span", { class: "arrow", title: frame.direction === "out" ? "sent" : "received" }, frame.direction === "out" ? "→" : "←"),
      el("span", { class: "kind" }, frame.type),
      el("span", { class: "seq" }, frame.seq),
      el("span", { class: "peek" }, exposed(frame.text.slice(0, 160))),
    ),
    body,
  );
  details.addEventListener("toggle", () => {
    if (!details.open || body.textContent) return;
    let text = frame.text;
    try {
      text = JSON.stringify(JSON.parse(frame.text), null, 2);
    } catch {
      // Cut, or no JSON: shown as it is.
    }
    body.textContent = exposed(text);
  });
  return el("li", { class: frame.direction, "data-number": frame.number }, details);
}

/** @param {string} text */
function masked(text) {
  return text.includes("apiKey") ? text.replace(/"apiKey":"(?:[^"\\]|\\.)*"?/g, '"apiKey":"***"') : text;
}

