//! Cancel at any moment: while text streams, a command runs, an approval is open, a retry waits.

use serde_json::json;

use crate::support::provider::Turn;
use crate::support::{Answering, Daemon, Provider};

#[tokio::test]
async fn while_text_streams() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(&[json!({"content": "half of it"})], &[], "stop");
    provider.then(turn).then(Turn::text("fresh"));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    pause.reached().await;
    client.until("chat:text-delta").await;
    let answer = client.ask(json!({"type": "chat:cancel"})).await;
    assert_eq!(answer["payload"]["cancelled"], true);
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled");
    assert_eq!(end["payload"]["partial"], true);
    client.say("again").await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    let request = provider.requests()[1].to_string();
    assert!(request.contains("half of it"));
}

#[tokio::test]
async fn while_a_call_is_being_written() {
    let provider = Provider::start().await;
    let begun = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "file_read", "arguments": "{\"path\":"}}]});
    let (turn, _pause) = Turn::paused(&[begun], &[], "tool_calls");
    provider.then(turn);
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:tool-input-delta").await;
    let answer = client.ask(json!({"type": "chat:cancel"})).await;
    assert_eq!(answer["payload"]["toolIds"], json!(["t1"]));
    client.until("chat:stream-end").await;
    let record = client
        .ask(json!({"type": "tool:status", "toolId": "t1"}))
        .await;
    let record = &record["payload"];
    assert_eq!(record["status"], "cancelled", "{record}");
    assert_eq!(record["category"], "file", "{record}");
    assert_eq!(record["danger"]["level"], "safe", "{record}");
}

#[tokio::test]
async fn while_a_command_runs() {
    let provider = Provider::start().await;
    let command = "echo started; (trap '' TERM HUP INT; setsid sleep 600) & sleep 600";
    provider
        .then(Turn::call("bash", &json!({ "command": command })))
        .then(Turn::text("fresh"));
    let more = json!({"chat": {"trust_level": "autonomous"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:tool-delta").await;
    let answer = client.ask(json!({"type": "chat:cancel"})).await;
    assert_eq!(answer["payload"]["toolIds"], json!(["t1"]));
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled");
    let result = &client.all("chat:tool-result")[0];
    assert_eq!(result["metadata"]["cancelled"], true);
    client.say("again").await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn while_an_approval_is_open() {
    let provider = Provider::start().await;
    provider.then(Turn::call("bash", &json!({"command": "echo a"})));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:tool-confirm").await;
    client.send(json!({"type": "chat:cancel"})).await;
    client.until("chat:stream-end").await;
    let resolved = &client.all("chat:tool-resolved")[0];
    assert_eq!(resolved["outcome"], "cancelled");
    assert_eq!(resolved["by"], "cancel");
    assert_eq!(
        client.all("chat:tool-result")[0]["metadata"]["cancelled"],
        true
    );
    let late = client
        .ask(json!({"type": "chat:tool-approve", "toolId": "t1", "approved": true}))
        .await;
    assert_eq!(late["payload"]["code"], "approval_not_found");
}

#[tokio::test]
async fn while_a_retry_waits() {
    let provider = Provider::start().await;
    provider.then(
        Turn::plain(
            429,
            "application/json",
            r#"{"error":{"message":"slow down"}}"#,
        )
        .header("retry-after", "100"),
    );
    let more = json!({"providers": {"test": {"max_retries": 2}}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    loop {
        let state = client.until("chat:state").await;
        if state["payload"]["state"] == "retrying" {
            assert_eq!(state["payload"]["attempt"], 2);
            break;
        }
    }
    client.send(json!({"type": "chat:cancel"})).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled");
}

#[tokio::test]
async fn with_the_queue() {
    let Answering {
        mut client,
        provider: _provider,
        daemon: _daemon,
        pause: _pause,
    } = Answering::begin().await;
    client
        .ask(json!({"type": "chat:send", "content": "second"}))
        .await;
    let answer = client
        .ask(json!({"type": "chat:cancel", "queued": true}))
        .await;
    assert_eq!(answer["payload"]["queuedDropped"], 1);
    client.until("chat:stream-end").await;
    client.until("chat:stream-end").await;
    let ends = client.all("chat:stream-end");
    assert!(ends.iter().all(|end| end["stopReason"] == "cancelled"));
    assert!(ends.iter().any(|end| end["turns"] == 0));
}

#[tokio::test]
async fn an_idle_conversation_is_no_error() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let answer = client.ask(json!({"type": "chat:cancel"})).await;
    assert_eq!(answer["payload"]["cancelled"], false);
    client.send(json!({"type": "chat:cancel"})).await;
    client.send(json!({"type": "session:ping"})).await;
    let next = client.next().await;
    assert_eq!(next["type"], "session:ping-result");
}

#[tokio::test]
async fn one_call_and_the_loop_goes_on() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call(
            "bash",
            &json!({"command": "echo started; sleep 600"}),
        ))
        .then(Turn::text("went on"));
    let more = json!({"chat": {"trust_level": "autonomous"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:tool-delta").await;
    let answer = client
        .ask(json!({"type": "tool:cancel", "toolId": "t1"}))
        .await;
    assert_eq!(
        answer["payload"],
        json!({"toolId": "t1", "cancelled": true})
    );
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    assert_eq!(client.text_said(), "went on");
    let record = client
        .ask(json!({"type": "tool:status", "toolId": "t1"}))
        .await;
    assert_eq!(record["payload"]["status"], "cancelled");
}
