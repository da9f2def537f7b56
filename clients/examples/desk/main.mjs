// What Electron's main process would do, as a plain Node program; the window is any Chromium at the address that it prints.
//
//   npm install && npm start -- PROJECT      with OUTRIGGER_BIN where `outrigger` is not on the PATH
//
// In Electron itself, and nowhere else in these files, this is other:
// - `protocol.handle("app", …)` in the place of the server, its scheme registered before the application is ready; the page's
//   origin is `app://desk` then, and the daemon is started with `--allow-origin app://desk`;
// - `ipcMain.handle("desk:read", …)` and a preload script with `contextBridge.exposeInMainWorld("desk", {…})` in the place of
//   `/bridge`; the page takes `window.desk` where it is there;
// - `app.on("before-quit", …)` waits for the daemon's end. `clients/typescript/examples/electron-main.mjs` has all of it.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile, realpath } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { spawnDaemon } from "outrigger-client/node";

const [folder = ".", ...further] = process.argv.slice(2);
const CLIENT = dirname(fileURLToPath(import.meta.resolve("outrigger-client")));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' ws://127.0.0.1:*; base-uri 'none'; form-action 'none'";

const daemon = await spawnDaemon({ project: folder, args: further, log: console.error }).catch((error) => {
  console.error(`Outrigger could not start: ${error.message}`);
  process.exit(1);
});
void daemon.exited.then((code) => process.exit(code ?? 1));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => daemon.close());

/** A file of a folder, and nothing outside of it, by `..` or by a link. */
async function fileOf(place, name) {
  const [file, root] = await Promise.all([realpath(join(place, name)), realpath(place)]);
  if (!file.startsWith(root + sep)) throw new Error(`${name} is not in the folder`);
  return readFile(file);
}

/** What the page may have of this process. */
const bridge = {
  connection: () => daemon.connection,
  read: async (path) => String(await fileOf(folder, path)),
};

/** Whoever has it is the window: another page of this machine does not. */
const key = randomBytes(32).toString("hex");
const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://desk");
  try {
    if (request.headers.host !== `127.0.0.1:${server.address().port}`) throw new Error("another host's name");
    if (request.method === "POST" && pathname.startsWith("/bridge/") && request.headers["x-desk"] === key) {
      const does = Object.hasOwn(bridge, pathname.slice(8)) && bridge[pathname.slice(8)];
      const given = JSON.parse((await request.toArray()).join(""));
      response.end(JSON.stringify(await does(...given)));
      return;
    }
    const [place, name] = pathname.startsWith("/client/") ? [CLIENT, pathname.slice(8)] : [import.meta.dirname, pathname === "/" ? "index.html" : pathname];
    const type = request.method === "GET" && TYPES[extname(name)];
    if (!type) throw new Error("no such file");
    response.writeHead(200, { "content-type": type, "content-security-policy": POLICY }).end(await fileOf(place, name));
  } catch (error) {
    response.writeHead(404, { "content-type": "text/plain" }).end(error.message);
  }
}).listen(0, "127.0.0.1");
await once(server, "listening");
console.log(`http://127.0.0.1:${server.address().port}/#${key}`);
