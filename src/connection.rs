//! One socket on one session: frames in become requests, the session's log becomes frames out.
//!
//! Reading and writing go on side by side, so that a client that does not read can still answer an
//! approval. The writer follows the log at its own pace; where it falls behind what is kept it says
//! so and goes on from a resync. Nothing here knows what a request means.
//! In text mode (`text`) lines stand in place of frames, on both sides.

mod activity;
mod place;
mod text;

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::protocol::command::{Command, Resume};
use crate::protocol::envelope::{self, Stamp, Timestamp};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::roles::SocketRole;
use crate::protocol::{Request, RequestId, SessionCode};
use crate::runtime::block_in_place_if_large;
use crate::session::{
    AttachRefused, Entrance, Handle, NoSession, Reader, SessionEnd, UserSessions, shutting_down,
};
use crate::telemetry::metrics;
pub use activity::LastActivity;
use place::{Attached, NoPlace};
use text::{Text, Typed};

const PING_EVERY: Duration = Duration::from_secs(20);

/// Frames written before they are flushed, in bytes: one delta goes at once, a flood in batches.
const BATCH: usize = 64 * 1024;

/// How long a close may take; a client that does not answer is dropped.
const CLOSING: Duration = Duration::from_secs(2);

/// Close codes of RFC 6455 and of the contract.
mod close {
    pub(super) const NORMAL: u16 = 1000;
    pub(super) const AWAY: u16 = 1001;
    pub(super) const NO_TEXT: u16 = 1007;
    pub(super) const TOO_BIG: u16 = 1009;
    pub(super) const MOVED: u16 = 1012;
    pub(super) const TRY_LATER: u16 = 1013;
    pub(super) const TAKEN_OVER: u16 = 4001;
    pub(super) const SESSION_ENDED: u16 = 4002;
    pub(super) const DRIVER_PRESENT: u16 = 4003;
}

/// What the upgrade's query asked for.
#[derive(Debug, Default)]
pub struct UpgradeOptions {
    /// A session to go on with.
    pub resume: Option<Resume>,
    /// The project of a new session.
    pub project: Option<String>,
    /// Whether a person types lines, in place of frames.
    pub text: bool,
    /// As what it comes to its session.
    pub entrance: Entrance,
}

/// Serves a socket until either side ends it; `stop` ends it from the daemon's side. `activity` is noted by
/// whoever reads its connection.
pub async fn serve(
    socket: WebSocket,
    activity: Arc<LastActivity>,
    sessions: UserSessions,
    options: UpgradeOptions,
    stop: CancellationToken,
) {
    let text = options.text.then(|| Mutex::new(Text::default()));
    let (mut sink, mut stream) = socket.split();
    let entrance = options.entrance;
    let attached = match Attached::find(&sessions, options).await {
        Ok(attached) => attached,
        Err(refused) => {
            let (code, why) = match refused {
                NoPlace::Later(told) => {
                    tell(&mut sink, text.as_ref(), Event::SessionError(told)).await;
                    (close::TRY_LATER, "too many at once")
                }
                NoPlace::Refused(AttachRefused::Driven) => {
                    (close::DRIVER_PRESENT, "driver_present")
                }
                NoPlace::Refused(AttachRefused::Late) => (close::TAKEN_OVER, "taken_over"),
                NoPlace::Refused(AttachRefused::Full) => (close::TRY_LATER, "too many sockets"),
                NoPlace::Refused(AttachRefused::Elsewhere) | NoPlace::Gone => {
                    (close::SESSION_ENDED, "session_not_found")
                }
                NoPlace::Elsewhere => (close::TRY_LATER, "session_elsewhere"),
                NoPlace::TooMany => (close::TRY_LATER, "too many sessions"),
                NoPlace::Quota => {
                    let told = SessionError::from(NoSession::Quota);
                    tell(&mut sink, text.as_ref(), Event::SessionError(told)).await;
                    (close::TRY_LATER, "quota_exceeded")
                }
            };
            return close(&mut sink, code, why).await;
        }
    };
    metrics::connected();
    let _counted = metrics::CONNECTIONS.enter();
    let mut connection = Connection {
        sessions,
        attached,
        activity,
        entrance,
        first: true,
        text: text.as_ref(),
    };
    loop {
        let taken_over = connection.attached.attachment.taken_over.clone();
        let too_slow = connection.attached.attachment.too_slow.clone();
        let sessions = connection.sessions.clone();
        let session = connection.attached.session.clone();
        let mut writer = Writer {
            sink: &mut sink,
            session: session.clone(),
            reader: Reader::of(
                session.clone(),
                connection.attached.after,
                connection.attached.attachment.id,
            ),
            text: text.as_ref(),
            may_drive: sessions.grant().role == SocketRole::Driver,
        };
        let greeting = connection.attached.greeting.take();
        let reason = tokio::select! {
            reason = connection.listen(&mut stream) => reason,
            () = writer.follow(greeting) => DisconnectReason::Gone,
            () = taken_over.cancelled() => DisconnectReason::Ended(close::TAKEN_OVER, "taken_over"),
            () = too_slow.cancelled() => DisconnectReason::Ended(close::TRY_LATER, "too slow"),
            end = sessions.lost(&session) => match end {
                SessionEnd::Here => DisconnectReason::Ended(close::SESSION_ENDED, "session_ended"),
                SessionEnd::Elsewhere => DisconnectReason::Ended(close::MOVED, "session_elsewhere"),
            },
            over = sessions.grant().over() => {
                let (code, reason) = over.close();
                DisconnectReason::Ended(code, reason)
            }
            () = stop.cancelled() => DisconnectReason::Ended(close::AWAY, "shutdown"),
        };
        match reason {
            DisconnectReason::Moved(attached) => {
                // One that was resumed or used is somebody's; it lives on for its grace period.
                if connection.attached.fresh && connection.first {
                    connection.attached.session.discard().await;
                }
                connection.attached = *attached;
            }
            DisconnectReason::Gone => return,
            DisconnectReason::Closed => {
                return drop(tokio::time::timeout(CLOSING, sink.close()).await);
            }
            DisconnectReason::Ended(code, reason) => {
                if code == close::AWAY {
                    writer.finish().await;
                }
                return close(&mut sink, code, reason).await;
            }
        }
    }
}

enum DisconnectReason {
    Gone,
    /// The client closed the socket and waits for the answer.
    Closed,
    /// It is closed from here, with this code and reason.
    Ended(u16, &'static str),
    Moved(Box<Attached>),
}

struct Connection<'a> {
    sessions: UserSessions,
    attached: Attached,
    activity: Arc<LastActivity>,
    /// As what it comes to each of its sessions.
    entrance: Entrance,
    /// Whether no request was taken yet: another session may be resumed, until this one is used.
    first: bool,
    text: Option<&'a Mutex<Text>>,
}

impl Connection<'_> {
    /// Takes frames until the socket leaves its session.
    async fn listen(&mut self, stream: &mut SplitStream<WebSocket>) -> DisconnectReason {
        loop {
            let message = match self.activity.unless_silent(stream.next()).await.flatten() {
                Some(Ok(message)) => message,
                Some(Err(error)) => return failed(error),
                None => return DisconnectReason::Gone,
            };
            let flow = match message {
                Message::Text(text) => self.take(&text).await,
                Message::Binary(_) => {
                    let text = "binary frames carry nothing here; send JSON as text";
                    let error = SessionError::new(SessionCode::UnsupportedFrame, text);
                    self.refuse(None, error)
                }
                Message::Ping(_) | Message::Pong(_) => ControlFlow::Continue(()),
                Message::Close(_) => return DisconnectReason::Closed,
            };
            if let ControlFlow::Break(reason) = flow {
                return reason;
            }
        }
    }

    async fn take(&mut self, text: &str) -> ControlFlow<DisconnectReason> {
        if let Some(mode) = self.text {
            let typed = mode.lock().typed(text);
            return self.line(typed).await;
        }
        let request = match block_in_place_if_large(text, envelope::read) {
            Ok(Some(request)) => request,
            Ok(None) => return ControlFlow::Continue(()),
            Err(rejected) => return self.refuse(rejected.reply_to.as_ref(), rejected.error),
        };
        let other = match &request.command {
            Command::SessionResume(resume) if self.first => Some(resume),
            Command::SessionOpen(open) => Some(open),
            _ => None,
        };
        if let Some(resume) = other.filter(|it| it.session_id != self.attached.session.id) {
            let (id, entrance) = (request.id.as_ref(), self.entrance.to_another());
            let opened = Attached::resume(&self.sessions, resume, entrance, id).await;
            return match opened {
                Ok(attached) => ControlFlow::Break(DisconnectReason::Moved(Box::new(attached))),
                Err(unopened) => self.refuse(id, unopened.into()),
            };
        }
        self.first = false;
        self.hand_over(request).await
    }

    async fn line(&self, typed: Typed) -> ControlFlow<DisconnectReason> {
        match typed {
            Typed::Nothing => ControlFlow::Continue(()),
            Typed::Quit => ControlFlow::Break(DisconnectReason::Ended(close::NORMAL, "quit")),
            Typed::Notice(notice) => {
                self.say(Event::SessionNotice(notice), None);
                ControlFlow::Continue(())
            }
            Typed::Request(command) => {
                let (id, command) = (None, *command);
                self.hand_over(Request { id, command }).await
            }
        }
    }

    async fn hand_over(&self, request: Request) -> ControlFlow<DisconnectReason> {
        let id = request.id.clone();
        let from = self.attached.attachment.id;
        if self.attached.session.request_of(request, from).await {
            return ControlFlow::Continue(());
        }
        if self.sessions.is_stopping() {
            // Exchanges that run still say how they end, and this socket is closed when all did.
            return self.refuse(id.as_ref(), shutting_down());
        }
        ControlFlow::Break(DisconnectReason::Gone)
    }

    fn refuse(
        &self,
        reply_to: Option<&RequestId>,
        error: SessionError,
    ) -> ControlFlow<DisconnectReason> {
        self.say(Event::SessionError(error), reply_to);
        ControlFlow::Continue(())
    }

    /// Says something to this socket, and to no other where it has a role.
    fn say(&self, event: Event, reply_to: Option<&RequestId>) {
        let feed = &self.attached.session.feed;
        match self.attached.attachment.id {
            Some(socket) => {
                let to = RequestId::apart(reply_to.cloned(), socket);
                feed.append(event, Some(&to));
            }
            None => feed.append(event, reply_to),
        }
    }
}

/// Takes the page to sign in at out of a frame: whoever opens it signs in for the daemon, so it is for who may drive alone.
/// `None` where that cannot be done.
fn without_page(frame: Utf8Bytes) -> Option<Utf8Bytes> {
    const ASKED: &str = "mcp:auth-required";
    if !frame.contains(ASKED) {
        return Some(frame);
    }
    let mut read: serde_json::Value = serde_json::from_str(&frame).ok()?;
    if read.get("type").is_none_or(|it| it != ASKED) {
        return Some(frame);
    }
    *read.pointer_mut("/payload/url")? = "".into();
    Some(Utf8Bytes::from(read.to_string()))
}

/// The way from a session's log to a socket.
struct Writer<'a> {
    sink: &'a mut SplitSink<WebSocket, Message>,
    session: Handle,
    reader: Reader,
    text: Option<&'a Mutex<Text>>,
    /// Whether its token lets it drive.
    may_drive: bool,
}

impl Writer<'_> {
    /// Writes the log as it grows, until the socket fails.
    async fn follow(&mut self, greeting: Option<Utf8Bytes>) {
        if let Some(greeting) = greeting
            && let Some(greeting) = self.form(greeting)
            && self.sink.send(Message::Text(greeting)).await.is_err()
        {
            return;
        }
        let feed = Arc::clone(&self.session.feed);
        let mut ping = pin!(tokio::time::sleep(PING_EVERY));
        loop {
            // Taken before the log is read, so that nothing appended between the two is missed.
            let grown = feed.grown();
            if self.write_batches().await.is_err() {
                return;
            }
            tokio::select! {
                () = grown => {}
                () = &mut ping => {}
            }
            // Whatever is ready goes first, and what it appends goes with the same write: in a flood that is many
            // deltas, and a single one waits for nobody.
            tokio::task::yield_now().await;
            if ping.is_elapsed() {
                let now = Instant::now();
                ping.as_mut().reset(now + PING_EVERY);
                let empty = bytes::Bytes::new();
                if self.sink.send(Message::Ping(empty)).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Writes all that there is.
    async fn write_batches(&mut self) -> Result<(), axum::Error> {
        let mut frames = Vec::new();
        while self.reader.read(BATCH, &mut frames).await && !frames.is_empty() {
            for frame in frames.drain(..) {
                if let Some(frame) = self.form(frame) {
                    self.sink.feed(Message::Text(frame)).await?;
                }
            }
            self.sink.flush().await?;
        }
        Ok(())
    }

    /// Returns a frame as this socket wants it; `None` where there is nothing to write.
    fn form(&self, frame: Utf8Bytes) -> Option<Utf8Bytes> {
        let frame = match self.may_drive {
            true => frame,
            false => without_page(frame)?,
        };
        form(self.text, frame)
    }

    /// Writes what is left before the socket is closed.
    async fn finish(&mut self) {
        // A client that does not read is not waited for.
        drop(tokio::time::timeout(CLOSING, self.write_batches()).await);
    }
}

/// Returns a frame as it is written, in lines where there is a text mode; `None` where there is nothing to write.
fn form(text: Option<&Mutex<Text>>, frame: Utf8Bytes) -> Option<Utf8Bytes> {
    let Some(text) = text else {
        return Some(frame);
    };
    let shown = text.lock().show(&frame, jiff::Timestamp::now());
    shown.map(Utf8Bytes::from)
}

/// Returns what a failed read means.
fn failed(error: axum::Error) -> DisconnectReason {
    use tokio_tungstenite::tungstenite::Error;

    tracing::debug!(%error, "socket failed");
    match error.into_inner().downcast_ref::<Error>() {
        Some(Error::Capacity(_)) => {
            DisconnectReason::Ended(close::TOO_BIG, "frame over server.max_frame_bytes")
        }
        Some(Error::Utf8(_)) => DisconnectReason::Ended(close::NO_TEXT, "text that is not UTF-8"),
        _ => DisconnectReason::Gone,
    }
}

/// Says something to a socket that has no session, and so no log.
async fn tell(sink: &mut SplitSink<WebSocket, Message>, text: Option<&Mutex<Text>>, event: Event) {
    let stamp = Stamp {
        timestamp: Timestamp::now(),
        ..Stamp::default()
    };
    let frame = Utf8Bytes::from(envelope::write(&event, &stamp));
    if let Some(frame) = form(text, frame) {
        // A client that does not read is not waited for.
        drop(tokio::time::timeout(CLOSING, sink.send(Message::Text(frame))).await);
    }
}

async fn close(sink: &mut SplitSink<WebSocket, Message>, code: u16, reason: &'static str) {
    let frame = CloseFrame {
        code,
        reason: reason.into(),
    };
    let goodbye = async {
        sink.send(Message::Close(Some(frame))).await?;
        sink.close().await
    };
    // A client that does not read is not waited for.
    drop(tokio::time::timeout(CLOSING, goodbye).await);
}
