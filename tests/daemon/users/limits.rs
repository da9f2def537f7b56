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

#[tokio::test]
async fn sends_that_come_at_once_begin_no_more_than_may_run() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, limits(&json!({"exchanges": 2}))).await;
    let mut anna = users.connect("anna").await;
    let mut pauses = Vec::new();
    for _ in 0..2 {
        let (turn, pause) = Turn::paused(&[json!({"content": "wait"})], &[], "stop");
        provider.then(turn);
        pauses.push(pause);
    }
    let sends: Vec<Value> = (0..8)
        .map(|number| {
            let id = number.to_string();
            json!({"type": "chat:send", "id": id, "conversationId": id, "content": "hi"})
        })
        .collect();
    anna.send_together(&sends).await;
    let mut over = 0;
    for _ in &sends {
        let answer = anna.find(|it| it["replyTo"].is_string()).await;
        over += usize::from(answer["payload"]["code"] == "quota_exceeded");
    }
    assert_eq!(over, 6);
    // A compaction is work, too; where a conversation is at work it waits there.
    let compact =
        |id: &str| json!({"type": "chat:compact", "conversationId": id, "whenBusy": "queue"});
    let begun = match anna.all("chat:stream-start").first() {
        Some(begun) => begun.clone(),
        None => anna.until("chat:stream-start").await["payload"].clone(),
    };
    let begun = begun["conversationId"].as_str().unwrap().to_owned();
    let queued = anna.ask(compact(&begun)).await;
    assert_eq!(queued["payload"]["state"], "queued", "{queued}");
    for pause in pauses {
        pause.go_on();
    }
    anna.until("chat:stream-end").await;
}

#[tokio::test]
async fn what_is_asked_of_hooks_and_models_is_counted_before() {
    let provider = Provider::start().await;
    let line = r#"echo '{"decision":"refuse","reason":"no"}'"#;
    let hook = json!({"on": "before_send", "command": "/bin/sh", "args": ["-c", line]});
    let more = json!({"limits": {"sends_per_minute": 3}, "hooks": {"never": hook}});
    let users = Users::start(&provider, more).await;
    let mut anna = users.connect("anna").await;
    for _ in 0..2 {
        let refused = send(&mut anna, "default").await;
        assert_eq!(refused["code"], "forbidden", "{refused}");
    }
    let compact = json!({"type": "chat:compact"});
    let nothing = anna.ask(compact.clone()).await;
    assert_eq!(nothing["payload"]["state"], "nothing_to_do", "{nothing}");
    assert_eq!(send(&mut anna, "default").await["code"], "quota_exceeded");
    let over = anna.ask(compact).await;
    assert_eq!(over["payload"]["code"], "quota_exceeded", "{over}");
}

#[tokio::test]
async fn a_task_is_part_of_the_exchange_around_it() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, limits(&json!({"exchanges": 1}))).await;
    let mut anna = users.connect("anna").await;
    let input = json!({"description": "d", "prompt": "look"});
    let result = run(&mut anna, "task", &input).await;
    assert_eq!(result["status"], "success", "{result}");
}
