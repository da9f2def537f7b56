//! Sessions outlive the daemon: what was acknowledged is there, what was broken off says so, and nothing runs twice.

mod choices;
#[cfg(unix)]
mod cluster;
#[cfg(unix)]
pub(crate) mod database;
#[cfg(debug_assertions)]
mod deaths;
mod everywhere;
mod files;
mod judge;
mod kills;
mod places;
#[cfg(unix)]
mod storm;
#[cfg(target_os = "linux")]
mod syncs;
mod talker;
mod witness;

use serde_json::{Value, json};

use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

async fn resume(daemon: &Daemon, session: &str, after: u64) -> Client {
    Client::connect(daemon, &format!("?session={session}&after={after}")).await
}

/// Returns the messages of the default conversation, each as its role and what it says.
async fn history(client: &mut Client) -> Vec<(String, String)> {
    let answer = client.ask(json!({"type": "chat:history"})).await;
    let messages = answer["payload"]["messages"].as_array().unwrap();
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        other => other[0]["text"].as_str().unwrap_or("?").to_owned(),
    };
    let said = |message: &Value| {
        let role = message["role"].as_str().unwrap().to_owned();
        (role, text(&message["content"]))
    };
    messages.iter().map(said).collect()
}

fn said(messages: &[(&str, &str)]) -> Vec<(String, String)> {
    let messages = messages.iter();
    messages
        .map(|(role, text)| ((*role).to_owned(), (*text).to_owned()))
        .collect()
}

#[tokio::test]
async fn a_session_goes_on_after_the_daemon_was_killed() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello"));
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    assert_eq!(first.seen[0]["payload"]["persistent"], true);
    assert_eq!(first.seen[0]["payload"]["epoch"], 1);
    let session = first.session();
    first.say("my name is Ada").await;
    let last = first.until("chat:stream-end").await["seq"]
        .as_u64()
        .unwrap();
    let daemon = daemon.after_kill().await;
    provider.then(Turn::text("Ada"));
    let mut second = resume(&daemon, &session, last).await;
    assert_eq!(second.seen[0]["payload"]["resumed"], true);
    assert_eq!(second.seen[0]["payload"]["epoch"], 2);
    assert_eq!(second.session(), session);
    let gap = second.until("session:error").await;
    assert_eq!(gap["payload"]["code"], "replay_gap");
    assert!(gap["seq"].as_u64().unwrap() > last, "{gap}");
    let expected = said(&[("user", "my name is Ada"), ("assistant", "hello")]);
    assert_eq!(history(&mut second).await, expected);
    second.say("what is it?").await;
    second.until("chat:stream-end").await;
    let asked = provider.requests().pop().unwrap();
    assert_eq!(asked["messages"].as_array().unwrap().len(), 4, "{asked}");
    let ends = second
        .seen
        .iter()
        .filter(|it| it["type"] == "chat:stream-end");
    assert_eq!(ends.count(), 1, "the first exchange ended before");
    let ids: Vec<_> = second
        .seen
        .iter()
        .filter_map(|it| it["payload"]["messageId"].as_str())
        .collect();
    assert!(!ids.contains(&"m1"), "{ids:?}");
}

#[tokio::test]
async fn an_exchange_that_was_broken_off_ends_and_its_calls_say_what_is_known() {
    let provider = Provider::start().await;
    let marks = json!({"command": "echo ran >> marks; sleep 600"});
    provider.then(Turn::call("bash", &marks));
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let more = json!({"chat": {"trust_level": "autonomous"}, "audit": {"path": log, "content": "command"}});
    let daemon = Daemon::with(&provider, more).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    first.say("go").await;
    let last = first.until("chat:tool-start").await["seq"]
        .as_u64()
        .unwrap();
    let marks = daemon.project().join("marks");
    // Not only the file: it is there before the line is.
    let has_run = async || std::fs::read_to_string(&marks).is_ok_and(|it| it == "ran\n");
    crate::support::eventually("the command runs", has_run).await;
    let daemon = daemon.after_kill().await;
    let mut second = resume(&daemon, &session, last).await;
    let end = second.until("chat:stream-end").await;
    assert_eq!(end["payload"]["messageId"], "m1");
    assert_eq!(end["payload"]["stopReason"], "error");
    let notice = second.until("session:notice").await;
    assert_eq!(notice["payload"]["code"], "interrupted", "{notice}");
    let error = second
        .seen
        .iter()
        .find(|it| it["type"] == "chat:error")
        .unwrap();
    assert_eq!(error["payload"]["code"], "interrupted");
    let history = history(&mut second).await;
    assert_eq!(history.len(), 3, "{history:?}");
    assert!(
        history[2]
            .1
            .contains("whether it had an effect is not known"),
        "{history:?}"
    );
    // Its daemon wrote no line of it.
    let line = &crate::audit::lines(&log, 1).await[0];
    assert_eq!(
        (&line["status"], &line["decision"]),
        (&json!("interrupted"), &json!("run")),
        "{line}"
    );
    assert_eq!(
        (&line["toolId"], &line["exchange"]),
        (&json!("t1"), &json!("m1")),
        "{line}"
    );
    assert!(
        line["command"].as_str().unwrap().starts_with("echo ran"),
        "{line}"
    );
    provider.then(Turn::text("sorry"));
    second.say("what happened?").await;
    second.until("chat:stream-end").await;
    assert_eq!(std::fs::read_to_string(marks).unwrap(), "ran\n");
    // The account comes once: another restart has nothing to say of it.
    let last = second.seen.last().unwrap()["seq"].as_u64().unwrap();
    let daemon = daemon.after_end().await;
    let mut third = resume(&daemon, &session, last).await;
    let expected = third.ask(json!({"type": "session:state"})).await;
    assert_eq!(expected["payload"]["conversations"][0]["state"], "idle");
    assert_eq!(crate::audit::lines(&log, 1).await.len(), 1);
    assert!(
        !third.seen.iter().any(|it| it["type"] == "chat:stream-end"),
        "{:?}",
        third.seen
    );
}

#[tokio::test]
async fn what_waited_at_a_kill_waits_on_until_the_user_says_something() {
    let one = [("user", "one")];
    what_waited_waits_on(async |daemon: Daemon| daemon.after_kill().await, &one).await;
}

#[tokio::test]
async fn what_waited_at_an_end_in_order_waits_on_until_the_user_says_something() {
    // What was said of the answer is kept as well.
    let one = [("user", "one"), ("assistant", "a")];
    what_waited_waits_on(async |daemon: Daemon| daemon.after_end().await, &one).await;
}

/// `before` is what is kept of the exchange that ran at the end.
async fn what_waited_waits_on(end: impl AsyncFnOnce(Daemon) -> Daemon, before: &[(&str, &str)]) {
    let provider = Provider::start().await;
    let (turn, mut pause) = Turn::paused(
        &[json!({"content": "a"})],
        &[json!({"content": "b"})],
        "stop",
    );
    provider.then(turn);
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    first.say("one").await;
    pause.reached().await;
    let queued = json!({"type": "chat:send", "id": "q1", "content": "two", "whenBusy": "queue"});
    first.send(queued.clone()).await;
    let sent = first.until("chat:send-result").await;
    assert_eq!(sent["payload"]["state"], "queued");
    let daemon = end(daemon).await;
    let mut second = resume(&daemon, &session, 0).await;
    let waits = second.until("chat:queued").await;
    assert_eq!(waits["payload"]["content"], "two", "{waits}");
    let state = second.ask(json!({"type": "session:state"})).await;
    assert_eq!(state["payload"]["conversations"][0]["queue"], json!(["m2"]));
    // It is not taken twice.
    second.send(queued).await;
    let again = second.until("chat:send-result").await;
    assert_eq!(again["payload"]["duplicate"], true, "{again}");
    provider.then(Turn::text("three!")).then(Turn::text("two!"));
    second.say("three").await;
    second.until("chat:stream-end").await;
    second.until("chat:stream-end").await;
    let after = [
        ("user", "three"),
        ("assistant", "three!"),
        ("user", "two"),
        ("assistant", "two!"),
    ];
    let expected = said(&[before, &after].concat());
    assert_eq!(history(&mut second).await, expected);
}

#[tokio::test]
async fn a_session_that_nobody_used_is_not_kept() {
    let provider = Provider::start().await;
    let daemon = Daemon::start(&provider).await;
    let first = daemon.connect().await;
    let session = first.session();
    let daemon = daemon.after_end().await;
    let mut second = resume(&daemon, &session, 0).await;
    assert_eq!(second.seen[0]["payload"]["resumed"], false);
    assert_eq!(second.next().await["payload"]["code"], "session_not_found");
}

#[tokio::test]
async fn a_conversation_that_was_closed_is_forgotten() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello")).then(Turn::text("there"));
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    first.say("hi").await;
    first.until("chat:stream-end").await;
    let other = json!({"type": "chat:send", "conversationId": "other", "content": "hi"});
    first.send(other).await;
    first.until("chat:stream-end").await;
    first.ask(json!({"type": "chat:close"})).await;
    let daemon = daemon.after_end().await;
    let mut second = resume(&daemon, &session, 0).await;
    let state = second.ask(json!({"type": "session:state"})).await;
    let conversations = state["payload"]["conversations"].as_array().unwrap();
    assert_eq!(conversations.len(), 1, "{state}");
    assert_eq!(conversations[0]["conversationId"], "other");
}

#[tokio::test]
async fn settings_hold_after_a_restart_and_records_reach_back() {
    let provider = Provider::start().await;
    provider
        .then(Turn::call("file_read", &json!({"path": "a.txt"})))
        .then(Turn::text("read"));
    let daemon = Daemon::start(&provider).await;
    daemon.file("a.txt", "content\n");
    let mut first = daemon.connect().await;
    let session = first.session();
    let wanted = json!({"type": "session:configure", "trustLevel": "supervised"});
    first.ask(wanted).await;
    let wanted =
        json!({"type": "session:configure", "trustLevel": "autonomous", "layers": ["message"]});
    first.ask(wanted).await;
    first.say("read it").await;
    first.until("chat:stream-end").await;
    let daemon = daemon.after_kill().await;
    let mut second = resume(&daemon, &session, 0).await;
    assert_eq!(second.seen[0]["payload"]["trustLevel"], "autonomous");
    let layers = json!(["message"]);
    assert_eq!(second.seen[0]["payload"]["layers"], layers);
    let records = second.ask(json!({"type": "tool:history"})).await;
    let record = &records["payload"]["executions"][0];
    assert_eq!(
        (&record["toolName"], &record["status"]),
        (&json!("file_read"), &json!("success"))
    );
}

#[tokio::test]
async fn a_setting_that_cannot_hold_any_more_costs_itself() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello"));
    let other = json!({"providers": {"other": {
        "kind": "openai", "base_url": provider.url(), "api_key": "test-key-0123456789", "model": "m",
    }}});
    let daemon = Daemon::with(&provider, other).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    first.say("hi").await;
    first.until("chat:stream-end").await;
    let wanted =
        json!({"type": "session:configure", "provider": "other", "trustLevel": "supervised"});
    first.ask(wanted).await;
    daemon.reconfigure(|config| {
        config["providers"].as_object_mut().unwrap().remove("other");
    });
    let daemon = daemon.after_end().await;
    let mut second = resume(&daemon, &session, 0).await;
    assert_eq!(second.seen[0]["payload"]["trustLevel"], "supervised");
    let notice = second.until("session:notice").await;
    assert_eq!(notice["payload"]["code"], "settings_lost", "{notice}");
}

#[tokio::test]
async fn a_damaged_message_costs_itself() {
    let provider = Provider::start().await;
    provider.then(Turn::text("one!")).then(Turn::text("two!"));
    let daemon = Daemon::start(&provider).await;
    let mut first = daemon.connect().await;
    let session = first.session();
    for text in ["one", "two"] {
        first.say(text).await;
        first.until("chat:stream-end").await;
    }
    let store = rusqlite::Connection::open(daemon.store()).unwrap();
    let spoil =
        "UPDATE body SET data = x'00' WHERE key = (SELECT body FROM message WHERE place = 1)";
    assert_eq!(store.execute(spoil, []).unwrap(), 1);
    drop(store);
    let daemon = daemon.after_kill().await;
    let mut second = resume(&daemon, &session, 0).await;
    let notice = second.until("session:notice").await;
    assert_eq!(notice["payload"]["code"], "messages_damaged", "{notice}");
    let readable = [("user", "one"), ("user", "two"), ("assistant", "two!")];
    assert_eq!(history(&mut second).await, said(&readable));
    // What is said after it is at its place.
    provider.then(Turn::text("three!"));
    second.say("three").await;
    second.until("chat:stream-end").await;
    let daemon = daemon.after_kill().await;
    let mut third = resume(&daemon, &session, 0).await;
    let further = [("user", "three"), ("assistant", "three!")];
    let expected = said(&[&readable[..], &further[..]].concat());
    assert_eq!(history(&mut third).await, expected);
}

#[tokio::test]
async fn without_a_store_nothing_is_kept() {
    let provider = Provider::start().await;
    provider.then(Turn::text("hello"));
    let daemon = Daemon::with(&provider, json!({"store": {"enabled": false}})).await;
    let mut first = daemon.connect().await;
    assert_eq!(first.seen[0]["payload"]["persistent"], false);
    let session = first.session();
    first.say("hi").await;
    first.until("chat:stream-end").await;
    let daemon = daemon.after_end().await;
    let second = resume(&daemon, &session, 0).await;
    assert_eq!(second.seen[0]["payload"]["resumed"], false);
}
