// What goes along with a message: pictures, PDFs and text files, chosen, pasted or dropped.
import { el } from "./dom.js";
import { exposed } from "./visible.js";

/** What the daemon takes, in bytes, and how many of a message; it checks all of it itself. */
const MOST = { image: 3_750_000, pdf: 8_000_000, text: 1_000_000, images: 20, documents: 10 };
/** What all files of a message may have together: a frame holds 16 MiB, and base64 makes four bytes of three. */
const MOST_TOGETHER = 12_000_000;
const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const PDF = "application/pdf";
/** Text files that a browser has another type for, or none. */
const TEXT_TYPES = ["application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript", "application/sql"];
const TEXT_ENDINGS = /\.(md|txt|csv|tsv|log|rs|py|js|mjs|cjs|ts|tsx|jsx|c|h|cc|cpp|hpp|java|kt|go|rb|php|sh|sql|toml|ya?ml|json|xml|html?|css|ini|cfg|conf|diff|patch|tex)$/i;

export class Attachments {
  /** @type {{part: any, name: string, bytes: number}[]} */
  #all = [];

  /** @param {HTMLElement} element @param {(text: string) => void} complain */
  constructor(element, complain) {
    this.element = element;
    this.complain = complain;
  }

  get parts() {
    return this.#all.map(({ part }) => part);
  }

  /** Adds files, as many as are taken; of each other one it says why. @param {Iterable<File>} files */
  async add(files) {
    for (const file of [...files]) {
      const why = this.#refusal(file);
      if (why) {
        this.complain(`${file.name || "That"} ${why}`);
        continue;
      }
      try {
        this.#all.push({ part: await partOf(file), name: file.name || "picture", bytes: file.size });
      } catch {
        this.complain(`${file.name || "That"} could not be read.`);
      }
    }
    this.#draw();
  }

  /** Puts parts back in front of those that were added since. @param {any[]} parts */
  restore(parts) {
    const back = parts.map((part) => ({ part, name: part.name ?? "picture", bytes: sizeOf(part) }));
    this.#all = [...back, ...this.#all];
    this.#draw();
  }

  clear() {
    this.#all = [];
    this.#draw();
  }

  /** @param {File} file @returns {string | undefined} */
  #refusal(file) {
    const sort = sortOf(file);
    if (!sort) return "is not taken: pictures (PNG, JPEG, GIF, WebP), PDFs and text files are.";
    const most = MOST[sort];
    if (file.size > most) return `has ${size(file.size)}; ${size(most)} are allowed.`;
    if (file.size === 0) return "is empty.";
    if (this.#all.reduce((sum, it) => sum + it.bytes, file.size) > MOST_TOGETHER) return `is too much: all together may have ${size(MOST_TOGETHER)}.`;
    const images = this.#all.filter(({ part }) => part.type === "image").length;
    if (sort === "image" && images >= MOST.images) return `is one picture too many: ${MOST.images} are allowed.`;
    if (sort !== "image" && this.#all.length - images >= MOST.documents) return `is one document too many: ${MOST.documents} are allowed.`;
    return undefined;
  }

  #draw() {
    this.element.hidden = this.#all.length === 0;
    this.element.replaceChildren(
      ...this.#all.map((it) => {
        const remove = el("button", { type: "button", class: "quiet small", "aria-label": `Remove ${exposed(it.name)}`, onclick: () => {
          this.#all = this.#all.filter((other) => other !== it);
          this.#draw();
          (/** @type {any} */ (this.element.querySelector("button")) ?? document.getElementById("input")).focus();
        } }, "✕");
        const picture = pictureOf(it.part);
        return el("li", { class: "chip" }, picture && el("img", { src: picture, alt: "" }), el("span", { class: "name" }, exposed(it.name)), el("span", { class: "size" }, size(it.bytes)), remove);
      }),
    );
  }
}

/** @param {File} file @returns {"image" | "pdf" | "text" | undefined} */
function sortOf(file) {
  if (IMAGES.includes(file.type)) return "image";
  if (file.type === PDF) return "pdf";
  // A browser takes `.ts` for a film.
  if (file.type.startsWith("text/") || TEXT_TYPES.includes(file.type) || TEXT_ENDINGS.test(file.name)) return "text";
  return undefined;
}

/** @param {File} file */
async function partOf(file) {
  const sort = sortOf(file);
  if (sort === "image") return { type: "image", mediaType: file.type, data: await base64(file) };
  const name = file.name || undefined;
  const isText = file.type.startsWith("text/") || TEXT_TYPES.includes(file.type);
  const mediaType = sort === "pdf" || isText ? file.type : "text/plain";
  return { type: "document", mediaType, data: await base64(file), ...(name && { name }) };
}

/** @param {Blob} file @returns {Promise<string>} */
function base64(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}

/** The address of a picture that this page shows, or nothing. @param {any} part */
export function pictureOf(part) {
  return part.type === "image" && IMAGES.includes(part.mediaType) ? `data:${part.mediaType};base64,${part.data}` : undefined;
}

/** How large a part is, about, in bytes. @param {any} part */
export function sizeOf(part) {
  return part.data ? Math.floor((part.data.replace(/=+$/, "").length * 3) / 4) : new Blob([part.text ?? ""]).size;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1000)} KB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** The words of a content, without what goes along. @param {any} content */
export function wordsOf(content) {
  if (typeof content === "string") return content;
  return content.filter((/** @type {any} */ part) => part.type === "text").map((/** @type {any} */ part) => part.text).join("\n");
}

/** What goes along with the words of a content. @param {any} content @returns {any[]} */
export function extrasOf(content) {
  return Array.isArray(content) ? content.filter((part) => part.type !== "text") : [];
}
