//! A session's log as its conversations and its socket share it.
//!
//! A plain mutex, not tokio's: it is never held across an await, and a delta reaches the socket's task in
//! one step, without a task in between. It is held for one append, for one batch of copies, or, after a
//! gap, for as long as a resync takes to be written (`HISTORIES_BYTES` of `resync` at most).

use axum::extract::ws::Utf8Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::live::LiveSnapshot;
use super::log::{Log, Read};
use crate::message::ConversationId;
use crate::protocol::command::Layer;
use crate::protocol::envelope::{RequestId, Timestamp};
use crate::protocol::event::{Event, StateName};

/// The log, and the news that it grew.
#[derive(Debug)]
pub struct Feed {
    log: Mutex<Log>,
    grown: Notify,
}

impl Feed {
    /// Returns an empty feed that keeps about `bound` bytes.
    pub fn new(bound: usize, layers: Vec<Layer>) -> Self {
        Self {
            log: Mutex::new(Log::new(bound, layers)),
            grown: Notify::new(),
        }
    }

    /// Appends an event; `reply_to` names the request that it answers.
    pub fn append(&self, event: Event, reply_to: Option<&RequestId>) {
        self.log().append(event, reply_to, Timestamp::now());
        self.grown.notify_waiters();
    }

    /// Begins a resync; see [`Log::begin_resync`].
    pub fn begin_resync(
        &self,
        after: u64,
        first: Event,
        awaited: impl IntoIterator<Item = ConversationId>,
    ) {
        self.log().begin_resync(after, first, awaited);
    }

    /// Adds how a conversation stands to the resync; see [`Log::snapshot`].
    pub fn snapshot(
        &self,
        conversation: &ConversationId,
        say: impl FnOnce(LiveSnapshot) -> Vec<Event>,
    ) {
        self.log().snapshot(conversation, say);
    }

    /// Replaces what is kept by the resync; returns the number before it.
    pub fn finish_resync(&self) -> u64 {
        let before = self.log().finish_resync(Timestamp::now());
        self.grown.notify_waiters();
        before
    }

    /// Defers what a conversation emits from here on until the answer that says how it stands; see [`Log::defer`].
    pub fn defer(&self, conversation: &ConversationId) -> Option<StateName> {
        self.log().defer(conversation)
    }

    /// Appends that answer, and what was deferred; see [`Log::flush_deferred`].
    pub fn flush_deferred(&self, answer: Event, reply_to: Option<&RequestId>) {
        self.log()
            .flush_deferred(answer, reply_to, Timestamp::now());
        self.grown.notify_waiters();
    }

    /// Copies frames after `after` to `out`; see [`Log::read`].
    pub fn read(&self, after: u64, most: usize, out: &mut Vec<Utf8Bytes>) -> Read {
        self.log().read(after, most, out)
    }

    /// Waits for what is appended after this call, whether or not the wait has begun by then.
    ///
    /// Everybody who waits is woken: while a session is taken over, two sockets do, and news that went
    /// to the old one alone would reach the new one with its next ping.
    pub fn grown(&self) -> Notified<'_> {
        self.grown.notified()
    }

    /// Returns the layers that are sent.
    pub fn layers(&self) -> Vec<Layer> {
        self.log().layers().to_vec()
    }

    /// Sets the layers that are sent.
    pub fn set_layers(&self, layers: Vec<Layer>) {
        self.log().set_layers(layers);
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
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
