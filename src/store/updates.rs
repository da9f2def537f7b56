//! What changes about kept sessions, for whoever shows a list of them: each user is told of its own.

use jiff::Timestamp;
use outrigger_store::{Change, User};
use tokio::sync::broadcast;

use crate::message::SessionId;
use crate::protocol::event::SessionUpdated;

/// Changes that a session may be behind; older ones it misses.
const BACKLOG: usize = 256;

/// The way to all sessions; clones lead to the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Updates(broadcast::Sender<(User, SessionUpdated)>);

/// The way to the sessions of a user.
#[derive(Clone, Debug)]
pub(crate) struct UserUpdates {
    all: Updates,
    user: User,
}

/// What a user is told from a moment on.
pub(crate) struct Received {
    all: broadcast::Receiver<(User, SessionUpdated)>,
    user: User,
}

impl Default for Updates {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl Updates {
    /// Returns the way to the sessions of a user.
    pub(crate) fn of(&self, user: &User) -> UserUpdates {
        UserUpdates {
            all: self.clone(),
            user: user.clone(),
        }
    }
}

impl UserUpdates {
    /// Tells all sessions of the user what changed.
    pub(crate) fn send(&self, update: SessionUpdated) {
        // Nobody may be connected.
        drop(self.all.0.send((self.user.clone(), update)));
    }

    /// Receives what is sent from now on.
    pub(crate) fn subscribe(&self) -> Received {
        Received {
            all: self.all.0.subscribe(),
            user: self.user.clone(),
        }
    }
}

impl Received {
    /// Returns what changed next; `None` where some was missed.
    pub(crate) async fn recv(&mut self) -> Option<SessionUpdated> {
        loop {
            let (user, update) = self.all.recv().await.ok()?;
            if user == self.user {
                return Some(update);
            }
        }
    }
}

/// Returns that something changed about a session just now.
pub(crate) fn updated(session_id: &SessionId) -> SessionUpdated {
    SessionUpdated {
        session_id: session_id.clone(),
        title: None,
        archived: None,
        labels: None,
        updated_at: format!("{:.3}", Timestamp::now()),
        deleted: false,
    }
}

/// Returns what changes of one session say to whoever shows a list; `None` where that is nothing. Of what is said, the
/// beginning and the end of each exchange is told.
pub(crate) fn update(session_id: &SessionId, changes: &[Change]) -> Option<SessionUpdated> {
    let mut update = updated(session_id);
    let mut is_told = false;
    for change in changes {
        match change {
            Change::Title { title, .. } => update.title = Some(title.clone()),
            Change::Archived { at_ms } => update.archived = Some(at_ms.is_some()),
            Change::Labels(labels) => update.labels = Some(labels.clone()),
            Change::Delete => update.deleted = true,
            Change::Fork { .. } | Change::Began(_) | Change::Ended { .. } => {}
            _ => continue,
        }
        is_told = true;
    }
    is_told.then_some(update)
}
