// Where Electron begins: hands its parts to `../electron-main.mjs`.
//
//   npm install && npm start -- PROJECT      with OUTRIGGER_BIN where the program is not on the PATH
import { app, BrowserWindow, dialog, ipcMain, protocol } from "electron";
import { fileURLToPath } from "node:url";

import { main } from "../electron-main.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
// No `await` here: Electron is not ready before this file has ended.
void main({
  app,
  BrowserWindow,
  ipcMain,
  dialog,
  protocol,
  folder: process.argv[2] ?? process.cwd(),
  preload: path("preload.cjs"),
});
