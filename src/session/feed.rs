//! A session's log as its conversations and its socket share it.
//!
//! A std mutex, not tokio's: it is held for one append or one batch of copies and never across an
//! await, and a delta reaches the socket's task in one step, without a task in between.

use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::extract::ws::Utf8Bytes;
use tokio::sync::Notify;

use super::log::{Log, Read};
use crate::protocol::command::Layer;
use crate::protocol::envelope::{RequestId, timestamp};
use crate::protocol::event::Event;

/// The log, and the news that it grew.
#[derive(Debug)]
pub struct Feed {
    log: Mutex<Log>,
    grown: Notify,
}

impl Feed {
    /// An empty feed that keeps about `bound` bytes.
    pub fn new(bound: usize, layers: Vec<Layer>) -> Self {
        Self {
            log: Mutex::new(Log::new(bound, layers)),
            grown: Notify::new(),
        }
    }

    /// Appends an event; `reply_to` names the request that it answers.
    pub fn append(&self, event: Event, reply_to: Option<&RequestId>) {
        self.log().append(event, reply_to, &timestamp());
        self.grown.notify_one();
    }

    /// Keeps what is appended from now on for after the account; see [`Log::hold`].
    pub fn hold(&self) {
        self.log().hold();
    }

    /// Replaces what is kept by an account of how things stand; returns the number before it.
    pub fn restart(&self, account: Vec<Event>) -> u64 {
        let before = self.log().restart(account, &timestamp());
        self.grown.notify_one();
        before
    }

    /// Copies frames after `after` to `out`; see [`Log::read`].
    pub fn read(&self, after: u64, most: usize, out: &mut Vec<Utf8Bytes>) -> Read {
        self.log().read(after, most, out)
    }

    /// Waits until something was appended since the last wait.
    pub async fn grown(&self) {
        self.grown.notified().await;
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
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
