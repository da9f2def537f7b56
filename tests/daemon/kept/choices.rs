//! What its client and the operator choose about a session: that it is not kept, and what goes on without a client.

use serde_json::json;

use super::{history, resume, said};
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider, eventually};

/// Returns the code of the answer to `session:configure` with `ephemeral`, or what is in force.
async fn ephemeral(client: &mut Client, wanted: bool) -> serde_json::Value {
    let wanted = json!({"type": "session:configure", "ephemeral": wanted});
    let answer = client.ask(wanted).await;
    match answer["type"].as_str() {
        Some("session:error") => answer["payload"]["code"].clone(),
        _ => answer["payload"]["ephemeral"].clone(),
    }
}

#[tokio::test]
async fn an_ephemeral_session_is_not_kept() {
    let provider = Provider::start().await;
    for _ in 0..4 {
        provider.then(Turn::text("hello"));
    }
    let daemon = Daemon::start(&provider).await;
    // One from the beginning, and one of which something was kept.
    let (mut new, mut used) = (daemon.connect().await, daemon.connect().await);
    used.say("forget this xyzzy").await;
    used.until("chat:stream-end").await;
    for client in [&mut new, &mut used] {
        assert_eq!(ephemeral(client, false).await, false);
        assert_eq!(ephemeral(client, true).await, true);
        assert_eq!(ephemeral(client, true).await, true);
        assert_eq!(ephemeral(client, false).await, "invalid_payload");
        client.say("nor this xyzzy").await;
        client.until("chat:stream-end").await;
    }
    let listed = new.ask(json!({"type": "session:list"})).await;
    assert_eq!(listed["payload"]["sessions"], json!([]), "{listed}");
    // It goes on as long as the daemon does.
    let (one, two) = (new.session(), used.session());
    drop(used);
    let mut used = resume(&daemon, &two, 0).await;
    assert_eq!(used.seen[0]["payload"]["resumed"], true);
    assert_eq!(used.seen[0]["payload"]["persistent"], false);
    assert_eq!(history(&mut used).await.len(), 4);
    let daemon = daemon.after_end().await;
    for session in [one, two] {
        let client = resume(&daemon, &session, 0).await;
        assert_eq!(client.seen[0]["payload"]["resumed"], false);
    }
    for entry in std::fs::read_dir(daemon.store().parent().unwrap()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(5).any(|it| it == b"xyzzy"));
    }
}

#[tokio::test]
async fn without_a_store_every_session_is_ephemeral() {
    let provider = Provider::start().await;
    let daemon = Daemon::with(&provider, json!({"store": {"enabled": false}})).await;
    let mut client = daemon.connect().await;
    assert_eq!(ephemeral(&mut client, true).await, true);
    assert_eq!(ephemeral(&mut client, false).await, "invalid_payload");
}

#[tokio::test]
async fn an_exchange_goes_on_without_a_client_to_its_end() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(
        &[json!({"content": "a"})],
        &[json!({"content": "b"})],
        "stop",
    );
    provider.then(turn);
    provider.then(Turn::text("second"));
    let more = json!({"session": {"resume_grace": "1ms", "detached": "continue"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    first.say("one").await;
    pause.reached().await;
    // What waits behind it goes on too.
    let queued = json!({"type": "chat:send", "content": "two", "whenBusy": "queue"});
    first.send(queued).await;
    first.until("chat:queued").await;
    drop(first);
    let mut other = daemon.connect().await;
    let is_live = async |other: &mut Client| {
        let listed = other.ask(json!({"type": "session:list"})).await;
        listed["payload"]["sessions"][0]["live"] == true
    };
    assert!(is_live(&mut other).await);
    pause.go_on();
    let other = tokio::sync::Mutex::new(other);
    eventually("the session ends", async || {
        !is_live(&mut *other.lock().await).await
    })
    .await;
    let mut again = resume(&daemon, &session, 0).await;
    let expected = said(&[
        ("user", "one"),
        ("assistant", "ab"),
        ("user", "two"),
        ("assistant", "second"),
    ]);
    assert_eq!(history(&mut again).await, expected);
}

#[tokio::test]
async fn an_exchange_that_goes_on_ends_at_a_question() {
    let provider = Provider::start().await;
    let call = json!({"command": "touch made"});
    provider.then(Turn::call("bash", &call));
    let more = json!({
        "session": {"resume_grace": "1ms", "detached": "continue"},
        "approval": {"timeout": "0s"},
    });
    let daemon = Daemon::with(&provider, more).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    first.say("go").await;
    first.until("chat:tool-confirm").await;
    drop(first);
    let other = tokio::sync::Mutex::new(daemon.connect().await);
    eventually("the session ends", async || {
        let listed = json!({"type": "session:list"});
        let listed = other.lock().await.ask(listed).await;
        listed["payload"]["sessions"][0]["live"] == false
    })
    .await;
    let mut again = resume(&daemon, &session, 0).await;
    let history = history(&mut again).await;
    assert_eq!(history.len(), 3, "{history:?}");
    assert!(!daemon.project().join("made").exists());
}

#[tokio::test]
async fn what_waited_runs_at_once_where_the_operator_says_so() {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(&[json!({"content": "a"})], &[], "stop");
    provider.then(turn);
    let more = json!({"store": {"resume_queue": true}});
    let daemon = Daemon::with(&provider, more).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    first.say("one").await;
    pause.reached().await;
    for text in ["two", "three"] {
        let queued = json!({"type": "chat:send", "content": text, "whenBusy": "queue"});
        first.send(queued).await;
        first.until("chat:queued").await;
    }
    let daemon = daemon.after_kill().await;
    provider.then(Turn::text("two!")).then(Turn::text("three!"));
    let mut second = resume(&daemon, &session, 0).await;
    // The one that was broken off, and the two.
    for _ in 0..3 {
        second.until("chat:stream-end").await;
    }
    let expected = said(&[
        ("user", "one"),
        ("user", "two"),
        ("assistant", "two!"),
        ("user", "three"),
        ("assistant", "three!"),
    ]);
    assert_eq!(history(&mut second).await, expected);
}
