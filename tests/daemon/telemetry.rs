//! What an operator sees: figures for Prometheus, and logs that can be joined and tell no content.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::provider::Turn;
use crate::support::{Answering, Daemon, Provider, eventually};

pub(crate) async fn get(daemon: &Daemon, path: &str, token: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}");
    sent(daemon, &head, "").await
}

/// Returns the answer to a request of this head and body.
pub(crate) async fn sent(daemon: &Daemon, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", daemon.port))
        .await
        .unwrap();
    let request = format!("{head}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The value of a figure, whose labels are written as Prometheus does.
pub(crate) fn figure(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(' '))
    });
    match line {
        Some(line) => line.rsplit(' ').next().unwrap().parse().unwrap(),
        None => panic!("no {name} in {text}"),
    }
}

pub(crate) const SECRET: &str = "test-key-0123456789";

/// An exchange with an approved call and one of a tool that there is not.
pub(crate) async fn exchange(daemon: &Daemon, provider: &Provider) {
    provider
        .then(Turn::calls(&[
            (
                "bash",
                json!({"command": "echo canary-output; echo test-key-0123456789"}),
            ),
            ("canary-tool", json!({"a": "canary-input"})),
        ]))
        .then(Turn::text("canary-answer"));
    let mut client = daemon.connect().await;
    client.say("canary-question").await;
    client.until("chat:tool-confirm").await;
    let approve = json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true});
    client.send(approve).await;
    client.until("chat:stream-end").await;
    client.ask(json!({"type": "session:ping"})).await;
}

#[tokio::test]
async fn figures_are_reported_to_who_has_the_token() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    assert!(
        get(&daemon, "/metrics", "wrong")
            .await
            .starts_with("HTTP/1.1 401")
    );
    exchange(&daemon, &provider).await;
    let text = get(&daemon, "/metrics", &daemon.token).await;
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("text/plain; version=0.0.4"));
    for (name, value) in [
        ("outrigger_connections_total", 1.0),
        ("outrigger_exchanges_total{end=\"end_turn\"}", 1.0),
        ("outrigger_exchanges_running", 0.0),
        ("outrigger_sends_queued", 0.0),
        ("outrigger_tool_calls_running", 0.0),
        ("outrigger_tool_calls_queued", 0.0),
        ("outrigger_approvals_open", 0.0),
        ("outrigger_conversations", 0.0),
        (
            "outrigger_provider_requests_total{outcome=\"ok\",provider=\"test\"}",
            2.0,
        ),
        (
            "outrigger_provider_first_byte_seconds_count{provider=\"test\"}",
            2.0,
        ),
        (
            "outrigger_tokens_total{kind=\"input\",provider=\"test\"}",
            20.0,
        ),
        (
            "outrigger_tokens_total{kind=\"output\",provider=\"test\"}",
            10.0,
        ),
        (
            "outrigger_tool_calls_total{outcome=\"success\",tool=\"bash\"}",
            1.0,
        ),
        (
            "outrigger_tool_calls_total{outcome=\"error\",tool=\"unknown\"}",
            1.0,
        ),
        ("outrigger_tool_seconds_count{tool=\"bash\"}", 1.0),
        ("outrigger_approvals_total{outcome=\"approved\"}", 1.0),
        (
            "outrigger_approval_wait_seconds_count{outcome=\"approved\"}",
            1.0,
        ),
    ] {
        let found = figure(&text, name);
        match name {
            // The socket is gone, the conversation of its session may be there.
            "outrigger_conversations" => assert!(found <= 1.0),
            _ => assert!((found - value).abs() < 0.5, "{name} {found}\n{text}"),
        }
    }
    assert!(!text.contains("canary"), "{text}");
}

/// The ids of the spans that a line is in, from the session down.
fn path(line: &Value) -> Vec<String> {
    let spans = line["spans"].as_array().cloned().unwrap_or_default();
    spans
        .iter()
        .map(|span| {
            let id = [
                "session_id",
                "conversation_id",
                "message_id",
                "turn",
                "tool_id",
            ]
            .iter()
            .find_map(|key| span.get(*key))
            .unwrap();
            format!(
                "{}={}",
                span["name"].as_str().unwrap(),
                id.to_string().trim_matches('"')
            )
        })
        .collect()
}

#[tokio::test]
async fn logs_are_one_tree_of_spans_without_content() {
    let provider = Provider::start().await;
    let more = json!({"log": {"level": "info", "format": "json"}});
    let daemon = Daemon::with(&provider, more).await;
    exchange(&daemon, &provider).await;
    // The log has a thread of its own; the figures are asked for until it has written the end.
    eventually("the log's line of the end", async || {
        let log = daemon.log();
        log.iter().any(|line| line["message"] == "exchange ended")
    })
    .await;
    let log = daemon.log();
    let of = |message: &str| -> Vec<Vec<String>> {
        log.iter()
            .filter(|line| line["message"] == message)
            .map(path)
            .collect()
    };
    let exchange = of("exchange ended").remove(0);
    assert_eq!(exchange[1..], ["conversation=default", "exchange=m1"]);
    assert!(exchange[0].starts_with("session="));
    let below = |ids: &[&str]| -> Vec<String> {
        let below = ids.iter().map(|id| (*id).to_owned());
        exchange.iter().cloned().chain(below).collect()
    };
    assert_eq!(of("turn ended"), [below(&["turn=0"]), below(&["turn=1"])]);
    assert_eq!(of("approval settled"), [below(&["turn=0", "call=t1"])]);
    assert_eq!(of("call settled").len(), 2);
    let text: String = log.iter().map(Value::to_string).collect();
    assert!(!text.contains("canary"), "{text}");
    for secret in [SECRET, daemon.token.as_str()] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test]
async fn a_send_that_was_dropped_has_no_duration() {
    let Answering {
        mut client,
        provider: _provider,
        daemon,
        pause: _pause,
    } = Answering::begin().await;
    client
        .ask(json!({"type": "chat:send", "content": "second"}))
        .await;
    client
        .send(json!({"type": "chat:cancel", "queued": true}))
        .await;
    client.until("chat:stream-end").await;
    client.until("chat:stream-end").await;
    let text = get(&daemon, "/metrics", &daemon.token).await;
    let ended = figure(&text, "outrigger_exchanges_total{end=\"cancelled\"}");
    assert!((ended - 2.0).abs() < f64::EPSILON, "{ended}");
    let measured = figure(&text, "outrigger_exchange_seconds_count");
    assert!((measured - 1.0).abs() < f64::EPSILON, "{measured}");
}
