//! A client that remembers every frame that it got.

use std::pin::pin;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use super::Daemon;
use super::waiting::PATIENCE;

/// How many of the last frames a failure shows, and how many characters of each.
const SHOWN_FRAMES: usize = 40;
const SHOWN_CHARS: usize = 300;

/// How often a client that does not read says that it is there.
const ALIVE_EVERY: Duration = Duration::from_secs(5);

/// A socket on a session.
pub(crate) struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Every frame so far, in order.
    pub(crate) seen: Vec<Value>,
}

impl Client {
    /// Connects with a query such as `?session=…&after=0` and reads the first frame.
    pub(crate) async fn connect(daemon: &Daemon, query: &str) -> Self {
        Self::reach(daemon, query).await.expect("a daemon")
    }

    /// The same with a daemon that may be gone by then: the error is the code that the socket was closed with (0 for none).
    pub(crate) async fn reach(daemon: &Daemon, query: &str) -> Result<Self, u16> {
        Self::reach_by(daemon, query, &daemon.token).await
    }

    /// The same with a token of one's own.
    pub(crate) async fn reach_by(daemon: &Daemon, query: &str, token: &str) -> Result<Self, u16> {
        let url = format!("ws://127.0.0.1:{}/ws{query}", daemon.port);
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {token}");
        request
            .headers_mut()
            .insert("authorization", bearer.parse().unwrap());
        let reached = tokio_tungstenite::connect_async(request).await;
        let (socket, _) = reached.map_err(|_| 0_u16)?;
        let mut client = Self {
            socket,
            seen: Vec::new(),
        };
        let first = client.next_or_close().await?;
        if first["type"] == "session:error" {
            // What is said to who is turned away.
            let after = client.next_or_close().await?;
            panic!("neither a session nor turned away: {first} {after}");
        }
        assert_eq!(first["type"], "session:ready", "{first}");
        Ok(client)
    }

    /// The session that its `session:ready` named.
    pub(crate) fn session(&self) -> String {
        let id = self.seen[0]["payload"]["sessionId"].as_str();
        id.unwrap().to_owned()
    }

    /// Connects with as small a receive buffer as the system has: what is not read is the daemon's to keep.
    pub(crate) async fn connect_narrow(daemon: &Daemon) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(1).unwrap();
        let address = ([127, 0, 0, 1], daemon.port).into();
        let stream = MaybeTlsStream::Plain(socket.connect(address).await.unwrap());
        let url = format!("ws://127.0.0.1:{}/ws?token={}", daemon.port, daemon.token);
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        let mut client = Self {
            socket,
            seen: Vec::new(),
        };
        client.until("session:ready").await;
        client
    }

    /// Waits without reading, and says meanwhile that the client is there: a socket from which nothing comes for 45 s is
    /// closed, which a busy machine makes of a wait of 10 s.
    pub(crate) async fn unread<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut alive = tokio::time::interval(ALIVE_EVERY);
        loop {
            tokio::select! {
                output = &mut future => return output,
                _ = alive.tick() => self.message(Message::Pong(Bytes::new())).await.unwrap(),
            }
        }
    }

    /// Sends a frame.
    pub(crate) async fn send(&mut self, frame: Value) {
        self.text(&frame.to_string()).await;
    }

    /// Sends frames of which the daemon is to read the later ones while it works on the first.
    pub(crate) async fn send_together(&mut self, frames: &[Value]) {
        for frame in frames {
            let message = Message::text(frame.to_string());
            self.socket.feed(message).await.unwrap();
        }
        self.socket.flush().await.unwrap();
    }

    /// Sends any text as a frame.
    pub(crate) async fn text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// Sends a message that is no text.
    pub(crate) async fn message(&mut self, message: Message) -> Result<(), Error> {
        self.socket.send(message).await
    }

    /// Says something in the default conversation.
    pub(crate) async fn say(&mut self, content: &str) {
        self.send(json!({"type": "chat:send", "content": content}))
            .await;
    }

    /// Returns the next frame.
    pub(crate) async fn next(&mut self) -> Value {
        match self.next_or_close().await {
            Ok(frame) => frame,
            Err(code) => panic!("the socket closed with {code}"),
        }
    }

    /// Returns the next frame, or the code that the socket was closed with (0 for none).
    pub(crate) async fn next_or_close(&mut self) -> Result<Value, u16> {
        self.read(Instant::now() + PATIENCE).await
    }

    /// Reads on to the end; returns the code that the socket is closed with.
    pub(crate) async fn closed(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next_or_close().await {
                return code;
            }
        }
    }

    /// Reads one frame until the deadline, at which it fails with the last frames that have come.
    async fn read(&mut self, deadline: Instant) -> Result<Value, u16> {
        loop {
            let Ok(message) = tokio::time::timeout_at(deadline, self.socket.next()).await else {
                panic!(
                    "no frame that was waited for within {PATIENCE:?}; the last ones:\n{}",
                    self.last_frames()
                );
            };
            match message {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    self.seen.push(frame.clone());
                    return Ok(frame);
                }
                Some(Ok(Message::Close(frame))) => {
                    return Err(frame.map_or(0, |frame| frame.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(0),
            }
        }
    }

    /// Reads on until a frame of this type, and returns it.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        self.find(|frame| frame["type"] == kind).await
    }

    /// Reads on until a frame of which this holds, and returns it.
    pub(crate) async fn find(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.read(deadline).await {
                Ok(frame) if is_it(&frame) => return frame,
                Ok(_) => {}
                Err(code) => panic!(
                    "the socket closed with {code}; the last frames:\n{}",
                    self.last_frames()
                ),
            }
        }
    }

    /// The last frames, the beginning of each.
    fn last_frames(&self) -> String {
        let from = self.seen.len().saturating_sub(SHOWN_FRAMES);
        let beginning = |frame: &Value| {
            let text = frame.to_string();
            text.chars().take(SHOWN_CHARS).collect::<String>()
        };
        let frames: Vec<String> = self.seen[from..].iter().map(beginning).collect();
        frames.join("\n")
    }

    /// Sends a request with an id and returns its answer.
    pub(crate) async fn ask(&mut self, mut frame: Value) -> Value {
        let id = format!("q{}", self.seen.len());
        frame["id"] = json!(id);
        self.send(frame).await;
        self.find(|frame| frame["replyTo"] == id).await
    }

    /// The payloads of all frames of a type so far.
    pub(crate) fn all(&self, kind: &str) -> Vec<Value> {
        self.seen
            .iter()
            .filter(|frame| frame["type"] == kind)
            .map(|frame| frame["payload"].clone())
            .collect()
    }

    /// The types of the frames so far, deltas of one sort in a row as one.
    pub(crate) fn types(&self) -> Vec<String> {
        let mut types: Vec<String> = self
            .seen
            .iter()
            .map(|frame| frame["type"].as_str().unwrap().to_owned())
            .filter(|kind| kind != "chat:state" && kind != "session:ready")
            .collect();
        types.dedup();
        types
    }

    /// The text of all deltas so far, joined.
    pub(crate) fn text_said(&self) -> String {
        self.all("chat:text-delta")
            .iter()
            .map(|delta| delta["content"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Checks that the numbers have no gap.
    pub(crate) fn check_numbers(&self) {
        let numbers: Vec<u64> = self
            .seen
            .iter()
            .filter_map(|frame| frame["seq"].as_u64())
            .collect();
        for pair in numbers.windows(2) {
            assert_eq!(pair[0] + 1, pair[1], "{numbers:?}");
        }
    }

    /// Asserts that the numbers so far go up.
    pub(crate) fn check_order(&self) {
        let numbers = self.seen.iter().filter_map(|frame| frame["seq"].as_u64());
        let numbers: Vec<u64> = numbers.collect();
        assert!(numbers.is_sorted_by(|one, two| one < two), "{numbers:?}");
    }
}
