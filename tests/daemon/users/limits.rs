//! How much a user may do, and that one who does too much is in nobody else's way.

use super::*;
use crate::kept::database;

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

/// Returns a text of so many bytes that can hardly be packed.
fn noise(bytes: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let letter = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + (state % 75) as u8)
    };
    (0..bytes).map(letter).collect()
}

/// Says noise until that is too much, each time in another conversation; returns how often it was taken, and the refusal.
async fn fill(client: &mut Client) -> (usize, Value) {
    for taken in 0..20 {
        let id = taken.to_string();
        // Another text each time: what was said before is kept once.
        let text = id.clone() + &noise(300_000);
        let frame = json!({"type": "chat:send", "conversationId": id, "content": text});
        let sent = client.ask(frame).await["payload"].clone();
        if !sent["code"].is_null() {
            return (taken, sent);
        }
        client.until("chat:stream-end").await;
    }
    panic!("there is no end to what one may keep");
}

async fn messages(client: &mut Client, conversation: &str) -> usize {
    let history = json!({"type": "chat:history", "conversationId": conversation});
    let history = client.ask(history).await;
    history["payload"]["messages"].as_array().unwrap().len()
}

async fn a_user_keeps_so_much_in(store: Value) {
    let provider = Provider::start().await;
    let more = json!({"limits": {"disk": "1MiB"}, "store": store});
    let users = Users::start(&provider, more).await;
    let mut anna = users.connect("anna").await;
    let mut ben = users.connect("ben").await;
    let (taken, over) = fill(&mut anna).await;
    assert!((2..=6).contains(&taken), "{taken}");
    assert_eq!(over["code"], "quota_exceeded", "{over}");
    assert!(over["retryAfterMs"].is_null(), "{over}");
    let why = over["message"].as_str().unwrap();
    assert!(why.contains("until sessions are deleted"), "{why}");
    // What was acknowledged is there with its answer, and nothing of what was refused.
    for conversation in 0..taken {
        assert_eq!(messages(&mut anna, &conversation.to_string()).await, 2);
    }
    assert_eq!(messages(&mut anna, &taken.to_string()).await, 0);
    // All that would keep more is refused, and what reads is not.
    let session = anna.session();
    for wanted in [
        json!({"type": "session:fork"}),
        json!({"type": "session:import", "part": 0, "more": false, "text": "{}"}),
        json!({"type": "tool:execute", "toolName": "file_read", "input": {"path": "plan.txt"}}),
        json!({"type": "chat:compact"}),
    ] {
        let refused = anna.ask(wanted).await;
        assert_eq!(refused["payload"]["code"], "quota_exceeded", "{refused}");
    }
    let exported = anna.ask(json!({"type": "session:export"})).await;
    assert!(exported["payload"]["text"].is_string(), "{exported}");
    let listed = anna.ask(json!({"type": "session:list"})).await;
    assert_eq!(listed["payload"]["sessions"].as_array().unwrap().len(), 1);
    // Nobody else is in the way, and nobody else can make room.
    assert!(send(&mut ben, "default").await["code"].is_null());
    ben.until("chat:stream-end").await;
    let delete = json!({"type": "session:delete", "sessionId": session});
    let unknown = ben.ask(delete.clone()).await;
    assert_eq!(unknown["payload"]["code"], "session_not_found", "{unknown}");
    // In another session it is the same user, until the large one is deleted.
    let mut again = users.connect("anna").await;
    assert_eq!(send(&mut again, "default").await["code"], "quota_exceeded");
    let deleted = again.ask(delete).await;
    assert!(deleted["payload"]["code"].is_null(), "{deleted}");
    assert!(send(&mut again, "default").await["code"].is_null());
    again.until("chat:stream-end").await;
    assert_eq!(messages(&mut again, "default").await, 2);
}

#[tokio::test]
async fn a_user_keeps_so_much() {
    a_user_keeps_so_much_in(json!({})).await;
}

#[tokio::test]
async fn a_user_keeps_so_much_in_a_database_too() {
    if let Some(url) = database::database() {
        a_user_keeps_so_much_in(json!({"url": url})).await;
    }
}

#[tokio::test]
async fn a_token_says_how_much_its_user_keeps_and_an_import_has_to_fit() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, json!({})).await;
    let mut free = users.connect("anna").await;
    free.say(&noise(30_000)).await;
    free.until("chat:stream-end").await;
    let exported = free.ask(json!({"type": "session:export"})).await;
    let text = exported["payload"]["text"].clone();
    assert!(text.as_str().unwrap().len() > 30_000);
    let folder = users.work.join("anna");
    let query = format!("?project={}", shown(&folder));
    let import = json!({"type": "session:import", "part": 0, "more": false, "text": text});
    let with_disk = async |disk: &str| {
        let more = ["--root", shown(&folder), "--disk", disk];
        let token = users.token("anna", "1h", &more).await;
        let client = Client::reach_by(&users.daemon, &query, &token).await;
        client.expect("a user is let in")
    };
    let mut bound = with_disk("50KB").await;
    // There is room for a message, and none for all of the file.
    let refused = bound.ask(import.clone()).await;
    assert_eq!(refused["payload"]["code"], "quota_exceeded", "{refused}");
    assert!(send(&mut bound, "default").await["code"].is_null());
    bound.until("chat:stream-end").await;
    let mut little = with_disk("10KB").await;
    // The least that anybody has counts for all.
    for client in [&mut little, &mut bound, &mut free] {
        assert_eq!(send(client, "default").await["code"], "quota_exceeded");
    }
    let mut ben = users.connect("ben").await;
    let imported = ben.ask(import).await;
    assert!(imported["payload"]["sessionId"].is_string(), "{imported}");
}

#[tokio::test]
async fn what_commands_leave_in_a_home_counts() {
    let provider = Provider::start().await;
    let users = Users::start(&provider, limits(&json!({"disk": "1MiB"}))).await;
    let mut anna = users.connect("anna").await;
    let line = "head -c 1500000 /dev/zero >$TMPDIR/large";
    let made = run(&mut anna, "bash", &json!({"command": line})).await;
    assert_eq!(made["status"], "success", "{made}");
    let over = send(&mut anna, "default").await;
    assert_eq!(over["code"], "quota_exceeded", "{over}");
    let mut ben = users.connect("ben").await;
    assert!(send(&mut ben, "default").await["code"].is_null());
}
