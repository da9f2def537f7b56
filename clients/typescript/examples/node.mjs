// A frontend in plain Node: starts the daemon, says something, answers approvals, shows what comes.
//
//   node clients/typescript/examples/node.mjs [PROGRAM] [WORDS]
//
// Node.js 22; with 20 add --experimental-websocket, or hand npm's `ws` over as the option `WebSocket`.
import { fileURLToPath } from "node:url";

import { spawnDaemon } from "../dist/node.js";

// The folder that it is run in is the project, so the program is looked for from here.
const program = process.argv[2] ?? fileURLToPath(new URL("../../../target/release/outrigger", import.meta.url));
const words = process.argv[3] ?? "demo";
if (typeof WebSocket === "undefined") {
  console.error("this Node.js has no WebSocket: use version 22, or node --experimental-websocket");
  process.exit(2);
}
const daemon = await spawnDaemon({ bin: program, project: process.cwd() }).catch((error) => {
  console.error(`${error.message}; build it (cargo build --release) or name it: node.mjs PROGRAM`);
  process.exit(2);
});
console.error(`daemon ${daemon.pid} at ${daemon.url}`);

const { client } = daemon;
client.on("chat:text-delta", ({ content }) => process.stdout.write(content));
client.on("chat:tool-start", ({ toolName, input }) => console.log(`\n[${toolName} ${JSON.stringify(input)}]`));
client.on("chat:tool-delta", ({ chunk }) => process.stdout.write(chunk));
client.on("chat:error", ({ code, message, hint }) => console.error(`\n${code}: ${message}${hint ? ` (${hint})` : ""}`));
client.on("chat:tool-confirm", (confirm) => {
  const { toolName, input, danger, reason } = confirm;
  // A real frontend shows all of this and asks; here files may be written, and commands that are not dangerous may run.
  const isFine = danger.level === "safe" || danger.level === "warning" || toolName === "file_write" || toolName === "file_edit";
  console.log(`\n[${isFine ? "approving" : "denying"} ${toolName} ${JSON.stringify(input)}: ${danger.level}, ${reason}]`);
  void (isFine ? client.approve(confirm) : client.deny(confirm, "this example allows nothing dangerous"));
});

await client.connect();
const ended = new Promise((done) => client.on("chat:stream-end", done));
await client.send(words);
const { stopReason, turns, toolCalls } = await ended;
console.log(`\n[${stopReason}, ${turns} turns, ${toolCalls} calls]`);
process.exitCode = (await daemon.close()) ?? 1;
