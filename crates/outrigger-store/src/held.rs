//! The sessions that somebody has open.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::user::{OwnId, User, own_id};

/// How often each is held. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldSessions(Arc<Mutex<HashMap<OwnId, usize>>>);

impl HeldSessions {
    /// Holds a session until what this returns is dropped.
    pub(crate) fn hold(&self, user: &User, session: &str) -> Hold {
        let session = own_id(user, session);
        *self.0.lock().entry(session.clone()).or_default() += 1;
        Hold {
            sessions: self.clone(),
            session,
        }
    }

    /// Returns the sessions that somebody has open: their owners, and at the same places their ids.
    pub(crate) fn all(&self) -> (Vec<String>, Vec<String>) {
        let held = self.0.lock();
        let all = held.keys();
        all.map(|(user, id)| (user.to_string(), id.clone())).unzip()
    }

    pub(crate) fn has(&self, user: &User, session: &str) -> bool {
        self.0.lock().contains_key(&own_id(user, session))
    }
}

pub(crate) struct Hold {
    sessions: HeldSessions,
    session: OwnId,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.sessions.0.lock();
        if let Some(count) = held.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.session);
            }
        }
    }
}
