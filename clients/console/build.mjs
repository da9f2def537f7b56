// Builds the page: `dist` is checked in, so that cargo needs no npm.
//
//   node build.mjs [FOLDER]
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const out = resolve(process.argv[2] ?? join(here, "dist"));

const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: ["src/app.js", "src/style.css"],
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2023",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});

// The licences of what is bundled, which have to go with it.
const packages = new Set(Object.keys(metafile.inputs).flatMap((path) => /(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []));
const licences = [...packages].sort().map((folder) => {
  const { name, version, license } = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
  const file = readdirSync(join(here, folder)).find((it) => /^licen[cs]e/i.test(it));
  if (!file) throw new Error(`${name} has no file with its licence`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(here, folder, file), "utf8").trim()}\n`;
});
writeFileSync(join(out, "THIRD-PARTY.txt"), `The console page contains these packages.\n\n${licences.join(`\n${"-".repeat(80)}\n\n`)}`);

for (const [path, { bytes }] of Object.entries(metafile.outputs)) console.log(`${path.split("/").at(-1)}: ${bytes} bytes`);
