// The client against the real daemon, which plays a script.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import test from "node:test";

import { Client, emptyView, memoryStore, reduce, textOf, withHistory } from "../dist/index.js";
import { Daemon } from "../../../tests/console/support.mjs";

const SCRIPT = `
chunk: 4
steps:
  - when: { user: run, turn: 0 }
    play:
      - thinking: I run it.
      - call: { name: bash, input: { command: "echo one; echo two" } }
  - when: { user: hang, turn: 0 }
    play:
      - call: { name: bash, input: { command: "echo begun; sleep 60" } }
  - when: { user: slow }
    play: [{ text: "first " }, { pause: 400ms }, { text: "second" }]
  - when: { tool: bash }
    play: [{ text: "I was told: {result}" }]
  - play: [{ text: "You said: {user}" }]
`;

class Story {
  static async begin(options = {}) {
    const daemon = await Daemon.start({ script: SCRIPT });
    const client = new Client({ url: daemon.ready.url, token: daemon.token, pause: { first: 5, longest: 20 }, ...options });
    const story = Object.assign(new Story(), { daemon, client, view: emptyView(), seqs: [] });
    client.on("frame", (frame) => {
      story.view = reduce(story.view, frame);
      if (frame.seq !== undefined) story.seqs.push(frame.seq);
    });
    await client.connect();
    return story;
  }
  next(type) {
    return new Promise((done) => {
      const stop = this.client.on(type, (payload) => {
        stop();
        done(payload);
      });
    });
  }
  get blocks() {
    return this.view.conversations.default.messages.at(-1).blocks;
  }
  async end() {
    this.client.close();
    await this.daemon.end();
  }
}

test("an exchange with an approval, block by block", async () => {
  const story = await Story.begin();
  const asked = story.next("chat:tool-confirm");
  const sent = await story.client.send("run it");
  assert.equal(sent.state, "started");
  const { toolId, toolName } = await asked;
  assert.equal(toolName, "bash");
  const ended = story.next("chat:stream-end");
  assert.deepEqual(await story.client.approve(toolId), { toolId, accepted: true });
  assert.equal((await ended).stopReason, "end_turn");
  const [thinking, call, text] = story.blocks;
  assert.equal(thinking.text, "I run it.");
  assert.deepEqual([call.status, call.output, call.input], ["success", "one\ntwo\n", { command: "echo one; echo two" }]);
  assert.match(text.text, /^I was told: one\ntwo/);
  await story.end();
});

test("a call is denied with a reason, and one is cancelled", async () => {
  const story = await Story.begin();
  let asked = story.next("chat:tool-confirm");
  let ended = story.next("chat:stream-end");
  await story.client.send("run it");
  await story.client.deny((await asked).toolId, "not today");
  await ended;
  assert.equal(story.blocks[1].status, "error");
  assert.match(story.blocks[1].result, /not today/);

  asked = story.next("chat:tool-confirm");
  ended = story.next("chat:stream-end");
  const begun = story.next("chat:tool-delta");
  await story.client.send("hang");
  await story.client.approve((await asked).toolId);
  await begun;
  const { cancelled, toolIds } = await story.client.cancel();
  assert.deepEqual([cancelled, toolIds.length], [true, 1]);
  assert.equal((await ended).stopReason, "cancelled");
  assert.equal(story.blocks.at(-1).metadata.cancelled, true);
  await story.end();
});

test("the same id is run once", async () => {
  const story = await Story.begin();
  const ended = story.next("chat:stream-end");
  const first = await story.client.send("hello", { id: "once" });
  await ended;
  const again = await story.client.send("hello", { id: "once" });
  assert.deepEqual([again.messageId, again.duplicate], [first.messageId, true]);
  await story.end();
});

test("a socket that breaks in the middle of an answer loses and repeats nothing", async () => {
  const sockets = [];
  class Breakable extends WebSocket {
    constructor(...values) {
      super(...values);
      sockets.push(this);
    }
  }
  const story = await Story.begin({ WebSocket: Breakable });
  const delta = story.next("chat:text-delta");
  const ended = story.next("chat:stream-end");
  await story.client.send("slow");
  await delta;
  sockets[0].close();
  await ended;
  assert.equal(sockets.length, 2);
  assert.equal(story.blocks[0].text, "first second");
  assert.deepEqual(story.seqs, story.seqs.map((_, at) => at + 1));
  await story.end();
});

test("a client that comes later sees the whole session", async () => {
  const story = await Story.begin();
  const ended = story.next("chat:stream-end");
  await story.client.send("hello");
  await ended;
  const { sessionId } = story.client.session;
  const later = new Client({ url: story.daemon.ready.url, token: story.daemon.token, session: { sessionId, lastSeq: 0 } });
  let view = emptyView();
  later.on("frame", (frame) => (view = reduce(view, frame)));
  const taken = new Promise((done) => story.client.on("status", (status) => status.name === "closed" && done(status.code)));
  assert.equal((await later.connect()).resumed, true);
  await later.request("session:ping", {});
  assert.equal(view.conversations.default.messages[0].blocks[0].text, "You said: hello");
  assert.equal(await taken, 4001, "the first one learns of it");
  const { messages } = await later.request("chat:history", { conversationId: "default" });
  assert.deepEqual(messages.map((it) => textOf(it.content)), ["hello", "You said: hello"]);
  later.close();
  await story.end();
});

test("a daemon that was restarted is a new session, and a wrong token is said", async () => {
  const daemon = await Daemon.start({ script: SCRIPT, token: "the-same-token-both-times" });
  const client = new Client({ url: daemon.ready.url, token: daemon.token, pause: { first: 5, longest: 50 } });
  await client.connect();
  const lost = new Promise((done) => client.on("session-lost", done));
  await daemon.end(true);
  const again = await Daemon.start({ script: SCRIPT, token: daemon.token, port: daemon.port, place: daemon.place });
  assert.equal((await lost).resumed, false);
  assert.equal((await client.send("hello")).state, "started");
  client.close();
  const wrong = new Client({ url: again.ready.url, token: "wrong" });
  await assert.rejects(wrong.connect(), /token/);
  await again.end();
});

test("the tour shows everything that a frontend has to show", async () => {
  const daemon = await Daemon.start({ files: { "README.md": "# Demo\n\nthe one file\n" } });
  const client = new Client({ url: daemon.ready.url, token: daemon.token });
  let view = emptyView();
  const seen = new Set();
  const asked = [];
  client.on("frame", (frame) => {
    view = reduce(view, frame);
    seen.add(frame.type === "chat:state" ? `state ${frame.payload.state}` : frame.type);
  });
  client.on("chat:tool-confirm", ({ toolId, toolName, input }) => {
    asked.push(toolName);
    const isToDeny = String(input.command).includes("--force");
    void (isToDeny ? client.deny(toolId, "not today") : client.approve(toolId));
  });
  await client.connect();
  const ended = new Promise((done) => client.on("chat:stream-end", done));
  await client.send("tour");
  assert.equal((await ended).stopReason, "end_turn");
  assert.deepEqual(asked, ["file_write", "file_edit", "bash", "bash", "bash"]);
  for (const one of ["chat:thinking-delta", "chat:tool-delta", "chat:turn-discarded", "state retrying", "chat:usage"]) assert.ok(seen.has(one), one);
  const { messages, context } = view.conversations.default;
  const { blocks } = messages.at(-1);
  const calls = blocks.filter((block) => block.type === "tool_call");
  assert.deepEqual(calls.map((call) => call.toolName), ["file_read", "file_search", ...asked]);
  assert.deepEqual(calls.map((call) => call.status), ["success", "success", "success", "success", "success", "error", "success"]);
  assert.match(calls[3].metadata.diff, /^\+It may be deleted, and/m);
  assert.match(calls[4].output, /step 5 of 5/);
  assert.match(calls[5].result, /not today/);
  assert.ok(!blocks.some((block) => block.type === "text" && block.text.includes("breaks off in the mid")), "the discarded turn is gone");
  assert.match(blocks.at(-1).text, /What you have seen/);
  assert.equal(context.window, 32_768);
  client.close();
  await daemon.end();
});

test("an error of the daemon is an error with its code", async () => {
  const story = await Story.begin();
  await assert.rejects(story.client.configure({ provider: "nobody" }), { code: "provider_not_found" });
  await assert.rejects(story.client.approve("t99"), { code: "approval_not_found" });
  await pause(0);
  await story.end();
});

test("sessions are listed, named, put away, forked, opened and deleted", async () => {
  const story = await Story.begin();
  const { client } = story;
  for (const words of ["one", "two"]) {
    const ended = story.next("chat:stream-end");
    await client.send(words);
    await ended;
  }
  const first = client.session.sessionId;
  await client.renameSession("Counting");
  const { sessionId } = await client.forkSession({ before: 2 });
  story.view = emptyView();
  assert.equal((await client.openSession(sessionId)).resumed, true);
  story.view = withHistory(story.view, await client.history());
  const words = () => story.view.conversations.default.messages.map((it) => it.blocks[0].text);
  assert.deepEqual(words(), ["one", "You said: one"]);
  const file = await client.exportSession();
  assert.match(await client.exportSession("markdown"), /You said: one/);
  const imported = await client.importSession(file);
  assert.equal(imported.messages, 2);
  await client.labelSession(["copy"], imported.sessionId);
  assert.deepEqual((await client.listSessions({ labels: ["copy"] })).sessions.map((it) => it.sessionId), [imported.sessionId]);
  await client.deleteSession(imported.sessionId);
  await assert.rejects(client.importSession(file.slice(0, -9)), { code: "invalid_payload" });
  assert.deepEqual((await client.fileChanges()).changes, []);
  await assert.rejects(client.revertFiles({ toolId: "t99" }), { code: "tool_not_found" });
  assert.match((await client.exportCalls({ format: "csv", scope: "daemon" })).text, /^toolId|tool/);
  const { sessions } = await client.listSessions({ query: "count" });
  assert.deepEqual(sessions.map((it) => [it.sessionId, it.title]), [[sessionId, "Counting"], [first, "Counting"]]);
  await client.archiveSession(true, first);
  assert.deepEqual((await client.listSessions({ archived: true })).sessions.map((it) => it.sessionId), [first]);
  await assert.rejects(client.deleteSession(sessionId), { code: "invalid_payload" });
  await client.deleteSession(first);
  await assert.rejects(client.openSession(first), { code: "session_not_found" });
  await story.end();
});

test("a client with a store goes on after its daemon was started anew", async () => {
  const daemon = await Daemon.start({ script: SCRIPT });
  const store = memoryStore();
  const of = (it) => ({ url: it.ready.url, token: it.token, store });
  const first = new Client(of(daemon));
  await first.connect();
  const ended = new Promise((done) => first.on("chat:stream-end", done));
  await first.send("hello");
  await ended;
  first.close();
  await daemon.end(true);
  const again = await Daemon.start({ script: SCRIPT, place: daemon.place });
  const second = new Client(of(again));
  let view = emptyView();
  second.on("frame", (frame) => (view = reduce(view, frame)));
  const { resumed, epoch } = await second.connect();
  assert.deepEqual([resumed, epoch], [true, 2]);
  await second.request("session:ping", {});
  assert.deepEqual(view.conversations.default.messages.map((it) => [it.role, it.blocks[0].text]), [["user", "hello"], ["assistant", "You said: hello"]]);
  second.close();
  await again.end();
});
