//! Tools of the operator's own, and inputs that try to be more than inputs.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

/// Two tools: a program that prints each of its arguments on a line, and a shell's line.
fn tools() -> Value {
    let schema = json!({
        "properties": { "text": { "type": "string", "description": "Any text." } },
        "required": ["text"],
    });
    json!({
        "chat": { "provider": "test", "trust_level": "autonomous" },
        "tools": { "custom": {
            "print": {
                "description": "Prints its argument.", "input_schema": schema,
                "command": "printf", "args": ["[%s]\n", "--", "{text}", "text={text}"],
                "danger": "safe",
            },
            "shell": {
                "description": "Prints its input.", "input_schema": schema,
                "shell": "printf '[%s]\\n' \"$INPUT_TEXT\"; exit 3",
            },
        } },
    })
}

#[tokio::test]
async fn hostile_inputs_are_texts_to_programs_and_shells() {
    let hostile = [
        "plain",
        "'; touch made; '",
        "\"; touch made; \"",
        "$(touch made) `touch made`",
        "a\ntouch made\n",
        "-rf --version",
        "&& touch made",
        "{text} $INPUT_TEXT %s",
    ];
    let provider = Provider::start().await;
    for text in hostile {
        provider.then(Turn::calls(&[
            ("print", json!({ "text": text })),
            ("shell", json!({ "text": text })),
        ]));
    }
    provider.then(Turn::text("done"));
    let daemon = Daemon::with(&provider, tools()).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let mut results = client.all("chat:tool-result");
    results.sort_by_key(|result| {
        let id = result["toolId"].as_str().unwrap();
        id.trim_start_matches('t').parse::<u32>().unwrap()
    });
    assert_eq!(results.len(), 2 * hostile.len());
    for (pair, text) in results.chunks(2).zip(hostile) {
        let printed = format!("[--]\n[{text}]\n[text={text}]\n");
        assert_eq!(pair[0]["result"], printed, "{text:?}");
        assert_eq!(pair[0]["status"], "success");
        assert_eq!(pair[1]["result"], format!("[{text}]\n[exit code 3]"));
        assert_eq!(pair[1]["metadata"]["exitCode"], 3);
    }
    assert!(!daemon.project().join("made").exists());
}

#[tokio::test]
async fn inputs_that_do_not_fit_are_reported_to_the_model() {
    let provider = Provider::start().await;
    for input in [
        json!({ "text": "a\u{0}b" }),
        json!({}),
        json!({ "text": 1, "more": true }),
    ] {
        provider.then(Turn::call("print", &input));
    }
    provider.then(Turn::text("done"));
    let daemon = Daemon::with(&provider, tools()).await;
    let mut client = daemon.connect().await;
    client.say("go").await;
    client.until("chat:stream-end").await;
    let results = client.all("chat:tool-result");
    for (result, expected) in results.iter().zip([
        "holds a NUL character",
        "`text` is missing",
        "there is no field `more`",
    ]) {
        assert_eq!(result["status"], "error");
        let said = result["result"].as_str().unwrap();
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(client.all("chat:tool-start").len(), 0);
}

#[tokio::test]
async fn the_operators_danger_decides_what_is_asked_for() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("print", &json!({ "text": "x" })))
        .then(Turn::call("shell", &json!({ "text": "x" })))
        .then(Turn::text("done"));
    let mut config = tools();
    config["chat"]["trust_level"] = json!("guided");
    let daemon = Daemon::with(&provider, config).await;
    let mut client = daemon.connect().await;
    let listed = client.ask(json!({"type": "tool:list"})).await;
    let tools = listed["payload"]["tools"].as_array().unwrap().clone();
    let shell = tools.iter().find(|tool| tool["name"] == "shell").unwrap();
    assert_eq!(shell["origin"], "custom");
    assert_eq!(shell["dangerLevel"], "dangerous");
    client.say("go").await;
    let confirm = client.until("chat:tool-confirm").await["payload"].clone();
    assert_eq!(confirm["toolName"], "shell");
    let verdict =
        json!({"type": "chat:tool-approve", "toolId": confirm["toolId"], "approved": true});
    client.ask(verdict).await;
    client.until("chat:stream-end").await;
    assert_eq!(client.all("chat:tool-confirm").len(), 1);
}
