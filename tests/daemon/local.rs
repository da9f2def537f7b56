//! A server on this machine that announces to keep its connections, and closes each behind the last chunk of a
//! streamed answer (llama.cpp, 2026-11-22).

use serde_json::{Value, json};

use crate::support::server::{Answer, Server};
use crate::support::wire::{Block, Wire};
use crate::support::{Client, Daemon, Provider};

const WIRE: Wire = Wire::Chat;

/// A daemon whose instance `local` has the answers to so many tool exchanges.
async fn start(exchanges: usize) -> (Daemon, Client) {
    let answer = |block: Block| {
        Answer::chunked(WIRE)
            .chunk(&WIRE.frames(&[block]).concat())
            .bytes("0\r\n\r\n")
    };
    let answers = (0..exchanges).flat_map(|exchange| {
        // Whichever conversation gets it: the same call again and again would be asked about.
        let input = json!({"maxResults": exchange + 1});
        let call = Block::call(&format!("call_{exchange}"), "file_list", input);
        [answer(call), answer(Block::text("done"))]
    });
    let server = Server::start().await;
    let mut settings = WIRE.settings(&server.case("local", WIRE, answers.collect()));
    settings["api_key"] = json!("key-of-nobody");
    settings["max_retries"] = json!(4);
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"providers": {"local": settings}})).await;
    let client = daemon.connect().await;
    (daemon, client)
}

/// Says something in each of the conversations and reads until all have ended.
async fn round(client: &mut Client, conversations: &[&str]) {
    for conversation in conversations {
        client
            .send(json!({"type": "chat:send", "content": "go", "conversationId": conversation,
                "provider": "local", "model": "m", "toolPermissions": {"file_list": {"allowed": true}}}))
            .await;
    }
    for _ in conversations {
        let end = client.until("chat:stream-end").await;
        assert_eq!(end["payload"]["stopReason"], "end_turn", "{end}");
    }
}

fn retries(client: &Client) -> Vec<Value> {
    let mut states = client.all("chat:state");
    states.retain(|state| state["state"] == "retrying");
    states
}

#[tokio::test]
async fn tool_exchanges_one_after_the_other_are_never_retried() {
    let (_daemon, mut client) = start(40).await;
    for _ in 0..40 {
        round(&mut client, &["only"]).await;
    }
    assert_eq!(retries(&client), [Value::Null; 0]);
    assert_eq!(client.all("chat:tool-result").len(), 40);
}

#[tokio::test]
async fn four_conversations_side_by_side_do_not_hold_up_each_other() {
    let (_daemon, mut client) = start(20).await;
    for _ in 0..5 {
        round(&mut client, &["a", "b", "c", "d"]).await;
    }
    assert_eq!(retries(&client), [Value::Null; 0]);
}
