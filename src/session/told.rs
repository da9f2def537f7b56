//! What a session is told of the daemon, as far as it is for its user.

use super::Session;
use crate::message::{Notice, Severity};
use crate::notices::{Addressed, NOT_SAFE, News, WAITS};

impl Session {
    /// Returns what is said here of news of the daemon.
    pub(super) fn said(&self, notice: Addressed) -> Option<News> {
        let grant = &self.grant;
        notice.said_in(&self.shared.id, &grant.user, grant.is_operator)
    }

    /// Returns that what is said is not safe now, where that is so.
    pub(super) fn not_safe(&self) -> Option<Notice> {
        let store = self.daemon.store.as_ref()?;
        let problem = store.failing()?;
        let message = match self.grant.is_operator {
            true => format!("what is said is not safe now: the store does not take it ({problem})"),
            false if store.is_one_of_several() => WAITS.to_owned(),
            false => NOT_SAFE.to_owned(),
        };
        Some(Notice {
            severity: Severity::Error,
            code: "store_failed".to_owned(),
            message,
        })
    }
}
