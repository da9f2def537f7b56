const { contextBridge, ipcRenderer } = require("electron");

contextBridge.exposeInMainWorld("outrigger", { connection: () => ipcRenderer.invoke("outrigger:connection") });
