//! The log of a session, as those who append to it and who reads it share it.

use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::log::{Log, ReadResult};
use super::status::News;
use crate::protocol::RequestId;
use crate::protocol::envelope::Timestamp;
use crate::protocol::event::Event;
use crate::protocol::roles::SocketId;
use crate::store::Journal;
use crate::webhooks::SessionWebhooks;

/// A session's log as its conversations and its socket share it.
///
/// A plain mutex, not tokio's: it is never held across an await, and a delta reaches the socket's task in
/// one step, without a task in between. It is held for one append, for one batch of copies, or, after a
/// gap, for as long as a resync takes to be written (`HISTORIES_BYTES` of `gap` at most).
#[derive(Debug)]
pub(crate) struct Feed {
    log: Mutex<Log>,
    /// Told when there is more to read: an event, or that one is safe.
    grown: Arc<Notify>,
    pub(super) journal: Journal,
    /// Where somebody else is told how the session stands.
    webhooks: SessionWebhooks,
}

impl Feed {
    /// Returns the feed of a log; `grown` is told, too, when more of what is in the journal is safe.
    pub(crate) fn new(
        log: Log,
        journal: Journal,
        grown: Arc<Notify>,
        webhooks: SessionWebhooks,
    ) -> Self {
        Self {
            log: Mutex::new(log),
            grown,
            journal,
            webhooks,
        }
    }

    /// Appends an event; `reply_to` names the request that it answers.
    pub(crate) fn append(&self, event: Event, reply_to: Option<&RequestId>) {
        self.webhooks.event(&event);
        self.grow(|log| log.append(event, reply_to, Timestamp::now()));
    }

    /// Copies frames after `after` to `out`; see [`Log::read`].
    pub(crate) fn read(
        &self,
        after: u64,
        most: usize,
        reader: Option<SocketId>,
        out: &mut Vec<Utf8Bytes>,
    ) -> ReadResult {
        self.log()
            .read(after, most, self.journal.safe(), reader, out)
    }

    /// Waits for what is appended after this call, whether or not the wait has begun by then.
    ///
    /// Everybody who waits is woken: while a session is taken over, two sockets do, and news that went
    /// to the old one alone would reach the new one with its next ping.
    pub(crate) fn grown(&self) -> Notified<'_> {
        self.grown.notified()
    }

    /// Returns the log, for what appends nothing to it.
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    /// Changes the log in a way that appends to it.
    pub(super) fn grow<T>(&self, change: impl FnOnce(&mut Log) -> T) -> T {
        let mut log = self.log();
        log.note_given(self.journal.given());
        let changed = change(&mut log);
        if let Some(News {
            status,
            has_new_question,
        }) = log.new_status()
        {
            self.webhooks.status(&status, has_new_question);
            log.append(Event::SessionStatusChanged(status), None, Timestamp::now());
        }
        if self.journal.is_on() {
            for (seq, end) in log.new_ends() {
                self.journal.ended(seq, &end);
            }
            self.journal.use_seq(log.last());
        }
        log.hold(self.journal.given(), self.journal.safe());
        drop(log);
        self.grown.notify_waiters();
        changed
    }
}
