//! Sends that wait for the exchange before them. Pure.

use std::collections::VecDeque;

use crate::message::MessageId;

/// The most sends that wait in one conversation.
pub const QUEUED: usize = 10;

/// What waits, first come first served.
#[derive(Debug)]
pub struct Queue<T>(VecDeque<(MessageId, T)>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Queue<T> {
    /// Whether another send would not be admitted.
    pub fn is_full(&self) -> bool {
        self.0.len() >= QUEUED
    }

    /// Appends a send; returns its place, from 1.
    pub fn push(&mut self, id: MessageId, send: T) -> usize {
        self.0.push_back((id, send));
        self.0.len()
    }

    /// Puts a send before all others.
    pub fn push_front(&mut self, id: MessageId, send: T) {
        self.0.push_front((id, send));
    }

    /// Takes the first send.
    pub fn pop(&mut self) -> Option<(MessageId, T)> {
        self.0.pop_front()
    }

    /// Drops everything; returns what it was.
    pub fn clear(&mut self) -> Vec<MessageId> {
        self.0.drain(..).map(|(id, _)| id).collect()
    }

    /// Returns what waits, in order.
    pub fn ids(&self) -> Vec<MessageId> {
        self.0.iter().map(|(id, _)| id.clone()).collect()
    }
}
