// `outrigger chat --url wss://…` through a proxy with TLS, as a self-hoster has one.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import test from "node:test";
import tls from "node:tls";

import { Daemon, program } from "../../../tests/console/support.mjs";

function hasOpenssl() {
  try {
    execFileSync("openssl", ["version"]);
    return true;
  } catch {
    return false;
  }
}

test("the terminal client speaks TLS", { skip: hasOpenssl() ? false : "openssl is not installed" }, async () => {
  const daemon = await Daemon.start({ token: "a-token-for-the-proxy-test" });
  const [key, certificate] = ["key.pem", "cert.pem"].map((name) => join(daemon.place, name));
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"], { stdio: "ignore" });
  const proxy = tls.createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (outside) => {
    const inside = net.connect(daemon.port, "127.0.0.1");
    outside.pipe(inside).pipe(outside);
    for (const socket of [inside, outside]) socket.on("error", () => {});
  });
  proxy.on("tlsClientError", () => {});
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  const chat = async (environment) => {
    const url = `wss://localhost:${proxy.address().port}/ws`;
    const child = spawn(program, ["chat", "--url", url, "hello"], {
      cwd: daemon.place,
      env: { PATH: process.env.PATH, HOME: daemon.place, OUTRIGGER_TOKEN: daemon.token, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let [answer, aside] = ["", ""];
    child.stdout.on("data", (text) => (answer += text));
    child.stderr.on("data", (text) => (aside += text));
    const [code] = await once(child, "close");
    return { code, answer, aside };
  };
  const known = await chat({ SSL_CERT_FILE: certificate });
  assert.equal(known.code, 0, known.aside);
  assert.match(known.answer, /> hello/);
  const unknown = await chat({});
  assert.equal(unknown.code, 1);
  assert.match(unknown.aside, /certificate/i);
  proxy.close();
  await daemon.end();
});
