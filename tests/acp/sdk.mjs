// The protocol's own SDK as a client. Its validators refuse what is not as the protocol says.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import test from "node:test";
import * as acp from "@agentclientprotocol/sdk";

const program = process.env.OUTRIGGER;
const here = import.meta.dirname;

/** A folder with a project and a configuration; `more` is put on top of it. */
function folder(more = {}) {
  const place = mkdtempSync(join(tmpdir(), "outrigger-acp-"));
  mkdirSync(join(place, "project"));
  writeFileSync(join(place, "project", "a.txt"), "hello\n");
  const config = {
    project: { root: join(place, "project"), central: join(place, "central") },
    store: { path: join(place, "state", "outrigger.db") },
    chat: { provider: "script" },
    providers: { script: { kind: "scripted", script: join(here, "script.yaml") } },
    ...more,
  };
  writeFileSync(join(place, "config.json"), JSON.stringify(config));
  return place;
}

/** Runs `work` with a client on an agent of its own; `decide` answers questions. */
async function withAgent(place, decide, work) {
  const child = spawn(program, ["acp", "--config", join(place, "config.json")], {
    stdio: ["pipe", "pipe", "ignore"],
    cwd: join(place, "project"),
    env: { ...process.env, HOME: place },
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const updates = [];
  let began;
  const hasBegun = new Promise((resolve) => (began = resolve));
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const client = acp
    .client({ name: "sdk-test" })
    .onNotification(acp.methods.client.session.update, ({ params: { update } }) => {
      updates.push(update);
      if (update.sessionUpdate === "agent_message_chunk") began();
    })
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => decide(params));
  try {
    const outcome = await client.connectWith(stream, async (agent) => {
      const ask = (method, params) => agent.request(method, params);
      await ask(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
      return work({ ask, updates, hasBegun, notify: (method, params) => agent.notify(method, params), cwd: join(place, "project") });
    });
    child.stdin.end();
    assert.equal(await ended, 0, "the agent's exit code");
    return outcome;
  } finally {
    child.kill("SIGKILL");
  }
}

const { session } = acp.methods.agent;
const open = async ({ ask, cwd }, mcpServers = []) => (await ask(session.new, { cwd, mcpServers })).sessionId;
const prompt = ({ ask }, sessionId, text) =>
  ask(session.prompt, { sessionId, prompt: [{ type: "text", text }] });
const said = (updates) =>
  updates.filter((it) => it.sessionUpdate === "agent_message_chunk").map((it) => it.content.text).join("");
const choose = (kind) => ({ options }) => ({
  outcome: { outcome: "selected", optionId: options.find((it) => it.kind === kind).optionId },
});
const never = () => new Promise(() => {});

test("text is streamed and two calls run side by side", async () => {
  await withAgent(folder(), never, async (agent) => {
    const id = await open(agent);
    const { stopReason } = await prompt(agent, id, "two calls");
    assert.equal(stopReason, "end_turn");
    assert.match(said(agent.updates), /I look\.Both are done\./);
    assert.equal(agent.updates.filter((it) => it.sessionUpdate === "tool_call").length, 2);
    const done = agent.updates.filter((it) => it.sessionUpdate === "tool_call_update" && it.status === "completed");
    assert.equal(done.length, 2);
  });
});

test("a call is allowed, denied, and lapses", async () => {
  for (const [decide, more, words, there] of [
    [choose("allow_once"), {}, "It is written.", true],
    [choose("reject_once"), {}, "It was refused.", false],
    [never, { approval: { timeout: "1s" } }, "It was refused.", false],
  ]) {
    const place = folder(more);
    await withAgent(place, decide, async (agent) => {
      const id = await open(agent);
      await prompt(agent, id, "write");
      assert.match(said(agent.updates), new RegExp(words));
    });
    assert.equal(existsSync(join(place, "project", "b.txt")), there);
  }
});

test("a turn is cancelled", async () => {
  await withAgent(folder(), never, async (agent) => {
    const id = await open(agent);
    const ended = prompt(agent, id, "wait");
    await agent.hasBegun;
    await agent.notify(session.cancel, { sessionId: id });
    assert.equal((await ended).stopReason, "cancelled");
  });
});

test("a picture is taken", async () => {
  await withAgent(folder(), never, async (agent) => {
    const id = await open(agent);
    const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    const content = [{ type: "text", text: "look" }, { type: "image", mimeType: "image/png", data }];
    const { stopReason } = await agent.ask(session.prompt, { sessionId: id, prompt: content });
    assert.equal(stopReason, "end_turn");
  });
});

test("an earlier session is loaded by another process", async () => {
  const place = folder();
  const [id, first] = await withAgent(place, never, async (agent) => {
    const id = await open(agent);
    await prompt(agent, id, "hello there");
    return [id, said(agent.updates)];
  });
  await withAgent(place, never, async (agent) => {
    const { sessions } = await agent.ask(session.list, { cwd: agent.cwd });
    assert.deepEqual(sessions.map((it) => it.sessionId), [id]);
    await agent.ask(session.load, { sessionId: id, cwd: agent.cwd, mcpServers: [] });
    assert.equal(said(agent.updates), first);
    assert.equal((await prompt(agent, id, "and on")).stopReason, "end_turn");
  });
});

test("a server that the client names serves its session", async () => {
  const server = { name: "given", command: process.execPath, args: [join(here, "server.mjs")], env: [] };
  await withAgent(folder({ chat: { provider: "script", trust_level: "autonomous" } }), choose("allow_once"), async (agent) => {
    const id = await open(agent, [server]);
    await prompt(agent, id, "given server");
    assert.match(said(agent.updates), /heard: over there/);
  });
});

test("errors are errors of the protocol", async () => {
  await withAgent(folder({ providers: { script: { kind: "scripted", script: join(here, "script.yaml"), max_retries: 0 } } }), never, async (agent) => {
    const id = await open(agent);
    await assert.rejects(prompt(agent, id, "down"), (error) => error.code === -32603 && /busy/.test(JSON.stringify(error.data)));
    await assert.rejects(prompt(agent, "nobody", "hi"), (error) => error.code === -32002);
    assert.equal((await prompt(agent, id, "still there?")).stopReason, "end_turn");
  });
});
