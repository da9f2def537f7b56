//! What turns cost, and what is announced once of a model: over several turns and exchanges.

use serde_json::{Value, json};

use crate::support::server::{Answer, Server};
use crate::support::wire::{Block, Wire};
use crate::support::{Client, Daemon, Provider};

/// A daemon whose instance `it` gives these answers, a client of it, and the server.
async fn start(wire: Wire, answers: Vec<Answer>) -> (Daemon, Client, Server) {
    let server = Server::start().await;
    let mut settings = wire.settings(&server.case("it", wire, answers));
    settings["api_key"] = json!("key-of-nobody");
    settings["max_retries"] = json!(0);
    settings["restart_after_partial"] = json!(0);
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": {"it": settings}})).await;
    let client = daemon.connect().await;
    (daemon, client, server)
}

/// Says something to a model and returns the end of the exchange.
async fn say(client: &mut Client, model: &str, content: &str) -> Value {
    client
        .send(
            json!({"type": "chat:send", "content": content, "provider": "it", "model": model,
            "toolPermissions": {"file_list": {"allowed": true}}}),
        )
        .await;
    client.until("chat:stream-end").await["payload"].clone()
}

fn answer(wire: Wire, blocks: &[Block]) -> Answer {
    Answer::stream(wire).frames(&wire.frames(blocks))
}

#[tokio::test]
async fn a_cost_is_reported_where_all_of_it_is_known() {
    let wire = Wire::Anthropic;
    let call = Block::call("toolu_1", "file_list", json!({}));
    let hello = wire.frames(&[Block::text("Hello")]);
    let uncounted = hello.concat().replace("\"usage\":", "\"weight\":");
    let broken = hello[..4].concat();
    let (_daemon, mut client, _server) = start(
        wire,
        vec![
            answer(wire, &[call]),
            answer(wire, &[Block::text("Hello")]),
            answer(wire, &[Block::text("Hello")]),
            Answer::stream(wire).bytes(uncounted),
            Answer::stream(wire).bytes(broken),
            Answer::plain(400, &[], "no"),
        ],
    )
    .await;
    // Of a turn: 10 tokens at $4, 4 from the cache at $0.2, 2 into it at $5, 5 of output at $20 a million, which is
    // $0.0001508, rounded up to the millionth.
    let end = say(&mut client, "claude-opus-5-5", "two turns").await;
    assert_eq!(end["turns"], 2);
    assert_eq!(end["costUsd"], 0.000_302, "{end}");
    for (model, why) in [
        ("claude-unheard-of", "no prices"),
        ("claude-opus-5-5", "no figures"),
        ("claude-opus-5-5", "broken off"),
        ("claude-opus-5-5", "refused"),
    ] {
        let end = say(&mut client, model, why).await;
        assert_eq!(end.get("costUsd"), None, "{why}: {end}");
    }
}

#[tokio::test]
async fn a_model_without_tools_is_reported_once() {
    let wire = Wire::Chat;
    let refusal = json!({"error": {"message": "this model does not support tools"}});
    let hello = || answer(wire, &[Block::text("Hello")]);
    let (_daemon, mut client, server) = start(
        wire,
        vec![Answer::json(400, &refusal), hello(), hello(), hello()],
    )
    .await;
    for (model, notices) in [("plain", 1), ("plain", 1), ("other", 1)] {
        let end = say(&mut client, model, "hi").await;
        assert_eq!(end["stopReason"], "end_turn");
        assert_eq!(client.all("session:notice").len(), notices);
    }
    let notice = &client.all("session:notice")[0];
    assert_eq!(notice["code"], "model_no_tools");
    let offered: Vec<bool> = server
        .requests("it")
        .iter()
        .map(|request| request.get("tools").is_some())
        .collect();
    assert_eq!(offered, [true, false, false, true]);
}

#[tokio::test]
async fn a_prompt_that_ollama_cut_in_silence_is_reported_once() {
    let wire = Wire::Ollama;
    let hello = || answer(wire, &[Block::text("Hello")]);
    let (_daemon, mut client, server) = start(wire, vec![hello(), hello()]).await;
    // Some 15,000 tokens, of which the server says that it read 16.
    let long = "every word counts ".repeat(3000);
    for _ in 0..2 {
        say(&mut client, "qwen3", &long).await;
    }
    let notices = client.all("session:notice");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0]["code"], "prompt_truncated");
    let message = notices[0]["message"].as_str().unwrap();
    assert!(
        message.contains("only 16 tokens") && message.contains("num_ctx"),
        "{message}"
    );
    assert_eq!(server.requests("it")[0]["options"]["num_ctx"], 32_768);
    assert_eq!(server.requests("it")[0]["truncate"], false);
}

#[tokio::test]
async fn half_a_surrogate_pair_ends_no_exchange() {
    for wire in Wire::ALL {
        let frames = wire.frames(&[Block::text("a@b")]).concat();
        let frames = frames.replace('@', "\\ud83d");
        let (_daemon, mut client, _server) =
            start(wire, vec![Answer::stream(wire).bytes(frames)]).await;
        let end = say(&mut client, "m", "hi").await;
        assert_eq!(end["stopReason"], "end_turn", "{wire:?}");
        assert_eq!(client.text_said(), "a\u{fffd}b", "{wire:?}");
    }
}
