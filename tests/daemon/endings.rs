//! Turns that end otherwise than well: cut by the limit with whole calls in them, refused, paused, empty.

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::server::{Answer, Server};
use crate::support::wire::{Block, Wire};
use crate::support::{Client, Daemon, Provider};

fn calls() -> Vec<Block> {
    let read = |id: &str, path: &str| Block::call(id, "file_read", json!({"path": path}));
    vec![
        Block::text("Let me look."),
        read("call_1", "a.txt"),
        read("call_2", "b.txt"),
    ]
}

/// An answer of each format with its word for how it ended replaced.
fn ended(wire: Wire, blocks: &[Block], word: &str) -> Answer {
    let words = [
        "\"tool_use\"},",
        "\"stop_reason\":\"tool_use\"",
        "\"tool_calls\"}",
        "\"stop\"",
    ];
    let mut frames = wire.frames(blocks);
    for frame in &mut frames {
        *frame = match wire {
            Wire::Anthropic => frame.replace(words[1], &format!("\"stop_reason\":\"{word}\"")),
            Wire::Chat => frame.replace(words[2], &format!("\"{word}\"}}")),
            Wire::Ollama => frame.replace(words[3], &format!("\"{word}\"")),
            Wire::Responses => frame
                .replace("response.completed", "response.incomplete")
                .replace(
                    "\"status\":\"completed\",\"output\"",
                    &format!("\"status\":\"incomplete\",\"incomplete_details\":{{\"reason\":\"{word}\"}},\"output\""),
                ),
        };
    }
    Answer::stream(wire).frames(&frames)
}

/// Says something to a provider with these answers; returns the end, the client and the requests.
async fn exchange(wire: Wire, answers: Vec<Answer>) -> (Value, Client, Vec<Value>) {
    let server = Server::start().await;
    let mut settings = wire.settings(&server.case("it", wire, answers));
    settings["api_key"] = json!("key-of-nobody");
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": {"it": settings}})).await;
    daemon.file("a.txt", "A");
    daemon.file("b.txt", "B");
    let mut client = daemon.connect().await;
    client
        .send(json!({"type": "chat:send", "content": "hi", "provider": "it", "model": "m"}))
        .await;
    let end = client.until("chat:stream-end").await["payload"].clone();
    (end, client, server.requests("it"))
}

#[tokio::test]
async fn no_call_of_an_answer_that_was_cut_is_run() {
    for (wire, word) in [
        (Wire::Anthropic, "max_tokens"),
        (Wire::Anthropic, "model_context_window_exceeded"),
        (Wire::Chat, "length"),
        (Wire::Responses, "max_output_tokens"),
        (Wire::Ollama, "length"),
    ] {
        let good = Answer::stream(wire).frames(&wire.frames(&[Block::text("Sorry.")]));
        let (end, client, requests) = exchange(wire, vec![ended(wire, &calls(), word), good]).await;
        assert_eq!(end["stopReason"], "end_turn", "{wire:?} {word}");
        assert_eq!(client.all("chat:tool-start").len(), 0, "{wire:?} {word}");
        let results = client.all("chat:tool-result");
        assert_eq!(results.len(), 2, "{wire:?} {word}");
        for result in results {
            assert_eq!(result["status"], "error");
            assert!(
                result["result"].as_str().unwrap().contains("cut off"),
                "{result}"
            );
        }
        assert_eq!(requests.len(), 2, "{wire:?} {word}");
    }
}

#[tokio::test]
async fn no_call_of_a_refused_answer_is_run_and_nothing_is_asked_again() {
    for (wire, word, stop) in [
        (Wire::Anthropic, "refusal", "refusal"),
        (Wire::Chat, "content_filter", "content_filter"),
        (Wire::Responses, "content_filter", "content_filter"),
    ] {
        let (end, client, requests) = exchange(wire, vec![ended(wire, &calls(), word)]).await;
        assert_eq!(end["stopReason"], stop, "{wire:?}");
        assert_eq!(client.all("chat:tool-start").len(), 0, "{wire:?}");
        assert_eq!(client.all("chat:tool-result").len(), 2, "{wire:?}");
        assert_eq!(requests.len(), 1, "{wire:?}");
    }
}

#[tokio::test]
async fn a_paused_turn_goes_on_with_the_reply_as_the_last_message() {
    let wire = Wire::Anthropic;
    let server_tool =
        json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}});
    let frames = wire.frames(&[Block::text("Let me search.")]).concat();
    let search = format!(
        "data: {}\n\ndata: {{\"type\":\"content_block_stop\",\"index\":1}}\n\n",
        json!({"type": "content_block_start", "index": 1, "content_block": server_tool})
    );
    let paused = frames
        .replace(
            "event: message_delta",
            &format!("{search}event: message_delta"),
        )
        .replace(
            "\"stop_reason\":\"end_turn\"",
            "\"stop_reason\":\"pause_turn\"",
        );
    let good = Answer::stream(wire).frames(&wire.frames(&[Block::text("Found.")]));
    let (end, client, requests) =
        exchange(wire, vec![Answer::stream(wire).bytes(paused), good]).await;
    assert_eq!(
        (&end["stopReason"], &end["turns"]),
        (&json!("end_turn"), &json!(2))
    );
    assert_eq!(client.text_said(), "Let me search.Found.");
    let last = requests[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "assistant");
    assert_eq!(last["content"][1], server_tool);
}

#[tokio::test]
async fn a_model_that_answers_results_with_nothing_is_asked_once_to_go_on() {
    let wire = Wire::Anthropic;
    let call = || Answer::stream(wire).frames(&wire.frames(&calls()));
    let nothing = || Answer::stream(wire).frames(&wire.frames(&[]));
    let good = Answer::stream(wire).frames(&wire.frames(&[Block::text("Done.")]));
    let (end, client, requests) = exchange(wire, vec![call(), nothing(), good]).await;
    assert_eq!(
        (&end["stopReason"], &end["turns"]),
        (&json!("end_turn"), &json!(3))
    );
    assert!(client.text_said().ends_with("Done."));
    let asked = requests[2]["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let kinds: Vec<&str> = asked
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    assert_eq!(asked[2]["text"], "Continue.");
    // And once is enough; an answer of nothing to a question is an answer.
    let (end, _, requests) = exchange(wire, vec![call(), nothing(), nothing()]).await;
    assert_eq!(
        (&end["stopReason"], requests.len()),
        (&json!("end_turn"), 3)
    );
    let (end, _, requests) = exchange(wire, vec![nothing()]).await;
    assert_eq!(
        (&end["stopReason"], requests.len()),
        (&json!("end_turn"), 1)
    );
}

#[tokio::test]
async fn an_exchange_that_takes_too_long_says_how_long_it_had() {
    let provider = Provider::start().await;
    let (turn, _pause) = Turn::paused(&[json!({"content": "half"})], &[], "stop");
    provider.then(turn);
    let daemon = Daemon::start(&provider).await;
    let mut client = daemon.connect().await;
    let limits = json!({"timeoutMs": 500});
    client
        .send(json!({"type": "chat:send", "content": "go", "limits": limits}))
        .await;
    let end = client.until("chat:stream-end").await;
    assert_eq!(end["payload"]["stopReason"], "timeout");
    let error = &client.all("chat:error")[0];
    assert_eq!(error["code"], "exchange_timeout");
    assert_eq!(error["message"], "the exchange took longer than 0.5 s");
}
