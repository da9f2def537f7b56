//! How a session stands, in a word: asked for, told, and told to another program.

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider, within};

#[tokio::test]
async fn a_session_runs_from_its_send_to_the_end_of_what_waits() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(&[json!({"content": "a"})], &[], "stop");
    provider.then(turn).then(Turn::text("b"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let layers = json!(["stream", "state", "status"]);
    client
        .ask(json!({"type": "session:configure", "layers": layers}))
        .await;
    let ask = json!({"type": "session:status"});
    // Without an id, too: nothing answers it.
    client
        .send(json!({"type": "chat:send", "content": "one"}))
        .await;
    let status = client.ask(ask.clone()).await;
    assert_eq!(status["payload"], json!({"state": "running"}));
    pause.reached().await;
    let two = json!({"type": "chat:send", "content": "two", "whenBusy": "queue"});
    assert_eq!(client.ask(two).await["payload"]["state"], "queued");
    pause.go_on();
    for _ in 0..2 {
        client.until("chat:stream-end").await;
    }
    assert_eq!(client.ask(ask).await["payload"], json!({"state": "idle"}));
    let told = client.all("session:status-changed");
    let told: Vec<&Value> = told.iter().map(|it| &it["state"]).collect();
    assert_eq!(told, ["running", "idle"]);
    client.check_numbers();
}

#[tokio::test]
async fn a_session_says_in_a_word_how_it_stands() {
    let provider = Provider::start().await;
    provider.then(Turn::call("bash", &json!({"command": "touch made"})));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let layers = json!(["stream", "state", "status"]);
    client
        .ask(json!({"type": "session:configure", "layers": layers}))
        .await;
    let ask = json!({"type": "session:status"});
    assert_eq!(
        client.ask(ask.clone()).await["payload"],
        json!({"state": "idle"})
    );
    client.say("go").await;
    let told = client.until("session:status-changed").await;
    assert_eq!(told["payload"], json!({"state": "running"}));
    let told = client.until("session:status-changed").await["payload"].clone();
    assert_eq!(told["state"], "requires_action");
    assert_eq!(
        told["requires"],
        json!([{"kind": "approval", "conversationId": "default", "messageId": "m1", "toolId": "t1"}])
    );
    assert_eq!(client.ask(ask.clone()).await["payload"], told);
    // No answer is scripted: the exchange fails.
    client
        .send(json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true}))
        .await;
    for state in ["running", "failed"] {
        let told = client.until("session:status-changed").await;
        assert_eq!(told["payload"], json!({"state": state}));
    }
    client.check_numbers();
    // Who does not ask for the layer has the request.
    let mut other = daemon.connect().await;
    provider.then(Turn::text("a"));
    other.say("go").await;
    other.until("chat:stream-end").await;
    assert_eq!(other.ask(ask).await["payload"]["state"], "idle");
    assert!(other.all("session:status-changed").is_empty());
}

/// More than a test has delivered.
const MOST_SEEN: usize = 16;

/// Serves an endpoint for webhooks; returns its address and what is delivered.
async fn endpoint() -> (String, mpsc::Receiver<Value>) {
    let (saw, seen) = mpsc::channel(MOST_SEEN);
    let take = move |body: Bytes| async move {
        saw.try_send(serde_json::from_slice(&body).unwrap())
            .unwrap();
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/hook", post(take));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}/hook"), seen)
}

#[tokio::test]
async fn another_program_is_told_what_a_session_waits_for_and_how_an_exchange_ended() {
    let (url, mut seen) = endpoint().await;
    let provider = Provider::start().await;
    provider
        .then(Turn::call("bash", &json!({"command": "touch made"})))
        .then(Turn::text("done"));
    let webhooks = json!({
        "url": url,
        "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "events": ["session.requires_action", "exchange.ended"],
        "allow_private": true,
    });
    let daemon = Daemon::with(&provider, json!({ "webhooks": webhooks })).await;
    let mut client = daemon.connect().await;
    let mut next = async || {
        let told = within("a delivery", seen.recv(), String::new).await;
        told.unwrap()
    };
    client.say("go").await;
    let told = next().await;
    assert_eq!(told["type"], "session.requires_action");
    assert_eq!(told["data"]["sessionId"], client.session());
    assert_eq!(told["data"]["requires"][0]["toolId"], "t1");
    client
        .send(json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true}))
        .await;
    let told = next().await;
    assert_eq!(told["type"], "exchange.ended");
    let expected = json!({
        "sessionId": client.session(), "conversationId": "default", "messageId": "m1",
        "stopReason": "end_turn",
    });
    assert_eq!(told["data"], expected);
}
