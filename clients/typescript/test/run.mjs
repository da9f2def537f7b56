// `npm test`: Node.js 20 has its WebSocket behind a flag.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".test.mjs"));
const flags = typeof WebSocket === "function" ? [] : ["--experimental-websocket"];
const { status } = spawnSync(
  process.execPath,
  [...flags, "--test", ...files.map((name) => join(import.meta.dirname, name))],
  { stdio: "inherit" },
);
process.exit(status ?? 1);
