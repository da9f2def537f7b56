//! What changes about kept sessions, for whoever shows a list of them: each user is told of its own.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use outrigger_store::{Change, User};
use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::message::SessionId;
use crate::protocol::event::SessionUpdated;

/// Changes that a session may be behind; older ones it misses. A user who shows a list has room for so many.
const BACKLOG: usize = 64;

/// The way to all sessions; clones lead to the same ones.
///
/// Each user has one of its own, and only as long as somebody shows a list: what one session says wakes no other one else,
/// of which there may be thousands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Updates(Arc<Mutex<HashMap<User, broadcast::Sender<SessionUpdated>>>>);

/// The way to the sessions of a user.
#[derive(Clone, Debug)]
pub(crate) struct UserUpdates {
    all: Updates,
    user: User,
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
    /// Tells all sessions of the user that show a list what changed.
    pub(crate) fn send(&self, update: SessionUpdated) {
        let mut users = self.all.0.lock();
        if let Some(listening) = users.get(&self.user)
            && listening.send(update).is_err()
        {
            // The last one has gone.
            users.remove(&self.user);
        }
    }

    /// Receives what is sent from now on; where some was missed, that is an error.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<SessionUpdated> {
        let mut users = self.all.0.lock();
        users.retain(|user, listening| *user == self.user || listening.receiver_count() > 0);
        let own = users.entry(self.user.clone());
        own.or_insert_with(|| broadcast::Sender::new(BACKLOG))
            .subscribe()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_shows_a_list_is_told_of_its_user_alone_and_nothing_is_left_behind() {
        let all = Updates::default();
        let [anna, ben] = ["anna", "ben"].map(|name| all.of(&User::new(name)));
        let id = SessionId::new("s");
        // Nobody listens.
        anna.send(updated(&id));
        assert_eq!(all.0.lock().len(), 0);
        let mut hears = anna.subscribe();
        let mut other = ben.subscribe();
        anna.send(updated(&id));
        assert_eq!(hears.try_recv().unwrap().session_id, id);
        assert!(other.try_recv().is_err());
        drop(hears);
        anna.send(updated(&id));
        assert_eq!(all.0.lock().len(), 1);
        drop(other);
        let _again = anna.subscribe();
        assert_eq!(all.0.lock().len(), 1, "ben is gone");
    }
}
