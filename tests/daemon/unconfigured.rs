//! A daemon without any provider: the built-in one answers, until an Ollama comes up at its usual place.

use serde_json::{Value, json};

use crate::support::server::{Answer, Server};
use crate::support::wire::{Block, Wire};
use crate::support::{Client, Daemon, Provider};

/// Says something, and returns who answered.
async fn answered(client: &mut Client, content: &str) -> Value {
    client.say(content).await;
    let start = client.until("chat:stream-start").await;
    client.until("chat:stream-end").await;
    start["payload"]["provider"].clone()
}

#[tokio::test]
async fn an_ollama_that_comes_up_answers_where_nothing_is_configured() {
    let server = Server::start().await;
    let answer = Wire::Ollama.frames(&[Block::text("from this machine")]);
    let answer = Answer::stream(Wire::Ollama).frames(&answer);
    let url = server.case("near", Wire::Ollama, vec![answer]);
    let provider = Provider::start().await;
    let more = json!({"chat": {"provider": "", "detect_ollama": url}, "providers": null});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    let listed = client.ask(json!({"type": "provider:list"})).await;
    assert_eq!(listed["payload"]["providers"][0]["id"], "scripted");
    assert!(
        server
            .asked("near")
            .iter()
            .any(|asked| asked.contains("/api/tags")),
        "looked for at the start"
    );
    assert_eq!(answered(&mut client, "good morning").await, "scripted");

    let tags = json!({"models": [{"model": "qwen3:4b"}]});
    server.page("near", "/api/tags", 200, &tags);
    assert_eq!(answered(&mut client, "and now?").await, "ollama");
    assert!(client.text_said().ends_with("from this machine"));
    let notices = client.all("session:notice");
    let found = notices
        .iter()
        .find(|notice| notice["code"] == "provider_found");
    let message = found.expect("a notice")["message"].as_str().unwrap();
    assert!(
        message.contains("qwen3:4b") && message.contains("chat.detect_ollama"),
        "{message}"
    );

    let mut other = daemon.connect().await;
    let listed = other.ask(json!({"type": "provider:list"})).await;
    let first = &listed["payload"]["providers"][0];
    assert_eq!(
        (&first["id"], &first["default"]),
        (&json!("ollama"), &json!(true))
    );
    let in_force = other.ask(json!({"type": "session:configure"})).await;
    assert_eq!(in_force["payload"]["provider"], "ollama");
}
