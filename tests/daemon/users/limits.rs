//! How much a user may do, and that one who does too much is in nobody else's way.

use super::*;

fn limits(limits: &Value) -> Value {
    json!({"limits": limits})
}

/// Says something in a conversation; returns the answer.
async fn send(client: &mut Client, conversation: &str) -> Value {
    let frame = json!({"type": "chat:send", "conversationId": conversation, "content": "hi"});
    client.ask(frame).await["payload"].clone()
}

#[tokio::test]
async fn a_user_has_so_many_sessions_and_sends() {
    let provider = Provider::start().await;
    let most = limits(&json!({"sessions": 1, "sends_per_minute": 3}));
    let users = Users::start(&provider, most).await;
    let mut anna = users.connect("anna").await;
    let token = users.own_token("anna").await;
    let second = Client::reach_by(&users.daemon, "", &token).await;
    assert_eq!(second.err(), Some(1013));
    let mut ben = users.connect("ben").await;
    for client in [&mut anna, &mut ben] {
        for _ in 0..3 {
            let sent = send(client, "default").await;
            assert!(sent["code"].is_null(), "{sent}");
        }
        let over = send(client, "default").await;
        assert_eq!(over["code"], "quota_exceeded", "{over}");
        let left = over["retryAfterMs"].as_u64().unwrap();
        assert!((1..=60_000).contains(&left), "{over}");
    }
}

#[tokio::test]
async fn a_user_has_so_many_exchanges_at_once() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, limits(&json!({"exchanges": 1}))).await;
    let mut anna = users.connect("anna").await;
    let mut ben = users.connect("ben").await;
    let (turn, pause) = Turn::paused(&[json!({"content": "wait"})], &[], "stop");
    provider.then(turn);
    assert!(send(&mut anna, "one").await["code"].is_null());
    anna.until("chat:text-delta").await;
    let over = send(&mut anna, "two").await;
    assert_eq!(over["code"], "quota_exceeded", "{over}");
    // What waits for its turn is no further one, and others have theirs.
    assert!(send(&mut anna, "one").await["code"].is_null());
    assert!(send(&mut ben, "two").await["code"].is_null());
    ben.until("chat:stream-end").await;
    pause.go_on();
    for _ in 0..2 {
        anna.until("chat:stream-end").await;
    }
    assert!(send(&mut anna, "two").await["code"].is_null());
}
