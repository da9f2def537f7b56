#!/usr/bin/env node
"use strict";
// `outrigger` of npm's bin folder: runs the program in its place, as far as Node.js can.

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { binaryPath } = require("../index.js");

let program;
try {
  program = binaryPath();
} catch (error) {
  console.error(`outrigger: ${error.message}`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`outrigger: ${program} could not be started: ${error.message}`);
  process.exit(1);
});
// The terminal sends Ctrl-C to both, and two of them mean more than one.
process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
