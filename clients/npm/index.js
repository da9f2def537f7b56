"use strict";
// Where the program is that this package's version belongs to. It comes in a package of its own for each system, of which
// npm installs the one that fits: nothing is fetched by a script.

const { existsSync } = require("node:fs");
const { name, version, optionalDependencies = {} } = require("./package.json");

const PROGRAM = process.platform === "win32" ? "outrigger.exe" : "outrigger";

/** Whether the C library is musl, as on Alpine. */
function isMusl() {
  // Without it, addresses of open sockets are looked up, which takes as long as it takes.
  process.report.excludeNetwork = true;
  return !process.report.getReport().header.glibcVersionRuntime;
}

/** The path of a package's program, or nothing. */
function programOf(name) {
  try {
    return require.resolve(`${name}/bin/${PROGRAM}`);
  } catch {
    return undefined;
  }
}

/** The path of the program. `OUTRIGGER_BIN` names another one. */
function binaryPath() {
  if (process.env.OUTRIGGER_BIN) return process.env.OUTRIGGER_BIN;
  const system = `@outrigger/${process.platform}-${process.arch}`;
  const [own, musl] = [programOf(system), process.platform === "linux" ? programOf(`${system}-musl`) : undefined];
  // The one for musl is static, and runs with any C library. Both are there where a package manager does not know `libc`.
  const path = own && musl ? (isMusl() ? musl : own) : (own ?? musl);
  if (path) {
    // In an Electron application: no file inside of `app.asar` can be started.
    const outside = path.replace(/\.asar(?=[\\/])/, ".asar.unpacked");
    if (outside === path || existsSync(outside)) return outside;
    throw new Error(`${path} is inside of app.asar, where it cannot be started; have the packager leave it outside: for electron-builder, "asarUnpack": ["node_modules/@outrigger/**"]`);
  }
  const there = Object.keys(optionalDependencies);
  const fits = [system, `${system}-musl`].filter((name) => there.includes(name));
  if (fits.length === 0) {
    const systems = there.map((it) => it.slice("@outrigger/".length)).join(", ");
    throw new Error(`${name} ${version} has no program for ${process.platform}-${process.arch}, but for ${systems || "no system"}; build it (cargo install outrigger) and name it by OUTRIGGER_BIN`);
  }
  const missing = fits.length === 2 && isMusl() ? fits[1] : fits[0];
  throw new Error(
    `${missing}, which has the program for this system, is not installed. npm leaves it out with --omit=optional or --no-optional, ` +
      `and where node_modules or the lock file came from another system: run \`npm install --include=optional\` without those, or \`npm install ${missing}@${version}\`; or name a program by OUTRIGGER_BIN`,
  );
}

exports.binaryPath = binaryPath;
