// How long there is left for an answer: in words, and as a line that grows shorter.
import { h, setText } from "./dom.js";

export class Deadline {
  /**
   * @param {string | undefined} expiresAt RFC 3339, by the daemon's clock; absent where a question never lapses
   * @param {() => number} skew daemon's clock minus ours, in milliseconds
   */
  constructor(expiresAt, skew) {
    this.left = h("span", { class: "left" });
    const bar = h("span", { class: "fill" });
    this.line = h("span", { class: "deadline", "aria-hidden": "true", hidden: !expiresAt }, bar);
    this.clock = 0;
    if (!expiresAt) return;
    const ends = Date.parse(expiresAt);
    const remaining = () => Math.max(0, ends - Date.now() - skew());
    const began = Math.max(1, remaining());
    const tick = () => {
      const left = remaining();
      setText(this.left, left > 90_000 ? `${Math.ceil(left / 60_000)} min left` : `${Math.ceil(left / 1000)} s left`);
      bar.style.width = `${(100 * left) / began}%`;
      this.left.classList.toggle("soon", left < 10_000);
    };
    tick();
    this.clock = window.setInterval(tick, 500);
  }

  stop() {
    clearInterval(this.clock);
  }
}
