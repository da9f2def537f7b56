// The client against a socket of the test's own: what is sent when, and what is not.
import assert from "node:assert/strict";
import test from "node:test";

import { Client, memoryStore, webStore } from "../dist/index.js";

/** Sockets in the order of their making; the test is the daemon. */
function daemon() {
  const sockets = [];
  class Socket {
    constructor(url, protocols) {
      Object.assign(this, { url: new URL(url), protocols, readyState: 0, sent: [] });
      sockets.push(this);
    }
    send(text) {
      this.sent.push(JSON.parse(text));
    }
    close(code = 1005) {
      this.readyState = 3;
      queueMicrotask(() => this.onclose?.({ code, reason: "" }));
    }
    ready(sessionId, more = {}) {
      this.readyState = 1;
      this.tell("session:ready", { sessionId, resumed: false, ...more }, more.resumed ? {} : { seq: 1 });
    }
    tell(type, payload, more) {
      this.onmessage({ data: JSON.stringify({ type, timestamp: "", payload, ...more }) });
    }
    drop(code = 1006) {
      this.readyState = 3;
      this.onclose({ code, reason: "" });
    }
  }
  return { sockets, Socket };
}

const options = (Socket) => ({ url: "ws://h/ws", token: "abc", WebSocket: Socket, pause: { first: 1, longest: 1 } });
const until = async (what) => {
  while (!what()) await new Promise((done) => setTimeout(done, 1));
};

async function connected() {
  const { sockets, Socket } = daemon();
  const client = new Client(options(Socket));
  const ready = client.connect();
  sockets[0].ready("s1");
  await ready;
  return { client, sockets };
}

test("the token goes as a subprotocol, and never into the address", async () => {
  const { client, sockets } = await connected();
  assert.deepEqual(sockets[0].protocols, ["outrigger.v1", "bearer.abc"]);
  assert.equal(sockets[0].url.href, "ws://h/ws");
  client.close();
});

test("a request has its answer, or its error", async () => {
  const { client, sockets } = await connected();
  const [socket] = sockets;
  const well = client.configure({ model: "m" });
  const badly = client.send("hi");
  const [one, two] = socket.sent;
  assert.deepEqual([one.type, two.type, two.payload], ["session:configure", "chat:send", { content: "hi" }]);
  socket.tell("session:configure-result", { model: "m" }, { seq: 2, replyTo: one.id });
  socket.tell("chat:error", { code: "queue_full", message: "full", retryable: true }, { seq: 3, replyTo: two.id });
  assert.deepEqual(await well, { model: "m" });
  await assert.rejects(badly, { name: "RequestError", code: "queue_full" });
  client.close();
});

test("after a drop it goes on where it was, and sends again what has no answer", async () => {
  const { client, sockets } = await connected();
  const seen = [];
  client.on("frame", (frame) => seen.push(frame.seq));
  const sent = client.send("hi", { id: "mine" });
  sockets[0].tell("chat:text-delta", {}, { seq: 2 });
  sockets[0].drop();
  await until(() => sockets.length === 2);
  const [, again] = sockets;
  assert.equal(again.url.search, "?session=s1&after=2");
  again.ready("s1", { resumed: true });
  assert.deepEqual(again.sent.map((it) => it.type), ["session:ping"], "nothing is repeated before what was missed has come");
  again.tell("chat:text-delta", {}, { seq: 2 });
  again.tell("chat:text-delta", {}, { seq: 3 });
  again.tell("session:ping-result", {}, { seq: 4, replyTo: again.sent[0].id });
  assert.deepEqual(again.sent[1], { type: "chat:send", id: "mine", payload: { content: "hi" } });
  again.tell("chat:send-result", { messageId: "m1", duplicate: true }, { seq: 5, replyTo: "mine" });
  assert.equal((await sent).messageId, "m1");
  assert.deepEqual(seen.filter((it) => it !== undefined), [2, 3, 4, 5], "no number twice");
  client.close();
});

test("an answer that was missed is not asked for again", async () => {
  const { client, sockets } = await connected();
  const sent = client.send("hi", { id: "mine" });
  sockets[0].drop();
  await until(() => sockets.length === 2);
  sockets[1].ready("s1", { resumed: true });
  sockets[1].tell("chat:send-result", { messageId: "m1" }, { seq: 2, replyTo: "mine" });
  sockets[1].tell("session:ping-result", {}, { seq: 3, replyTo: sockets[1].sent[0].id });
  await sent;
  assert.equal(sockets[1].sent.length, 1);
  client.close();
});

test("it stays away for as long as the daemon says, also where it was never connected", async () => {
  const { sockets, Socket } = daemon();
  const client = new Client({ ...options(Socket), session: { sessionId: "s1", lastSeq: 4 } });
  const [delays, errors] = [[], []];
  client.on("status", (status) => status.name === "waiting" && delays.push(status.delayMs));
  client.on("session:error", (error) => errors.push(error.code));
  const ready = client.connect();
  for (const [at, retryAfterMs] of [7, 5].entries()) {
    sockets[at].tell("session:error", { code: "rate_limited", message: "too many", retryAfterMs });
    sockets[at].drop(1013);
    await until(() => sockets.length === at + 2);
  }
  sockets[2].ready("s1", { resumed: true });
  await ready;
  // What comes later is about what was asked, and a drop has the client's own pause.
  sockets[2].tell("session:error", { code: "quota_exceeded", message: "later", retryAfterMs: 60_000 }, { seq: 5 });
  sockets[2].drop();
  assert.deepEqual([delays, errors], [[7, 5, 1], ["quota_exceeded"]]);
  client.close();
});

test("a session that is gone is said, and its requests fail", async () => {
  const { client, sockets } = await connected();
  let lost;
  client.on("session-lost", (ready) => (lost = ready.sessionId));
  const sent = client.send("hi");
  sockets[0].drop();
  await until(() => sockets.length === 2);
  sockets[1].ready("s2");
  await assert.rejects(sent, { code: "session_lost" });
  assert.equal(lost, "s2");
  assert.deepEqual(client.session, { sessionId: "s2", lastSeq: 1 });
  client.close();
});

test("a session that was taken over is not taken back by itself", async () => {
  const { client, sockets } = await connected();
  sockets[0].drop(4001);
  assert.equal(client.status.name, "closed");
  assert.equal(client.status.code, 4001);
  await assert.rejects(client.send("hi"), { code: "closed" });
  const again = client.connect();
  sockets[1].ready("s1", { resumed: true });
  await again;
  client.close();
});

test("a first attempt that fails is said; there is no endless trying", async () => {
  const { sockets, Socket } = daemon();
  const client = new Client(options(Socket));
  const ready = client.connect();
  sockets[0].drop();
  await assert.rejects(ready, /is the daemon there, and the token right, also for the role/);
  assert.equal(sockets.length, 1);
});

test("a token that no subprotocol can carry is said", async () => {
  const { Socket } = daemon();
  await assert.rejects(new Client({ ...options(Socket), token: "a/b=" }).connect(), /subprotocol/);
});

test("a page that was loaded again goes on with its session", async () => {
  const { sockets, Socket } = daemon();
  const client = new Client({ ...options(Socket), session: { sessionId: "s1", lastSeq: 0 } });
  const seen = [];
  client.on("frame", (frame) => seen.push([frame.type, frame.seq]));
  const connecting = client.connect();
  assert.equal(sockets[0].url.search, "?session=s1&after=0");
  sockets[0].ready("s1", { resumed: true });
  assert.equal((await connecting).resumed, true);
  sockets[0].tell("session:ready", { sessionId: "s1", resumed: false }, { seq: 1 });
  sockets[0].tell("chat:text-delta", {}, { seq: 2 });
  assert.deepEqual(seen, [["session:ready", undefined], ["session:ready", 1], ["chat:text-delta", 2]]);
  assert.equal(client.ready.resumed, true);
  client.close();
});

test("another session is opened on a new socket, and what had no answer fails", async () => {
  const { client, sockets } = await connected();
  const sent = client.send("hi");
  const opened = client.openSession("s2");
  await assert.rejects(sent, { code: "closed" });
  assert.equal(sockets[1].url.search, "?session=s2&after=0");
  sockets[0].tell("chat:text-delta", {}, { seq: 9 });
  sockets[1].ready("s2", { resumed: true });
  assert.equal((await opened).sessionId, "s2");
  assert.deepEqual(client.session, { sessionId: "s2", lastSeq: 0 }, "the old socket says nothing any more");
  const gone = client.openSession("s3");
  sockets[2].ready("s4");
  await assert.rejects(gone, { code: "session_not_found" });
  assert.equal(client.session.sessionId, "s4");
  const fresh = client.openSession();
  assert.equal(sockets[3].url.search, "");
  sockets[3].ready("s5");
  assert.equal((await fresh).sessionId, "s5");
  client.close();
});

test("where it is offered, another session is opened on the socket that there is", async () => {
  const { sockets, Socket } = daemon();
  const client = new Client(options(Socket));
  const ready = client.connect();
  const features = ["session_open"];
  sockets[0].ready("s1", { features });
  await ready;
  const [socket] = sockets;
  const seen = [];
  const lost = [];
  client.on("chat:text-delta", (_, frame) => seen.push([client.session.sessionId, frame.seq]));
  client.on("session-lost", (it) => lost.push(it));
  const sent = client.send("hi");
  const opened = client.openSession("s2");
  await assert.rejects(sent, { code: "closed" });
  const { type, id, payload } = socket.sent.at(-1);
  assert.deepEqual([type, payload], ["session:open", { sessionId: "s2" }]);
  socket.tell("chat:text-delta", {}, { seq: 2 });
  socket.tell("session:ready", { sessionId: "s2", resumed: true, features }, { replyTo: id });
  assert.equal((await opened).sessionId, "s2");
  socket.tell("chat:text-delta", {}, { seq: 1 });
  assert.deepEqual(seen, [["s2", 1]]);
  // What cannot be opened: it is on the session that it had, and what was passed over comes again.
  const gone = client.openSession("s3");
  socket.tell("chat:text-delta", {}, { seq: 2 });
  socket.tell("session:error", { code: "session_not_found", message: "" }, { seq: 3, replyTo: socket.sent.at(-1).id });
  await assert.rejects(gone, { code: "session_not_found" });
  assert.equal(sockets[1].url.search, "?session=s2&after=1");
  sockets[1].ready("s2", { resumed: true, features });
  sockets[1].tell("chat:text-delta", {}, { seq: 2 });
  assert.deepEqual(seen, [["s2", 1], ["s2", 2]]);
  // A socket that drops meanwhile opens nothing.
  const dropped = client.openSession("s4");
  sockets[1].drop();
  await assert.rejects(dropped, { code: "closed" });
  await until(() => sockets.length === 3);
  assert.equal(sockets[2].url.search, "?session=s2&after=2");
  assert.deepEqual(lost, []);
  client.close();
});

test("requests about sessions go out as the contract has them", async () => {
  const { client, sockets } = await connected();
  const asked = [
    [client.listSessions({ query: "login" }), "session:list", { query: "login" }],
    [client.renameSession("Mine", "s2"), "session:rename", { sessionId: "s2", title: "Mine" }],
    [client.archiveSession(), "session:archive", { archived: true }],
    [client.archiveSession(false, "s2"), "session:archive", { sessionId: "s2", archived: false }],
    [client.deleteSession("s2"), "session:delete", { sessionId: "s2" }],
    [client.forkSession({ before: 2 }), "session:fork", { before: 2 }],
    [client.history({ limit: 5, before: 9 }), "chat:history", { conversationId: "default", limit: 5, before: 9 }],
  ];
  assert.deepEqual(sockets[0].sent.map(({ type, payload }) => [type, payload]), asked.map(([, ...frame]) => frame));
  for (const [at, { id, type }] of sockets[0].sent.entries()) sockets[0].tell(`${type}-result`, { at }, { seq: at + 2, replyTo: id });
  assert.deepEqual(await Promise.all(asked.map(([answer]) => answer)), asked.map((_, at) => ({ at })));
  client.close();
});

test("a store has the session that the next client goes on with", async () => {
  const { sockets, Socket } = daemon();
  const store = memoryStore();
  const first = new Client({ ...options(Socket), store });
  const ready = first.connect();
  sockets[0].ready("s1");
  await ready;
  assert.equal(store.get(), "s1");
  first.close();
  const second = new Client({ ...options(Socket), store });
  const again = second.connect();
  assert.equal(sockets[1].url.search, "?session=s1&after=0");
  // It is gone: the new one is kept in its place.
  sockets[1].ready("s2");
  await again;
  assert.equal(store.get(), "s2");
  second.close();
  assert.equal(new Client({ ...options(Socket), store, session: { sessionId: "s9", lastSeq: 4 } }).session.sessionId, "s9");
});

test("a browser's storage keeps it, and one that is full or switched off breaks nothing", () => {
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
  const store = webStore(storage, "mine");
  assert.equal(store.get(), null);
  store.set("s1");
  assert.deepEqual([store.get(), [...kept]], ["s1", [["mine", "s1"]]]);
  store.set(null);
  assert.equal(kept.size, 0);
  const refuses = () => {
    throw new Error("QuotaExceededError");
  };
  const full = webStore({ getItem: refuses, setItem: refuses, removeItem: refuses });
  full.set("s1");
  assert.equal(full.get(), null);
});

test("a client with a role keeps its name, takes over once, and counts a resync when all of it is there", async () => {
  const { sockets, Socket } = daemon();
  const client = new Client({ ...options(Socket), role: "driver", takeOver: true, session: { sessionId: "s1", lastSeq: 7 } });
  const ready = client.connect();
  const asked = (at) => Object.fromEntries(sockets[at].url.searchParams);
  const { client: name, ...rest } = asked(0);
  assert.deepEqual(rest, { session: "s1", after: "7", role: "driver", takeOver: "1" });
  assert.ok(name.length >= 16, name);
  sockets[0].ready("s1", { resumed: true });
  await ready;
  // Another window took over; it says so by the new role.
  sockets[0].tell("session:roles", { driver: true, approvers: 1, observers: 0, role: "approver" });
  sockets[0].tell("session:error", { code: "replay_gap", message: "" });
  sockets[0].drop();
  await until(() => sockets.length === 2);
  assert.deepEqual(asked(1), { session: "s1", after: "7", role: "approver", client: name });
  sockets[1].ready("s1", { resumed: true });
  sockets[1].tell("session:error", { code: "replay_gap", message: "" });
  sockets[1].tell("session:resynced", { seq: 505 });
  sockets[1].drop();
  await until(() => sockets.length === 3);
  assert.equal(asked(2).after, "505");
  client.close();
});
