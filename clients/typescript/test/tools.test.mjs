// Tools that this program runs, against the real daemon, which plays a script.
import assert from "node:assert/strict";
import test from "node:test";

import { Client } from "../dist/index.js";
import { Daemon } from "../../../tests/console/support.mjs";

const SCRIPT = `
steps:
  - when: { user: add, turn: 0 }
    play:
      - call: { name: client__add, input: { a: 1, b: 2 } }
  - when: { tool: client__add }
    play: [{ text: "I was told: {result}" }]
  - play: [{ text: "You said: {user}" }]
`;

const inputSchema = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] };

async function begin(options = {}) {
  const daemon = await Daemon.start({ script: SCRIPT });
  const client = connect(daemon, options);
  await client.connect();
  await client.configure({ trustLevel: "autonomous" });
  return { daemon, client };
}

const connect = (daemon, options = {}) =>
  new Client({ url: daemon.ready.url, token: daemon.token, pause: { first: 5, longest: 20 }, ...options });

const next = (client, type) =>
  new Promise((done) => {
    const stop = client.on(type, (payload) => {
      stop();
      done(payload);
    });
  });

test("what a tool returns is what the model reads", async () => {
  const { daemon, client } = await begin();
  const seen = [];
  const returns = [
    [3, /\n3$/, "success"],
    ["three", /\nthree$/, "success"],
    [{ sum: 3 }, /\n\{"sum":3\}$/, "success"],
    [{ content: "three", structured: { sum: 3 }, isError: true }, /\nthree$/, "error"],
    [[{ type: "text", text: "3" }], /\n3$/, "success"],
    [undefined, /\ndone$/, "success"],
    [new Error("I cannot add"), /\nI cannot add$/, "error"],
  ];
  for (const [value, said, status] of returns) {
    await client.tools({
      add: {
        description: "Adds.",
        // As zod has it.
        inputSchema: { toJSONSchema: () => inputSchema },
        run(input, { progress }) {
          seen.push(input);
          progress("adding");
          if (value instanceof Error) throw value;
          return value;
        },
      },
    });
    const result = next(client, "chat:tool-result");
    const ended = next(client, "chat:stream-end");
    await client.send("add");
    assert.match((await result).result, said);
    assert.equal((await result).status, status);
    await ended;
  }
  assert.deepEqual(seen[0], { a: 1, b: 2 });
  assert.equal(seen.length, returns.length);
  client.close();
  await daemon.end();
});

test("a call over a socket that drops is run once and answered once", async () => {
  let socket;
  class Drops extends WebSocket {
    constructor(...given) {
      super(...given);
      socket = this;
    }
  }
  const { daemon, client } = await begin({ WebSocket: Drops });
  let [ran, go] = [0, undefined];
  const goes = new Promise((done) => (go = done));
  await client.tools({
    add: {
      description: "Adds.",
      inputSchema,
      async run() {
        ran += 1;
        await goes;
        return "three";
      },
    },
  });
  const called = next(client, "chat:tool-call");
  await client.send("add");
  await called;
  const results = [];
  client.on("chat:tool-result", (it) => results.push(it));
  const ended = next(client, "chat:stream-end");
  const back = next(client, "caught-up");
  socket.close(3000);
  // The output comes while there is no socket.
  go();
  await back;
  await ended;
  assert.match(results[0].result, /three$/);
  assert.equal(results.length, 1);
  assert.equal(ran, 1);
  client.close();
  await daemon.end();
});

test("after a reload nobody knows whether a call ran, unless that does no harm", async () => {
  for (const idempotent of [false, true]) {
    const { daemon, client } = await begin();
    let ran = 0;
    const add = { description: "Adds.", inputSchema, idempotent, run: () => new Promise(() => (ran += 1)) };
    await client.tools({ add });
    const called = next(client, "chat:tool-call");
    await client.send("add");
    await called;
    const { sessionId } = client.session;
    client.close();
    // The page is loaded anew, and remembers its session alone.
    const anew = connect(daemon, { session: { sessionId, lastSeq: 0 } });
    const result = next(anew, "chat:tool-result");
    void anew.tools({ add: { ...add, run: () => `ran ${(ran += 1)} times` } });
    await anew.connect();
    const { result: said } = await result;
    assert.match(said, idempotent ? /ran 2 times$/ : /is not known$/);
    assert.equal(ran, idempotent ? 2 : 1);
    anew.close();
    await daemon.end();
  }
});

test("a call that is cancelled is aborted", async () => {
  const { daemon, client } = await begin();
  let aborted;
  const isAborted = new Promise((done) => (aborted = done));
  await client.tools({
    add: {
      description: "Adds.",
      inputSchema,
      run: (_, { signal }) => new Promise(() => signal.addEventListener("abort", () => aborted())),
    },
  });
  const called = next(client, "chat:tool-call");
  await client.send("add");
  await called;
  const result = next(client, "chat:tool-result");
  await client.cancel();
  await isAborted;
  assert.equal((await result).metadata.cancelled, true);
  client.close();
  await daemon.end();
});

test("what is wrong with a tool is said to who sets it", async () => {
  const { daemon, client } = await begin();
  const add = { description: "", inputSchema, run: () => "three" };
  await assert.rejects(client.tools({ add }), { code: "invalid_payload", message: /`tools\[0\].description`/ });
  client.close();
  await daemon.end();
});

test("of several programs on a session the one that drives runs the calls", async () => {
  const daemon = await Daemon.start({ script: SCRIPT });
  const ran = [];
  const with_ = (name) => ({ add: { description: "Adds.", inputSchema, run: () => void ran.push(name) } });
  const driver = connect(daemon, { role: "driver" });
  await driver.connect();
  await driver.configure({ trustLevel: "autonomous" });
  const { sessionId } = driver.session;
  const other = connect(daemon, { role: "observer", session: { sessionId, lastSeq: 0 } });
  await other.connect();
  assert.equal((await driver.tools(with_("driver"))).tools.length, 1);
  assert.deepEqual((await other.tools(with_("other"))).tools, []);
  for (const [client, name] of [[driver, "driver"], [other, "other"]]) {
    if (client === other) {
      const drives = next(other, "session:roles");
      await other.takeOver();
      await drives;
    }
    const ended = [driver, other].map((it) => next(it, "chat:stream-end"));
    await client.send("add");
    await Promise.all(ended);
    assert.equal(ran.at(-1), name);
  }
  assert.equal(ran.length, 2);
  driver.close();
  other.close();
  await daemon.end();
});
