// Keeps open questions from lapsing while somebody is at them: as long as they are on the screen and the
// window has the focus, the daemon is asked for more time.

/** How often at most, in milliseconds. */
const EVERY = 10_000;
/** How often it is looked whether it is time, in milliseconds. */
const LOOK = 1_000;

export class Attention {
  /**
   * @param {(type: any, payload: any) => Promise<any>} ask
   * @param {() => void} changed a deadline has moved
   */
  constructor(ask, changed) {
    this.ask = ask;
    this.changed = changed;
    /** Whether the daemon knows the request; an older one does not, and its questions lapse as ever. */
    this.isKnown = true;
    /** @type {{key: string, payload: {toolId: string, requestId?: string, host?: string}, expiresAt: string, isSending: boolean, sentAt: number}[]} */
    this.questions = [];
    /** Deadlines that were moved, by question. @type {Map<string, string>} */
    this.moved = new Map();
    this.skew = 0;
    window.setInterval(() => this.#look(), LOOK);
  }

  /** A new connection, perhaps to another daemon. */
  begin() {
    this.isKnown = true;
  }

  /** What is open now, all of it: who answers the first cannot answer the next before. @param {any[]} approvals @param {any[]} inputs @param {number} skew */
  show(approvals, inputs, skew) {
    this.skew = skew;
    const now = [...approvals, ...inputs].filter((it) => it.expiresAt);
    this.questions = now.map((it) => {
      const known = this.questions.find((other) => other.key === keyOf(it));
      const payload = {
        toolId: it.toolId,
        ...(it.requestId !== undefined && { requestId: it.requestId }),
        ...(it.host !== undefined && { host: it.host }),
      };
      return { key: keyOf(it), payload, isSending: false, sentAt: Date.now(), ...known, expiresAt: this.deadline(it) };
    });
    for (const key of this.moved.keys()) if (!this.questions.some((it) => it.key === key)) this.moved.delete(key);
  }

  /** When a question lapses. @param {any} question */
  deadline(question) {
    const moved = this.moved.get(keyOf(question));
    return moved !== undefined && moved > question.expiresAt ? moved : question.expiresAt;
  }

  /** The daemon moved a deadline, for this window or for another. @param {{toolId: string, requestId?: string, host?: string, expiresAt: string}} it */
  extended(it) {
    this.moved.set(keyOf(it), it.expiresAt);
    this.changed();
  }

  #look() {
    if (!this.isKnown || document.hidden || !document.hasFocus()) return;
    for (const it of this.questions) {
      const left = Date.parse(it.expiresAt) - Date.now() - this.skew;
      if (it.isSending || left <= 0 || Date.now() - it.sentAt < Math.min(EVERY, left / 2)) continue;
      it.isSending = true;
      it.sentAt = Date.now();
      void this.ask("chat:tool-extend", it.payload)
        .then((answer) => this.extended({ ...it.payload, expiresAt: answer.expiresAt }))
        .catch((error) => {
          if (error.code === "unknown_type") this.isKnown = false;
        })
        .finally(() => (it.isSending = false));
    }
  }
}

/** @param {{toolId: string, requestId?: string, host?: string}} it */
const keyOf = (it) => `${it.toolId} ${it.requestId ?? ""} ${it.host ?? ""}`;
