//! Connections that are cut, stalled and torn to pieces, replays of what was seen, sends and answers sent again:
//! exchanges with tools, of which nothing is lost and nothing doubled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::support::provider::Turn;
use crate::support::{Daemon, Dice, Provider};

/// More where `OUTRIGGER_FULL_TESTS` is set, as `.ci/full` does.
static EXCHANGES: LazyLock<usize> = LazyLock::new(|| {
    let all = std::env::var_os("OUTRIGGER_FULL_TESTS").is_some();
    if all { 500 } else { 100 }
});
const CONVERSATIONS: usize = 20;

/// Bytes from the daemon after which a connection is cut at the latest.
const LIFE: u64 = 12_000;

/// Starts a proxy before the daemon and returns its port and how many connections it has cut.
async fn proxy(daemon: u16, dice: Dice) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let cuts = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&cuts);
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(("127.0.0.1", daemon)).await.unwrap();
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            let (down, up) = (dice.roll(LIFE) + 400, dice.roll(LIFE / 4) + 400);
            let (dice, cuts) = (dice.clone(), Arc::clone(&counter));
            tokio::spawn(async move {
                // Whichever way is used up first takes the other with it.
                tokio::select! {
                    () = carry(from_server, to_client, down, &dice) => {}
                    () = carry(from_client, to_server, up, &dice) => {}
                }
                cuts.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    (port, cuts)
}

/// Carries so many bytes in pieces of any size, with pauses.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut left: u64, dice: &Dice) {
    let mut buffer = [0; 4_096];
    while left > 0 {
        let most = match dice.roll(4) {
            0 => 1 + dice.roll(7),
            _ => 1 + dice.roll(4_096),
        };
        let most = usize::try_from(most.min(left)).unwrap();
        let Ok(count @ 1..) = from.read(&mut buffer[..most]).await else {
            return;
        };
        if dice.roll(20) == 0 {
            for _ in 0..dice.roll(200) {
                tokio::task::yield_now().await;
            }
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
        left -= count as u64;
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A client that keeps its place in the session, whatever becomes of its sockets.
struct Client {
    port: u16,
    token: String,
    session: Option<String>,
    last: u64,
    seen: BTreeMap<u64, Value>,
    /// Sends that were not answered, by id.
    unanswered: BTreeMap<usize, Value>,
    /// Questions that are not settled.
    open: BTreeSet<String>,
    next: usize,
    ended: usize,
    replayed: usize,
    dice: Dice,
}

impl Client {
    /// Connects and takes up what it got last, or what it got some events ago.
    async fn connect(&mut self) -> Option<Socket> {
        let back = match self.dice.roll(3) {
            0 => self.dice.roll(40),
            _ => 0,
        };
        let query = match &self.session {
            Some(session) => {
                self.last = self.last.saturating_sub(back);
                format!("&session={session}&after={}", self.last)
            }
            None => String::new(),
        };
        let url = format!(
            "ws://127.0.0.1:{}/ws?token={}{query}",
            self.port, self.token
        );
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.ok()?;
        let ready = next(&mut socket).await?;
        assert_eq!(ready["type"], "session:ready", "{ready}");
        if self.session.is_none() {
            let id = ready["payload"]["sessionId"].as_str().unwrap();
            self.session = Some(id.to_owned());
            self.take(ready);
        } else {
            assert_eq!(ready["payload"]["resumed"], true, "{ready}");
        }
        // What was on its way when the socket broke may be lost: it is said again.
        for send in self.unanswered.values() {
            socket.send(Message::text(send.to_string())).await.ok()?;
        }
        for id in &self.open {
            socket.send(approval(id)).await.ok()?;
        }
        Some(socket)
    }

    /// Takes a frame; returns what it has to say to it.
    fn take(&mut self, frame: Value) -> Vec<Message> {
        let seq = frame["seq"].as_u64().unwrap();
        assert_eq!(seq, self.last + 1, "{frame}");
        self.last = seq;
        if let Some(earlier) = self.seen.get(&seq) {
            assert_eq!(*earlier, frame, "replayed as something else");
            self.replayed += 1;
            return Vec::new();
        }
        let said = self.react(&frame);
        self.seen.insert(seq, frame);
        said
    }

    fn react(&mut self, frame: &Value) -> Vec<Message> {
        let payload = &frame["payload"];
        match frame["type"].as_str().unwrap() {
            "chat:send-result" => {
                let id = frame["replyTo"].as_u64().unwrap();
                self.unanswered.remove(&usize::try_from(id).unwrap());
            }
            "chat:tool-confirm" => {
                let id = payload["toolId"].as_str().unwrap().to_owned();
                // Answered twice, of which the first counts.
                let said = vec![approval(&id), approval(&id)];
                self.open.insert(id);
                return said;
            }
            "chat:tool-resolved" => drop(self.open.remove(payload["toolId"].as_str().unwrap())),
            "chat:stream-end" => {
                assert_eq!(payload["stopReason"], "end_turn", "{frame}");
                self.ended += 1;
                return self.say(payload["conversationId"].as_str().unwrap());
            }
            "session:error" => assert_eq!(payload["code"], "approval_not_found", "{frame}"),
            "chat:error" => panic!("{frame}"),
            _ => {}
        }
        Vec::new()
    }

    /// Says the next thing there is to say.
    fn say(&mut self, conversation: &str) -> Vec<Message> {
        if self.next == *EXCHANGES {
            return Vec::new();
        }
        let number = self.next;
        self.next += 1;
        let content = format!("say {number}");
        let send = json!({"type": "chat:send", "id": number, "conversationId": conversation, "content": content});
        self.unanswered.insert(number, send.clone());
        vec![Message::text(send.to_string())]
    }

    /// Lives through one socket after the other until every exchange has ended.
    async fn live(&mut self) {
        while self.ended < *EXCHANGES {
            let Some(mut socket) = self.connect().await else {
                continue;
            };
            while self.ended < *EXCHANGES {
                let Some(frame) = next(&mut socket).await else {
                    break;
                };
                let mut broken = false;
                for said in self.take(frame) {
                    broken |= socket.send(said).await.is_err();
                }
                if broken {
                    break;
                }
            }
        }
    }
}

fn approval(id: &str) -> Message {
    let approval = json!({"type": "chat:tool-approve", "id": format!("a{id}"), "toolId": id, "approved": true});
    Message::text(approval.to_string())
}

async fn next(socket: &mut Socket) -> Option<Value> {
    loop {
        match socket.next().await? {
            Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Calls a tool for what the user says, and answers with the result.
fn answer(last: &Value) -> Turn {
    let content = match &last["content"] {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    if last["role"] != "user" {
        let pieces = ["do", "ne ", "with: ", &content].map(|text| json!({ "content": text }));
        return Turn::chunks(&pieces, "stop");
    }
    let number = content.strip_prefix("say ").unwrap();
    if number.ends_with('7') {
        let input = json!({"path": format!("written/{number}"), "content": number});
        return Turn::call("file_write", &input);
    }
    Turn::calls(&[
        ("file_read", json!({"path": "a.txt"})),
        ("file_read", json!({"path": "b.txt"})),
    ])
}

#[tokio::test]
async fn exchanges_survive_a_bad_line() {
    let provider = Provider::start().await;
    provider.by_rule(answer);
    // On a busy machine a bad line takes longer than a question stays open by default.
    let patient = json!({"approval": {"timeout": "0s"}});
    let daemon = Daemon::with(&provider, patient).await;
    daemon.file("a.txt", "content of a");
    daemon.file("b.txt", "content of b");
    let dice = Dice::new();
    let (port, cuts) = proxy(daemon.port, dice.clone()).await;
    let mut client = Client {
        port,
        token: daemon.token.clone(),
        session: None,
        last: 0,
        seen: BTreeMap::new(),
        unanswered: BTreeMap::new(),
        open: BTreeSet::new(),
        next: 0,
        ended: 0,
        replayed: 0,
        dice,
    };
    for conversation in 0..CONVERSATIONS {
        drop(client.say(&format!("c{conversation}")));
    }
    client.live().await;
    let events = |kind: &str| -> Vec<&Value> {
        let all = client.seen.values().filter(|frame| frame["type"] == kind);
        all.map(|frame| &frame["payload"]).collect()
    };
    let ids = |kind: &str, key: &str| -> BTreeSet<&str> {
        events(kind)
            .iter()
            .map(|it| it[key].as_str().unwrap())
            .collect()
    };
    assert_eq!(events("chat:stream-start").len(), *EXCHANGES);
    assert_eq!(events("chat:stream-end").len(), *EXCHANGES);
    assert_eq!(ids("chat:stream-end", "messageId").len(), *EXCHANGES);
    // Of ten exchanges nine read two files and one writes one.
    let calls = *EXCHANGES / 10 * (9 * 2 + 1);
    for kind in ["chat:tool-start", "chat:tool-result"] {
        assert_eq!(events(kind).len(), calls, "{kind}");
        assert_eq!(ids(kind, "toolId").len(), calls, "{kind}");
    }
    assert!(
        events("chat:tool-result")
            .iter()
            .all(|it| it["status"] == "success")
    );
    assert_eq!(events("chat:tool-confirm").len(), *EXCHANGES / 10);
    assert_eq!(events("chat:tool-resolved").len(), *EXCHANGES / 10);
    assert_eq!(
        provider.requests().len(),
        2 * *EXCHANGES,
        "a turn ran twice"
    );
    let mut said: BTreeMap<&str, String> = BTreeMap::new();
    for delta in events("chat:text-delta") {
        let text = said
            .entry(delta["messageId"].as_str().unwrap())
            .or_default();
        text.push_str(delta["content"].as_str().unwrap());
    }
    assert_eq!(said.len(), *EXCHANGES);
    for text in said.values() {
        assert!(text.starts_with("done with: "), "{text}");
    }
    let written = std::fs::read_dir(daemon.project().join("written")).unwrap();
    assert_eq!(written.count(), *EXCHANGES / 10);
    // The line was as bad as it was meant to be.
    assert!(cuts.load(Ordering::Relaxed) > 50, "{cuts:?} cuts");
    assert!(client.replayed > 100, "{} replays", client.replayed);
}
