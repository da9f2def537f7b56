//! The way of a session's changes to the store: numbered in order, and up to which of them all is safe.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use outrigger_store::{Change, Error, Store};
use parking_lot::MutexGuard;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::updates::{UserUpdates, update};
use crate::message::SessionId;

/// How long anybody waits for a disk that does not answer; then things go on without it, and all are told so.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a daemon that is one of several waits, before the session ends there: nothing leaves that is not safe, or another
/// one that has the session next would not know of it.
const LONGEST: Duration = Duration::from_secs(10);

pub(super) struct Outbox {
    store: Arc<dyn Store>,
    session: SessionId,
    updates: UserUpdates,
    /// Changes given so far, and up to which of them all is safe or given up.
    given: AtomicU64,
    safe: AtomicU64,
    /// Told whenever more is safe.
    more: Arc<Notify>,
    /// Whether somebody looks after a disk that does not answer.
    is_watched: AtomicBool,
    /// Cancelled where the session must not go on here: of several daemons none goes on with what is not kept.
    tenure: CancellationToken,
}

impl Outbox {
    pub(super) fn new(
        store: Arc<dyn Store>,
        session: &SessionId,
        updates: UserUpdates,
        more: Arc<Notify>,
        tenure: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            session: session.clone(),
            updates,
            given: AtomicU64::default(),
            safe: AtomicU64::default(),
            more,
            is_watched: AtomicBool::default(),
            tenure,
        })
    }

    pub(super) fn given(&self) -> u64 {
        self.given.load(Ordering::Acquire)
    }

    pub(super) fn safe(&self) -> u64 {
        self.safe.load(Ordering::Acquire)
    }

    /// Returns whether so many bytes that can be done without may be given now.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.store.has_room(bytes)
    }

    /// Hands changes to the store. Whoever holds the guard is alone in doing so: their numbers are in the order in which
    /// the store gets them.
    pub(super) fn give(self: &Arc<Self>, _order: &MutexGuard<'_, ()>, changes: Vec<Change>) {
        let number = self.given.fetch_add(1, Ordering::AcqRel) + 1;
        let done = Arc::clone(self);
        let update = update(&self.session, &changes);
        let done = move |result: Result<(), Error>| {
            if result.is_err() && done.is_one_of_several() {
                // It ends here, and what was not answered is said again where it is read anew.
                return done.tenure.cancel();
            }
            if let Some(update) = update.filter(|_| result.is_ok()) {
                done.updates.send(update);
            }
            // What is not safe now is announced by the store's health; nobody waits for it.
            if let Err(error) = result {
                tracing::debug!(%error, "a change is not safe yet");
            }
            done.is_safe_to(number);
        };
        self.store
            .write(self.session.as_str(), changes, Box::new(done));
        Self::watch(self);
    }

    /// Waits until all that was given so far is safe, or things go on without; returns false where the session ends instead.
    pub(super) async fn settled(&self) -> bool {
        let given = self.given();
        if self.safe() < given {
            self.store.hurry();
        }
        let settled = async {
            loop {
                let more = self.more.notified();
                if self.safe() >= given {
                    return;
                }
                more.await;
            }
        };
        match self.is_one_of_several() {
            true => self.tenure.run_until_cancelled(settled).await.is_some(),
            false => {
                settled.await;
                true
            }
        }
    }

    fn is_one_of_several(&self) -> bool {
        self.store.is_one_of_several()
    }

    fn is_safe_to(&self, number: u64) {
        self.safe.fetch_max(number, Ordering::AcqRel);
        self.more.notify_waiters();
    }

    /// Sees to it that nobody waits in silence for a disk that does not answer: one task, while something is not safe.
    fn watch(outbox: &Arc<Self>) {
        if outbox.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let outbox = Arc::clone(outbox);
        tokio::spawn(async move {
            let mut waited = Duration::ZERO;
            loop {
                let (given, safe) = (outbox.given(), outbox.safe());
                tokio::time::sleep(PATIENCE).await;
                let is_silent = outbox.safe() == safe && given > safe;
                if is_silent {
                    tracing::warn!(
                        session_id = %outbox.session,
                        "the store has not answered for {PATIENCE:?}; what the session says is not safe yet"
                    );
                    // All are told so, before what is not safe leaves.
                    outbox.store.is_silent();
                    tokio::task::yield_now().await;
                    waited += PATIENCE;
                    match outbox.is_one_of_several() {
                        false => outbox.is_safe_to(given),
                        true if waited >= LONGEST => return outbox.tenure.cancel(),
                        true => {}
                    }
                } else {
                    waited = Duration::ZERO;
                }
                let is_settled = || outbox.safe() >= outbox.given();
                if is_settled() {
                    outbox.is_watched.store(false, Ordering::Release);
                    // Something may have been given between the two.
                    if is_settled() || outbox.is_watched.swap(true, Ordering::AcqRel) {
                        return;
                    }
                }
            }
        });
    }
}
