//! Calls that a client starts: decided, run, recorded and told as those of a model, without one.

use serde_json::{Value, json};

use crate::client_tools::open_file;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

async fn at_ease(daemon: &Daemon) -> Client {
    let mut client = daemon.connect().await;
    client
        .ask(json!({"type": "session:configure", "trustLevel": "autonomous"}))
        .await;
    client
}

fn bash(command: &str) -> Value {
    json!({"type": "tool:execute", "toolName": "bash", "input": {"command": command}})
}

/// Has a call run and returns its one result.
async fn run(client: &mut Client, call: Value) -> Value {
    let answer = client.ask(call).await;
    assert_eq!(answer["type"], "tool:execute-result", "{answer}");
    let id = &answer["payload"]["toolId"];
    client
        .find(|it| it["type"] == "chat:tool-result" && it["payload"]["toolId"] == *id)
        .await["payload"]
        .clone()
}

#[tokio::test]
async fn a_button_runs_a_command_without_a_model() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = at_ease(&daemon).await;
    let answer = client.ask(bash("echo hello")).await["payload"].clone();
    assert_eq!(answer["state"], "started");
    let end = client.until("chat:stream-end").await["payload"].clone();
    assert_eq!(end["messageId"], answer["messageId"]);
    assert_eq!(end["stopReason"], "end_turn");
    assert_eq!([&end["turns"], &end["toolCalls"]], [&json!(0), &json!(1)]);
    let result = client.all("chat:tool-result");
    assert_eq!(result.len(), 1);
    assert_eq!(result[0]["toolId"], answer["toolId"]);
    assert_eq!(result[0]["result"], "hello\n");
    assert_eq!(
        client.all("chat:tool-start")[0]["input"]["command"],
        "echo hello"
    );
    assert!(provider.requests().is_empty());
    let history = client.ask(json!({"type": "chat:history"})).await;
    assert_eq!(history["payload"]["messages"], json!([]));
    let record = client
        .ask(json!({"type": "tool:status", "toolId": answer["toolId"]}))
        .await["payload"]
        .clone();
    assert_eq!(
        [&record["provider"], &record["status"]],
        ["client", "success"]
    );
    client.check_numbers();
}

#[tokio::test]
async fn the_model_knows_of_it_where_that_is_wanted() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = at_ease(&daemon).await;
    let mut call = bash("echo hello");
    call["inject"] = json!(true);
    run(&mut client, call).await;
    client.until("chat:stream-end").await;
    provider.then(Turn::text("I see"));
    client.say("what did it print?").await;
    client.until("chat:stream-end").await;
    let request = &provider.requests()[0];
    let messages = request["messages"].as_array().unwrap();
    let said: Vec<String> = messages
        .iter()
        .filter(|it| it["role"] == "user")
        .map(|it| it["content"].to_string())
        .collect();
    let all = said.join("\n");
    assert!(
        all.contains("I ran the tool `bash`") && all.contains("hello"),
        "{all}"
    );
    assert!(all.find("hello") < all.find("what did it print?"), "{all}");
}

#[tokio::test]
async fn the_user_is_asked_as_for_a_call_of_the_model() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for (approved, status) in [(false, "denied"), (true, "success")] {
        let answer = client.ask(bash("touch made")).await["payload"].clone();
        let confirm = client.until("chat:tool-confirm").await["payload"].clone();
        assert_eq!(confirm["toolId"], answer["toolId"]);
        client
            .send(json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": approved}))
            .await;
        client.until("chat:stream-end").await;
        let record = client
            .ask(json!({"type": "tool:status", "toolId": answer["toolId"]}))
            .await;
        assert_eq!(record["payload"]["status"], status);
        assert_eq!(daemon.project().join("made").exists(), approved);
    }
}

#[tokio::test]
async fn what_cannot_be_called_is_said() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = at_ease(&daemon).await;
    let unknown = client
        .ask(json!({"type": "tool:execute", "toolName": "bsah", "input": {}}))
        .await;
    assert_eq!(unknown["payload"]["code"], "tool_not_found", "{unknown}");
    let message = unknown["payload"]["message"].as_str().unwrap();
    assert!(message.contains("file_read"), "{message}");
    let mut steer = bash("true");
    steer["whenBusy"] = json!("steer");
    let error = client.ask(steer).await;
    assert_eq!(error["payload"]["code"], "invalid_payload");
    let wrong = json!({"type": "tool:execute", "toolName": "bash", "input": {"comand": "ls"}});
    let result = run(&mut client, wrong).await;
    assert!(
        result["result"]
            .as_str()
            .unwrap()
            .contains("`command` may be meant"),
        "{result}"
    );
}

#[tokio::test]
async fn a_call_waits_for_the_exchange_that_runs() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = at_ease(&daemon).await;
    let (turn, mut pause) = Turn::paused(&[json!({"content": "a"})], &[], "stop");
    provider.then(turn);
    client.say("hi").await;
    pause.reached().await;
    let mut reject = bash("true");
    reject["whenBusy"] = json!("reject");
    let error = client.ask(reject).await;
    assert_eq!(error["payload"]["code"], "conversation_busy");
    let waits = client.ask(bash("echo later")).await["payload"].clone();
    assert_eq!(
        [&waits["state"], &waits["position"]],
        [&json!("queued"), &json!(1)]
    );
    pause.go_on();
    let result = client.until("chat:tool-result").await;
    assert_eq!(result["payload"]["toolId"], waits["toolId"]);
    let ends = client.all("chat:stream-end");
    assert_eq!(ends.len(), 1, "the message before it has ended");
}

#[tokio::test]
async fn the_same_request_runs_once() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = at_ease(&daemon).await;
    let mut call = bash("echo x >> log");
    call["id"] = json!("once");
    client.send(call.clone()).await;
    client.until("chat:stream-end").await;
    client.send(call).await;
    let again = client
        .find(|it| it["replyTo"] == "once" && it["payload"]["duplicate"] == true)
        .await;
    let first = &client.all("tool:execute-result")[0];
    assert_eq!(first["toolId"], again["payload"]["toolId"]);
    let log = std::fs::read_to_string(daemon.project().join("log")).unwrap();
    assert_eq!(log, "x\n");
}

#[tokio::test]
async fn a_call_is_cancelled_as_an_exchange_is() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = at_ease(&daemon).await;
    client.ask(bash("echo begun; sleep 1000")).await;
    client.until("chat:tool-delta").await;
    client.send(json!({"type": "chat:cancel"})).await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "cancelled");
    let results = client.all("chat:tool-result");
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["metadata"]["cancelled"], true);
}

#[tokio::test]
async fn a_client_may_start_its_own_tool() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = at_ease(&daemon).await;
    client
        .ask(json!({"type": "tool:register", "tools": [open_file()]}))
        .await;
    client
        .send(json!({"type": "tool:execute", "toolName": "client__open_file", "input": {"path": "a"}}))
        .await;
    let call = client.until("chat:tool-call").await["payload"].clone();
    client
        .send(json!({"type": "chat:tool-output", "toolId": call["toolId"], "content": "opened"}))
        .await;
    let result = client.until("chat:tool-result").await;
    assert_eq!(result["payload"]["status"], "success");
}
