// An MCP server that asks to sign in: the page shows where, opens it only when it is clicked, and takes a pasted address.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { after } from "node:test";

import { mayOpen } from "../../clients/console/src/signin.js";
import { shot, skip, stories } from "./story.mjs";

const { story } = stories({ script: "steps: []\n" });
const timed = { skip, timeout: 120_000 };
const open = [];
after(() => open.forEach((server) => (server.closeAllConnections(), server.close())));

/** A server that is its own authorization server, and whose user says yes. */
async function server() {
  const seen = { opened: 0 };
  const http = createServer(async (request, response) => {
    const say = (status, body, headers = {}) => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(body));
    };
    const origin = `http://127.0.0.1:${http.address().port}`;
    const url = new URL(request.url, origin);
    let text = "";
    for await (const piece of request) text += piece;
    switch (url.pathname) {
      case "/.well-known/oauth-protected-resource/mcp":
        return say(200, { resource: `${origin}/mcp`, authorization_servers: [origin], scopes_supported: ["read"] });
      case "/.well-known/oauth-authorization-server":
        return say(200, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          code_challenge_methods_supported: ["S256"],
        });
      case "/register":
        return say(201, { client_id: "c", redirect_uris: JSON.parse(text).redirect_uris });
      case "/authorize": {
        seen.opened += 1;
        const to = new URL(url.searchParams.get("redirect_uri"));
        to.searchParams.set("code", "a-code");
        to.searchParams.set("state", url.searchParams.get("state"));
        seen.answer = to.href;
        return say(302, {}, { location: seen.isElsewhere ? `${origin}/elsewhere` : to.href });
      }
      case "/elsewhere":
        return say(200, {});
      case "/token":
        return say(200, { access_token: "an-access-token", token_type: "Bearer" });
      case "/mcp": {
        if (request.headers.authorization !== "Bearer an-access-token") {
          const metadata = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
          return say(401, {}, { "www-authenticate": metadata });
        }
        if (request.method !== "POST") return say(405, {});
        const { id, method } = JSON.parse(text);
        if (id === undefined) return say(202, {});
        if (method === "initialize") return say(200, { jsonrpc: "2.0", id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } } });
        if (method === "tools/list") return say(200, { jsonrpc: "2.0", id, result: { tools: [] } });
        return say(200, { jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } });
      }
      default:
        return say(404, {});
    }
  });
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  open.push(http);
  seen.host = `127.0.0.1:${http.address().port}`;
  const environment = { OUTRIGGER_MCP__SERVERS__DOCS__URL: `http://${seen.host}/mcp`, OUTRIGGER_MCP__TOKENS: "memory" };
  return { seen, daemon: { environment } };
}

const asks = (page) => page.locator(".notice", { hasText: "asks you to sign in" });

test("a link says where it leads, and is opened by a click alone", timed, async () => {
  const { seen, daemon } = await server();
  await story(
    async (page) => {
      const link = asks(page).locator("a");
      await link.waitFor();
      assert.equal(await link.textContent(), `Sign in at ${seen.host}`);
      assert.equal(seen.opened, 0);
      await shot(page, "sign-in");
      const [other] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
      await other.getByText("You can close this page").waitFor();
      await asks(page).waitFor({ state: "detached" });
      await page.locator(".notice", { hasText: "is ready with" }).waitFor();
      assert.equal(seen.opened, 1);
    },
    { daemon },
  );
});

test("an address is pasted where the browser is elsewhere", timed, async () => {
  const { seen, daemon } = await server();
  seen.isElsewhere = true;
  await story(
    async (page) => {
      const row = asks(page);
      const [other] = await Promise.all([page.context().waitForEvent("page"), row.locator("a").click()]);
      await other.waitForURL("**/elsewhere");
      await row.locator("summary").click();
      await row.locator("input").fill(seen.answer);
      await row.locator("form button").click();
      await row.waitFor({ state: "detached" });
      await page.locator(".notice", { hasText: "is ready with" }).waitFor();
    },
    { daemon },
  );
});

test("only pages are opened", () => {
  for (const url of ["javascript:alert(1)", "file:///etc/passwd", "http://login.example/", "data:text/html,x", "nothing", "http://localhost.evil.example/"]) {
    assert.equal(mayOpen(url), false, url);
  }
  for (const url of ["https://login.example/", "http://127.0.0.1:9/x", "http://localhost/"]) assert.equal(mayOpen(url), true, url);
});
