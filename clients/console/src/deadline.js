// How long there is left for an answer: in words, and as a line that grows shorter.
import { el, setText } from "./dom.js";

export class Deadline {
  /** @param {() => number} skew daemon's clock minus ours, in milliseconds */
  constructor(skew) {
    this.skew = skew;
    this.left = el("span", { class: "left" });
    this.bar = el("span", { class: "fill" });
    this.line = el("span", { class: "deadline", "aria-hidden": "true", hidden: true }, this.bar);
    this.clock = 0;
    /** @type {string | undefined} */
    this.expiresAt = undefined;
    this.whole = 1;
  }

  /** @param {string | undefined} expiresAt RFC 3339, by the daemon's clock; absent where a question never lapses */
  set(expiresAt) {
    if (expiresAt === this.expiresAt) return;
    this.expiresAt = expiresAt;
    clearInterval(this.clock);
    this.line.hidden = !expiresAt;
    if (!expiresAt) return;
    this.whole = Math.max(1, this.#remaining());
    this.#tick();
    this.clock = window.setInterval(() => this.#tick(), 500);
  }

  stop() {
    clearInterval(this.clock);
  }

  #remaining() {
    return Math.max(0, Date.parse(this.expiresAt ?? "") - Date.now() - this.skew());
  }

  #tick() {
    const left = this.#remaining();
    setText(this.left, left > 90_000 ? `${Math.ceil(left / 60_000)} min left` : `${Math.ceil(left / 1000)} s left`);
    this.bar.style.width = `${(100 * left) / this.whole}%`;
    this.left.classList.toggle("soon", left < 10_000);
  }
}
