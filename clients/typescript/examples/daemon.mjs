// Starts a daemon as a child and waits for its ready line: the part that Electron's main process and
// a plain Node program have in common.
//
// The token is made here and handed over through stdin, so it is in no argument, no environment and
// no output. The pipe stays open on purpose: however this process dies, its end ends the daemon and
// every process below it.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";

/**
 * @param {{program: string, folder: string, args?: string[], log?: (line: string) => void}} options
 * @returns {Promise<{url: string, token: string, pid: number, exited: Promise<number | null>, stop: () => Promise<number | null>}>}
 */
export async function startDaemon({ program, folder, args = [], log = () => {} }) {
  const token = randomBytes(32).toString("hex");
  const child = spawn(program, ["serve", "--port", "0", "--token-stdin", "--project-root", folder, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    windowsHide: true,
  });
  const exited = new Promise((done) => child.once("exit", (code) => done(code)));
  // One JSON object a line; the end of it is what an error dialog should show.
  createInterface({ input: child.stderr }).on("line", log);
  child.stdin.on("error", () => {}); // A daemon that could not start reads no token.
  child.stdin.write(`${token}\n`);
  const line = await new Promise((done, failed) => {
    createInterface({ input: child.stdout }).once("line", done).once("close", () => failed(new Error("the daemon ended without a word")));
    child.once("error", (error) => failed(new Error(`${program} could not be started: ${error.message}`)));
  });
  const start = JSON.parse(line);
  if (start.event !== "ready") {
    throw Object.assign(new Error(`${start.message}; ${start.hint}`), { code: start.code });
  }
  return {
    url: start.url,
    token,
    pid: start.pid,
    exited,
    stop() {
      child.stdin.end();
      return exited;
    },
  };
}
