//! A client that listens to one layer alone can draw a correct UI.

use serde_json::{Value, json};

use crate::support::provider::{Pause, Turn};
use crate::support::{Client, Daemon, Provider};

/// An exchange with a call, a message steered into it and one that waits; the last is the one that waits.
async fn story(layer: &str) -> (Client, Daemon) {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    daemon.file("a.txt", "content");
    let mut client = daemon.connect().await;
    client
        .ask(json!({"type": "session:configure", "layers": [layer]}))
        .await;
    let (turn, pause): (Turn, Pause) = Turn::paused(
        &[json!({"content": "let me see"})],
        &[json!({ "tool_calls": [{
            "index": 0, "id": "call", "type": "function",
            "function": { "name": "file_read", "arguments": r#"{"path":"a.txt"}"# },
        }] })],
        "tool_calls",
    );
    provider
        .then(turn)
        .then(Turn::text("it says content"))
        .then(Turn::text("and that is all"));
    client.say("look").await;
    let mut pause = pause;
    pause.reached().await;
    for (content, busy) in [("be brief", "steer"), ("what else?", "queue")] {
        let send = json!({"type": "chat:send", "content": content, "whenBusy": busy});
        client.ask(send).await;
    }
    pause.go_on();
    client.until("chat:stream-end").await;
    client.until("chat:stream-end").await;
    // Answered by the conversation too, which has emitted that it is idle by then.
    client.ask(json!({"type": "session:state"})).await;
    (client, daemon)
}

fn said(message: &Value) -> (String, String) {
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    (message["role"].as_str().unwrap().to_owned(), text)
}

#[tokio::test]
async fn messages_alone_are_the_whole_conversation() {
    let (mut client, _daemon) = story("message").await;
    let emitted = client.all("chat:message");
    let history = client.ask(json!({"type": "chat:history"})).await;
    let remembered = history["payload"]["messages"].as_array().unwrap();
    let messages: Vec<Value> = emitted.iter().map(|it| it["message"].clone()).collect();
    assert_eq!(
        messages, *remembered,
        "what is emitted is what is remembered"
    );
    let roles: Vec<(String, String)> = messages.iter().map(said).collect();
    let expected = [
        ("user", "look"),
        ("assistant", "let me see"),
        ("tool", ""),
        ("user", "be brief"),
        ("assistant", "it says content"),
        ("user", "what else?"),
        ("assistant", "and that is all"),
    ];
    for ((role, text), (expected_role, expected_text)) in roles.iter().zip(expected) {
        assert_eq!(role, expected_role, "{roles:?}");
        assert!(role == "tool" || text == expected_text, "{roles:?}");
    }
    // The last of each exchange says what the exchange came to, as its end does.
    let ends = client.all("chat:stream-end");
    let closing: Vec<&Value> = emitted.iter().filter_map(|it| it.get("exchange")).collect();
    assert_eq!(closing, ends.iter().collect::<Vec<_>>());
    assert_eq!(closing[0]["stopReason"], "end_turn");
    assert_eq!(closing[0]["turns"], 2);
    assert!(closing[0]["durationMs"].is_u64() && closing[0]["usage"]["outputTokens"].is_u64());
    // Who waits and what was steered is emitted in every layer.
    assert_eq!(client.all("chat:queued")[0]["position"], 1);
    assert_eq!(client.all("chat:steered").len(), 1);
    assert!(client.all("chat:state").is_empty() && client.all("chat:text-delta").is_empty());
    client.check_numbers();
}

#[tokio::test]
async fn states_alone_light_the_lamps() {
    let (client, _daemon) = story("state").await;
    let states: Vec<String> = client
        .all("chat:state")
        .iter()
        .map(|it| it["state"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "thinking",
        "responding",
        "queued",
        "tool-planned",
        "tool-executing",
        "tool-completed",
        "thinking",
        "responding",
        "idle",
        "thinking",
        "responding",
        "idle",
    ];
    assert_eq!(states, expected);
    assert_eq!(client.all("chat:queued").len(), 1);
    assert!(client.all("chat:message").is_empty() && client.all("chat:tool-result").is_empty());
    client.check_numbers();
}
