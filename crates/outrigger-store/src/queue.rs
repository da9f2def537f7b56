//! What waits to be written, and how much may; for every store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::user::{OwnId, own_id};
use crate::{Change, Done, Error, Health, User};

/// The most bytes of changes that wait, those included that the disk does not take: what a thousand sessions say in a
/// minute. Beyond it a session's changes are refused, and all further ones of that session. What alone is larger, as a
/// message of many pictures, waits beside them: one at a time.
const MAX_WAITING: usize = 64 * 1024 * 1024;

/// What is said of it.
pub(crate) const NO_ROOM: &str = "more waits to be written than the store holds";

/// What is said of what a session says after something of it was refused.
pub(crate) const FOLLOWS: &str = "what the session said before it was refused";

pub(crate) struct Job {
    pub(crate) user: User,
    pub(crate) session: String,
    pub(crate) changes: Vec<Change>,
    pub(crate) done: Done,
    pub(crate) lasts: Lasts,
    /// Whether it was emptied, since there was no room for it.
    pub(crate) is_refused: bool,
}

/// How long a job is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasts {
    /// Until the disk takes it.
    Long,
    /// Once: it is gone when it is told that it failed.
    Once,
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
            is_refused: false,
        }
    }

    /// Returns whether it is of use to wait a moment for what follows it.
    pub(crate) fn may_wait(&self) -> bool {
        self.lasts == Lasts::Long && self.changes.iter().all(Change::may_wait)
    }
}

/// A job on its way to the disk; `done` is gone once it was told that it fails.
pub(crate) struct Waiting {
    pub(crate) user: User,
    pub(crate) session: String,
    pub(crate) changes: Vec<Change>,
    pub(crate) done: Option<Done>,
    pub(crate) lasts: Lasts,
    pub(crate) is_refused: bool,
}

impl From<Job> for Waiting {
    fn from(job: Job) -> Self {
        Self {
            user: job.user,
            session: job.session,
            changes: job.changes,
            done: Some(job.done),
            lasts: job.lasts,
            is_refused: job.is_refused,
        }
    }
}

impl Waiting {
    /// Returns whether what its session says after it does not fit, where it is refused for this.
    pub(crate) fn leaves_a_hole(&self, problem: &Error) -> bool {
        let is_lost = matches!(problem, Error::Refused(_) | Error::Elsewhere { .. });
        self.lasts == Lasts::Long && is_lost
    }

    /// Says what became of it: it is written, or refused for good.
    pub(crate) fn settle(
        self,
        problem: Option<&Error>,
        (room, holes, health): (&Room, &mut Holes, &Mutex<HealthState>),
    ) {
        room.give_back(&self.session, &self.changes);
        let result = match problem {
            None if self.is_refused => Err(Error::Refused(NO_ROOM.to_owned())),
            None => Ok(()),
            Some(problem) => Err(problem.clone()),
        };
        match problem {
            Some(problem @ Error::Refused(why)) => {
                // A constraint says that this program erred.
                tracing::error!(session_id = self.session, why, "changes are not kept");
                if self.leaves_a_hole(problem) {
                    holes.add((&self.user, &self.session), why, health);
                }
            }
            Some(problem @ Error::Elsewhere { .. }) if self.leaves_a_hole(problem) => {
                holes.add((&self.user, &self.session), &problem.to_string(), health);
            }
            // That is told once for all sessions.
            Some(Error::Taken { .. } | Error::Closed) if self.lasts == Lasts::Long => {
                let session = own_id(&self.user, &self.session);
                holes.refused.0.lock().insert(session);
            }
            _ => {}
        }
        if let Some(done) = self.done {
            done(result);
        }
    }
}

/// How much waits, and of which sessions.
#[derive(Default)]
pub(crate) struct Room {
    small: AtomicUsize,
    /// Of a job that is larger than all others may be together.
    large: AtomicUsize,
    /// How many jobs of each session wait.
    sessions: Mutex<HashMap<String, usize>>,
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

    /// Returns whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.lock().is_empty()
    }

    fn take(&self, job: &Job) {
        let bytes = bytes_of(&job.changes);
        self.of(bytes).fetch_add(bytes, Ordering::Relaxed);
        let mut sessions = self.sessions.lock();
        *sessions.entry(job.session.clone()).or_default() += 1;
    }

    /// Takes back what a job of a session took that has these changes.
    pub(crate) fn give_back(&self, session: &str, changes: &[Change]) {
        let bytes = bytes_of(changes);
        self.of(bytes).fetch_sub(bytes, Ordering::Relaxed);
        let mut sessions = self.sessions.lock();
        if let Some(count) = sessions.get_mut(session) {
            *count -= 1;
            if *count == 0 {
                sessions.remove(session);
            }
        }
    }
}

/// Told what becomes of what is written.
pub(crate) type Tell = Box<dyn Fn(Health<'_>) + Send>;

/// Whether what is written is safe.
#[derive(Default)]
pub(crate) struct HealthState {
    pub(crate) failing: Option<String>,
    /// Why nothing is written any more.
    pub(crate) ended: Option<Error>,
    pub(crate) tell: Option<Tell>,
}

impl HealthState {
    pub(crate) fn set(&mut self, failing: Option<String>) {
        if self.ended.is_some() {
            return;
        }
        match (&self.failing, &failing) {
            (None, Some(problem)) => self.tell(Health::Failing(problem)),
            (Some(_), None) => self.tell(Health::Well),
            _ => {}
        }
        self.failing = failing;
    }

    /// Others may take the sessions soon.
    pub(crate) fn lapse(&mut self) {
        if self.ended.is_some() {
            return;
        }
        if self.failing.is_none() {
            self.set(Some("it does not answer".to_owned()));
        }
        self.tell(Health::Lapsing);
    }

    /// Nothing is written from now on, which is told once, whatever was told before.
    pub(crate) fn end(&mut self, ended: Error) {
        if self.ended.is_none() {
            self.tell(Health::Ended(&ended));
            self.failing = Some(ended.to_string());
            self.ended = Some(ended);
        }
    }

    pub(crate) fn tell(&self, health: Health<'_>) {
        if let Some(tell) = &self.tell {
            tell(health);
        }
    }
}

/// The sessions of which changes were refused: what followed would not fit to what is there. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Refused(Arc<Mutex<HashSet<OwnId>>>);

impl Refused {
    /// Notes that changes of a session were lost, and says so the first time.
    pub(crate) fn add(
        &self,
        (user, session): (&User, &str),
        why: &str,
        health: &Mutex<HealthState>,
    ) {
        let is_new = self.0.lock().insert(own_id(user, session));
        if is_new {
            health.lock().tell(Health::NotKept { session, why });
        }
    }
}

/// What the one who writes knows of refused changes: what he was given since is refused, too, until the session is read anew.
#[derive(Default)]
pub(crate) struct Holes {
    pub(crate) refused: Refused,
    sessions: HashSet<OwnId>,
}

impl Holes {
    pub(crate) fn new(gate: &Gate) -> Self {
        Self {
            refused: gate.refused.clone(),
            sessions: HashSet::new(),
        }
    }

    /// Returns those of these jobs that are not written though nothing is wrong with them, by their place.
    pub(crate) fn refuse<'a>(
        &self,
        jobs: impl Iterator<Item = &'a Waiting>,
    ) -> Vec<(usize, Error)> {
        jobs.enumerate()
            .filter(|(_, job)| self.refuses(job))
            .map(|(at, _)| (at, Error::Refused(FOLLOWS.to_owned())))
            .collect()
    }

    /// Returns whether a job is not written though nothing is wrong with it.
    pub(crate) fn refuses(&self, job: &Waiting) -> bool {
        follows(job) && self.sessions.contains(&own_id(&job.user, &job.session))
    }

    /// Notes that a job of a session was refused.
    pub(crate) fn add(
        &mut self,
        (user, session): (&User, &str),
        why: &str,
        health: &Mutex<HealthState>,
    ) {
        self.sessions.insert(own_id(user, session));
        self.refused.add((user, session), why, health);
    }

    /// Notes that a session is read anew, so that what follows fits again.
    pub(crate) fn is_opened(&mut self, user: &User, session: &str) {
        let session = own_id(user, session);
        self.sessions.remove(&session);
        self.refused.0.lock().remove(&session);
    }

    /// Forgets the sessions that this process has no more and of which nothing waits: what was refused of them was told to
    /// nobody as safe, and whoever has them now read what is there.
    pub(crate) fn forget(&mut self, room: &Room, is_held: impl Fn(&OwnId) -> bool) {
        let waiting = room.sessions.lock();
        let mut refused = self.refused.0.lock();
        refused.retain(|session| is_held(session) || waiting.contains_key(&session.1));
        self.sessions.retain(|session| refused.contains(session));
    }
}

/// Returns whether a job needs what its session said before it.
pub(crate) fn follows(job: &Waiting) -> bool {
    job.lasts == Lasts::Long && !job.is_refused && !only_removes(&job.changes)
}

/// What removes fits whatever came before it, and makes room.
fn only_removes(changes: &[Change]) -> bool {
    let removes = |change: &Change| matches!(change, Change::Delete | Change::Revoke { .. });
    !changes.is_empty() && changes.iter().all(removes)
}

/// The way in: it counts what waits, and refuses what there is no room for.
#[derive(Default)]
pub(crate) struct Gate {
    pub(crate) room: Arc<Room>,
    refused: Refused,
    pub(crate) health: Arc<Mutex<HealthState>>,
}

impl Gate {
    /// Returns whether there is room for so many bytes in the half of it that anything may have, and the disk takes them.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let waiting = self.room.small.load(Ordering::Relaxed);
        waiting + bytes <= MAX_WAITING / 2 && self.health.lock().failing.is_none()
    }

    /// Returns the sessions of which something was said that is not safe, sorted.
    pub(crate) fn not_kept(&self) -> Vec<String> {
        let mut sessions: Vec<String> = self.room.sessions.lock().keys().cloned().collect();
        let refused = self.refused.0.lock();
        sessions.extend(refused.iter().map(|(_, id)| id.clone()));
        drop(refused);
        sessions.sort();
        sessions.dedup();
        sessions
    }

    /// Says that nothing was answered for long: it is as if it failed, until something is.
    pub(crate) fn is_silent(&self) {
        let mut health = self.health.lock();
        if health.failing.is_none() {
            health.set(Some("it does not answer".to_owned()));
        }
    }

    /// Counts what a job holds. One for which there is no room, or of a session that was refused something, is emptied:
    /// it is answered in its turn, so that nobody takes what came before it for safe.
    ///
    /// What removes is never refused. What is tried once needs nothing that came before it, and nothing that follows needs it.
    pub(crate) fn take(&self, job: &mut Job) {
        let has_room = self.room.has(bytes_of(&job.changes));
        let is_once = job.lasts == Lasts::Once;
        let is_refused = || {
            let session = own_id(&job.user, &job.session);
            self.refused.0.lock().contains(&session)
        };
        if only_removes(&job.changes) || has_room && (is_once || !is_refused()) {
            return self.room.take(job);
        }
        job.is_refused = true;
        job.changes = Vec::new();
        self.room.take(job);
        if !is_once {
            let session = (&job.user, job.session.as_str());
            self.refused.add(session, NO_ROOM, &self.health);
        }
    }

    /// Refuses a job that was taken and has no place in the queue.
    pub(crate) fn turn_away(&self, job: Job) {
        self.room.give_back(&job.session, &job.changes);
        if job.lasts == Lasts::Long {
            let session = (&job.user, job.session.as_str());
            self.refused.add(session, NO_ROOM, &self.health);
        }
        (job.done)(Err(Error::Refused(NO_ROOM.to_owned())));
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
