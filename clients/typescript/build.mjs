// Makes `dist`, which is checked in: modules, and in `cjs` the same for `require`. Types are in `cjs` alone: a module may take
// those of what is required, and not the other way.
//
//   node build.mjs [FOLDER]     a new one, or an empty one
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const here = import.meta.dirname;
const given = process.argv[2];
const out = resolve(given ?? join(here, "dist"));

function tsc(project, folder, declaration) {
  const { status } = spawnSync(join(here, "node_modules/.bin/tsc"), ["-p", join(here, project), "--outDir", folder, "--declaration", declaration], { stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) process.exit(status ?? 1);
}

// Nothing is left of what is not made any more; what somebody else has in a folder is not ours to remove.
if (given === undefined) rmSync(out, { recursive: true, force: true });
else if (existsSync(out) && readdirSync(out).length > 0) {
  console.error(`${out} is not empty; name a new folder`);
  process.exit(1);
}
// What a browser runs is checked without Node's types, so that it uses nothing of Node.
tsc("tsconfig.json", out, "false");
tsc("tsconfig.node.json", out, "false");
tsc("tsconfig.cjs.json", join(out, "cjs"), "true");
writeFileSync(join(out, "cjs/package.json"), '{ "type": "commonjs" }\n');
for (const entry of ["index", "node"]) writeFileSync(join(out, `${entry}.d.ts`), `export * from "./cjs/${entry}.js";\n`);
