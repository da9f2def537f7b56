//! Servers that speak nothing but the older transport over HTTP: an event stream, and an address for what is sent.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::{AUTONOMOUS, until_state};
use crate::support::provider::Turn;
use crate::support::{Daemon, Provider, eventually};

/// The most messages that wait for a stream.
const MESSAGES: usize = 64;

/// A server of the older transport.
#[derive(Clone, Default)]
struct Old(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// The address that it names.
    endpoint: String,
    stream: Option<mpsc::Sender<String>>,
    /// How often its stream was opened, and with which header.
    opened: Vec<Option<String>>,
    posted: Vec<Value>,
    /// Methods that it answers with an error of HTTP.
    broken: Option<&'static str>,
}

type Events = Sse<stream::BoxStream<'static, Result<Event, Infallible>>>;

async fn open(State(old): State<Old>, headers: HeaderMap) -> Events {
    let (sender, receiver) = mpsc::channel(MESSAGES);
    let mut inner = old.0.lock().unwrap();
    let token = headers
        .get("x-token")
        .map(|it| it.to_str().unwrap().to_owned());
    inner.opened.push(token);
    inner.stream = Some(sender);
    let first = Event::default().event("endpoint").data(&inner.endpoint);
    let messages = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<String>| {
        let message = receiver.recv().await?;
        Some((Event::default().event("message").data(message), receiver))
    });
    Sse::new(
        stream::once(async { first })
            .chain(messages)
            .map(Ok)
            .boxed(),
    )
}

async fn take(
    State(old): State<Old>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> StatusCode {
    let mut inner = old.0.lock().unwrap();
    assert_eq!(headers["x-token"], "of the server");
    inner.posted.push(message.clone());
    let method = message["method"].as_str().unwrap_or_default();
    if inner.broken.is_some_and(|broken| broken == method) {
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    let result = match method {
        "initialize" => json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "echoed"}]}),
        _ => return StatusCode::ACCEPTED,
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let sender = inner.stream.as_ref().unwrap();
    sender.try_send(answer.to_string()).unwrap();
    StatusCode::ACCEPTED
}

impl Old {
    /// Starts it; returns its address. It names this endpoint, in which `PORT` is its own.
    async fn start(endpoint: &str) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let old = Self::default();
        old.0.lock().unwrap().endpoint = endpoint.replace("PORT", &port.to_string());
        let router = Router::new()
            .route("/sse", get(open))
            .route("/messages", post(take))
            .with_state(old.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (old, format!("http://127.0.0.1:{port}/sse"))
    }

    fn posted(&self) -> Vec<String> {
        let inner = self.0.lock().unwrap();
        let methods = inner
            .posted
            .iter()
            .map(|it| it["method"].as_str().unwrap_or_default());
        methods.map(str::to_owned).collect()
    }

    fn opened(&self) -> usize {
        self.0.lock().unwrap().opened.len()
    }
}

async fn daemon(url: &str, turns: Vec<Turn>) -> (Daemon, Provider) {
    let provider = Provider::start().await;
    for turn in turns {
        provider.then(turn);
    }
    let mut config = AUTONOMOUS();
    config["mcp"] =
        json!({"servers": {"old": {"url": url, "headers": {"X-Token": "of the server"}}}});
    (Daemon::with(&provider, config).await, provider)
}

#[tokio::test]
async fn a_server_of_the_older_transport_is_called_and_opened_again() {
    let (old, url) = Old::start("/messages?session=7").await;
    let call = || Turn::call("mcp__old__echo", &json!({}));
    let turns = vec![call(), Turn::text("one"), call(), Turn::text("two")];
    let (daemon, _provider) = daemon(&url, turns).await;
    let mut client = daemon.connect().await;
    let row = until_state(&mut client, "old", "ready").await;
    assert_eq!(row["tools"], json!(["mcp__old__echo"]));
    client.say("go").await;
    client.until("chat:stream-end").await;
    let said = |at: usize, all: Vec<Value>| all[at]["result"].as_str().unwrap().to_owned();
    assert!(said(0, client.all("chat:tool-result")).ends_with("\nechoed"));
    let order = old.posted();
    assert_eq!(
        order[..3],
        ["initialize", "notifications/initialized", "tools/list"]
    );
    // The stream ends: it is opened again.
    let before = old.opened();
    old.0.lock().unwrap().stream = None;
    eventually("another stream", async || old.opened() > before).await;
    until_state(&mut client, "old", "ready").await;
    client.say("again").await;
    client.until("chat:stream-end").await;
    assert!(said(1, client.all("chat:tool-result")).ends_with("\nechoed"));
    let tokens = old.0.lock().unwrap().opened.clone();
    assert!(
        tokens
            .iter()
            .all(|it| it.as_deref() == Some("of the server"))
    );
}

#[tokio::test]
async fn an_endpoint_of_another_origin_is_sent_nothing() {
    let (trap, trap_url) = Old::start("/messages").await;
    let other = trap_url.replace("/sse", "/messages");
    let (_old, url) = Old::start(&other).await;
    let (daemon, _provider) = daemon(&url, Vec::new()).await;
    let mut client = daemon.connect().await;
    let row = until_state(&mut client, "old", "restarting").await;
    let error = row["error"].as_str().unwrap();
    assert!(error.contains("of another origin"), "{error}");
    assert_eq!(trap.posted(), Vec::<String>::new());
}

#[tokio::test]
async fn a_message_that_is_not_taken_fails_its_call_alone() {
    let (old, url) = Old::start("/messages").await;
    old.0.lock().unwrap().broken = Some("tools/call");
    let turns = vec![Turn::call("mcp__old__echo", &json!({})), Turn::text("done")];
    let (daemon, _provider) = daemon(&url, turns).await;
    let mut client = daemon.connect().await;
    until_state(&mut client, "old", "ready").await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let result = client.all("chat:tool-result")[0].clone();
    assert_eq!(result["status"], "error");
    let said = result["result"].as_str().unwrap();
    assert!(said.contains("status 500"), "{said}");
    until_state(&mut client, "old", "ready").await;
    assert_eq!(old.opened(), 1);
}
