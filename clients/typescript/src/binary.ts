// Where the daemon's program is: named, in the npm package `outrigger`, or on the PATH.

import { existsSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** What the npm package `outrigger` exports. */
interface Package {
  binaryPath(): string;
}

const NAME = process.platform === "win32" ? "outrigger.exe" : "outrigger";

/**
 * A file of an Electron application as the system can start it: what is inside of `app.asar` is no file of its own, and
 * packagers put programs beside it, into `app.asar.unpacked`; in a universal application into `app-x64.asar.unpacked`.
 */
function unpacked(path: string): string {
  return path.replace(/\.asar(?=[\\/])/, ".asar.unpacked");
}

/** On the PATH; its relative entries, and the working directory where Windows looks first, are places a project can write. */
function onPath(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const name = Object.keys(env).find((it) => it.toUpperCase() === "PATH");
  const folders = (name === undefined ? "" : (env[name] ?? "")).split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, NAME)).find((path) => existsSync(path) && statSync(path).isFile());
}

/** That of the npm package, or why not. */
async function ofPackage(): Promise<string | Error> {
  // By a variable: bundlers would put the package into their bundle, where it finds no program.
  const name: string = "outrigger";
  let found: Package & { default?: Package };
  try {
    found = (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as Package & { default?: Package };
  } catch (error) {
    return new Error(`the npm package \`outrigger\`, which brings it, is not installed (${(error as NodeJS.ErrnoException).code ?? String(error)}): npm install outrigger`);
  }
  try {
    return (found.binaryPath ?? found.default?.binaryPath)();
  } catch (error) {
    return error as Error;
  }
}

/**
 * Looks for the daemon's program: `bin`, the variable `OUTRIGGER_BIN`, the npm package `outrigger`, the PATH. Returns its
 * path, or an error that says what to do. Whether the file is there is checked for what was found, not for what was named.
 */
export async function findBinary(options: { bin?: string; env?: Readonly<Record<string, string | undefined>> } = {}): Promise<string | Error> {
  const env = options.env ?? process.env;
  // Either may be set where only this process, or only the daemon's environment, has it.
  const named = options.bin ?? (env.OUTRIGGER_BIN || process.env.OUTRIGGER_BIN);
  if (named) return unpacked(named);
  const packaged = await ofPackage();
  if (typeof packaged === "string") return unpacked(packaged);
  return (
    onPath(env) ??
    new Error(`no Outrigger to start. None is on the PATH, none is named by the option \`bin\` or by OUTRIGGER_BIN, and ${packaged.message}`)
  );
}

/** What to say of a program that the system does not start. */
export function notStarted(program: string, error: NodeJS.ErrnoException): string {
  const what = `${program} could not be started: ${error.message}`;
  if (program.includes(".asar.unpacked") && error.code === "ENOENT") {
    return `${what}. The packager has to leave it outside of app.asar: for electron-builder, "asarUnpack": ["node_modules/@outrigger/**"]`;
  }
  if (error.code === "ENOENT" && existsSync(program)) {
    // The loader that the file names is what is not there.
    return `${what}. The file is there, but made for another C library: install the package for this system (@outrigger/linux-*-musl on Alpine)`;
  }
  if (error.code === "ENOENT") return `${what}. Is the project's folder there, and does OUTRIGGER_BIN or \`bin\` name a file?`;
  if (error.code === "EACCES") return `${what}. It has to be executable: chmod +x`;
  return what;
}
