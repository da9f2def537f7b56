// A server of the Model Context Protocol on stdin and stdout, with one tool that says what it was told.
import { createInterface } from "node:readline";

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "given", version: "1.0.0" },
  }),
  "tools/list": () => ({
    tools: [
      {
        name: "echo",
        description: "Says what it is told.",
        inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      },
    ],
  }),
  "tools/call": ({ arguments: given }) => ({ content: [{ type: "text", text: `heard: ${given.text}` }] }),
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const frame = answer
    ? { jsonrpc: "2.0", id, result: answer(params ?? {}) }
    : { jsonrpc: "2.0", id, error: { code: -32601, message: `no ${method}` } };
  process.stdout.write(`${JSON.stringify(frame)}\n`);
}
