//! The daemon dies right before or right after each of its commits, in the middle of all that a session may have. Judged
//! as after kills, and by a look into the file.
//!
//! Only a program with debug assertions has the places where it dies; what is shipped has none.

use std::collections::BTreeSet;
use std::path::PathBuf;

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_tungstenite::tungstenite::Message;

use super::judge::{Known, check_file, judge, say};
use crate::approval::approve;
use crate::support::provider::Turn;
use crate::support::{Client, Daemon, Provider};

/// How many daemons die side by side.
const AT_ONCE: usize = 4;

/// More commits than the session has, so that one that never ends is a failure.
const MOST: usize = 200;

/// Every how many commits it dies; at each where `OUTRIGGER_FULL_TESTS` is set, as `.ci/full` does.
fn step() -> usize {
    match std::env::var_os("OUTRIGGER_FULL_TESTS") {
        Some(_) => 1,
        None => 5,
    }
}

/// The send whose exchange replaces a file, and the one with a picture.
const WRITES: &str = "say 2.";
const PICTURE: u64 = 4;

/// One session, whatever became of it.
#[derive(Default)]
struct Story {
    known: Known,
    session: Option<String>,
    /// The call that is asked for.
    asked: Option<Value>,
    /// What the client was told of: answers that are remembered, the fork that stays and how many messages it has, the
    /// one that was deleted.
    rules: BTreeSet<String>,
    fork: Option<(Value, usize)>,
    deleted: Option<Value>,
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_whichever_commit_the_daemon_dies_at() {
    let provider = Provider::start().await;
    provider.by_rule(|last| match last["role"].as_str() {
        Some("user") => {
            let said = last["content"].as_str().unwrap_or("a picture");
            if said == WRITES {
                let input = json!({"path": "a.txt", "content": "new\n"});
                return Turn::call("file_write", &input);
            }
            let line = format!("echo '{said}' >> marks; echo 'marked {said}'");
            Turn::call("bash", &json!({"command": line}))
        }
        _ => Turn::text("done"),
    });
    for side in ["before", "after"] {
        let mut numbers = (1..MOST).step_by(step());
        loop {
            let together: Vec<_> = numbers.by_ref().take(AT_ONCE).collect();
            println!("{side} {together:?}");
            assert!(!together.is_empty(), "it goes on beyond {MOST} commits");
            let died = together.into_iter().map(async |number| {
                let when = format!("{side} {number}");
                dies(&provider, &when).await
            });
            // The one that survives had no commit of that number: all of them were tried.
            if futures::future::join_all(died).await.contains(&false) {
                break;
            }
        }
    }
}

/// Has a daemon die at a commit, twice, and judges what the next one knows. Returns whether it died.
async fn dies(provider: &Provider, when: &str) -> bool {
    let folder = Daemon::folder(provider, json!({}));
    std::fs::write(folder.path().join("project/a.txt"), "old\n".repeat(10_000)).unwrap();
    let store: PathBuf = folder.path().join("state/outrigger.db");
    let mut story = Story::default();
    let (folder, died) = life(folder, when, &mut story, Story::play).await;
    check_file(&store);
    // It dies on the way back too, where that takes so many commits.
    let (folder, _) = life(folder, when, &mut story, Story::go_on).await;
    check_file(&store);
    let daemon = Daemon::begin(folder, &[]).await.unwrap();
    story.judge(&daemon).await;
    drop(daemon.after_end().await);
    died
}

/// Runs a daemon that dies at a commit, while a client does its part. Returns what is left, and whether it died.
async fn life(
    folder: TempDir,
    when: &str,
    story: &mut Story,
    part: impl AsyncFnOnce(&mut Story, &mut Client) -> Result<(), u16>,
) -> (TempDir, bool) {
    let daemon = match Daemon::begin(folder, &[("STORE_DIES_AT_COMMIT", when)]).await {
        Ok(daemon) => daemon,
        Err(folder) => return (folder, true),
    };
    let done = match story.reach(&daemon).await {
        Ok(mut client) => {
            let done = part(story, &mut client).await;
            story.known.catch_up(&client);
            done
        }
        Err(code) => Err(code),
    };
    if let Err(code) = done {
        assert_eq!(code, 0, "{when}: it closed the socket");
        return (daemon.left().await, true);
    }
    let mut daemon = daemon;
    daemon.child.start_kill().unwrap();
    (daemon.left().await, false)
}

impl Story {
    async fn reach(&mut self, daemon: &Daemon) -> Result<Client, u16> {
        let query = match &self.session {
            Some(session) => format!("?session={session}&after={}", self.known.last_seq),
            None => String::new(),
        };
        let mut client = Client::reach(daemon, &query).await?;
        self.known.taken = 0;
        // It died with its process.
        self.asked = None;
        let resumed = client.seen[0]["payload"]["resumed"] == true;
        if self.session.is_some() && !resumed {
            let mut sent = self.known.sent.values();
            assert!(sent.all(|acknowledged| !acknowledged), "it is lost");
            let code = client.next_or_close().await?["payload"]["code"].clone();
            assert_eq!(code, "session_not_found");
            // Another one, of which nothing is known.
            *self = Self::default();
            self.known.taken = client.seen.len();
        }
        self.session = Some(client.session());
        Ok(client)
    }

    async fn next(&mut self, client: &mut Client) -> Result<Value, u16> {
        let frame = client.next_or_close().await?;
        self.known.catch_up(client);
        match frame["type"].as_str() {
            Some("chat:tool-confirm") => self.asked = Some(frame["payload"]["toolId"].clone()),
            Some("chat:tool-resolved") => {
                let rule = frame["payload"]["ruleId"].as_str();
                self.rules.extend(rule.map(str::to_owned));
            }
            _ => {}
        }
        Ok(frame)
    }

    /// Sends a request, and returns its answer.
    async fn ask(&mut self, client: &mut Client, mut request: Value) -> Result<Value, u16> {
        let id = format!("q{}", client.seen.len());
        request["id"] = json!(id);
        give(client, &request).await?;
        loop {
            let frame = self.next(client).await?;
            if frame["replyTo"] == id {
                let failed = frame["type"] == "session:error" || frame["type"] == "chat:error";
                assert!(!failed, "{request}: {frame}");
                return Ok(frame["payload"].clone());
            }
        }
    }

    async fn say(&mut self, client: &mut Client, number: u64, how: &str) -> Result<(), u16> {
        let mut frame = say(number, how);
        if number == PICTURE {
            frame["content"] = json!([{"type": "text", "text": frame["content"]}, picture()]);
        }
        self.known.sent.insert(number, false);
        give(client, &frame).await
    }

    async fn approve(&mut self, client: &mut Client, more: Value) -> Result<(), u16> {
        let call = self.asked.take();
        self.ask(client, approve(&json!(call), &more)).await?;
        Ok(())
    }

    /// Approves what is asked for, until nothing runs and nothing waits.
    async fn until_idle(&mut self, client: &mut Client) -> Result<(), u16> {
        loop {
            if self.asked.is_some() {
                self.approve(client, json!({})).await?;
            }
            let state = self.ask(client, json!({"type": "session:state"})).await?;
            let conversation = &state["conversations"][0];
            if conversation["state"] == "idle" && conversation["queue"] == json!([]) {
                return Ok(());
            }
            if self.asked.is_none() {
                self.next(client).await?;
            }
        }
    }

    /// A call that is asked for, a queued and a steered send, an answer that is remembered, a file, a picture, a fork that
    /// stays and one that is deleted.
    async fn play(&mut self, client: &mut Client) -> Result<(), u16> {
        self.say(client, 1, "queue").await?;
        while self.asked.is_none() {
            self.next(client).await?;
        }
        self.say(client, 2, "queue").await?;
        self.say(client, 3, "steer").await?;
        while !(self.known.sent[&2] && self.known.sent[&3]) {
            self.next(client).await?;
        }
        self.approve(client, json!({"remember": "conversation"}))
            .await?;
        self.until_idle(client).await?;
        self.say(client, PICTURE, "queue").await?;
        while !self.known.sent[&PICTURE] {
            self.next(client).await?;
        }
        self.until_idle(client).await?;
        let history = self.ask(client, json!({"type": "chat:history"})).await?;
        let messages = history["messages"].as_array().unwrap().len();
        let fork = json!({"type": "session:fork"});
        let stays = self.ask(client, fork.clone()).await?;
        self.fork = Some((stays["sessionId"].clone(), messages));
        let goes = self.ask(client, fork).await?["sessionId"].clone();
        let delete = json!({"type": "session:delete", "sessionId": goes});
        self.ask(client, delete).await?;
        self.deleted = Some(goes);
        Ok(())
    }

    /// What waited goes on behind another send.
    async fn go_on(&mut self, client: &mut Client) -> Result<(), u16> {
        let number = self.known.sent.keys().max().map_or(10, |last| last + 10);
        self.say(client, number, "queue").await?;
        while !self.known.sent[&number] {
            self.next(client).await?;
        }
        self.until_idle(client).await
    }

    async fn judge(mut self, daemon: &Daemon) {
        let mut client = self.reach(daemon).await.unwrap();
        self.go_on(&mut client).await.unwrap();
        judge(&mut client, daemon, &self.known).await;
        let listed = client.ask(json!({"type": "session:list"})).await;
        let listed = listed["payload"]["sessions"].as_array().unwrap();
        let found = |id: &Value| listed.iter().find(|it| it["sessionId"] == *id);
        if let Some((fork, messages)) = &self.fork {
            assert_eq!(found(fork).unwrap()["messages"], *messages);
        }
        if let Some(deleted) = &self.deleted {
            assert_eq!(found(deleted), None);
        }
        let rules = client.ask(json!({"type": "approval:list"})).await;
        let rules = rules["payload"]["rules"].as_array().unwrap();
        for rule in &self.rules {
            let found = rules.iter().filter(|it| it["ruleId"] == **rule);
            assert_eq!(found.count(), 1, "{rule}: {rules:?}");
        }
    }
}

/// Sends a frame to a daemon that may be gone.
async fn give(client: &mut Client, frame: &Value) -> Result<(), u16> {
    let message = Message::text(frame.to_string());
    client.message(message).await.map_err(|_| 0)
}

/// A picture that is large enough to be kept by itself.
fn picture() -> Value {
    let data = [
        b"GIF89a\x01\x00\x01\x00\x00\x00\x00,".as_slice(),
        &[0; 20_000],
    ]
    .concat();
    let data = base64::engine::general_purpose::STANDARD.encode(data);
    json!({"type": "image", "mediaType": "image/gif", "data": data})
}
