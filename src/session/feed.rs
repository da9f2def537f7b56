//! A session's log as its conversations and its socket share it.
//!
//! A plain mutex, not tokio's: it is never held across an await, and a delta reaches the socket's task in
//! one step, without a task in between. It is held for one append, for one batch of copies, or, after a
//! gap, for as long as a resync takes to be written (`HISTORIES_BYTES` of `resync` at most).

use axum::extract::ws::Utf8Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::log::{Log, Read};
use crate::protocol::command::Layer;
use crate::protocol::envelope::{RequestId, Timestamp};
use crate::protocol::event::Event;

#[derive(Debug)]
pub(crate) struct Feed {
    log: Mutex<Log>,
    grown: Notify,
}

impl Feed {
    pub(crate) fn new(bound: usize, layers: Vec<Layer>) -> Self {
        Self {
            log: Mutex::new(Log::new(bound, layers)),
            grown: Notify::new(),
        }
    }

    /// Appends an event; `reply_to` names the request that it answers.
    pub(crate) fn append(&self, event: Event, reply_to: Option<&RequestId>) {
        self.grow(|log| log.append(event, reply_to, Timestamp::now()));
    }

    /// Copies frames after `after` to `out`; see [`Log::read`].
    pub(crate) fn read(&self, after: u64, most: usize, out: &mut Vec<Utf8Bytes>) -> Read {
        self.log().read(after, most, out)
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
        let changed = change(&mut self.log());
        self.grown.notify_waiters();
        changed
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::protocol::command::Empty;

    #[test]
    fn everybody_who_waits_is_woken_by_an_append() {
        let feed = Feed::new(1 << 20, Vec::new());
        let (old, new) = (feed.grown(), feed.grown());
        feed.append(Event::SessionPingResult(Empty {}), None);
        assert!(futures::future::join(old, new).now_or_never().is_some());
        assert!(feed.grown().now_or_never().is_none());
    }
}
