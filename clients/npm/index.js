"use strict";
// Where the program is that this package's version belongs to. It comes in a package of its own for each system, of which
// npm installs the one that fits: nothing is fetched by a script.

const { existsSync } = require("node:fs");
const { name, version, optionalDependencies = {} } = require("./package.json");

const PROGRAM = process.platform === "win32" ? "outrigger.exe" : "outrigger";

/** Whether the C library is musl, as on Alpine. */
function isMusl() {
  return !process.report.getReport().header.glibcVersionRuntime;
}

/** Packages with a program that runs here, the best first: that for musl is static and runs with any C library. */
function candidates() {
  const system = `@outrigger/${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return [system];
  return isMusl() ? [`${system}-musl`] : [system, `${system}-musl`];
}

/** The path of the program. `OUTRIGGER_BIN` names another one. */
function binaryPath() {
  if (process.env.OUTRIGGER_BIN) return process.env.OUTRIGGER_BIN;
  const names = candidates();
  for (const candidate of names) {
    let path;
    try {
      path = require.resolve(`${candidate}/bin/${PROGRAM}`);
    } catch {
      continue;
    }
    // In an Electron application: no file inside of `app.asar` can be started.
    const outside = path.replace(/([\\/]app)\.asar(?=[\\/])/, "$1.asar.unpacked");
    if (outside === path || existsSync(outside)) return outside;
    throw new Error(`${path} is inside of app.asar, where it cannot be started; have the packager leave it outside: for electron-builder, "asarUnpack": ["node_modules/@outrigger/**"]`);
  }
  const there = Object.keys(optionalDependencies);
  const missing = names.find((candidate) => there.includes(candidate));
  if (missing) {
    throw new Error(
      `${missing}, which has the program for this system, is not installed. npm leaves it out with --omit=optional or --no-optional, ` +
        `and where node_modules or the lock file came from another system: run \`npm install --include=optional\` without those, or \`npm install ${missing}@${version}\`; or name a program by OUTRIGGER_BIN`,
    );
  }
  const systems = there.map((it) => it.slice("@outrigger/".length)).join(", ");
  throw new Error(`${name} ${version} has no program for ${names[0].slice("@outrigger/".length)}, but for ${systems || "no system"}; build it (cargo install outrigger) and name it by OUTRIGGER_BIN`);
}

exports.binaryPath = binaryPath;
