// A question that has just appeared takes no click and no key: they were meant for what was there before.

/** How long, in milliseconds. Longer than a double click is apart, shorter than anybody reads. */
const QUIET = 700;
const KINDS = ["pointerdown", "mousedown", "click", "auxclick", "submit", "keydown"];

export class Guard {
  /** @param {HTMLElement} element what the question is shown in */
  constructor(element) {
    this.element = element;
    this.until = -Infinity;
    this.timer = 0;
    for (const kind of KINDS) {
      element.addEventListener(
        kind,
        (event) => {
          // Reading goes on: the focus may be moved.
          if (!this.isQuiet || (event instanceof KeyboardEvent && event.key === "Tab")) return;
          event.preventDefault();
          event.stopImmediatePropagation();
        },
        true,
      );
    }
  }

  /** Whether nothing counts yet. */
  get isQuiet() {
    return performance.now() < this.until;
  }

  /** A new question is shown. */
  begin() {
    this.until = performance.now() + QUIET;
    this.element.dataset.new = "";
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.#end(), QUIET);
  }

  #end() {
    // A timer may be early by a part of a millisecond.
    if (this.isQuiet) this.timer = window.setTimeout(() => this.#end(), 10);
    else delete this.element.dataset.new;
  }
}
