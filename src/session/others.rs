//! The way from one session to the others of its user.

use std::sync::{Arc, Weak};

use super::{Session, Sessions, UserSessions};
use crate::users::Grant;

/// The sessions of a user, as long as the daemon has any.
#[derive(Clone)]
pub(super) struct OtherSessions {
    all: Weak<Sessions>,
    grant: Arc<Grant>,
}

impl OtherSessions {
    /// Returns them; `None` where the daemon ends.
    pub(super) fn upgrade(&self) -> Option<UserSessions> {
        Some(self.all.upgrade()?.of(Arc::clone(&self.grant)))
    }
}

impl Session {
    /// Returns the sessions of this one's user.
    pub(super) fn others(&self) -> OtherSessions {
        OtherSessions {
            all: self.sessions.clone(),
            grant: Arc::clone(&self.grant),
        }
    }
}
