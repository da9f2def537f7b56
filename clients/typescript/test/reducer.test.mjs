import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";

import { OUTPUT_CHARS, emptyView, reduce, reduceAll, textOf, withEarlier, withHistory, withUserMessage } from "../dist/index.js";

const of = { conversationId: "default", messageId: "m1" };
let seq = 0;
const frame = (type, payload) => ({ type, seq: ++seq, timestamp: "2026-11-20T12:00:00.000Z", payload: { ...of, ...payload } });
const text = (content, turn = 0) => frame("chat:text-delta", { turn, index: 0, content });
const start = frame("chat:stream-start", { provider: "p", model: "m" });
const end = frame("chat:stream-end", { stopReason: "end_turn", partial: false, turns: 1, toolCalls: 0, usage: {}, durationMs: 1, costUsd: 0.5 });
const messages = (view) => view.conversations.default.messages;
const blocks = (view) => messages(view).at(-1).blocks;
const danger = { level: "safe", reasons: [] };
const confirm = (toolId) => frame("chat:tool-confirm", { toolId, toolName: "bash", input: { command: "ls" }, danger, reason: "r" });

test("text and thinking of a turn join, those of another begin anew", () => {
  const view = reduceAll(emptyView(), [
    start,
    frame("chat:thinking-delta", { turn: 0, index: 0, content: "a" }),
    frame("chat:thinking-delta", { turn: 0, index: 1, content: "b" }),
    text("one "),
    text("two"),
    text("three", 1),
    end,
  ]);
  assert.deepEqual(blocks(view), [
    { type: "thinking", turn: 0, text: "ab" },
    { type: "text", turn: 0, text: "one two" },
    { type: "text", turn: 1, text: "three" },
  ]);
  assert.equal(messages(view)[0].status, "done");
  assert.equal(view.conversations.default.costUsd, 0.5);
});

test("a command in the background writes to its call, whichever exchange runs", () => {
  const command = { id: "b1", toolId: "t1", command: "npm run dev", startedAt: "2026-11-23T12:00:00.000Z", status: "running" };
  const output = (messageId, toolId, chunk) => frame("chat:tool-delta", { messageId, toolId, chunk, stream: "stdout" });
  const began = [
    start,
    frame("chat:tool-start", { turn: 0, toolId: "t1", toolName: "bash", input: { command: "npm run dev", background: true } }),
    frame("tool:background", { background: command }),
    output("m1", "t1", "a\n"),
    frame("chat:tool-result", { toolId: "t1", toolName: "bash", status: "success", result: "[b1 is running]", durationMs: 3 }),
    end,
    frame("chat:stream-start", { messageId: "m2", provider: "p", model: "m" }),
    output("m2", "t1", "b\n"),
  ];
  const view = reduceAll(emptyView(), began);
  assert.equal(messages(view).length, 2);
  assert.equal(messages(view)[0].blocks[0].output, "a\nb\n");
  assert.deepEqual(messages(view)[1].blocks, []);
  const ended = { ...command, status: "exited", exitCode: 1 };
  const after = reduce(view, frame("tool:background", { background: ended }));
  assert.deepEqual(after.conversations.default.background, [ended]);
  const listens = { ...command, ports: [{ port: 5173 }] };
  const open = reduce(view, frame("tool:port-open", { background: listens, port: 5173 }));
  assert.deepEqual(open.conversations.default.background, [listens]);
  // After a gap its call may not be shown; then neither is what it writes.
  const gap = { type: "session:error", seq: ++seq, timestamp: "", payload: { code: "replay_gap", message: "lost" } };
  const resynced = reduceAll(emptyView(), [gap, frame("tool:background", { background: command }), output("m2", "t1", "c\n")]);
  assert.deepEqual(resynced.conversations.default.messages, []);
  const state = { conversationId: "default", state: "idle", queue: [], background: [ended] };
  const asked = reduce(view, { type: "session:state-result", seq: ++seq, timestamp: "", payload: { conversations: [state], approvals: [] } });
  assert.deepEqual(asked.conversations.default.background, [ended]);
});

test("a call goes from its input to its result", () => {
  const steps = [
    [start, () => {}],
    [frame("chat:tool-input-delta", { turn: 0, toolId: "t1", toolName: "bash", chunk: '{"comm' }), (it) => assert.equal(it.phase, "planned")],
    [frame("chat:tool-input-delta", { turn: 0, toolId: "t1", toolName: "bash", chunk: 'and":"ls"}' }), (it) => assert.equal(it.inputText, '{"command":"ls"}')],
    [confirm("t1"), (it, view) => {
      assert.equal(it.phase, "awaiting-approval");
      assert.deepEqual(view.approvals.map((open) => open.toolId), ["t1"]);
    }],
    [frame("chat:tool-resolved", { toolId: "t1", outcome: "approved", by: "user" }), (it, view) => assert.deepEqual(view.approvals, [])],
    [frame("chat:tool-start", { turn: 0, toolId: "t1", toolName: "bash", input: { command: "ls" } }), (it) => assert.equal(it.phase, "executing")],
    [frame("chat:tool-delta", { toolId: "t1", chunk: "a\n", stream: "stdout" }), (it) => assert.equal(it.output, "a\n")],
    [frame("chat:tool-delta", { toolId: "t1", chunk: "b\n", stream: "stderr" }), (it) => assert.equal(it.status, "running")],
    [frame("chat:tool-result", { toolId: "t1", toolName: "bash", status: "success", result: "a\nb\n", durationMs: 3, metadata: { exitCode: 0 } }), (it) => {
      assert.equal(it.status, "success");
      assert.equal(it.phase, "done");
      assert.deepEqual(it.metadata, { exitCode: 0 });
    }],
  ];
  let view = emptyView();
  for (const [one, check] of steps) {
    view = reduce(view, one);
    check(blocks(view)[0], view);
  }
  assert.equal(blocks(view).length, 1);
});

test("pictures and documents stay with what was said, and pictures with their call", () => {
  const picture = { type: "image", mediaType: "image/gif", data: "R0lGODlhAQABAAAAACw=" };
  const file = { type: "document", mediaType: "application/pdf", name: "a.pdf", data: "JVBERg==", text: "one", pages: 1 };
  const said = [{ type: "text", text: "look" }, picture, file];
  assert.equal(textOf(said), "look\n[image/gif]\n[a.pdf]");
  const result = frame("chat:tool-result", { toolId: "t1", toolName: "file_read", status: "success", result: "[image image/gif]", content: [picture], durationMs: 1 });
  const view = withUserMessage(reduceAll(emptyView(), [start, result, end]), "default", "m1", said);
  assert.deepEqual(blocks(view).at(-1).content, [picture]);
  assert.deepEqual(messages(view)[0].content, said);
  const history = {
    conversationId: "default",
    messages: [
      { role: "user", content: said },
      { role: "assistant", content: "", toolCalls: [{ id: "t1", name: "file_read", input: {} }] },
      { role: "tool", toolCallId: "t1", toolName: "file_read", content: [picture] },
      { role: "user", content: [{ type: "text", text: "so?" }] },
    ],
  };
  const [first, answer, last] = messages(withHistory(emptyView(), history));
  assert.deepEqual([first.content, answer.blocks[0].content, last.content], [said, [picture], undefined]);
});

test("a call without a start is an error, and one that the end finds open is settled", () => {
  const denied = frame("chat:tool-result", { toolId: "t1", toolName: "x", status: "error", result: "no", durationMs: 0 });
  const view = reduceAll(emptyView(), [start, denied, frame("chat:tool-input-delta", { turn: 0, toolId: "t2", toolName: "y", chunk: "" }), end]);
  assert.deepEqual(blocks(view).map((it) => [it.toolId, it.status]), [["t1", "error"], ["t2", "error"]]);
});

test("a discarded turn takes its own blocks alone", () => {
  const view = reduceAll(emptyView(), [start, text("kept"), text("void", 1), frame("chat:turn-discarded", { turn: 1, reason: "r" }), text("again", 1)]);
  assert.deepEqual(blocks(view).map((it) => it.text), ["kept", "again"]);
});

test("retrying is shown until something comes", () => {
  const retrying = frame("chat:state", { state: "retrying", attempt: 2, delayMs: 5, reason: "overloaded" });
  const during = reduceAll(emptyView(), [start, retrying]);
  assert.deepEqual(messages(during)[0].retry, { attempt: 2, delayMs: 5, reason: "overloaded" });
  assert.equal(messages(reduce(during, text("x")))[0].retry, undefined);
});

test("live output is bounded and says what was dropped", () => {
  const chunk = "x".repeat(OUTPUT_CHARS);
  const began = frame("chat:tool-start", { turn: 0, toolId: "t1", toolName: "bash", input: {} });
  const more = frame("chat:tool-delta", { toolId: "t1", chunk, stream: "stdout" });
  const [call] = blocks(reduceAll(emptyView(), [start, began, more, more, more]));
  assert.equal(call.output.length, OUTPUT_CHARS);
  assert.equal(call.outputDropped, 2 * OUTPUT_CHARS);
});

test("the user's words stand before their answer, however late they are told", () => {
  const answered = reduceAll(emptyView(), [start, text("hello")]);
  const view = withUserMessage(answered, "default", "m1", "hi");
  assert.deepEqual(messages(view).map((it) => it.role), ["user", "assistant"]);
  assert.equal(withUserMessage(view, "default", "m1", "hi"), view);
});

test("after a gap the history is what is shown", () => {
  const history = [
    { role: "user", content: "hi" },
    { role: "assistant", content: "let me see", thinking: "hm", toolCalls: [{ id: "t1", name: "bash", input: {} }] },
    { role: "tool", content: "out", toolCallId: "t1", toolName: "bash" },
    { role: "assistant", content: "done" },
  ];
  const view = reduceAll(reduceAll(emptyView(), [start, text("lost")]), [
    { type: "session:error", seq: 1, timestamp: "", payload: { code: "replay_gap", message: "" } },
    { type: "chat:history-result", seq: 2, timestamp: "", payload: { conversationId: "default", messages: history } },
  ]);
  assert.equal(view.gap, true);
  assert.deepEqual(messages(view).map((it) => it.role), ["user", "assistant"]);
  assert.deepEqual(blocks(view).map((it) => it.type), ["thinking", "text", "tool_call", "text"]);
  assert.equal(blocks(view)[2].status, "success");
  const asked = { type: "chat:history-result", seq: 3, replyTo: "x", timestamp: "", payload: { conversationId: "default", messages: [] } };
  assert.equal(reduce(view, asked), view, "an answer that was asked for changes nothing");
});

test("a history that another socket asked for changes nothing", () => {
  const [gap, answer] = [
    { type: "session:error", seq: 1, timestamp: "", payload: { code: "replay_gap", message: "" } },
    { type: "chat:history-result", seq: 2, timestamp: "", payload: { conversationId: "default", messages: [{ role: "user", content: "hi" }] } },
  ];
  const view = reduceAll(emptyView(), [start, text("an answer")]);
  assert.equal(reduce(view, answer), view);
  // After a gap all histories come at once; what comes later is somebody's.
  const retold = reduceAll(view, [gap, answer, start, text("goes on")]);
  assert.deepEqual(messages(retold).map((it) => it.role), ["user", "assistant"]);
  assert.equal(reduce(retold, { ...answer, seq: 9 }), retold);
});

test("after a gap what runs goes on where the history ends, and nothing else seems to run", () => {
  const history = [
    { role: "user", content: "hi" },
    { role: "assistant", content: "let me see", toolCalls: [{ id: "t1", name: "bash", input: {} }] },
  ];
  const at = (type, payload) => ({ type, seq: 1, timestamp: "", payload: { conversationId: "default", ...payload } });
  const before = reduceAll(emptyView(), [start, text("lost"), { ...start, payload: { ...start.payload, conversationId: "closed" } }]);
  const view = reduceAll(before, [
    { type: "session:error", seq: 1, timestamp: "", payload: { code: "replay_gap", message: "" } },
    at("chat:history-result", { messages: history }),
    at("chat:stream-end", { messageId: "m1", stopReason: "end_turn", partial: false, turns: 1, toolCalls: 0, usage: {}, durationMs: 1, costUsd: 2 }),
    at("chat:stream-start", { messageId: "m2", provider: "p", model: "m" }),
    at("chat:tool-start", { messageId: "m2", turn: 0, toolId: "t1", toolName: "bash", input: {} }),
    at("chat:state", { messageId: "m2", state: "tool-executing", toolId: "t1" }),
  ]);
  assert.deepEqual(messages(view).map((it) => [it.id, it.status]), [["h1", "done"], ["m2", "streaming"]]);
  assert.deepEqual(messages(view)[1].blocks.map((it) => [it.type, it.phase]), [["text", undefined], ["tool_call", "executing"]]);
  assert.equal(view.conversations.default.costUsd, 2);
  assert.equal(view.conversations.closed.messages[0].status, "done");
  assert.equal(view.conversations.closed.state, "idle");
});

const user = (content) => ({ role: "user", content });
const model = (content, toolCalls) => ({ role: "assistant", content, ...(toolCalls && { toolCalls }) });
const page = (messages, nextBefore) => ({ conversationId: "default", messages, ...(nextBefore !== undefined && { nextBefore }) });
const shown = (view) => messages(view).map((it) => [it.id, it.blocks.map((block) => block.text ?? textOf(block.content ?? "") ?? block.type).join(" ")]);

test("what the user said elsewhere is drawn from the history, and what runs stays", () => {
  const second = { messageId: "m2", provider: "p", model: "m" };
  const said = (content) => frame("chat:text-delta", { messageId: "m2", turn: 0, index: 0, content });
  const replayed = reduceAll(emptyView(), [start, text("one"), end, frame("chat:stream-start", second), said("half")]);
  const history = page([user("first"), model("one"), user("second")]);
  assert.deepEqual(shown(withHistory(replayed, history)), [["h1", "first"], ["h2", "one"], ["h3", "second"], ["m2", "half"]]);
  assert.deepEqual(messages(withHistory(replayed, history)).map((it) => it.place), [0, 1, 2, undefined]);
  // What a turn of it has said already is in both, and so is what was steered into it.
  const steered = reduce(replayed, frame("chat:steered", { messageId: "m2", content: "and this" }));
  const longer = page([user("first"), model("one"), user("second"), model("half"), user("and this")], 6);
  const view = withHistory(steered, longer);
  assert.deepEqual(shown(view), [["h7", "first"], ["h8", "one"], ["h9", "second"], ["m2", "half and this"]]);
  assert.equal(view.conversations.default.earlier, 6);
  // Words that are here already are not drawn twice.
  const known = withUserMessage(steered, "default", "m2", "second");
  assert.deepEqual(shown(withHistory(known, longer)).map(([id]) => id), ["h7", "h8", "m2", "m2"]);
  // Of an exchange that is longer than the page nothing is drawn above it.
  assert.deepEqual(shown(withHistory(steered, page([model("half"), user("and this")]))).map(([id]) => id), ["m2"]);
  const ended = reduceAll(emptyView(), [start, text("one"), end]);
  assert.deepEqual(shown(withHistory(ended, page([user("first"), model("one")]))), [["h1", "first"], ["h2", "one"]]);
});

test("older pages go above, also where one begins in the middle of an answer", () => {
  const call = { id: "t1", name: "bash", input: { command: "ls" } };
  const result = { role: "tool", content: "out", toolCallId: "t1", toolName: "bash" };
  const whole = [user("a"), model("b"), user("c"), model("d", [call]), result, model("e")];
  const expected = blocks(withHistory(emptyView(), page(whole)));
  for (const cut of [1, 2, 3, 4, 5]) {
    const newest = withHistory(emptyView(), page(whole.slice(cut), cut));
    const view = withEarlier(newest, page(whole.slice(0, cut)));
    assert.deepEqual(shown(view).map(([id]) => id), ["h1", "h2", "h3", "h4"], `cut at ${cut}`);
    assert.deepEqual(blocks(view), expected, `cut at ${cut}`);
    assert.equal(view.conversations.default.earlier, undefined);
    // One that comes twice, or too late, changes nothing.
    assert.deepEqual(shown(withEarlier(view, page(whole.slice(0, cut)))), shown(view));
  }
  const [orphan] = blocks(withHistory(emptyView(), page([result, model("e")], 4)));
  assert.deepEqual([orphan.type, orphan.toolName, orphan.status, orphan.result], ["tool_call", "bash", "success", "out"]);
  // A message that is too large for a frame is passed over.
  const beyond = withEarlier(withHistory(emptyView(), page([user("c")], 2)), page([], 1));
  assert.equal(beyond.conversations.default.earlier, 1);
});

test("nothing that was given is changed, and what did not change keeps its identity", () => {
  const before = reduceAll(emptyView(), [start, text("one"), end, frame("chat:stream-start", { messageId: "m2", provider: "p", model: "m" })]);
  const copy = structuredClone(before);
  const after = reduce(before, { ...text("two"), payload: { ...text("two").payload, messageId: "m2" } });
  assert.deepEqual(before, copy);
  assert.equal(messages(after)[0], messages(before)[0]);
  assert.notEqual(messages(after)[1], messages(before)[1]);
});

test("what waits after a restart is shown with its words, once", () => {
  const queued = { conversationId: "default", messageId: "m8", position: 1, content: "and then the tests" };
  const frame = { type: "chat:queued", seq: 1, timestamp: "", payload: queued };
  const view = reduce(reduce(emptyView(), frame), frame);
  const shown = view.conversations.default.messages.map((it) => [it.role, it.status, it.blocks[0]?.text]);
  assert.deepEqual(shown, [["user", "done", "and then the tests"], ["assistant", "queued", undefined]]);
});

test("what waits may say something else, and may become part of what runs", () => {
  const queued = (more) => ({ type: "chat:queued", seq: 1, timestamp: "", payload: { conversationId: "default", messageId: "m8", position: 2, ...more } });
  const view = reduce(reduce(emptyView(), queued({ content: "one" })), queued({ content: "two", position: 1 }));
  const shown = view.conversations.default.messages.map((it) => [it.role, it.position, it.blocks[0]?.text]);
  assert.deepEqual(shown, [["user", undefined, "two"], ["assistant", 1, undefined]]);
  const steered = reduce(view, queued({ position: 0 }));
  assert.deepEqual(steered.conversations.default.messages, []);
});

test("every frame of the contract is taken, unknown ones leave all as it is", () => {
  const folder = new URL("../../../fixtures/protocol/", import.meta.url);
  const view = reduceAll(emptyView(), [start]);
  let count = 0;
  for (const name of readdirSync(folder)) {
    const golden = JSON.parse(readFileSync(new URL(name, folder), "utf8"));
    if (golden.seq === undefined) continue;
    count += 1;
    assert.ok(reduce(view, golden).conversations);
  }
  assert.ok(count > 30, `${count}`);
  assert.equal(reduce(view, { type: "chat:new-thing", seq: 9, timestamp: "", payload: {} }), view);
});

test("100,000 deltas are reduced in well under the time they take to come", () => {
  let view = reduce(emptyView(), start);
  const one = text("word ");
  for (let at = 0; at < 100_000; at++) view = reduce(view, one);
  assert.equal(blocks(view)[0].text.length, 500_000);
});

test("questions for hosts are others than that of their call", () => {
  const ofHost = (host) => frame("chat:tool-confirm", { toolId: "t1", toolName: "bash", input: {}, danger, reason: "r", host });
  const resolved = (payload) => frame("chat:tool-resolved", { toolId: "t1", by: "user", ...payload });
  let view = [start, confirm("t1"), ofHost("good.test")].reduce(reduce, emptyView());
  const open = () => view.approvals.map((one) => one.host);
  assert.deepEqual(open(), [undefined, "good.test"]);
  view = reduce(view, resolved({ outcome: "approved" }));
  assert.deepEqual(open(), ["good.test"]);
  view = [ofHost("good.test"), ofHost("evil.test"), resolved({ outcome: "denied", host: "good.test" })].reduce(reduce, view);
  assert.deepEqual(open(), ["evil.test"]);
  view = reduce(view, frame("chat:tool-extended", { toolId: "t1", host: "good.test", expiresAt: "later" }));
  assert.equal(view.approvals[0].expiresAt, undefined);
  view = reduce(view, frame("chat:tool-extended", { toolId: "t1", host: "evil.test", expiresAt: "later" }));
  assert.equal(view.approvals[0].expiresAt, "later");
  view = reduce(view, resolved({ outcome: "expired", by: "timeout", host: "evil.test" }));
  const [it] = blocks(view);
  assert.deepEqual([open(), it.resolved.outcome, it.phase], [[], "approved", "executing"]);
});

test("a question that was given more time lapses later, and only that one", () => {
  const at = "2026-11-20T17:24:35.590Z";
  const confirm = (toolId) => frame("chat:tool-confirm", {
    toolId, toolName: "bash", input: {}, danger: { level: "safe", reasons: [] }, reason: "", expiresAt: "then",
  });
  const request = frame("chat:tool-input-request", {
    toolId: "t1", requestId: "i1", server: "crm", message: "?", mode: "form", expiresAt: "then",
  });
  let view = [start, confirm("t1"), confirm("t2"), request].reduce(reduce, emptyView());
  const open = () => [...view.approvals, ...view.inputs].map((one) => one.expiresAt);
  view = reduce(view, frame("chat:tool-extended", { toolId: "t2", expiresAt: at }));
  assert.deepEqual(open(), ["then", at, "then"]);
  assert.deepEqual(blocks(view).map((block) => block.confirm.expiresAt), ["then", at]);
  view = reduce(view, frame("chat:tool-extended", { toolId: "t1", requestId: "i1", expiresAt: at }));
  assert.deepEqual(open(), ["then", at, at]);
  assert.deepEqual(blocks(view).map((block) => block.confirm.expiresAt), ["then", at]);
});

test("what servers ask is open until it is settled, and once", () => {
  const request = (id) => frame("chat:tool-input-request", {
    toolId: "t1", requestId: id, server: "crm", message: "your name?", mode: "form", requestedSchema: { type: "object", properties: {} },
  });
  let view = [request("i1"), request("i2"), request("i1")].reduce(reduce, emptyView());
  assert.deepEqual(view.inputs.map((open) => open.requestId), ["i1", "i2"]);
  const settled = { toolId: "t1", requestId: "i1", outcome: "expired", by: "timeout" };
  view = reduce(view, frame("chat:tool-input-resolved", settled));
  assert.deepEqual(view.inputs.map((open) => open.requestId), ["i2"]);
  const gap = { type: "session:error", seq: 9, payload: { code: "replay_gap", message: "lost" } };
  assert.deepEqual(reduce(view, gap).inputs, []);
});

test("a question whether files may speak for the user is open until it is settled, and once", () => {
  const confirm = (id) => frame("chat:trust-confirm", {
    requestId: id, remember: "session", files: [{ path: "AGENTS.md", kind: "instructions", sha256: "ab", bytes: 2, text: "hi" }],
  });
  let view = [confirm("f1"), confirm("f2"), confirm("f1")].reduce(reduce, emptyView());
  assert.deepEqual(view.trusts.map((open) => open.requestId), ["f1", "f2"]);
  view = reduce(view, frame("chat:trust-resolved", { requestId: "f1", outcome: "trusted", by: "user" }));
  assert.deepEqual(view.trusts.map((open) => open.requestId), ["f2"]);
  const state = { type: "session:state-result", seq: 9, payload: { conversations: [], approvals: [] } };
  assert.deepEqual(reduce(view, state).trusts, []);
});

test("a question whether more may be spent is open until it is settled, and once", () => {
  const confirm = (id) => frame("chat:budget-confirm", {
    requestId: id, scope: "exchange", spentUsd: 1, limitUsd: 2, nextUsd: 1.5, turn: 3, choices: [{ extendUsd: 2 }, { unlimited: true }],
  });
  let view = [confirm("c1"), confirm("c2"), confirm("c1")].reduce(reduce, emptyView());
  assert.deepEqual(view.budgets.map((open) => open.requestId), ["c1", "c2"]);
  view = reduce(view, frame("chat:budget-resolved", { requestId: "c1", outcome: "extended", by: "user", limitUsd: 4 }));
  assert.deepEqual(view.budgets.map((open) => open.requestId), ["c2"]);
  const state = { type: "session:state-result", seq: 9, payload: { conversations: [], approvals: [] } };
  assert.deepEqual(reduce(view, state).budgets, []);
});
