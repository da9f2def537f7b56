//! The sessions of a daemon, and the ways to them that sockets hold.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

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
    pub feed: Arc<Feed>,
    inbox: mpsc::Sender<Message>,
}

/// What a session can be told.
#[derive(Debug)]
pub(super) enum Message {
    Request(Box<Request>),
    Attach(oneshot::Sender<Attachment>),
    Detach(u64),
    Account(oneshot::Sender<u64>),
    Discard,
}

/// A socket's place on a session.
#[derive(Debug)]
pub struct Attachment {
    pub(super) number: u64,
    pub(super) session: mpsc::WeakSender<Message>,
    /// Cancelled when another socket takes the session over.
    pub taken_over: CancellationToken,
    /// What the socket is told first where the session is resumed.
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
        let own_inbox = inbox.downgrade();
        let handle = Handle {
            id: ready.session_id.clone(),
            feed: Arc::clone(&feed),
            inbox,
        };
        {
            let mut live = self.live();
            if live.len() >= MAX_SESSIONS {
                return None;
            }
            live.insert(handle.id.clone(), handle.clone());
        }
        feed.append(Event::SessionReady(Box::new(ready.clone())), None);
        let session = Session::new(Arc::clone(&self.daemon), ready, feed, messages, own_inbox);
        let (sessions, id) = (Arc::clone(self), handle.id.clone());
        self.daemon.tasks.spawn(async move {
            session.run().await;
            sessions.live().remove(&id);
        });
        Some(handle)
    }

    /// Finds a session that lives.
    pub fn find(&self, id: &SessionId) -> Option<Handle> {
        self.live().get(id).cloned()
    }

    fn live(&self) -> MutexGuard<'_, HashMap<SessionId, Handle>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handle {
    /// Puts a socket on the session, in the place of the one before; `None` where the session ended.
    pub async fn attach(&self) -> Option<Attachment> {
        let (reply, attachment) = oneshot::channel();
        self.inbox.send(Message::Attach(reply)).await.ok()?;
        attachment.await.ok()
    }

    /// Hands a request over; false where the session ended.
    pub async fn request(&self, request: Request) -> bool {
        self.inbox
            .send(Message::Request(Box::new(request)))
            .await
            .is_ok()
    }

    /// Has the log begin anew with an account of how things stand, because a socket's place in it is
    /// no longer kept; returns the number before the account, `None` where the session ended.
    pub async fn account(&self) -> Option<u64> {
        let (reply, before) = oneshot::channel();
        self.inbox.send(Message::Account(reply)).await.ok()?;
        before.await.ok()
    }

    /// Ends a session that nobody has used.
    pub async fn discard(&self) {
        drop(self.inbox.send(Message::Discard).await);
    }
}

/// A socket that is gone, however it went, starts the session's grace period.
impl Drop for Attachment {
    fn drop(&mut self) {
        if let Some(session) = self.session.upgrade()
            && session.try_send(Message::Detach(self.number)).is_err()
        {
            tracing::warn!("a session was not told that its socket is gone");
        }
    }
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
