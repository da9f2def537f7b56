// The main process of an Electron application: the daemon lives as long as the application, and the
// window gets its address and token over the context bridge, never in a URL.
//
// The window's own side is `new Client(await window.outrigger.connection())`, in a page whose origin
// the daemon knows: `--allow-origin app://frontend` below. `file://` pages have the origin `null`
// or `file://`, which any page on the disk has as well; a scheme of your own is better.
//
// Nothing here needs Electron but `app`, `BrowserWindow`, `ipcMain` and `dialog`, which are handed
// in, so that the test runs the same lines under Node.
import { startDaemon } from "./daemon.mjs";

/** Lines of the daemon's log that an error dialog shows. */
const LOG_LINES = 20;

/**
 * @param {{app: any, BrowserWindow: any, ipcMain: any, dialog: any, program: string, folder: string, preload: string}} electron
 */
export async function main({ app, BrowserWindow, ipcMain, dialog, program, folder, preload }) {
  const log = [];
  let daemon;
  let isQuitting = false;
  try {
    daemon = await startDaemon({
      program,
      folder,
      args: ["--allow-origin", "app://frontend"],
      log: (line) => {
        log.push(line);
        if (log.length > LOG_LINES) log.shift();
      },
    });
  } catch (error) {
    // The daemon's own words: which port, which key, which file, and what to do.
    dialog.showErrorBox("Outrigger could not start", `${error.message}\n\n${log.join("\n")}`);
    app.exit(1);
    return undefined;
  }
  ipcMain.handle("outrigger:connection", () => ({ url: daemon.url, token: daemon.token }));
  app.on("before-quit", (event) => {
    if (isQuitting) return;
    isQuitting = true;
    // Wait for it: running commands are killed and say so, then it ends.
    event.preventDefault();
    void daemon.stop().then(() => app.quit());
  });
  void daemon.exited.then((code) => {
    if (isQuitting) return;
    dialog.showErrorBox("Outrigger ended by itself", `exit code ${code}\n\n${log.join("\n")}`);
    app.exit(1);
  });
  const window = new BrowserWindow({
    webPreferences: { preload, contextIsolation: true, nodeIntegration: false, sandbox: true },
  });
  await window.loadURL("app://frontend/index.html");
  return daemon;
}

// preload.cjs, the whole of it:
//
//   const { contextBridge, ipcRenderer } = require("electron");
//   contextBridge.exposeInMainWorld("outrigger", { connection: () => ipcRenderer.invoke("outrigger:connection") });
