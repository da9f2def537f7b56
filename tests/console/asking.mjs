// An MCP server that asks: the one tool `ask` puts the questions of a kind to the user, all at once, and returns
// what it was given. It ends without a word when a file `end` appears in the folder that it is started with.
//
//   node asking.mjs FOLDER
import { existsSync, watch } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const HOSTILE = `<img src=x onerror="window.hurt=5"><b>bold</b>`;
const form = (message, properties, required = []) => ({ mode: "form", message, requestedSchema: { type: "object", properties, required } });
const page = (url) => ({ mode: "url", elicitationId: "e1", message: "Please pay first.", url });
const CHOICES = [{ const: "std", title: "Standard" }, { const: "exp", title: "Express" }];

const KINDS = {
  form: [
    form(
      "Who is it for?\nEverything but the name may stay empty.",
      {
        name: { type: "string", title: "Name", description: "As on the parcel", minLength: 2, maxLength: 20 },
        mail: { type: "string", title: "Email", format: "email" },
        age: { type: "integer", title: "Age", minimum: 18, maximum: 150 },
        weight: { type: "number", title: "Weight", default: 1.5 },
        day: { type: "string", title: "Day", format: "date" },
        at: { type: "string", title: "Not before", format: "date-time", default: "2026-11-20T08:00:00.250Z" },
        gift: { type: "boolean", title: "It is a gift" },
        way: { type: "string", title: "Way", oneOf: CHOICES, default: "exp" },
        colour: { type: "string", title: "Colour", enum: ["red", "blue"] },
        extras: { type: "array", title: "Extras", maxItems: 2, items: { anyOf: [{ const: "a", title: "Card" }, { const: "b", title: "Ribbon" }, { const: "c", title: "Stamp" }] } },
        note: { type: "string", title: "Note", maxLength: 500 },
      },
      ["name", "way"],
    ),
  ],
  rude: [
    form(`${HOSTILE} safe\u202e\u200b`, {
      __proto__: null,
      ["__proto__"]: { type: "string", title: HOSTILE, description: HOSTILE, default: HOSTILE },
      "a`b": { type: "string", title: "x".repeat(3_000), enum: [HOSTILE, ""] },
      "constructor": { type: "integer" },
    }),
  ],
  page: [page("https://bank.example.com@pay.example.org:8443/checkout?order=7")],
  likeness: [page("http://b\u0430nk.example/")],
  two: [form("The first?", { one: { type: "string" } }, ["one"]), form("The second?", { two: { type: "string" } })],
};

const tell = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const SCHEMA = { type: "object", properties: { kind: { type: "string" } } };
const methods = {
  initialize: () => ({ protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "asking", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "ask", description: "asks the user", inputSchema: SCHEMA }] }),
};
let next = 900;
/** @type {Map<number, (result: any) => void>} */
const waiting = new Map();
const ask = (params) =>
  new Promise((done) => {
    waiting.set(++next, done);
    tell({ id: next, method: "elicitation/create", params });
  });

const folder = process.argv[2];
watch(folder, () => {
  if (existsSync(join(folder, "end"))) process.exit(1);
});
createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) {
    waiting.get(id)?.(result ?? error);
  } else if (method === "tools/call") {
    const given = await Promise.all(KINDS[params.arguments.kind].map(ask));
    tell({ id, result: { content: [{ type: "text", text: JSON.stringify(given) }] } });
  } else if (id !== undefined) {
    const answer = methods[method];
    tell(answer ? { id, result: answer() } : { id, error: { code: -32601, message: "method not found" } });
  }
});
