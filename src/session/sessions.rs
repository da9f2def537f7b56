//! The sessions of a daemon, and the ways to them that sockets hold.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use super::feed::Feed;
use super::{Daemon, Session};
use crate::message::SessionId;
use crate::protocol::Request;
use crate::protocol::event::{Event, Ready};

/// The most sessions of a daemon, the ones without a socket included.
const MAX_SESSIONS: usize = 1_024;

/// Requests that wait for a session: its actor takes them at once, so this is slack, not a queue.
const INBOX: usize = 256;

/// The sessions there are.
pub struct Sessions {
    daemon: Arc<Daemon>,
    live: Mutex<HashMap<SessionId, Handle>>,
}

/// A way to one session.
#[derive(Clone, Debug)]
pub struct Handle {
    /// Its id.
    pub id: SessionId,
    /// Its events.
    pub(crate) feed: Arc<Feed>,
    inbox: mpsc::Sender<Message>,
    /// Whether nobody would miss it: its socket is gone and there is no conversation in it.
    pub(super) spare: Arc<AtomicBool>,
    /// Cancelled when it has ended, however.
    ended: CancellationToken,
}

#[derive(Debug)]
pub(super) enum Message {
    Request(Box<Request>),
    Attach(oneshot::Sender<Attachment>),
    /// Resyncs a reader that has everything up to this number.
    Resync(u64, oneshot::Sender<u64>),
    Discard,
    /// Ends it where nobody has come back to it.
    MakeRoom,
}

/// A socket's place on a session.
#[derive(Debug)]
pub struct Attachment {
    /// Notifies the session when the socket is gone, however it went.
    pub(super) _on_disconnect: DropGuard,
    /// Cancelled when another socket takes the session over.
    pub taken_over: CancellationToken,
    /// What the socket is sent first where the session is resumed.
    pub ready: Ready,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(daemon: Arc<Daemon>) -> Arc<Self> {
        Arc::new(Self {
            daemon,
            live: Mutex::default(),
        })
    }

    /// Starts a session and announces it in its log; `None` where there are too many.
    pub async fn create(self: &Arc<Self>) -> Option<Handle> {
        let ready = self.daemon.ready(new_id()?).await;
        let (inbox, messages) = mpsc::channel(INBOX);
        let config = &self.daemon.services.config;
        let feed = Arc::new(Feed::new(config.session.buffer_bytes, ready.layers.clone()));
        let handle = Handle {
            id: ready.session_id.clone(),
            feed: Arc::clone(&feed),
            inbox,
            spare: Arc::default(),
            ended: CancellationToken::new(),
        };
        {
            let mut live = self.live();
            if live.len() >= MAX_SESSIONS && !make_room(&live) {
                return None;
            }
            live.insert(handle.id.clone(), handle.clone());
        }
        feed.append(Event::SessionReady(Box::new(ready.clone())), None);
        let spare = Arc::clone(&handle.spare);
        let daemon = Arc::clone(&self.daemon);
        let session = Session::new(daemon, ready, feed, messages, spare);
        let listed = Listed {
            sessions: Arc::clone(self),
            id: handle.id.clone(),
            _ended: handle.ended.clone().drop_guard(),
        };
        // The root of the tree of spans, whoever's socket it is made for.
        let span = tracing::info_span!(parent: None, "session", session_id = %handle.id);
        self.daemon.tasks.spawn(async move {
            let _listed = listed;
            session.run().instrument(span).await;
        });
        Some(handle)
    }

    /// Finds a session that lives.
    pub fn find(&self, id: &SessionId) -> Option<Handle> {
        self.live().get(id).cloned()
    }

    /// Waits until a session has ended while the daemon goes on.
    pub async fn lost(&self, session: &Handle) {
        session.ended.cancelled().await;
        if self.is_stopping() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns whether every session ends because the daemon does.
    pub fn is_stopping(&self) -> bool {
        self.daemon.stop.is_cancelled()
    }

    fn live(&self) -> MutexGuard<'_, HashMap<SessionId, Handle>> {
        self.live.lock()
    }
}

impl Handle {
    /// Puts a socket on the session, in the place of the one before; `None` where the session ended.
    pub async fn attach(&self) -> Option<Attachment> {
        self.ask(Message::Attach).await
    }

    /// Hands a request over; false where the session ended.
    pub async fn request(&self, request: Request) -> bool {
        self.inbox
            .send(Message::Request(Box::new(request)))
            .await
            .is_ok()
    }

    /// Has the log begin anew with how things stand, because a socket's place in it is no longer kept; `after` is
    /// the last event that the socket got. Returns the number before the resync, `None` where the session ended.
    pub async fn resync(&self, after: u64) -> Option<u64> {
        self.ask(|reply| Message::Resync(after, reply)).await
    }

    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(message(reply)).await.ok()?;
        answer.await.ok()
    }

    /// Ends a session that nobody has used.
    pub async fn discard(&self) {
        drop(self.inbox.send(Message::Discard).await);
    }
}

/// A session's place in the table. Dropping it gives the place up, so that one that panics leaves nothing behind.
struct Listed {
    sessions: Arc<Sessions>,
    id: SessionId,
    _ended: DropGuard,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.sessions.live().remove(&self.id);
    }
}

/// Has a session end that nobody would miss, so that sockets which were opened and dropped keep nobody out.
///
/// It leaves the table itself: somebody may come back to it first, and then it goes on. So there may be one more
/// than the bound for a moment.
fn make_room(live: &HashMap<SessionId, Handle>) -> bool {
    // A full inbox means that somebody uses it after all; then another one is looked for.
    let makes_room = |session: &Handle| {
        session.spare.swap(false, Ordering::Relaxed)
            && !matches!(
                session.inbox.try_send(Message::MakeRoom),
                Err(mpsc::error::TrySendError::Full(_))
            )
    };
    live.values().any(makes_room)
}

fn new_id() -> Option<SessionId> {
    use base64::Engine as _;

    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .inspect_err(|error| tracing::error!(%error, "no random numbers for a session id"))
        .ok()?;
    Some(SessionId::new(
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes),
    ))
}

#[cfg(test)]
mod tests;
