// Runs the client scenarios of the MCP conformance suite, and prints a table of what came of each.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What is no sign-in of a person's, which is all that the daemon has: tokens for machines alone. */
const OTHERS = ["auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/cross-app-access-complete-flow"];

/** What is refused on purpose: its metadata names another issuer than the address that it is read from, which RFC 8414 forbids. */
const REFUSED = ["auth/2025-03-26-oauth-metadata-backcompat"];

const suite = join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js");
const run = (...args) => spawnSync(process.execPath, [suite, ...args], { encoding: "utf8" });

let scenarios = process.argv.slice(2);
if (scenarios.length === 0) {
  const listed = run("list", "--client").stdout;
  scenarios = [...new Set(listed.match(/(?<=^\s*-\s)\S+/gm) ?? [])];
  if (scenarios.length < 20) throw new Error(`the suite lists ${scenarios.length} scenarios:\n${listed}`);
}
let failed = 0;
const rows = [];
for (const scenario of scenarios) {
  const results = mkdtempSync(join(tmpdir(), "outrigger-conformance-"));
  const command = `${process.execPath} conformance.mjs`;
  const done = run("client", "--command", command, "--scenario", scenario, "--timeout", "60000", "--output-dir", results);
  const files = readdirSync(results, { recursive: true }).filter((it) => String(it).endsWith("checks.json"));
  const checks = files.flatMap((it) => JSON.parse(readFileSync(join(results, String(it)), "utf8")));
  const count = (status) => checks.filter((check) => check.status === status).length;
  const [good, bad, warned] = ["SUCCESS", "FAILURE", "WARNING"].map(count);
  const isOther = OTHERS.includes(scenario);
  const isRefused = REFUSED.includes(scenario);
  // That it is not the other issuer's is said, and nobody was sent anywhere.
  if (isRefused && checks.some((check) => check.id === "authorization-request" && check.status === "SUCCESS")) throw new Error(`${scenario} was not refused`);
  const well = done.status === 0 && bad === 0 && good > 0;
  const isMeant = well || isOther || isRefused;
  if (!isMeant) failed += 1;
  const word = well ? (warned ? "pass, warned" : "pass") : isOther ? "not applicable" : isRefused ? "refused" : "FAILED";
  rows.push(`${scenario.padEnd(44)} ${String(good).padStart(3)} of ${String(good + bad + warned).padEnd(3)} ${word}`);
  console.log(rows.at(-1));
  if (!isMeant || warned) {
    for (const check of checks.filter((it) => ["FAILURE", "WARNING"].includes(it.status))) console.log(`    ${check.id}: ${check.description} ${JSON.stringify(check.details ?? {})}`);
    if (!isMeant) console.log(done.stderr.split("\n").slice(-30).join("\n"));
  }
  rmSync(results, { recursive: true, force: true });
}
console.log(`\n${rows.join("\n")}\n`);
process.exit(failed ? 1 : 0);
