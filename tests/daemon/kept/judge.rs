//! What a client knows of a session, and whether what is kept agrees with it. Judged from outside, and by a look into a
//! copy of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Client, Daemon};

/// What a client knows.
#[derive(Default)]
pub(super) struct Known {
    /// Numbers of sends, and whether they were acknowledged.
    pub(super) sent: BTreeMap<u64, bool>,
    /// What calls came to.
    results: BTreeMap<String, String>,
    /// Exchanges that ended.
    ended: BTreeSet<String>,
    pub(super) last_seq: u64,
    /// How many frames of the socket are taken.
    pub(super) taken: usize,
}

impl Known {
    /// Takes what the socket has got.
    pub(super) fn catch_up(&mut self, client: &Client) {
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
            "chat:stream-end" => {
                let id = payload["messageId"].as_str().unwrap().to_owned();
                assert!(self.ended.insert(id), "it ended twice: {frame}");
            }
            // More may wait than there is room for; such a send is not acknowledged.
            "chat:error" if payload["code"] == "queue_full" => {}
            "chat:error" => assert_eq!(payload["code"], "interrupted", "{frame}"),
            "session:error" => assert_eq!(payload["code"], "replay_gap", "{frame}"),
            _ => {}
        }
    }
}

/// A send of this number.
pub(super) fn say(number: u64, when_busy: &str) -> Value {
    json!({"type": "chat:send", "id": format!("s{number}"), "content": format!("say {number}."), "whenBusy": when_busy})
}

pub(super) async fn is_idle(client: &mut Client) -> bool {
    let state = client.ask(json!({"type": "session:state"})).await;
    state["payload"]["conversations"][0]["state"] == "idle"
}

/// Fails where something is lost, doubled or invalid.
pub(super) async fn judge(client: &mut Client, daemon: &Daemon, known: &Known) {
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

/// What must not be in the file: how many there are of each has to be 0.
const NEVER: [(&str, &str); 6] = [
    (
        "bodies that no message has",
        "SELECT count(*) FROM body WHERE key NOT IN (SELECT body FROM message)",
    ),
    (
        "attachments that nothing names",
        "SELECT count(*) FROM attachment WHERE key NOT IN (SELECT attachment FROM attached) \
         AND key NOT IN (SELECT before FROM file_change WHERE before IS NOT NULL)",
    ),
    (
        "words that no body says",
        "SELECT count(*) FROM words_docsize WHERE id NOT IN (SELECT key FROM body)",
    ),
    (
        "bodies whose words are not found",
        "SELECT count(*) FROM (SELECT key, json_extract(CAST(data AS TEXT), '$.message') AS message FROM body WHERE NOT deflated) \
         WHERE (message ->> 'role' = 'user' OR message ->> 'role' = 'assistant' AND message ->> 'content' <> '') \
         AND key NOT IN (SELECT id FROM words_docsize)",
    ),
    (
        "conversations with a gap",
        "SELECT count(*) FROM conversation WHERE next_place <> \
         (SELECT count(*) FROM message WHERE message.conversation = conversation.key)",
    ),
    (
        "sessions that count their messages wrong",
        "SELECT count(*) FROM session WHERE messages <> (SELECT count(*) FROM message \
         JOIN conversation ON conversation.key = message.conversation WHERE conversation.session = session.key)",
    ),
];

/// Fails where something in the file of a daemon that was killed is left over, missing or damaged. Looks at a copy: the
/// log of changes is for the daemon to take in.
pub(super) fn check_file(store: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    for end in ["", "-wal"] {
        let with = |path: &Path| [path.to_str().unwrap(), end].concat();
        if Path::new(&with(store)).exists() {
            std::fs::copy(with(store), with(&copy)).unwrap();
        }
    }
    let file = rusqlite::Connection::open(&copy).unwrap();
    let number = |sql: &str| -> i64 { file.query_row(sql, [], |row| row.get(0)).unwrap() };
    if number("PRAGMA user_version") == 0 {
        // Killed before its tables were made: all of them, or none.
        assert_eq!(number("SELECT count(*) FROM sqlite_schema"), 0);
        return;
    }
    let whole: String = file
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(whole, "ok");
    assert_eq!(number("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    for (what, sql) in NEVER {
        assert_eq!(number(sql), 0, "{what}");
    }
}
