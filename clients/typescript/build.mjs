// Makes `dist`, which is checked in: modules, and in `cjs` the same for `require`.
//
//   node build.mjs [FOLDER]
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const here = import.meta.dirname;
const out = resolve(process.argv[2] ?? join(here, "dist"));

function tsc(project, folder) {
  const { status } = spawnSync(join(here, "node_modules/.bin/tsc"), ["-p", join(here, project), "--outDir", folder], { stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) process.exit(status ?? 1);
}

// What a browser runs is checked without Node's types, so that it uses nothing of Node.
tsc("tsconfig.json", out);
tsc("tsconfig.node.json", out);
tsc("tsconfig.cjs.json", join(out, "cjs"));
writeFileSync(join(out, "cjs/package.json"), '{ "type": "commonjs" }\n');
