// What a model hands to another one: its calls are within the call that began it.
import assert from "node:assert/strict";
import test from "node:test";

import { idle, say, shot, skip, stories } from "./story.mjs";

const SCRIPT = `
steps:
  - when: { user: delegate, turn: 0 }
    play: [{ call: { name: task, input: { description: "read the notes", prompt: "explore" } } }]
  - when: { user: delegate, turn: 1 }
    play: [{ text: "It said: {result}" }]
  - when: { user: explore, turn: 0 }
    play: [{ call: { name: file_read, input: { path: notes.md } } }]
  - when: { user: explore, turn: 1 }
    play: [{ text: "they are old" }]
`;
const { story } = stories({ script: SCRIPT, files: { "notes.md": "# Notes\nold\n" } });
const timed = { skip, timeout: 120_000 };

test("the calls of a task are within the call that began it", timed, () =>
  story(async (page) => {
    await say(page, "delegate");
    await page.locator(".message.assistant .foot .ending").waitFor();
    await idle(page);
    const outer = page.locator(".message.assistant > .body > details.call");
    assert.equal(await outer.count(), 1);
    const inner = outer.locator(".task details.call");
    assert.equal(await inner.count(), 1);
    assert.equal(await inner.locator("summary .name").textContent(), "file_read");
    assert.equal(await inner.getAttribute("data-look"), "success");
    assert.match(await outer.textContent(), /2 turns · 1 call/);
    assert.match(await page.locator(".message.assistant").last().textContent(), /It said: they are old/);
    assert.equal(await page.locator(".message.assistant").count(), 1, "a task is no message of its own");
    await outer.locator("summary").first().click();
    await shot(page, "task");
  }));
