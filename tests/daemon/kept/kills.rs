//! The daemon is killed again and again, after any frame. Judged from outside: what was acknowledged is there once, every
//! call has a result, and nothing ran twice.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::resume;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Dice, Provider};

/// How often it is killed; more where `OUTRIGGER_FULL_TESTS` is set, as `.ci/full` does.
fn rounds() -> usize {
    match std::env::var_os("OUTRIGGER_FULL_TESTS") {
        Some(_) => 1_000,
        None => 12,
    }
}

/// The most frames that are read before it is killed.
const MOST_FRAMES: u64 = 40;

/// What a client knows.
#[derive(Default)]
struct Known {
    /// Numbers of sends, and whether they were acknowledged.
    sent: BTreeMap<u64, bool>,
    /// What calls came to.
    results: BTreeMap<String, String>,
    last_seq: u64,
    /// How many frames of the socket are taken.
    taken: usize,
}

impl Known {
    /// Takes what the socket has got.
    fn catch_up(&mut self, client: &Client) {
        for frame in &client.seen[self.taken..] {
            self.take(frame);
        }
        self.taken = client.seen.len();
    }

    fn take(&mut self, frame: &Value) {
        if let Some(seq) = frame["seq"].as_u64() {
            assert!(seq > self.last_seq, "{frame}");
            self.last_seq = seq;
        }
        let payload = &frame["payload"];
        match frame["type"].as_str().unwrap() {
            "chat:send-result" => {
                let id = frame["replyTo"].as_str().unwrap();
                let number = id.trim_start_matches('s').parse().unwrap();
                self.sent.insert(number, true);
            }
            "chat:tool-result" => {
                let id = payload["toolId"].as_str().unwrap().to_owned();
                let result = payload["result"].as_str().unwrap().to_owned();
                let before = self.results.insert(id, result.clone());
                assert!(before.is_none_or(|before| before == result), "{frame}");
            }
            // More may wait than there is room for; such a send is not acknowledged.
            "chat:error" if payload["code"] == "queue_full" => {}
            "chat:error" => assert_eq!(payload["code"], "interrupted", "{frame}"),
            "session:error" => assert_eq!(payload["code"], "replay_gap", "{frame}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_however_often_the_daemon_is_killed() {
    let provider = Provider::start().await;
    provider.by_rule(|last| match last["role"].as_str() {
        Some("user") => {
            let said = last["content"].as_str().unwrap_or("many");
            let line = format!("echo '{said}' >> marks; echo 'marked {said}'");
            Turn::call("bash", &json!({"command": line}))
        }
        _ => Turn::text("done"),
    });
    let more = json!({"chat": {"trust_level": "autonomous"}});
    let mut daemon = Daemon::with(&provider, more).await;
    let dice = Dice::new();
    let (mut known, mut next) = (Known::default(), 0);
    let mut client = daemon.connect().await;
    let session = client.session();
    // The first is kept for sure: a session in which nothing was acknowledged may be gone.
    client.send(say(next, "queue")).await;
    known.sent.insert(next, false);
    while !known.sent[&0] {
        client.next().await;
        known.catch_up(&client);
    }
    for _ in 0..rounds() {
        for _ in 0..=dice.roll(3) {
            next += 1;
            let how = if dice.roll(2) == 0 { "queue" } else { "steer" };
            known.sent.insert(next, false);
            client.send(say(next, how)).await;
        }
        for _ in 0..=dice.roll(MOST_FRAMES) {
            let frame = client.next().await;
            // Nothing else may come by itself.
            if frame["type"] == "chat:stream-end" {
                break;
            }
        }
        known.catch_up(&client);
        daemon = daemon.after_kill().await;
        client = resume(&daemon, &session, known.last_seq).await;
        known.taken = 0;
    }
    // What waits goes on with the next send; at the end nothing waits and nothing runs.
    next += 1;
    known.sent.insert(next, false);
    client.send(say(next, "queue")).await;
    client.until("chat:send-result").await;
    while !is_idle(&mut client).await {
        client.next().await;
    }
    known.catch_up(&client);
    assert!(known.sent[&next]);
    judge(&mut client, &daemon, &known).await;
}

fn say(number: u64, when_busy: &str) -> Value {
    json!({"type": "chat:send", "id": format!("s{number}"), "content": format!("say {number}."), "whenBusy": when_busy})
}

async fn is_idle(client: &mut Client) -> bool {
    let state = client.ask(json!({"type": "session:state"})).await;
    state["payload"]["conversations"][0]["state"] == "idle"
}

async fn judge(client: &mut Client, daemon: &Daemon, known: &Known) {
    let answer = client.ask(json!({"type": "chat:history"})).await;
    assert!(
        answer["payload"]
            .get("truncated")
            .is_none_or(|it| it == false)
    );
    let messages = answer["payload"]["messages"].as_array().unwrap();
    let mut said: BTreeMap<u64, usize> = BTreeMap::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    for message in messages {
        match message["role"].as_str().unwrap() {
            "user" => {
                let text = match &message["content"] {
                    Value::String(text) => text.clone(),
                    parts => parts.to_string(),
                };
                // What was steered too late is said together.
                for number in text.split("say ").skip(1) {
                    let number = number.split('.').next().unwrap().parse().unwrap();
                    *said.entry(number).or_default() += 1;
                }
                assert!(open.is_empty(), "calls without a result: {open:?}");
            }
            "assistant" => {
                assert!(open.is_empty(), "calls without a result: {open:?}");
                let calls = message["toolCalls"].as_array().into_iter().flatten();
                open.extend(calls.map(|call| call["id"].as_str().unwrap().to_owned()));
            }
            _ => {
                let id = message["toolCallId"].as_str().unwrap();
                assert!(open.remove(id), "a result without a call: {message}");
                let text = match &message["content"] {
                    Value::String(text) => text.clone(),
                    parts => parts[0]["text"].as_str().unwrap().to_owned(),
                };
                if let Some(seen) = known.results.get(id) {
                    assert_eq!(*seen, text, "{id}");
                }
            }
        }
    }
    for (number, is_acknowledged) in &known.sent {
        let count = said.get(number).copied().unwrap_or(0);
        let expected = if *is_acknowledged { 1..=1 } else { 0..=1 };
        assert!(expected.contains(&count), "{number} is there {count} times");
    }
    let ids: BTreeSet<&str> = messages
        .iter()
        .filter_map(|it| it["toolCallId"].as_str())
        .collect();
    for id in known.results.keys() {
        assert!(ids.contains(id.as_str()), "the result of {id} is lost");
    }
    let marks = std::fs::read_to_string(daemon.project().join("marks")).unwrap_or_default();
    let mut ran = BTreeSet::new();
    // Between two that are said together there is an empty one.
    for line in marks.lines().filter(|line| !line.is_empty()) {
        assert!(ran.insert(line), "{line} ran twice");
    }
}
