//! What changes about kept sessions, for whoever shows a list of them.

use jiff::Timestamp;
use outrigger_store::Change;
use tokio::sync::broadcast;

use crate::message::SessionId;
use crate::protocol::event::SessionUpdated;

/// Changes that a session may be behind; older ones it misses.
const BACKLOG: usize = 256;

/// The way to all sessions; clones lead to the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Updates(broadcast::Sender<SessionUpdated>);

impl Default for Updates {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl Updates {
    /// Tells all sessions what changed.
    pub(crate) fn send(&self, update: SessionUpdated) {
        // Nobody may be connected.
        drop(self.0.send(update));
    }

    /// Receives what is sent from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<SessionUpdated> {
        self.0.subscribe()
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
