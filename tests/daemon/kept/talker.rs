//! A client of the storm: it says one thing after the other, comes again however its socket ends, and looks at the end
//! whether all that was acknowledged is kept.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::storm::{Front, TOKEN};
use crate::support::within;

/// How long a client that was turned away, or whose socket broke, waits before it comes again.
pub(super) const AGAIN: Duration = Duration::from_millis(200);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Somebody who says one thing after the other in a session, whatever becomes of the sockets.
pub(super) struct Talker {
    number: usize,
    front: Arc<Front>,
    pub(super) session: Option<String>,
    last: u64,
    epoch: u64,
    /// How many of what was said were acknowledged.
    pub(super) acknowledged: usize,
    /// What the daemon answered to each.
    answers: Vec<Value>,
    broken: Arc<AtomicUsize>,
    /// The longest time without a socket, and what was tried meanwhile.
    pub(super) longest: (Duration, Vec<String>),
    /// Why the last socket broke, or was not to be had.
    why: String,
}

/// How many tries of a time without a socket are kept, to be told.
const TRIES: usize = 100;

impl Talker {
    pub(super) fn new(number: usize, front: Arc<Front>, broken: Arc<AtomicUsize>) -> Self {
        Self {
            number,
            front,
            session: None,
            last: 0,
            epoch: 0,
            acknowledged: 0,
            answers: Vec::new(),
            broken,
            longest: (Duration::ZERO, Vec::new()),
            why: String::new(),
        }
    }

    async fn connect(&mut self) -> Option<Socket> {
        let query = match &self.session {
            Some(session) => format!("&session={session}&after={}", self.last),
            None => String::new(),
        };
        let url = format!(
            "ws://127.0.0.1:{}/ws?token={TOKEN}{query}",
            self.front.port()
        );
        let connected = tokio_tungstenite::connect_async(url).await;
        let connected = connected.inspect_err(|error| self.why = error.to_string());
        let (mut socket, _) = connected.ok()?;
        let ready = self.next(&mut socket).await?;
        assert_eq!(ready["type"], "session:ready", "{ready}");
        let id = ready["payload"]["sessionId"].as_str().unwrap().to_owned();
        // One of which nothing was acknowledged may be gone with its daemon.
        if let Some(session) = self.session.as_ref().filter(|_| self.acknowledged > 0) {
            assert_eq!(id, *session, "another session in its place");
        }
        let epoch = ready["payload"]["epoch"].as_u64().unwrap();
        assert!(
            self.acknowledged == 0 || epoch >= self.epoch,
            "an older one: {ready}"
        );
        (self.session, self.epoch) = (Some(id), epoch);
        Some(socket)
    }

    /// Returns the next frame; `None` where the socket broke.
    async fn next(&mut self, socket: &mut Socket) -> Option<Value> {
        loop {
            match socket.next().await? {
                Ok(Message::Text(text)) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if let Some(seq) = frame["seq"].as_u64() {
                        self.last = seq;
                    }
                    if frame["type"] == "chat:text-delta" {
                        let said = frame["payload"]["content"].as_str().unwrap();
                        assert!(
                            said.starts_with(&format!("{}/", self.number)),
                            "another one's: {frame}"
                        );
                    }
                    return Some(frame);
                }
                Ok(Message::Close(close)) => {
                    self.why = format!("{close:?}");
                    return None;
                }
                Err(error) => {
                    self.why = error.to_string();
                    return None;
                }
                Ok(_) => {}
            }
        }
    }

    /// Says the next thing until it is acknowledged and answered, or the socket breaks.
    async fn say(&mut self, socket: &mut Socket) -> Option<()> {
        let id = self.acknowledged;
        let content = format!("{}/{id}", self.number);
        let send = json!({"type": "chat:send", "id": id, "content": content});
        socket.send(Message::text(send.to_string())).await.ok()?;
        loop {
            let frame = self.next(socket).await?;
            match frame["type"].as_str().unwrap() {
                // One that was sent again may be answered twice: by what was missed, and anew.
                "chat:send-result" if frame["replyTo"] == json!(id) && self.acknowledged == id => {
                    self.acknowledged += 1;
                    self.answers.push(frame["payload"].clone());
                }
                "chat:stream-end" | "chat:error" if self.acknowledged > id => return Some(()),
                // It could not be kept just now, and is said again.
                "session:error" if frame["replyTo"] == json!(id) => return None,
                _ => {}
            }
        }
    }

    pub(super) async fn live(mut self, done: Arc<AtomicBool>) -> Self {
        while !done.load(Ordering::Relaxed) {
            let lost = Instant::now();
            let mut tries = vec![std::mem::take(&mut self.why)];
            let mut socket = loop {
                let connected = within("a socket", self.connect(), String::new).await;
                if tries.len() < TRIES {
                    tries.push(format!("{:.1?} {}", lost.elapsed(), self.why));
                }
                match connected {
                    Some(socket) => break socket,
                    None => tokio::time::sleep(AGAIN).await,
                }
                assert!(
                    lost.elapsed() < crate::support::PATIENCE,
                    "nobody has session {}: {}",
                    self.number,
                    self.why
                );
            };
            if lost.elapsed() > self.longest.0 {
                self.longest = (lost.elapsed(), tries);
            }
            while !done.load(Ordering::Relaxed) {
                let said = self.say(&mut socket);
                // An exchange that is broken off by the end of its daemon is not answered by the next one.
                match tokio::time::timeout(Duration::from_secs(5), said).await {
                    Ok(Some(())) => {}
                    Ok(None) => {
                        self.broken.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
        self
    }

    /// Asks something until it is answered, by as many sockets as that takes.
    async fn ask(&mut self, kind: &str) -> Value {
        let answered = async {
            loop {
                if let Some(mut socket) = self.connect().await {
                    let ask = json!({"type": kind, "id": "q"});
                    socket.send(Message::text(ask.to_string())).await.ok();
                    while let Some(frame) = self.next(&mut socket).await {
                        if frame["replyTo"] == "q" {
                            return frame["payload"].clone();
                        }
                    }
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        within(kind, answered, String::new).await
    }

    /// Waits until nothing runs in the session any more: then nothing is written there.
    pub(super) async fn rest(&mut self) {
        let rests = |state: &Value| {
            let conversations = state["conversations"].as_array().unwrap();
            conversations.iter().all(|it| it["state"] == "idle")
        };
        let rest = async {
            while !rests(&self.ask("session:state").await) {
                tokio::time::sleep(AGAIN).await;
            }
        };
        within("a session at rest", rest, String::new).await;
    }

    /// Looks whether all that was acknowledged is kept, once and in order, and whether that is what the database has; returns
    /// what is wrong.
    pub(super) async fn check(
        mut self,
        said: &HashMap<String, Vec<(String, Value)>>,
    ) -> Option<String> {
        let history = self.ask("chat:history").await;
        let messages = history["messages"].as_array().unwrap();
        let of_database = self.session.as_ref().and_then(|it| said.get(it));
        let of_database = of_database.map_or(&[][..], Vec::as_slice);
        let shown = messages
            .iter()
            .map(|it| (it["role"].as_str().unwrap(), &it["content"]));
        let kept = of_database.iter().map(|it| (it.0.as_str(), &it.1));
        if !shown.clone().eq(kept) {
            let shown: Vec<_> = shown.collect();
            return Some(format!(
                "session {}: {shown:?} is shown, and kept is {of_database:?}",
                self.number
            ));
        }
        let users = messages.iter().filter(|it| it["role"] == "user");
        let kept: Vec<usize> = users
            .map(|it| {
                let text = text(&it["content"]);
                let (number, id) = text.split_once('/').unwrap();
                assert_eq!(number, self.number.to_string(), "another one's: {text}");
                id.parse().unwrap()
            })
            .collect();
        let missing: Vec<_> = (0..self.acknowledged)
            .filter(|id| !kept.contains(id))
            .collect();
        let is_in_order = kept.windows(2).all(|two| two[0] < two[1]);
        // The last one may be kept though its acknowledgement was lost.
        let has_more = kept.iter().any(|id| *id > self.acknowledged);
        if missing.is_empty() && is_in_order && !has_more {
            return None;
        }
        let answers: Vec<_> = missing.iter().map(|id| &self.answers[*id]).collect();
        let Self {
            number,
            acknowledged,
            session,
            ..
        } = &self;
        let order = if is_in_order {
            String::new()
        } else {
            format!("; {kept:?}")
        };
        Some(format!(
            "session {number} ({session:?}), {acknowledged} acknowledged: missing {missing:?}, which were answered {answers:?}; more {has_more}, in order {is_in_order}{order}"
        ))
    }
}

pub(super) fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap().to_owned(),
    }
}
