// The daemon against a real authorization server, npm's `oidc-provider`, and an MCP server that verifies its tokens.
import { createServer } from "node:http";
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { Provider } from "oidc-provider";
import { Daemon, browse } from "./daemon.mjs";

/** Shorter than what the daemon wants left of a token: each use of one renews it. */
const SHORT = 20;

/** Listens on a free port; returns the origin. */
async function listen(handler) {
  const server = createServer(handler);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  open.push(server);
  return [`http://127.0.0.1:${server.address().port}`, server];
}
const open = [];

/** An authorization server; counts what it did. */
async function authorization({ lasts = 3600 } = {}) {
  let provider;
  const [issuer] = await listen((request, response) => provider.callback()(request, response));
  const seen = { issued: 0, revoked: 0, grants: new Set(), lasts };
  provider = new Provider(issuer, {
    scopes: ["openid", "offline_access", "read", "write"],
    clientAuthMethods: ["none", "client_secret_basic", "client_secret_post"],
    features: {
      registration: { enabled: true },
      revocation: { enabled: true },
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: "read write",
          audience: resource,
          accessTokenFormat: "jwt",
          accessTokenTTL: seen.lasts,
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
    issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
    rotateRefreshToken: true,
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    cookies: { keys: ["a-key-of-this-test"] },
  });
  provider.on("grant.success", (ctx) => {
    const { AuthorizationCode, RefreshToken } = ctx.oidc.entities;
    seen.grants.add((RefreshToken ?? AuthorizationCode).grantId);
    seen.issued += 1;
  });
  provider.on("grant.revoked", () => (seen.revoked += 1));
  return { issuer, provider, seen };
}

/** An MCP server with one tool. What it wants of tokens may change. */
async function resource(issuer) {
  const it = { issuer, audience: null, metadata: {} };
  const [origin] = await listen(async (request, response) => {
    const say = (status, body, headers = {}) => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(JSON.stringify(body));
    };
    if (request.url === "/.well-known/oauth-protected-resource/mcp") {
      return say(200, { resource: it.url, authorization_servers: [it.issuer], scopes_supported: ["read"], ...it.metadata });
    }
    if (request.url !== "/mcp") return say(404, {});
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
    try {
      await jwtVerify(token ?? "", keys, { issuer, audience: it.audience ?? it.url });
    } catch {
      const words = `Bearer error="invalid_token", resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
      return say(401, {}, { "www-authenticate": words });
    }
    if (request.method !== "POST") return say(405, {});
    let text = "";
    for await (const piece of request) text += piece;
    const { id, method } = JSON.parse(text);
    if (id === undefined) return say(202, {});
    const results = {
      initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "it", version: "1" } },
      "tools/list": { tools: [{ name: "look", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: "seen" }] },
    };
    const result = results[method];
    say(200, result ? { jsonrpc: "2.0", id, result } : { jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } });
  });
  it.url = `${origin}/mcp`;
  return it;
}

let real;
before(async () => (real = await authorization()));
after(() => open.forEach((server) => (server.closeAllConnections(), server.close())));

async function signIn(daemon, from = 0) {
  const asked = await daemon.demand(from);
  const end = await browse(asked.url);
  return { asked, end };
}

async function look(daemon) {
  const { status, result } = await daemon.call("mcp__peer__look");
  assert.equal(status, "success", result);
}

test("sign-in, a restart, and sign-out, after which nothing counts any more", async () => {
  const server = await resource(real.issuer);
  let daemon = await Daemon.start({ url: server.url });
  const { asked, end } = await signIn(daemon);
  assert.equal(end.status, 200, end.text);
  assert.equal(`http://${asked.host}`, real.issuer);
  await daemon.settled("ready");
  await look(daemon);
  const { folder } = daemon;
  await daemon.end({ keep: true });
  daemon = await Daemon.start({ url: server.url }, { folder });
  await daemon.settled("ready");
  await look(daemon);
  const before = real.seen.revoked;
  await daemon.ask("mcp:sign-out", { server: "peer" });
  await daemon.demand();
  assert.equal(real.seen.revoked, before + 1);
  await daemon.end();
});

test("each short token is renewed, and a rotated one is used once", async () => {
  const short = await authorization({ lasts: SHORT });
  const server = await resource(short.issuer);
  const daemon = await Daemon.start({ url: server.url });
  await signIn(daemon);
  await daemon.settled("ready");
  const before = short.seen.issued;
  await look(daemon);
  await look(daemon);
  assert.ok(short.seen.issued >= before + 2, `${short.seen.issued}`);
  await daemon.end();
});

test("a grant that is revoked there is asked for again, and the call waits", async () => {
  const it = await authorization({ lasts: SHORT });
  const server = await resource(it.issuer);
  const daemon = await Daemon.start({ url: server.url });
  await signIn(daemon);
  await daemon.settled("ready");
  const seen = daemon.frames.length;
  for (const grant of it.seen.grants) await it.provider.RefreshToken.revokeByGrantId(grant);
  const call = daemon.call("mcp__peer__look");
  const asked = await daemon.demand(seen);
  await browse(asked.url);
  assert.equal((await call).status, "success");
  await daemon.end();
});

test("a token for another audience is not asked for for ever", async () => {
  const server = await resource(real.issuer);
  server.audience = "https://somebody-else.example/";
  const daemon = await Daemon.start({ url: server.url });
  await signIn(daemon);
  const wants = (it) => it.type === "session:notice" && /audience/.test(it.payload.message);
  await daemon.until("the audience", wants);
  assert.equal(daemon.frames.filter((it) => it.type === "mcp:auth-required").length, 1);
  await daemon.end();
});

test("metadata of another issuer is refused before anybody is sent there", async () => {
  // Somebody passes on what the real one says of itself.
  const [copy] = await listen(async (request, response) => {
    const answer = await fetch(`${real.issuer}${request.url}`);
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(await answer.text());
  });
  const server = await resource(real.issuer);
  server.issuer = copy;
  const daemon = await Daemon.start({ url: server.url });
  const row = await daemon.settled("failed");
  assert.match(row.error, new RegExp(`of the issuer ${real.issuer}`));
  assert.ok(!daemon.frames.some((it) => it.type === "mcp:auth-required"));
  await daemon.end();
});

test("metadata that names another server later is said, and no token goes there", async () => {
  const other = await authorization();
  const server = await resource(real.issuer);
  const daemon = await Daemon.start({ url: server.url });
  const { asked: first } = await signIn(daemon);
  await daemon.settled("ready");
  server.metadata = { authorization_servers: [other.issuer] };
  server.audience = "https://changed.example/";
  const seen = daemon.frames.length;
  const call = daemon.call("mcp__peer__look");
  const second = await daemon.demand(seen);
  assert.equal(`http://${second.host}`, other.issuer);
  assert.equal(second.wasAt, first.host);
  assert.equal(other.seen.issued, 0);
  await daemon.ask("chat:cancel", { conversationId: "default" });
  await call;
  await daemon.end();
});

test("a server does not get codes of the real one by naming its page", async () => {
  let got = [];
  const [evil] = await listen(async (request, response) => {
    const say = (body) => (response.writeHead(200, { "content-type": "application/json" }), response.end(JSON.stringify(body)));
    if (request.url.startsWith("/.well-known/")) {
      return say({
        issuer: evil,
        authorization_endpoint: `${real.issuer}/auth`,
        token_endpoint: `${evil}/token`,
        // Where a client of the real one is had.
        registration_endpoint: `${evil}/register`,
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
      });
    }
    let text = "";
    for await (const piece of request) text += piece;
    if (request.url === "/register") {
      const answer = await fetch(`${real.issuer}/reg`, { method: "POST", headers: { "content-type": "application/json" }, body: text });
      return say(await answer.json());
    }
    got.push(request.url);
    say({ access_token: "x", token_type: "Bearer" });
  });
  const server = await resource(real.issuer);
  server.issuer = evil;
  const daemon = await Daemon.start({ url: server.url });
  const { asked, end } = await signIn(daemon);
  assert.equal(`http://${asked.host}`, real.issuer);
  assert.equal(end.status, 400, end.text);
  assert.match(end.text, new RegExp(`of the issuer ${real.issuer}`));
  assert.deepEqual(got, []);
  await daemon.end();
});
