//! An MCP server over HTTP that wants a token, and the authorization server that issues it: both as wicked as a test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::header::{AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::support::within;

type Form = BTreeMap<String, String>;

/// The two, on a port each.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) mcp: String,
    pub(crate) issuer: String,
    state: Arc<Mutex<Told>>,
}

/// How they behave, and what was asked of them.
#[derive(Default)]
struct Told {
    /// Fields of the authorization server's metadata that are otherwise; `null` takes one away.
    metadata: Value,
    /// The same of the resource's metadata.
    resource: Value,
    /// What is added to what the page answers, or replaced in it.
    answer: Form,
    /// The answers that stand for any other, by path: status, `Location`, body.
    instead: BTreeMap<String, (u16, Option<String>, String)>,
    /// How long tokens last, in seconds.
    lasts: i64,
    /// Whether it refuses codes, and repeats all that it was sent in the error.
    echoes: bool,
    /// Whether the MCP server takes none.
    takes_none: bool,
    /// With what words it forbids every call.
    forbids: Option<String>,
    codes: BTreeMap<String, Form>,
    /// Access tokens that count, with their rights.
    access: BTreeMap<String, String>,
    /// Refresh tokens that count, with the rights.
    refresh: BTreeMap<String, String>,
    /// Whatever was a secret.
    secrets: Vec<String>,
    asked: Vec<(String, Form)>,
    minted: usize,
    /// Whose next answer is held back: `/token`, or `tools/call`.
    held: BTreeMap<&'static str, (oneshot::Sender<()>, oneshot::Receiver<()>)>,
}

/// An answer that is held back: what was asked for has been done.
pub(crate) struct Hold {
    reached: oneshot::Receiver<()>,
    go_on: oneshot::Sender<()>,
}

impl Hold {
    pub(crate) async fn reached(&mut self) {
        let reached = &mut self.reached;
        within("what is held back", reached, String::new)
            .await
            .unwrap();
    }

    pub(crate) fn go_on(self) {
        self.go_on.send(()).ok();
    }
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let (mcp, issuer) = (bind().await, bind().await);
        let url = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let fake = Self {
            mcp: url(&mcp),
            issuer: url(&issuer),
            state: Arc::default(),
        };
        fake.told().lasts = 3_600;
        let resource = Router::new()
            .route(
                "/mcp",
                post(rpc).get(|| async { StatusCode::METHOD_NOT_ALLOWED }),
            )
            .fallback(resource)
            .with_state(fake.clone());
        let authorization = Router::new()
            .route("/authorize", get(page))
            .route("/register", post(register))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .fallback(metadata)
            .with_state(fake.clone());
        tokio::spawn(async move { axum::serve(mcp, resource).await });
        tokio::spawn(async move { axum::serve(issuer, authorization).await });
        fake
    }

    /// The server as it stands in a configuration.
    pub(crate) fn config(&self, more: &Value) -> Value {
        let mut config = json!({ "url": format!("{}/mcp", self.mcp) });
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        config
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.state.lock().unwrap()
    }

    pub(crate) fn with_metadata(self, metadata: Value) -> Self {
        self.told().metadata = metadata;
        self
    }

    pub(crate) fn set_resource(&self, resource: Value) {
        self.told().resource = resource;
    }

    pub(crate) fn set_metadata(&self, metadata: Value) {
        self.told().metadata = metadata;
    }

    pub(crate) fn answers(&self, name: &str, value: &str) {
        self.told().answer.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn instead(&self, path: &str, status: u16, location: Option<&str>, body: &str) {
        let answer = (status, location.map(str::to_owned), body.to_owned());
        self.told().instead.insert(path.to_owned(), answer);
    }

    pub(crate) fn tokens_last(&self, seconds: i64) {
        self.told().lasts = seconds;
    }

    pub(crate) fn echoes(&self) {
        self.told().echoes = true;
    }

    pub(crate) fn takes_none(&self) {
        self.told().takes_none = true;
    }

    pub(crate) fn forbids(&self, words: &str) {
        self.told().forbids = Some(words.to_owned());
    }

    /// Holds the next answer back of `/token`, or to `tools/call`.
    pub(crate) fn hold(&self, what: &'static str) -> Hold {
        let (tell, reached) = oneshot::channel();
        let (go_on, wait) = oneshot::channel();
        self.told().held.insert(what, (tell, wait));
        Hold { reached, go_on }
    }

    async fn held_back(&self, what: &str) {
        let held = self.told().held.remove(what);
        if let Some((tell, wait)) = held {
            tell.send(()).ok();
            wait.await.ok();
        }
    }

    /// Has the access tokens end; with `all` the refresh tokens, too.
    pub(crate) fn end_tokens(&self, all: bool) {
        let mut told = self.told();
        told.access.clear();
        if all {
            told.refresh.clear();
        }
    }

    pub(crate) fn secrets(&self) -> Vec<String> {
        self.told().secrets.clone()
    }

    /// The forms that a path got.
    pub(crate) fn asked(&self, path: &str) -> Vec<Form> {
        let told = self.told();
        let asked = told.asked.iter().filter(|(at, _)| at == path);
        asked.map(|(_, form)| form.clone()).collect()
    }

    /// Every path that was asked for.
    pub(crate) fn paths(&self) -> Vec<String> {
        let told = self.told();
        told.asked.iter().map(|(at, _)| at.clone()).collect()
    }

    fn saw(&self, path: &str, form: Form) -> Option<Response> {
        let mut told = self.told();
        told.asked.push((path.to_owned(), form));
        let (status, location, body) = told.instead.get(path)?.clone();
        let status = StatusCode::from_u16(status).unwrap();
        Some(match location {
            Some(location) => (status, [(LOCATION, location)], body).into_response(),
            None => (status, body).into_response(),
        })
    }
}

impl Told {
    fn mint(&mut self, what: &str) -> String {
        self.minted += 1;
        let secret = format!("{what}-of-the-fake-{:04}-secret", self.minted);
        self.secrets.push(secret.clone());
        secret
    }

    fn issue(&mut self, scope: &str) -> Response {
        let (access, refresh) = (self.mint("access"), self.mint("refresh"));
        self.access.insert(access.clone(), scope.to_owned());
        self.refresh.insert(refresh.clone(), scope.to_owned());
        axum::Json(json!({
            "access_token": access, "token_type": "Bearer", "refresh_token": refresh,
            "expires_in": self.lasts, "scope": scope,
        }))
        .into_response()
    }
}

async fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Puts fields over others; `null` takes one away.
fn over(mut under: Value, fields: &Value) -> Value {
    for (key, value) in fields.as_object().into_iter().flatten() {
        match value.is_null() {
            true => drop(under.as_object_mut().unwrap().remove(key)),
            false => under[key] = value.clone(),
        }
    }
    under
}

/// Returns what a client sends; what its header says of who it is stands beside it as `basic`.
fn form_of_client(headers: &HeaderMap, body: &[u8]) -> Form {
    let mut form = form(body);
    let header = headers.get(AUTHORIZATION).map(|it| it.to_str().unwrap());
    if let Some(pair) = header.and_then(|it| it.strip_prefix("Basic ")) {
        let pair = String::from_utf8(STANDARD.decode(pair).unwrap()).unwrap();
        let (id, _) = pair.split_once(':').unwrap();
        form.insert("client_id".to_owned(), id.to_owned());
        form.insert("basic".to_owned(), pair);
    }
    form
}

fn form(body: &[u8]) -> Form {
    let mut url = reqwest::Url::parse("http://x/").unwrap();
    url.set_query(Some(std::str::from_utf8(body).unwrap()));
    url.query_pairs().into_owned().collect()
}

async fn resource(State(fake): State<Fake>, uri: Uri) -> Response {
    if let Some(instead) = fake.saw(uri.path(), Form::new()) {
        return instead;
    }
    if uri.path() != "/.well-known/oauth-protected-resource/mcp" {
        return StatusCode::NOT_FOUND.into_response();
    }
    let metadata = json!({
        "resource": format!("{}/mcp", fake.mcp), "authorization_servers": [fake.issuer],
        "scopes_supported": ["read"],
    });
    axum::Json(over(metadata, &fake.told().resource)).into_response()
}

async fn metadata(State(fake): State<Fake>, uri: Uri) -> Response {
    if let Some(instead) = fake.saw(uri.path(), Form::new()) {
        return instead;
    }
    if uri.path() != "/.well-known/oauth-authorization-server" {
        return StatusCode::NOT_FOUND.into_response();
    }
    let at = |path: &str| format!("{}{path}", fake.issuer);
    let metadata = json!({
        "issuer": fake.issuer,
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"),
        "revocation_endpoint": at("/revoke"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    axum::Json(over(metadata, &fake.told().metadata)).into_response()
}

async fn register(State(fake): State<Fake>, body: Bytes) -> Response {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let seen = Form::from([("body".to_owned(), text.clone())]);
    if let Some(instead) = fake.saw("/register", seen) {
        return instead;
    }
    let wanted: Value = serde_json::from_str(&text).unwrap();
    let (_, port) = fake.issuer.rsplit_once(':').unwrap();
    let client = format!("client-at-{port}");
    let answer = json!({"client_id": client, "redirect_uris": wanted["redirect_uris"]});
    (StatusCode::CREATED, axum::Json(answer)).into_response()
}

/// The user is signed in and says yes.
async fn page(State(fake): State<Fake>, Query(query): Query<Form>) -> Response {
    if let Some(instead) = fake.saw("/authorize", query.clone()) {
        return instead;
    }
    let mut told = fake.told();
    let code = told.mint("code");
    told.codes.insert(code.clone(), query.clone());
    let mut answer = Form::from([
        ("code".to_owned(), code),
        ("state".to_owned(), query["state"].clone()),
        ("iss".to_owned(), fake.issuer.clone()),
    ]);
    answer.extend(told.answer.clone());
    answer.retain(|_, value| !value.is_empty());
    let to = reqwest::Url::parse_with_params(&query["redirect_uri"], &answer).unwrap();
    (StatusCode::FOUND, [(LOCATION, to.to_string())]).into_response()
}

async fn token(State(fake): State<Fake>, headers: HeaderMap, body: Bytes) -> Response {
    let answer = issued(&fake, &headers, &body);
    fake.held_back("/token").await;
    answer
}

fn issued(fake: &Fake, headers: &HeaderMap, body: &[u8]) -> Response {
    let form = form_of_client(headers, body);
    if let Some(instead) = fake.saw("/token", form.clone()) {
        return instead;
    }
    if fake.told().echoes {
        let error =
            json!({"error": "invalid_grant", "error_description": format!("wrong: {form:?}")});
        return (StatusCode::BAD_REQUEST, axum::Json(error)).into_response();
    }
    let refused = || {
        let error = json!({"error": "invalid_grant"});
        (StatusCode::BAD_REQUEST, axum::Json(error)).into_response()
    };
    let mut told = fake.told();
    if form["grant_type"] == "refresh_token" {
        let Some(scope) = told.refresh.remove(&form["refresh_token"]) else {
            return refused();
        };
        return told.issue(&scope);
    }
    let Some(begun) = told.codes.remove(&form["code"]) else {
        return refused();
    };
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
    let is_same = |field: &str| begun.get(field) == form.get(field);
    let is_meant = begun["code_challenge_method"] == "S256" && begun["code_challenge"] == digest;
    if !is_meant || !is_same("redirect_uri") || !is_same("resource") || !is_same("client_id") {
        return refused();
    }
    told.issue(begun.get("scope").map_or("", String::as_str))
}

async fn revoke(State(fake): State<Fake>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let form = form_of_client(&headers, &body);
    let token = form["token"].clone();
    fake.saw("/revoke", form);
    fake.told().refresh.remove(&token);
    StatusCode::OK
}

/// The MCP server: a tool for everybody with the right `read`, and one for who has `write` besides.
async fn rpc(State(fake): State<Fake>, headers: HeaderMap, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let answer = answered(&fake, &headers, &message);
    if message["method"] == "tools/call" {
        fake.held_back("tools/call").await;
    }
    answer
}

fn answered(fake: &Fake, headers: &HeaderMap, message: &Value) -> Response {
    let method = message["method"].as_str().unwrap_or_default();
    let tool = message["params"]["name"].as_str().unwrap_or_default();
    let token = headers.get(AUTHORIZATION).map(|it| it.to_str().unwrap());
    let seen = Form::from([
        ("method".to_owned(), method.to_owned()),
        (
            "authorization".to_owned(),
            token.unwrap_or_default().to_owned(),
        ),
    ]);
    if let Some(instead) = fake.saw("/mcp", seen) {
        return instead;
    }
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", fake.mcp);
    let challenge = |status: StatusCode, words: &str| {
        let words = format!("Bearer {words}, resource_metadata=\"{metadata}\"");
        (status, [(WWW_AUTHENTICATE, words)]).into_response()
    };
    let told = fake.told();
    let token = token.and_then(|token| token.strip_prefix("Bearer "));
    let scope = token.and_then(|token| told.access.get(token));
    let Some(scope) = scope.filter(|_| !told.takes_none) else {
        return challenge(StatusCode::UNAUTHORIZED, "scope=\"read\"");
    };
    if let (Some(words), "tools/call") = (&told.forbids, method) {
        return challenge(StatusCode::FORBIDDEN, words);
    }
    let needed = if tool == "wipe" { "write" } else { "read" };
    if method == "tools/call" && !scope.split(' ').any(|it| it == needed) {
        let words = "error=\"insufficient_scope\", scope=\"write\"";
        return challenge(StatusCode::FORBIDDEN, words);
    }
    let result = match method {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"}}),
        "tools/list" => json!({"tools": [
            {"name": "look", "inputSchema": {"type": "object"}},
            {"name": "wipe", "inputSchema": {"type": "object"}},
        ]}),
        "tools/call" => json!({"content": [{"type": "text", "text": format!("did {tool}")}]}),
        _ if message["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
                .into_response();
        }
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}
