// What a hook of the operator has done to a call, as the question shows it.
import assert from "node:assert/strict";
import test from "node:test";

import { approve, idle, say, skip, stories } from "./story.mjs";

const SCRIPT = `
steps:
  - when: { turn: 0 }
    play: [{ call: { name: bash, input: { command: "echo asked" } } }]
  - when: { turn: 1 }
    play: [{ text: "It said: {result}" }]
`;
const ANSWER = JSON.stringify({ input: { command: "echo changed" } });
const config = {
  hooks: { safer: { on: "before_tool", tools: ["bash"], command: "/bin/sh", args: ["-c", `cat > /dev/null; echo '${ANSWER}'`] } },
};
const { story } = stories({ script: SCRIPT, files: {}, config, environment: { OUTRIGGER_CHAT__TRUST_LEVEL: "supervised" } });

test("the question names the hook that changed the input", { skip, timeout: 120_000 }, () =>
  story(async (page) => {
    await say(page, "go");
    const changed = page.locator("#approval .changed");
    await changed.waitFor();
    assert.match(await changed.textContent(), /hook changed the input: safer/);
    assert.match(await page.locator("#approval").textContent(), /echo changed/);
    await approve(page);
    await page.locator(".message.assistant .foot .ending").waitFor();
    await idle(page);
    assert.match(await page.locator(".message.assistant").last().textContent(), /changed/);
  }));
