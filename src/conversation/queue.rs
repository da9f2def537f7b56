//! Sends that wait for the exchange before them. Pure.

use std::collections::VecDeque;

use crate::exchange::setup::Setup;
use crate::message::{MessageId, Part};
use crate::protocol::content::WireMessage;
use crate::telemetry::metrics::{self, Counted};

/// The most sends that wait in one conversation.
pub const QUEUED: usize = 10;

/// A send that waits, or what is left over of an exchange.
pub(super) struct QueuedSend {
    pub(super) setup: Setup,
    /// Messages that replace what is remembered.
    pub(super) history: Option<Vec<WireMessage>>,
    /// What was steered into the exchange before, too late.
    pub(super) steered: Vec<Vec<Part>>,
    /// Whether its client takes it for begun: it was answered so, or was part of what ran.
    pub(super) started: bool,
    /// Counts it while it waits.
    pub(super) counted: Counted,
}

impl QueuedSend {
    pub(super) fn new(setup: Setup, history: Option<Vec<WireMessage>>, started: bool) -> Self {
        Self {
            setup,
            history,
            steered: Vec::new(),
            started,
            counted: metrics::QUEUED_SENDS.enter(),
        }
    }
}

/// What waits, first come first served.
#[derive(Default)]
pub(super) struct Queue(VecDeque<QueuedSend>);

impl Queue {
    /// Returns whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether another send would not be admitted.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= QUEUED
    }

    /// Appends a send; returns its place, from 1, among those that are not taken for begun.
    pub(super) fn push(&mut self, send: QueuedSend) -> usize {
        self.0.push_back(send);
        self.0.iter().filter(|waiting| !waiting.started).count()
    }

    /// Puts a send before all others.
    pub(super) fn push_front(&mut self, send: QueuedSend) {
        self.0.push_front(send);
    }

    /// Takes the first send.
    pub(super) fn pop(&mut self) -> Option<QueuedSend> {
        self.0.pop_front()
    }

    /// Takes the first send where it is taken for begun.
    pub(super) fn pop_started(&mut self) -> Option<QueuedSend> {
        self.0.pop_front_if(|first| first.started)
    }

    /// Takes everything.
    pub(super) fn clear(&mut self) -> VecDeque<QueuedSend> {
        std::mem::take(&mut self.0)
    }

    /// Returns what waits, in order.
    pub(super) fn ids(&self) -> Vec<MessageId> {
        let ids = self.0.iter().map(|waiting| &waiting.setup.message_id);
        ids.cloned().collect()
    }
}
