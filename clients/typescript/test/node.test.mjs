// `outrigger-client/node`: where it finds the program, what it says where it finds none, and that its daemon ends.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import test from "node:test";

import { SpawnError, findBinary, spawnDaemon } from "../dist/node.js";
import { program } from "../../../tests/console/support.mjs";

const root = join(import.meta.dirname, "../../..");
const system = `${process.platform}-${process.arch}`;
const other = `${system}-musl`;
const isWindows = process.platform === "win32";
const NAME = isWindows ? "outrigger.exe" : "outrigger";
/** The program in a package, as `clients/npm/index.js` looks for it. */
const inPackage = `bin/${NAME}`;
/** Puts the program somewhere else; Windows lets few users make links. */
const put = (path) => (isWindows ? copyFileSync(program, path) : symlinkSync(program, path));

/** A project with the client in it; `packages` are put beside it. */
function project({ packages = {}, asar = false } = {}) {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "outrigger-node-")));
  const folder = join(place, asar ? "app.asar" : "app");
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, "outrigger-client"), { recursive: true });
  cpSync(join(import.meta.dirname, "../package.json"), join(modules, "outrigger-client/package.json"));
  cpSync(join(import.meta.dirname, "../dist"), join(modules, "outrigger-client/dist"), { recursive: true });
  for (const [name, write] of Object.entries(packages)) write(join(modules, name), place);
  return { place, folder };
}

/** npm's package `outrigger`, with packages for these systems. */
const main = (...systems) => (folder) => {
  cpSync(join(root, "clients/npm"), folder, { recursive: true });
  const optionalDependencies = Object.fromEntries(systems.map((it) => [`@outrigger/${it}`, "0.1.0"]));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "outrigger", version: "0.1.0", optionalDependencies }));
};

/** A package with a program for this system. */
const binary = (folder) => {
  mkdirSync(join(folder, "bin"), { recursive: true });
  writeFileSync(join(folder, "package.json"), "{}");
  put(join(folder, inPackage));
};

/** What `findBinary` says there, of the module or, by `require`, of the other form. */
function found(folder, environment = {}, { form = "mjs", options = "{}" } = {}) {
  const source = {
    mjs: `import { findBinary } from "outrigger-client/node"; const found = await findBinary(${options}); console.log(found.message ?? found);`,
    cjs: `require("outrigger-client/node").findBinary(${options}).then((found) => console.log(found.message ?? found));`,
  };
  const file = join(folder, `find.${form}`);
  writeFileSync(file, source[form]);
  const { stdout, stderr } = spawnSync(process.execPath, ["--preserve-symlinks", file], { cwd: dirname(folder), env: { PATH: "/nowhere", ...environment }, encoding: "utf8" });
  return stdout.trim() + stderr;
}

test("the program is the one that is named, the package's, or the PATH's, in this order", () => {
  const { place, folder } = project({ packages: { outrigger: main(system), [`@outrigger/${system}`]: binary } });
  const elsewhere = { OUTRIGGER_BIN: "/elsewhere/outrigger", PATH: dirname(program) };
  for (const form of ["mjs", "cjs"]) {
    assert.equal(found(folder, elsewhere, { form, options: '{ bin: "/named" }' }), "/named");
    assert.equal(found(folder, elsewhere, { form }), "/elsewhere/outrigger");
    assert.equal(found(folder, { PATH: dirname(program) }, { form }), join(folder, `node_modules/@outrigger/${system}/${inPackage}`));
  }
  rmSync(join(folder, "node_modules/@outrigger"), { recursive: true });
  assert.equal(found(folder, { PATH: `.${delimiter}${dirname(program)}` }), program);
  rmSync(place, { recursive: true });
});

test("a relative folder of the PATH is no place to take a program from", () => {
  const { place, folder } = project();
  put(join(place, NAME));
  for (const path of ["", ".", `${delimiter}${place}/nothing`]) assert.match(found(folder, { PATH: path }), /None is on the PATH/);
  assert.equal(found(folder, { PATH: place }), join(place, NAME));
  rmSync(place, { recursive: true });
});

test("on Linux the static program is taken where the other one is missing", { skip: process.platform !== "linux" }, () => {
  const { place, folder } = project({ packages: { outrigger: main(system, other), [`@outrigger/${other}`]: binary } });
  assert.equal(found(folder), join(folder, `node_modules/@outrigger/${other}/${inPackage}`));
  // Of both, the one for this machine's C library.
  binary(join(folder, `node_modules/@outrigger/${system}`));
  const own = process.report.getReport().header.glibcVersionRuntime ? system : other;
  assert.equal(found(folder), join(folder, `node_modules/@outrigger/${own}/${inPackage}`));
  rmSync(place, { recursive: true });
});

test("where there is no program, the message says what to do", () => {
  const cases = [
    [{}, /`bin` or by OUTRIGGER_BIN, and the npm package `outrigger`, which brings it, is not installed.*npm install outrigger/],
    [{ outrigger: main(system) }, new RegExp(`@outrigger/${system}, which has the program for this system, is not installed.*--omit=optional.*npm install --include=optional.*npm install @outrigger/${system}@0.1.0`)],
    [{ outrigger: main("plan9-mips") }, new RegExp(`no program for ${system}, but for plan9-mips; build it`)],
  ];
  for (const [packages, says] of cases) {
    const { place, folder } = project({ packages });
    for (const form of ["mjs", "cjs"]) assert.match(found(folder, {}, { form }), says);
    rmSync(place, { recursive: true });
  }
});

test("a program in app.asar is the one that the packager left outside", () => {
  const { place, folder } = project({ asar: true, packages: { outrigger: main(system), [`@outrigger/${system}`]: binary } });
  assert.match(found(folder), /inside of app\.asar.*"asarUnpack": \["node_modules\/@outrigger\/\*\*"\]/);
  const outside = join(place, "app.asar.unpacked/node_modules/@outrigger", system);
  binary(outside);
  assert.equal(found(folder), join(outside, inPackage));
  assert.equal(found(folder, {}, { options: '{ bin: "C:\\\\\\\\my\\\\\\\\app.asar\\\\\\\\x.exe" }' }), "C:\\\\my\\\\app.asar.unpacked\\\\x.exe");
  rmSync(place, { recursive: true });
});

test("npm's `outrigger` runs the program, with its arguments and exit code", () => {
  const { place, folder } = project({ packages: { outrigger: main(system), [`@outrigger/${system}`]: binary } });
  const bin = join(folder, "node_modules/outrigger/bin/outrigger.js");
  const run = (...args) => spawnSync(process.execPath, [bin, ...args], { env: { PATH: process.env.PATH }, encoding: "utf8" });
  assert.match(run("--version").stdout, /^outrigger \d/);
  const refused = run("serve", "--nonsense");
  assert.ok(refused.status === 2 && refused.stderr.includes("--nonsense"), refused.stderr);
  rmSync(join(folder, "node_modules/@outrigger"), { recursive: true });
  const missing = run("--version");
  assert.ok(missing.status === 1 && /^outrigger: @outrigger\/.* is not installed/.test(missing.stderr), missing.stderr);
  rmSync(place, { recursive: true });
});

/** What a daemon in `place` is started with: nothing of this shell's settings, and sessions that are kept nowhere else. */
const environment = (place) => ({ PATH: process.env.PATH, HOME: place, OUTRIGGER_CHAT__DETECT_OLLAMA: "", OUTRIGGER_STORE__PATH: join(place, "sessions.db") });

/** A program that is no daemon: Node.js, which runs these lines before it looks at its arguments. */
function standIn(place, name, lines) {
  const file = join(place, `${name}.cjs`);
  writeFileSync(file, lines);
  return { bin: process.execPath, env: { ...environment(place), NODE_OPTIONS: `--require "${file.replaceAll("\\", "/")}"` } };
}

test("a daemon is started, talked to and closed, in either form", { timeout: 60_000 }, async () => {
  const place = mkdtempSync(join(tmpdir(), "outrigger-node-"));
  mkdirSync(join(place, "project"));
  const env = { ...environment(place), nothing: undefined };
  for (const spawn of [spawnDaemon, createRequire(import.meta.url)("outrigger-client/node").spawnDaemon]) {
    const lines = [];
    const daemon = await spawn({ bin: program, project: join(place, "project"), env, allowOrigins: ["app://frontend"], log: (line) => lines.push(line), client: { reconnect: false } });
    assert.deepEqual(daemon.connection, { url: daemon.url, token: daemon.token });
    assert.match(daemon.version, /^\d/);
    assert.equal((await daemon.client.connect()).project.name, "project");
    const ended = new Promise((done) => daemon.client.on("chat:stream-end", done));
    await daemon.client.send("hello");
    assert.equal((await ended).stopReason, "end_turn");
    assert.equal(await daemon.close(), 0);
    assert.equal(await daemon.exited, 0);
    assert.throws(() => process.kill(daemon.pid, 0));
    assert.ok(lines.length > 0 && daemon.log.every((line) => JSON.parse(line)));
  }
  rmSync(place, { recursive: true });
});

test("a log that throws, or rejects, does the daemon no harm", { timeout: 60_000 }, async () => {
  const place = mkdtempSync(join(tmpdir(), "outrigger-node-"));
  const broken = () => {
    throw new Error("nowhere to write");
  };
  for (const log of [broken, async () => broken()]) {
    const warnings = [];
    const heard = (warning) => warnings.push(warning.message);
    process.on("warning", heard);
    const daemon = await spawnDaemon({ bin: program, project: place, env: environment(place), log });
    assert.equal(await daemon.close(), 0);
    assert.ok(daemon.log.length > 1);
    process.off("warning", heard);
    assert.deepEqual(warnings, ["the option `log` of spawnDaemon failed: Error: nowhere to write"]);
  }
  rmSync(place, { recursive: true });
});

test("a daemon that does not start says why", { timeout: 60_000 }, async () => {
  const place = mkdtempSync(join(tmpdir(), "outrigger-node-"));
  const env = environment(place);
  const script = (name, text, mode = 0o755) => {
    writeFileSync(join(place, name), text);
    chmodSync(join(place, name), mode);
    return join(place, name);
  };
  const rejects = (options, code, says) =>
    assert.rejects(spawnDaemon({ project: place, env, ...options }), (error) => {
      assert.ok(error instanceof SpawnError, `${error}`);
      assert.equal(error.code, code);
      assert.match(error.message, says);
      return true;
    });
  await rejects({ bin: program, env: { ...env, OUTRIGGER_SERVER__MAX_CONNECTIONS: "many" } }, "configuration", /server\.max_connections/);
  await rejects({ bin: program, args: ["--nonsense"] }, "configuration", /--nonsense/);
  await rejects({ bin: join(place, "nothing") }, "not_started", /could not be started.*does OUTRIGGER_BIN or `bin` name a file/);
  await rejects({ bin: "/x/app.asar/y" }, "not_started", /app\.asar\.unpacked\/y could not be started.*asarUnpack/);
  const silent = standIn(place, "silent", 'require("fs").writeSync(2, "it broke\\n"); process.exit(7);');
  await rejects(silent, "ended", /exit code 7: it broke/);
  // It holds Node up: without that Node would look for a script of the name `serve`, and end.
  await rejects({ ...standIn(place, "slow", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);"), readyMs: 50 }, "timeout", /was not ready after 50 ms/);
  const lines = ["hello", "null", "[]", '{"event":"ready"}', '{"event":"ready","url":"http://127.0.0.1:1/ws","pid":1,"version":"1"}', '{"event":"ready","url":"ws://127.0.0.1/","pid":1,"version":"1"}', '{"event":"fatal"}'];
  for (const [which, line] of lines.entries()) {
    const says = standIn(place, `other${which}`, `console.log(${JSON.stringify(line)}); setInterval(() => {}, 1e6);`);
    await rejects(says, "not_started", /is no Outrigger: its first line is "/);
  }
  for (const readyMs of [0, -1, NaN, Infinity, 2 ** 31]) await assert.rejects(spawnDaemon({ project: place, env, bin: program, readyMs }), RangeError);
  if (process.platform === "linux") await rejects({ bin: script("loader", "#!/no/such/loader\n") }, "not_started", /made for another C library/);
  if (!isWindows && process.getuid() !== 0) await rejects({ bin: script("plain", "", 0o644) }, "not_started", /chmod \+x/);
  rmSync(place, { recursive: true });
});

test("what a program leaves behind with its pipes is not waited for", { timeout: 60_000 }, async () => {
  const place = mkdtempSync(join(tmpdir(), "outrigger-node-"));
  const leaves = standIn(
    place,
    "leaves",
    `delete process.env.NODE_OPTIONS;
    const { pid } = require("child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1e6)"], { stdio: "inherit", detached: true });
    require("fs").writeSync(2, pid + "\\n");
    process.exit(7);`,
  );
  // Its pipes would keep this process, too.
  await assert.rejects(spawnDaemon({ project: place, ...leaves }), (error) => {
    process.kill(Number(error.log[0]));
    assert.match(error.message, /exit code 7/);
    return true;
  });
  rmSync(place, { recursive: true });
});
