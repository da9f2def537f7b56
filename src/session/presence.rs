//! Whether somebody is there who answers, and what becomes of a session where nobody is.

use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::Session;

impl Session {
    /// Has the session wait for somebody who answers, or end where nobody comes back for longer than it may.
    pub(super) fn settle_presence(&mut self) {
        self.shared.questions.attach(self.driver.is_some());
        let is_attended = self.is_attended();
        self.shared.questions.attend(is_attended);
        self.attend(is_attended);
        if is_attended {
            (self.ends_at, self.ends_when_idle) = (None, false);
        } else if self.ends_at.is_none() && !self.ends_when_idle {
            let grace = self.daemon.services.config().session.resume_grace;
            self.ends_at = Instant::now().checked_add(grace);
        }
        self.spare.store(!self.is_used(), Ordering::Relaxed);
    }

    /// Tells who gives out locks whether somebody is there.
    fn attend(&mut self, is_attended: bool) {
        // At most one: the end of a second one would speak for the first.
        match is_attended {
            true => self.away = None,
            false => {
                let (locks, id) = (&self.services.locks, &self.shared.id);
                self.away.get_or_insert_with(|| locks.away(id));
            }
        }
    }

    /// Returns whether an exchange runs that does not wait for the user.
    pub(super) async fn is_at_work(&self) -> bool {
        if self.feed.log().is_at_work() || !self.reading.is_empty() {
            return true;
        }
        for id in self.conversations.keys() {
            if self.look(id, |view| view.is_at_work()).await == Some(true) {
                return true;
            }
        }
        false
    }

    pub(super) fn is_used(&self) -> bool {
        self.sockets().next().is_some()
            || !self.conversations.is_empty()
            || !self.reading.is_empty()
    }
}
