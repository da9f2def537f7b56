//! What waits to be written, and how much may; for every store.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::{Change, Done, User};

/// The most bytes of changes that wait, those included that the disk does not take: what a thousand sessions say in a
/// minute. Beyond it a session's changes are refused, and all further ones of that session. What alone is larger, as a
/// message of many pictures, waits beside them: one at a time.
const MAX_WAITING: usize = 64 * 1024 * 1024;

/// What is said of it.
pub(crate) const NO_ROOM: &str = "more waits to be written than the store holds";

pub(crate) struct Job {
    pub(crate) user: User,
    pub(crate) session: String,
    pub(crate) changes: Vec<Change>,
    pub(crate) done: Done,
    pub(crate) lasts: Lasts,
}

/// How long a job is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasts {
    /// Until the disk takes it.
    Long,
    /// Once: it is gone when it is told that it failed.
    Once,
    /// Once, and it was emptied, since there was no room.
    Refused,
}

impl Job {
    pub(crate) fn new(
        (user, session): (&User, &str),
        changes: Vec<Change>,
        lasts: Lasts,
        done: Done,
    ) -> Self {
        Self {
            user: user.clone(),
            session: session.to_owned(),
            changes,
            done,
            lasts,
        }
    }
}

/// How many bytes wait.
#[derive(Default)]
pub(crate) struct Room {
    small: AtomicUsize,
    /// Of a job that is larger than all others may be together.
    large: AtomicUsize,
}

impl Room {
    fn of(&self, bytes: usize) -> &AtomicUsize {
        match bytes > MAX_WAITING {
            true => &self.large,
            false => &self.small,
        }
    }

    fn has(&self, bytes: usize) -> bool {
        let waiting = self.of(bytes).load(Ordering::Relaxed);
        waiting == 0 || waiting + bytes <= MAX_WAITING
    }

    fn take(&self, bytes: usize) {
        self.of(bytes).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes back what a job of so many bytes took.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.of(bytes).fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        let all = [&self.small, &self.large];
        all.iter().all(|it| it.load(Ordering::Relaxed) == 0)
    }
}

pub(crate) type Health = Box<dyn Fn(Option<&str>) + Send>;

#[derive(Default)]
pub(crate) struct HealthState {
    pub(crate) failing: Option<String>,
    pub(crate) tell: Option<Health>,
}

impl HealthState {
    pub(crate) fn set(&mut self, failing: Option<String>) {
        if self.failing.is_some() != failing.is_some()
            && let Some(tell) = &self.tell
        {
            tell(failing.as_deref());
        }
        self.failing = failing;
    }
}

/// The way in: it counts what waits, and refuses what there is no room for.
#[derive(Default)]
pub(crate) struct Gate {
    pub(crate) room: Arc<Room>,
    /// Sessions of which changes were refused: what followed would not fit to what is there.
    refused: Mutex<HashSet<String>>,
    pub(crate) health: Arc<Mutex<HealthState>>,
}

impl Gate {
    /// Notes that a session is read anew, so that what follows fits again.
    pub(crate) fn is_opened(&self, session: &str) {
        self.refused.lock().remove(session);
    }

    /// Returns whether there is room for so many bytes in the half of it that anything may have, and the disk takes them.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let waiting = self.room.small.load(Ordering::Relaxed);
        waiting + bytes <= MAX_WAITING / 2 && self.health.lock().failing.is_none()
    }

    /// Counts what a job holds. One for which there is no room, or of a session that was refused something, is emptied:
    /// it is answered in its turn, so that nobody takes what came before it for safe.
    ///
    /// What removes is never refused: it fits whatever came before it, and makes room. What is tried once needs nothing that
    /// came before it, and nothing that follows needs it.
    pub(crate) fn take(&self, job: &mut Job) {
        let bytes = bytes_of(&job.changes);
        let has_room = self.room.has(bytes);
        let mut refused = self.refused.lock();
        let removes = |change: &Change| matches!(change, Change::Delete | Change::Revoke { .. });
        let only_removes = !job.changes.is_empty() && job.changes.iter().all(removes);
        let is_once = job.lasts == Lasts::Once;
        if only_removes || has_room && (is_once || !refused.contains(&job.session)) {
            self.room.take(bytes);
            return;
        }
        job.lasts = Lasts::Refused;
        job.changes = Vec::new();
        self.room.take(bytes_of(&job.changes));
        let is_new = !is_once && refused.insert(job.session.clone());
        drop(refused);
        if is_new && let Some(tell) = &self.health.lock().tell {
            tell(Some(&format!(
                "session {} says more than may wait; what it says from now on is lost when it ends",
                job.session
            )));
        }
    }
}

/// Returns about how many bytes changes hold.
pub(crate) fn bytes_of(changes: &[Change]) -> usize {
    let bytes = changes.iter().map(|change| match change {
        Change::Message { message, .. } => {
            let attachments = message.body.attachments.iter();
            let attached: usize = attachments.map(|it| it.bytes.len()).sum();
            message.body.text.len() + message.body.words.len() + attached
        }
        Change::Call { call, .. } | Change::Imported { call, .. } => {
            call.record.len() + call.result.as_ref().map_or(0, String::len)
        }
        Change::Record { record, .. } => record.len(),
        Change::Queued(queued) => queued.send.len(),
        Change::Rule(rule) => rule.rule.len(),
        Change::File(change) => {
            let before = change.before.as_ref().map_or(0, |it| it.bytes.len());
            change.about.len() + change.diff.len() + before
        }
        _ => 0,
    });
    bytes.sum::<usize>() + 256
}
