//! One socket on one session: frames in become requests, the session's log becomes frames out.
//!
//! Reading and writing go on side by side, so that a client that does not read can still answer an
//! approval. The writer follows the log at its own pace; where it falls behind what is kept it says
//! so and goes on from an account of how things stand. Nothing here knows what a request means.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::message::SessionId;
use crate::protocol::command::{Command, Resume};
use crate::protocol::envelope::{self, Stamp};
use crate::protocol::event::{Event, SessionError};
use crate::protocol::{Request, RequestId, SessionCode};
use crate::session::log::Read;
use crate::session::{Attachment, Handle, Sessions};

/// How often a client is pinged.
const PING_EVERY: Duration = Duration::from_secs(20);

/// How long a client may be silent, pongs included.
const SILENCE: Duration = Duration::from_secs(45);

/// Frames written before they are flushed, in bytes: one delta goes at once, a flood in batches.
const BATCH: usize = 64 * 1024;

/// How long a close may take; a client that does not answer is dropped.
const CLOSING: Duration = Duration::from_secs(2);

/// Close codes of RFC 6455 and of the contract.
mod close {
    pub(super) const AWAY: u16 = 1001;
    pub(super) const TOO_BIG: u16 = 1009;
    pub(super) const TRY_LATER: u16 = 1013;
    pub(super) const TAKEN_OVER: u16 = 4001;
}

/// Serves a socket until either side ends it.
///
/// `resume` is what the upgrade's query asked for; `stop` ends it from the daemon's side.
pub async fn serve(
    socket: WebSocket,
    sessions: Arc<Sessions>,
    resume: Option<Resume>,
    stop: CancellationToken,
) {
    let (mut sink, mut stream) = socket.split();
    let Some(place) = Place::find(&sessions, resume).await else {
        close(&mut sink, close::TRY_LATER, "too many sessions").await;
        return;
    };
    let mut connection = Connection {
        sessions,
        place,
        first: true,
    };
    loop {
        let taken_over = connection.place.attachment.taken_over.clone();
        let mut writer = Writer {
            sink: &mut sink,
            session: connection.place.session.clone(),
            after: connection.place.after,
        };
        let greeting = connection.place.greeting.take();
        let left = tokio::select! {
            left = connection.listen(&mut stream) => left,
            () = writer.follow(greeting) => Left::Gone,
            () = taken_over.cancelled() => Left::TakenOver,
            () = stop.cancelled() => Left::Stopped,
        };
        if matches!(left, Left::Stopped) {
            writer.finish().await;
        }
        match left {
            Left::Moved(place) => {
                connection.place.session.discard().await;
                connection.place = *place;
                continue;
            }
            Left::Gone => {}
            Left::Closed => drop(tokio::time::timeout(CLOSING, sink.close()).await),
            Left::TooBig => {
                let reason = "frame over server.max_frame_bytes";
                close(&mut sink, close::TOO_BIG, reason).await;
            }
            Left::TakenOver => close(&mut sink, close::TAKEN_OVER, "taken_over").await,
            Left::Stopped => close(&mut sink, close::AWAY, "shutdown").await,
        }
        break;
    }
}

/// Why a socket left its session.
enum Left {
    Gone,
    /// The client closed the socket and waits for the answer.
    Closed,
    TooBig,
    TakenOver,
    Stopped,
    Moved(Box<Place>),
}

/// A socket's session and its place in the log.
struct Place {
    session: Handle,
    attachment: Attachment,
    after: u64,
    /// The frame outside the numbering that a resumed socket gets first.
    greeting: Option<Utf8Bytes>,
}

impl Place {
    /// Goes on with the session asked for, or with a new one; `None` where there are too many.
    async fn find(sessions: &Arc<Sessions>, resume: Option<Resume>) -> Option<Self> {
        let unknown = match resume {
            Some(resume) => match Self::resume(sessions, &resume, None).await {
                Some(place) => return Some(place),
                None => Some(resume.session_id),
            },
            None => None,
        };
        let session = sessions.create().await?;
        if let Some(id) = unknown {
            session
                .feed
                .append(Event::SessionError(not_found(&id)), None);
        }
        let attachment = session.attach().await?;
        Some(Self {
            session,
            attachment,
            after: 0,
            greeting: None,
        })
    }

    async fn resume(
        sessions: &Sessions,
        resume: &Resume,
        reply_to: Option<&RequestId>,
    ) -> Option<Self> {
        let session = sessions.find(&resume.session_id)?;
        let attachment = session.attach().await?;
        let stamp = Stamp {
            timestamp: &envelope::timestamp(),
            reply_to,
            ..Stamp::default()
        };
        let ready = Event::SessionReady(Box::new(attachment.ready.clone()));
        Some(Self {
            session,
            attachment,
            after: resume.last_seq,
            greeting: Some(Utf8Bytes::from(envelope::write(&ready, &stamp))),
        })
    }
}

struct Connection {
    sessions: Arc<Sessions>,
    place: Place,
    first: bool,
}

impl Connection {
    /// Takes frames until the socket leaves its session.
    async fn listen(&mut self, stream: &mut SplitStream<WebSocket>) -> Left {
        loop {
            let message = match tokio::time::timeout(SILENCE, stream.next()).await {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(error))) => return failed(error),
                Ok(None) | Err(_) => return Left::Gone,
            };
            let flow = match message {
                Message::Text(text) => self.take(&text).await,
                Message::Binary(_) => {
                    self.refuse(
                        None,
                        SessionError {
                            code: SessionCode::UnsupportedFrame,
                            message: "binary frames carry nothing here; send JSON as text"
                                .to_owned(),
                        },
                    );
                    ControlFlow::Continue(())
                }
                Message::Ping(_) | Message::Pong(_) => ControlFlow::Continue(()),
                Message::Close(_) => return Left::Closed,
            };
            if let ControlFlow::Break(left) = flow {
                return left;
            }
        }
    }

    async fn take(&mut self, text: &str) -> ControlFlow<Left> {
        let request = match envelope::read(text) {
            Ok(Some(request)) => request,
            Ok(None) => return ControlFlow::Continue(()),
            Err(rejected) => {
                self.first = false;
                self.refuse(rejected.reply_to.as_ref(), rejected.error);
                return ControlFlow::Continue(());
            }
        };
        let first = std::mem::replace(&mut self.first, false);
        if let (true, Command::SessionResume(resume)) = (first, &request.command)
            && resume.session_id != self.place.session.id
        {
            return match Place::resume(&self.sessions, resume, request.id.as_ref()).await {
                Some(place) => ControlFlow::Break(Left::Moved(Box::new(place))),
                None => {
                    self.refuse(request.id.as_ref(), not_found(&resume.session_id));
                    ControlFlow::Continue(())
                }
            };
        }
        self.hand_over(request).await
    }

    async fn hand_over(&self, request: Request) -> ControlFlow<Left> {
        if self.place.session.request(request).await {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(Left::Gone)
        }
    }

    fn refuse(&self, reply_to: Option<&RequestId>, error: SessionError) {
        self.place
            .session
            .feed
            .append(Event::SessionError(error), reply_to);
    }
}

/// The way from a session's log to a socket.
struct Writer<'a> {
    sink: &'a mut SplitSink<WebSocket, Message>,
    session: Handle,
    /// The number of the last event written.
    after: u64,
}

impl Writer<'_> {
    /// Writes the log as it grows, until the socket fails.
    async fn follow(&mut self, greeting: Option<Utf8Bytes>) {
        if let Some(greeting) = greeting
            && self.sink.send(Message::Text(greeting)).await.is_err()
        {
            return;
        }
        let feed = Arc::clone(&self.session.feed);
        let mut ping = pin!(tokio::time::sleep(PING_EVERY));
        loop {
            // Written before a wait, so that nothing appended between the two is missed.
            if self.write_batches().await.is_err() {
                return;
            }
            tokio::select! {
                () = feed.grown() => {}
                () = &mut ping => {}
            }
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
        loop {
            match self.session.feed.read(self.after, BATCH, &mut frames) {
                Read::UpTo(seq) if frames.is_empty() => {
                    self.after = seq;
                    return Ok(());
                }
                Read::UpTo(_) => {}
                Read::Gap => match self.session.account().await {
                    Some(before) => self.after = before,
                    None => return Ok(()),
                },
            }
            for frame in frames.drain(..) {
                self.sink.feed(Message::Text(frame)).await?;
                self.after += 1;
            }
            self.sink.flush().await?;
        }
    }

    /// Writes what is left before the socket is closed.
    async fn finish(&mut self) {
        // A client that does not read is not waited for.
        drop(tokio::time::timeout(CLOSING, self.write_batches()).await);
    }
}

/// What a failed read means.
fn failed(error: axum::Error) -> Left {
    use tokio_tungstenite::tungstenite::Error;

    tracing::debug!(%error, "socket failed");
    match error.into_inner().downcast_ref::<Error>() {
        Some(Error::Capacity(_)) => Left::TooBig,
        _ => Left::Gone,
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

fn not_found(id: &SessionId) -> SessionError {
    SessionError {
        code: SessionCode::SessionNotFound,
        message: format!(
            "no session `{id}`: it ended, its grace period is over, or the daemon was restarted; this socket goes on as a new session"
        ),
    }
}
