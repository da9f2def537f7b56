// What the TypeScript client's README shows, in a page: the same lines that `clients/typescript/test` runs in Node.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import test, { after, before } from "node:test";

import { Daemon, browser, missing } from "./support.mjs";

const client = resolve(import.meta.dirname, "../../clients/typescript");
// The first one starts the daemon, which no page can.
const [, conversation, tools] = [...readFileSync(join(client, "README.md"), "utf8").matchAll(/```js\n([^]*?)```/g)].map((it) => it[1]);

let chromium;
before(async () => {
  if (missing) console.error(`*** SKIPPED: the README in Chromium: ${missing} ***`);
  else chromium = await browser();
});
after(async () => {
  await chromium?.close();
  await Daemon.endAll();
});

/** Serves a page that runs `code`, which finds the client by its name, as with a bundler, and its settings where Node has them. */
async function serve(code, environment) {
  const files = {
    "/": ["text/html", `<!doctype html><script type="importmap">{"imports":{"outrigger-client":"/client/index.js"}}</script>
      <script>globalThis.process = { env: ${JSON.stringify(environment)} };</script><script type="module" src="/snippet.js"></script>`],
    "/snippet.js": ["text/javascript", code],
  };
  const server = createServer(({ url }, response) => {
    const name = /^\/client\/(\w+\.js)$/.exec(url)?.[1];
    const [type, body] = name ? ["text/javascript", readFileSync(join(client, "dist", name))] : (files[url] ?? []);
    response.writeHead(body ? 200 : 404, { "content-type": type ?? "text/plain" }).end(body);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  // Where a snippet never ends, its time-out is the end of the test, and nothing of it keeps the process.
  server.unref();
  return server;
}

/** Runs a snippet in a page, until it has said `last`; returns all that it said. */
async function run(code, last) {
  const daemon = await Daemon.start({ files: { "README.md": "# Demo\n" } });
  const server = await serve(code, { OUTRIGGER_URL: daemon.ready.url, OUTRIGGER_TOKEN: daemon.token });
  const page = await chromium.newPage();
  try {
    const said = [];
    const isOver = new Promise((done, failed) => {
      page.on("pageerror", failed);
      page.on("console", async (message) => {
        if (message.type() !== "log") return;
        said.push(await Promise.all(message.args().map((it) => it.jsonValue())));
        if (last.test(JSON.stringify(said.at(-1)))) done();
      });
    });
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await isOver;
    return said;
  } finally {
    await page.close();
    server.close();
    await daemon.end();
  }
}

const options = { skip: missing || false, timeout: 60_000 };

test("a conversation, as the README has it", options, async () => {
  const said = await run(conversation, /"type":"text"/);
  assert.equal(said.length, 1);
});

test("a tool of the client's own, as the README has it", options, async () => {
  const said = await run(tools, /open at line 3/);
  assert.equal(said[0][0], "opening README.md");
  assert.match(said[1][0], /^README.md is open at line 3$/m);
});
