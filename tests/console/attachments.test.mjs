// Pictures, PDFs and text files: pasted, dropped and chosen, taken away again, sent, and shown; and those of tools.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { idle, say, shot, skip, stories } from "./story.mjs";

const PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
const PDF = readFileSync(join(import.meta.dirname, "../../fixtures/documents/two-pages.pdf"));
const SCRIPT = `
steps:
  - when: { user: look, turn: 0 }
    play: [{ call: { name: file_read, input: { path: dot.gif } } }]
  - when: { user: look, turn: 1 }
    play: [{ text: "A dot." }]
  - play: [{ text: "You said: {user}" }]
`;
const { story } = stories({ script: SCRIPT, files: { "dot.gif": Buffer.from(PIXEL, "base64") } });
const timed = { skip, timeout: 120_000 };

const dot = { name: "dot.gif", type: "image/gif", data: PIXEL };
const fox = { name: "fox.pdf", type: "application/pdf", data: PDF.toString("base64") };
const notes = { name: "notes.rs", type: "", data: Buffer.from("fn main() {}\n").toString("base64") };
const archive = { name: "a.zip", type: "application/zip", data: "UEs=" };

/** Has the page get files, as a paste into the composer or a drop anywhere. */
const bring = (page, kind, files) =>
  page.evaluate(
    ([kind, files]) => {
      const brought = new DataTransfer();
      for (const { name, type, data } of files) {
        const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
        brought.items.add(new File([bytes], name, { type }));
      }
      if (kind === "paste") {
        const paste = new ClipboardEvent("paste", { clipboardData: brought, bubbles: true, cancelable: true });
        document.getElementById("input").dispatchEvent(paste);
      } else {
        document.getElementById("messages").dispatchEvent(new DragEvent("dragover", { dataTransfer: brought, bubbles: true, cancelable: true }));
        document.getElementById("messages").dispatchEvent(new DragEvent("drop", { dataTransfer: brought, bubbles: true, cancelable: true }));
      }
    },
    [kind, files],
  );

const chips = (page) => page.locator("#attached .chip .name").allTextContents();

test("files are pasted and dropped, taken away, and sent with a message", timed, () =>
  story(async (page) => {
    await bring(page, "paste", [dot]);
    await page.locator("#attached .chip").waitFor();
    await bring(page, "drop", [fox, notes, archive]);
    await page.locator(".notice", { hasText: "a.zip is not taken" }).waitFor();
    await page.locator("#attached .chip", { hasText: "notes.rs" }).waitFor();
    assert.deepEqual(await chips(page), ["dot.gif", "fox.pdf", "notes.rs"]);
    await shot(page, "attached");
    await page.getByRole("button", { name: "Remove notes.rs" }).click();
    assert.deepEqual(await chips(page), ["dot.gif", "fox.pdf"]);
    await say(page, "what is this?");
    await page.locator(".message.assistant", { hasText: "You said: what is this?" }).waitFor();
    await idle(page);
    assert.ok(await page.locator("#attached").isHidden());
    const mine = page.locator(".message.user");
    assert.equal(await mine.locator(".words").textContent(), "what is this?");
    assert.equal(await mine.locator("img.picture").getAttribute("src"), `data:image/gif;base64,${PIXEL}`);
    assert.match(await mine.locator(".chip").textContent(), /^fox\.pdf/);
    await shot(page, "attachments-sent");
  }));

test("a message may be files alone, chosen by the button", timed, () =>
  story(async (page) => {
    await page.setInputFiles("#files", [{ name: "fox.pdf", mimeType: "application/pdf", buffer: PDF }]);
    await page.locator("#attached .chip").waitFor();
    await page.press("#input", "Enter");
    await page.locator(".message.user .chip", { hasText: "fox.pdf" }).waitFor();
    await page.locator(".message.assistant[data-status=done]").waitFor();
    assert.equal(await page.locator(".message.user .words").count(), 0);
  }));

test("what the daemon cannot read comes back into the composer, with what was typed", timed, () =>
  story(async (page) => {
    await bring(page, "drop", [{ ...fox, data: Buffer.from("%PDF-1.4 and no more").toString("base64") }]);
    await page.locator("#attached .chip").waitFor();
    await say(page, "read it");
    await page.locator(".notice.error", { hasText: "the document \"fox.pdf\" is damaged" }).waitFor();
    assert.deepEqual(await chips(page), ["fox.pdf"]);
    assert.equal(await page.inputValue("#input"), "read it");
    assert.equal(await page.locator(".message").count(), 0);
  }));

test("a picture that a tool returns is shown, and after a reload too", timed, () =>
  story(async (page) => {
    await say(page, "look");
    const shown = async () => {
      // It is closed once it is done.
      await page.locator(".message.assistant", { hasText: "A dot." }).waitFor();
      await page.locator("details.call[data-phase=done]:not([open]) summary").click();
      await page.locator("details.call img.picture").waitFor();
      assert.equal(await page.locator("details.call img.picture").getAttribute("src"), `data:image/gif;base64,${PIXEL}`);
      // The policy of the page lets it be drawn.
      assert.equal(await page.locator("details.call img.picture").evaluate((it) => it.complete && it.naturalWidth), 1);
    };
    await shown();
    await page.reload();
    await shown();
  }));
