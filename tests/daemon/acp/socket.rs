//! The same protocol on the daemon's port.

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::{DEADLINE, is_question, prompt};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};
use futures::{SinkExt as _, StreamExt as _};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn send(socket: &mut Socket, mut frame: Value) {
    frame["jsonrpc"] = json!("2.0");
    socket.send(Message::text(frame.to_string())).await.unwrap();
}

/// Returns the next frame.
async fn next(socket: &mut Socket) -> Value {
    loop {
        let read = tokio::time::timeout(DEADLINE, socket.next()).await;
        if let Message::Text(text) = read.expect("no frame came").unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// Reads on until a frame is what is waited for.
async fn until(socket: &mut Socket, is_it: impl Fn(&Value) -> bool) -> Value {
    loop {
        let frame = next(socket).await;
        if is_it(&frame) {
            return frame;
        }
    }
}

async fn status(url: &str, origin: Option<&str>) -> Option<u16> {
    let mut request = url.into_client_request().unwrap();
    if let Some(origin) = origin {
        request
            .headers_mut()
            .insert("origin", origin.parse().unwrap());
    }
    match tokio_tungstenite::connect_async(request).await {
        Ok(_) => None,
        Err(Error::Http(response)) => Some(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn it_takes_the_token_and_speaks_the_protocol() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello"));
    let daemon = Daemon::start(&provider).await;
    let url = format!("ws://127.0.0.1:{}/acp", daemon.port);
    let with_token = format!("{url}?token={}", daemon.token);
    assert_eq!(status(&url, None).await, Some(401));
    assert_eq!(
        status(&with_token, Some("http://evil.example")).await,
        Some(403)
    );

    let mut elsewhere = with_token.as_str().into_client_request().unwrap();
    let host = "evil.example".parse().unwrap();
    elsewhere.headers_mut().insert("host", host);
    let refused = tokio_tungstenite::connect_async(elsewhere).await;
    assert!(
        matches!(&refused, Err(Error::Http(response)) if response.status() == 403),
        "{refused:?}"
    );

    let connected = tokio_tungstenite::connect_async(&with_token).await;
    let (mut socket, response) = connected.unwrap();
    assert!(response.headers().contains_key("acp-connection-id"));
    let cwd = daemon.project().canonicalize().unwrap();
    let mut session = String::new();
    let frames = [
        json!({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"id": 2, "method": "session/new", "params": {"cwd": cwd, "mcpServers": []}}),
        json!({"id": 3, "method": "session/prompt", "params": {"prompt": [{"type": "text", "text": "hi"}]}}),
    ];
    let mut said = String::new();
    for mut frame in frames {
        if frame["id"] == 3 {
            frame["params"]["sessionId"] = json!(session);
        }
        let id = frame["id"].clone();
        send(&mut socket, frame).await;
        let answer = loop {
            let read = next(&mut socket).await;
            if read["id"] == id {
                break read;
            }
            said.push_str(
                read["params"]["update"]["content"]["text"]
                    .as_str()
                    .unwrap_or_default(),
            );
        };
        assert!(answer.get("error").is_none(), "{answer}");
        session = answer["result"]["sessionId"]
            .as_str()
            .unwrap_or(&session)
            .to_owned();
    }
    assert_eq!(said, "hello");
}

#[tokio::test]
async fn a_frame_that_is_too_long_is_answered_before_the_end() {
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"server": {"max_frame_bytes": 65_536}})).await;
    let url = format!("ws://127.0.0.1:{}/acp?token={}", daemon.port, daemon.token);
    let (mut socket, _) = tokio_tungstenite::connect_async(&url).await.unwrap();
    // The end may come before all of it is sent.
    drop(socket.send(Message::text("x".repeat(100_000))).await);
    let answer = next(&mut socket).await;
    assert_eq!(answer["error"]["code"], -32_600, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("server.max_frame_bytes"), "{message}");
}

#[tokio::test]
async fn what_an_approver_answers_is_taken_back_from_the_editor() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("bash", &json!({"command": "touch made"})))
        .then(Turn::text("done"));
    let daemon = Daemon::start(&provider).await;
    let url = format!("ws://127.0.0.1:{}/acp?token={}", daemon.port, daemon.token);
    let (mut editor, _) = tokio_tungstenite::connect_async(&url).await.unwrap();
    let hello = json!({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    send(&mut editor, hello).await;
    let cwd = daemon.project().canonicalize().unwrap();
    let open = json!({"cwd": cwd, "mcpServers": []});
    let open = json!({"id": 2, "method": "session/new", "params": open});
    send(&mut editor, open).await;
    let opened = until(&mut editor, |frame| frame["id"] == 2).await;
    let session = opened["result"]["sessionId"].as_str().unwrap().to_owned();
    let query = format!("?session={session}&after=0&role=approver");
    let mut approver = Client::connect(&daemon, &query).await;

    let go = json!({"id": 3, "method": "session/prompt", "params": prompt(&session, "go")});
    send(&mut editor, go).await;
    let question = until(&mut editor, is_question).await;
    let asked = approver.until("chat:tool-confirm").await;
    let tool = asked["payload"]["toolId"].clone();
    let approve = json!({"type": "chat:tool-approve", "toolId": tool, "approved": true});
    let accepted = approver.ask(approve).await;
    assert_eq!(accepted["payload"]["accepted"], true, "{accepted}");
    let is_back = |frame: &Value| frame["method"] == "$/cancel_request";
    let back = until(&mut editor, is_back).await;
    assert_eq!(back["params"]["requestId"], question["id"], "{back}");
    let answer = until(&mut editor, |frame| frame["id"] == 3).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(daemon.project().join("made").exists());
}
