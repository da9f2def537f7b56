// The daemon as the client that the MCP conformance suite tries: `conformance client --command "node conformance.mjs" --scenario …`.
// The suite adds the server's address. What it wants is done as a frontend would: sign in where that is asked, call each tool.
import { Daemon, browse } from "./daemon.mjs";

const url = process.argv.at(-1);
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const CALLS = {
  tools_call: [["add_numbers", { a: 5, b: 3 }]],
  "sse-retry": [["test_reconnection", {}]],
  "elicitation-sep1034-client-defaults": [["test_client_elicitation_defaults", {}]],
};
const auth = {
  // The address that the suite expects of clients that have one.
  client_metadata_url: "https://conformance-test.local/client-metadata.json",
  ...(context.client_id && { client_id: context.client_id }),
  ...(context.client_secret && { client_secret: context.client_secret }),
};
const daemon = await Daemon.start({ url, ...(scenario.startsWith("auth/") && { auth }) });
/** The pages that were opened: what is asked twice is answered once. */
const opened = new Set();
let isOver = false;
const user = (async () => {
  await daemon.ask("session:configure", { inputRequests: true }).catch(() => {});
  for (let from = 0; !isOver; ) {
    const asks = ["mcp:auth-required", "chat:tool-input-request"];
    const frame = await daemon.until("a question", (it) => isOver || asks.includes(it.type), from).catch(() => null);
    if (isOver || !frame) return;
    from = daemon.frames.indexOf(frame) + 1;
    if (frame.type === "chat:tool-input-request") {
      const properties = frame.payload.requestedSchema?.properties ?? {};
      const values = Object.entries(properties).filter(([, it]) => "default" in it);
      const content = Object.fromEntries(values.map(([name, it]) => [name, it.default]));
      await daemon.ask("chat:tool-input", { requestId: frame.payload.requestId, action: "accept", content });
      continue;
    }
    if (opened.has(frame.payload.url)) continue;
    opened.add(frame.payload.url);
    // More than anybody would do.
    if (opened.size > 10) throw new Error("asked to sign in again and again");
    const end = await browse(frame.payload.url);
    console.error(`opened ${frame.payload.url}: ${end.status} at ${end.url}`);
  }
})();
user.catch((error) => console.error(error));
try {
  const row = await daemon.settled("ready", "failed");
  console.error(JSON.stringify(row));
  const given = CALLS[scenario];
  const calls = given?.map(([name, input]) => [`mcp__peer__${name}`, input]) ?? row.tools.map((name) => [name, {}]);
  if (row.state === "ready") for (const [name, input] of calls) console.error(JSON.stringify(await daemon.call(name, input)));
  process.exitCode = row.state === "ready" ? 0 : 1;
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  isOver = true;
  for (const look of daemon.waiting) look();
  await daemon.end();
  process.exit();
}
