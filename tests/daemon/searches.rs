//! When a search of the web is asked for though it only reads: its words, and how many there were.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Daemon, Provider};

fn search(query: &str) -> (&'static str, Value) {
    ("web_search", json!({ "query": query }))
}

/// Plays calls under `autonomous`, denies what is asked, and returns the reasons of the questions.
async fn asked(settings: &Value, calls: &[(&str, Value)]) -> Vec<String> {
    let provider = Provider::start().await;
    provider.then(Turn::calls(calls)).then(Turn::text("done"));
    let mut tools = json!({"web_search": {"searxng_url": ""}});
    for (key, value) in settings.as_object().unwrap() {
        tools["web_search"][key] = value.clone();
    }
    let more = json!({"chat": {"trust_level": "autonomous"}, "tools": tools});
    let daemon = Daemon::with(&provider, more).await;
    let mut client = daemon.connect().await;
    client.say("weather in Berlin").await;
    let mut reasons = Vec::new();
    loop {
        let frame = client.next().await;
        match frame["type"].as_str().unwrap() {
            "chat:tool-confirm" => {
                reasons.push(frame["payload"]["reason"].as_str().unwrap().to_owned());
                let id = &frame["payload"]["toolId"];
                client
                    .send(json!({"type": "chat:tool-approve", "toolId": id, "approved": false}))
                    .await;
            }
            "chat:stream-end" => return reasons,
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_search_with_words_of_somebody_else_is_asked_for() {
    let calls = [search("Berlin weather"), search("Berlin hunter2")];
    let reasons = asked(&json!({"ask": "new_words"}), &calls).await;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].contains("`hunter2`"), "{reasons:?}");
    assert_eq!(asked(&json!({}), &calls).await, Vec::<String>::new());
}

#[tokio::test]
async fn searches_beyond_the_limit_are_asked_for() {
    let calls = [search("a"), search("b"), search("c"), search("d")];
    let reasons = asked(&json!({"limit": 2}), &calls).await;
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].contains("tools.web_search.limit"), "{reasons:?}");
}
