//! The sessions that somebody has open.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// How often each is held. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldSessions(Arc<Mutex<HashMap<String, usize>>>);

impl HeldSessions {
    /// Holds a session until what this returns is dropped.
    pub(crate) fn hold(&self, session: &str) -> Hold {
        *self.0.lock().entry(session.to_owned()).or_default() += 1;
        Hold {
            sessions: self.clone(),
            session: session.to_owned(),
        }
    }

    /// Returns the sessions that somebody has open.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    pub(crate) fn has(&self, session: &str) -> bool {
        self.0.lock().contains_key(session)
    }
}

pub(crate) struct Hold {
    sessions: HeldSessions,
    session: String,
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
