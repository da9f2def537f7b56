//! Answers that a program reads: held to a schema, checked, and asked for again.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, within};

fn schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

async fn ask(client: &mut Client, more: Value) {
    let mut send = json!({"type": "chat:send", "content": "count", "output": {"schema": schema()}});
    let more = more.as_object().unwrap().clone();
    send.as_object_mut().unwrap().extend(more);
    client.send(send).await;
}

/// A workflow without tools.
fn without_tools() -> Value {
    json!({"workflows": {"plain": {"tool_permissions": {"bash": {"allowed": false}}}}})
}

/// Asks for each of these, one after the other, and is answered.
async fn answers(client: &mut Client, numbers: [u64; 2]) {
    for n in numbers {
        ask(client, json!({"workflow": "plain"})).await;
        let output = client.until("chat:output").await;
        assert_eq!(output["payload"]["output"], json!({"n": n}));
        client.until("chat:stream-end").await;
    }
}

#[tokio::test]
async fn an_answer_that_fits_comes_as_data() {
    let provider = Provider::start().await;
    provider.then(Turn::text("```json\n{\"n\": 3}\n```"));
    let daemon = Daemon::with(&provider, without_tools()).await;
    let mut client = daemon.connect().await;
    ask(&mut client, json!({"workflow": "plain"})).await;
    let output = client.until("chat:output").await;
    assert_eq!(output["payload"]["output"], json!({"n": 3}));
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "end_turn");
    // Without tools it is held to the form from the beginning, and told of it in words.
    let request = &provider.requests()[0];
    let form = &request["response_format"];
    assert_eq!(form["type"], "json_schema");
    assert_eq!(form["json_schema"]["schema"]["required"], json!(["n"]));
    let system = request["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("fits this JSON schema"), "{system}");
    client.check_numbers();
}

#[tokio::test]
async fn tools_run_until_there_is_json_and_what_does_not_fit_is_asked_for_again_without_them() {
    let provider = Provider::start().await;
    provider
        .then(Turn::text("I will have a look first."))
        .then(Turn::call("file_list", &json!({})))
        .then(Turn::text(r#"{"n": "three"}"#))
        .then(Turn::text(r#"{"n": 3}"#));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    ask(&mut client, json!({})).await;
    let output = client.until("chat:output").await;
    assert_eq!(output["payload"]["output"], json!({"n": 3}));
    client.until("chat:stream-end").await;
    let requests = provider.requests();
    assert_eq!(requests.len(), 4);
    // Local servers would hold calls to the form, too.
    for request in &requests[..3] {
        assert!(request.get("response_format").is_none());
        assert!(request.get("tools").is_some());
    }
    for request in &requests[3..] {
        assert!(request.get("response_format").is_some());
        assert!(request.get("tools").is_none());
    }
    let last = requests[3]["messages"].as_array().unwrap().last().unwrap();
    let said = last["content"].as_str().unwrap();
    assert!(said.contains("`n`"), "{said}");
}

#[tokio::test]
async fn json_that_does_not_fit_is_corrected_without_tools_at_once_and_so_is_the_second_answer_in_words()
 {
    let provider = Provider::start().await;
    provider
        .then(Turn::text(r#"{"n": "three"}"#))
        .then(Turn::text(r#"{"n": 3}"#))
        .then(Turn::text("Three."))
        .then(Turn::text("I said: three."))
        .then(Turn::text(r#"{"n": 3}"#));
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for _ in 0..2 {
        ask(&mut client, json!({})).await;
        client.until("chat:output").await;
        client.until("chat:stream-end").await;
    }
    let requests = provider.requests();
    let has_tools = requests.iter().map(|it| it.get("tools").is_some());
    assert_eq!(Vec::from_iter(has_tools), [true, false, true, true, false]);
}

#[tokio::test]
async fn an_answer_that_never_fits_is_an_error_that_says_why() {
    let provider = Provider::start().await;
    provider.by_rule(|_| Turn::text("no"));
    let daemon = Daemon::with(&provider, without_tools()).await;
    let mut client = daemon.connect().await;
    ask(&mut client, json!({"workflow": "plain"})).await;
    let error = client.until("chat:error").await["payload"].clone();
    assert_eq!(error["code"], "output_invalid");
    let end = client.until("chat:stream-end").await["payload"].clone();
    assert_eq!(
        [&end["stopReason"], &end["turns"]],
        [&json!("error"), &json!(3)]
    );
    assert!(client.all("chat:output").is_empty());
}

#[tokio::test]
async fn a_server_that_takes_no_form_is_given_a_tool_for_it() {
    let provider = Provider::start().await;
    let refusal = json!({"error": {"message": "response_format is not supported", "type": "invalid_request_error"}});
    provider
        .then(Turn::plain(400, "application/json", &refusal.to_string()))
        .then(Turn::call("answer", &json!({"n": 4})))
        .then(Turn::call("answer", &json!({"n": 5})));
    let daemon = Daemon::with(&provider, without_tools()).await;
    let mut client = daemon.connect().await;
    answers(&mut client, [4, 5]).await;
    // It is remembered, and nothing of a call is seen.
    let requests = provider.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[2]["tool_choice"]["function"]["name"], "answer");
    assert!(client.all("chat:tool-start").is_empty());
    assert!(client.all("chat:tool-input-delta").is_empty());
    assert_eq!(client.text_said(), r#"{"n":4}{"n":5}"#);
}

#[tokio::test]
async fn a_schema_that_a_server_refuses_is_no_fault_of_the_model() {
    let provider = Provider::start().await;
    let refusal = json!({"error": {"message": "Invalid schema for response_format 'answer': 'uri' is not a valid format", "type": "invalid_request_error"}});
    provider
        .then(Turn::plain(400, "application/json", &refusal.to_string()))
        .then(Turn::call("answer", &json!({"n": 4})))
        .then(Turn::text(r#"{"n": 5}"#));
    let daemon = Daemon::with(&provider, without_tools()).await;
    let mut client = daemon.connect().await;
    answers(&mut client, [4, 5]).await;
    let requests = provider.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[1].get("response_format").is_none());
    assert!(requests[2].get("response_format").is_some());
}

#[tokio::test]
async fn a_schema_that_cannot_be_checked_is_refused() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    for schema in [
        json!({"type": "array"}),
        json!({"properties": {"a": {"$ref": "http://example.org/a"}}}),
        json!({"properties": {"a": {"type": "strng"}}}),
    ] {
        let send = json!({"type": "chat:send", "content": "x", "output": {"schema": schema}});
        let refused = client.ask(send).await;
        assert_eq!(refused["payload"]["code"], "invalid_payload", "{refused}");
    }
    assert!(provider.requests().is_empty());
}

#[tokio::test]
async fn a_script_gets_the_data_and_nothing_else() {
    let provider = Provider::start().await;
    provider
        .then(Turn::text("Three."))
        .then(Turn::text(r#"{"n": 3}"#));
    let daemon = Daemon::start(&provider).await;
    daemon.file("schema.json", schema().to_string());
    let run = |file: std::path::PathBuf| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outrigger"));
        command
            .args(["run", "--url", &format!("http://127.0.0.1:{}", daemon.port)])
            .arg("--output-schema")
            .arg(file)
            .arg("count")
            .env_clear()
            .env("OUTRIGGER_TOKEN", &daemon.token)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        async move {
            let ran = command.output();
            within("the run's end", ran, String::new).await.unwrap()
        }
    };
    let ran = run(daemon.project().join("schema.json")).await;
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "{\"n\":3}\n");
    assert_eq!(ran.status.code(), Some(0));
    provider.by_rule(|_| Turn::text("no"));
    let ran = run(daemon.project().join("schema.json")).await;
    assert_eq!((ran.stdout.len(), ran.status.code()), (0, Some(1)));
    let ran = run(daemon.project().join("none.json")).await;
    assert_eq!(ran.status.code(), Some(2));
}
