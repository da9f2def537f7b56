// The main process of an Electron application: the daemon lives as long as the application, and the
// window gets its address and token over the context bridge, never in a URL.
//
// The page comes from a scheme of its own, so that its origin is `app://frontend`, which the daemon is
// told to let in. Pages of `file://` have the origin `null` or `file://`, as any page on the disk has.
//
// Nothing here needs Electron but its parts, which `electron/main.mjs` hands in, so that the test runs the
// same lines under Node.
import { readFile, realpath } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";

import { spawnDaemon } from "../dist/node.js";

const FRONTEND = fileURLToPath(new URL("electron/frontend", import.meta.url));
/** What the page imports as `./client/`. */
const CLIENT = fileURLToPath(new URL("../dist", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src ws://127.0.0.1:*; base-uri 'none'; form-action 'none'";

/** A file of the page, and nothing outside of its folders, by `..` or by a link. @param {{url: string}} request */
async function serve({ url }) {
  try {
    const { host, pathname } = new URL(url);
    const path = decodeURIComponent(pathname);
    if (host !== "frontend" || /[\\\0]/.test(path) || path.split("/").includes("..")) return new Response("not found", { status: 404 });
    const [folder, name] = path.startsWith("/client/") ? [CLIENT, path.slice("/client/".length)] : [FRONTEND, path];
    const file = await realpath(join(folder, name));
    const type = TYPES[extname(file)];
    if (!type || !file.startsWith((await realpath(folder)) + sep)) return new Response("not found", { status: 404 });
    return new Response(await readFile(file), { headers: { "content-type": type, "content-security-policy": POLICY } });
  } catch {
    return new Response("not found", { status: 404 });
  }
}

/**
 * @param {{app: any, BrowserWindow: any, ipcMain: any, dialog: any, protocol: any, program?: string, folder: string, preload: string}} electron
 */
export async function main({ app, BrowserWindow, ipcMain, dialog, protocol, program, folder, preload }) {
  // Before anything is awaited: once the application is ready it is too late.
  protocol.registerSchemesAsPrivileged([{ scheme: "app", privileges: { standard: true, secure: true, supportFetchAPI: true } }]);
  await app.whenReady();
  protocol.handle("app", serve);
  let daemon;
  let isQuitting = false;
  try {
    daemon = await spawnDaemon({ bin: program, project: folder, allowOrigins: ["app://frontend"] });
  } catch (error) {
    // The daemon's own words: which port, which key, which file, and what to do.
    dialog.showErrorBox("Outrigger could not start", `${error.message}\n\n${error.log?.join("\n") ?? ""}`);
    app.exit(1);
    return undefined;
  }
  ipcMain.handle("outrigger:connection", () => daemon.connection);
  app.on("before-quit", (event) => {
    if (isQuitting) return;
    isQuitting = true;
    // Wait for it: running commands are killed and say so, then it ends.
    event.preventDefault();
    void daemon.close().then(() => app.quit());
  });
  void daemon.exited.then((code) => {
    if (isQuitting) return;
    dialog.showErrorBox("Outrigger ended by itself", `exit code ${code}\n\n${daemon.log.join("\n")}`);
    app.exit(1);
  });
  const window = new BrowserWindow({
    webPreferences: { preload, contextIsolation: true, nodeIntegration: false, sandbox: true },
  });
  // The token is for this page alone.
  window.webContents.on("will-navigate", (event) => event.preventDefault());
  window.webContents.setWindowOpenHandler(() => ({ action: "deny" }));
  await window.loadURL("app://frontend/index.html");
  return daemon;
}
