//! The numbered events of a session, kept for a resume, bounded in bytes. Pure.
//!
//! Whatever a client sees passes through here: conversations append, one socket reads at its own
//! pace. A text or thinking delta that nobody has read yet takes up the ones that follow it, so
//! that a slow reader costs bytes of text and not frames; nothing else is merged, nothing dropped
//! but by the bound, and what the bound drops is told as a gap.

use std::collections::{HashMap, VecDeque};

use axum::extract::ws::Utf8Bytes;

use crate::message::ConversationId;
use crate::protocol::command::Layer;
use crate::protocol::envelope::{self, RequestId, Stamp};
use crate::protocol::event::{Delta, Event};

/// The most text that one merged delta holds, in bytes: a frame stays small enough to be drawn at once.
const MERGED_BYTES: usize = 16 * 1024;

/// What an entry costs besides its text, in bytes, roughly.
const ENTRY_OVERHEAD: usize = 160;

/// Events by number.
#[derive(Debug)]
pub struct Log {
    entries: VecDeque<Entry>,
    /// The number of the first entry kept.
    first: u64,
    bytes: usize,
    bound: usize,
    /// The highest number that a reader was given.
    read: u64,
    layers: Vec<Layer>,
    /// Bytes of an account that was not read yet, which the bound gives way to.
    pinned_bytes: usize,
    /// What came while an account is drawn up.
    held: Option<Vec<(Event, Option<RequestId>, String)>>,
    /// The delta that further ones of the same conversation are merged into.
    open: HashMap<ConversationId, u64>,
}

#[derive(Debug)]
struct Entry {
    body: Body,
    /// Part of the account that follows a gap: kept until it is read, whatever it weighs.
    pinned: bool,
}

#[derive(Debug)]
enum Body {
    Frame(Utf8Bytes),
    /// Not written as a frame yet, since more of it may come.
    Unread {
        delta: Event,
        timestamp: String,
    },
}

impl Body {
    fn bytes(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.len(),
            Self::Unread { delta, .. } => content(delta).map_or(0, |delta| delta.content.len()),
        }
    }
}

/// What a reader got.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// Frames up to and with this number; the number asked for where there are none.
    UpTo(u64),
    /// The events asked for are no longer kept.
    Gap,
}

impl Log {
    /// An empty log that keeps about `bound` bytes.
    pub fn new(bound: usize, layers: Vec<Layer>) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 1,
            bytes: 0,
            bound,
            read: 0,
            layers,
            pinned_bytes: 0,
            held: None,
            open: HashMap::new(),
        }
    }

    /// Returns the layers whose events are numbered and sent.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Sets the layers; what was appended stays.
    pub fn set_layers(&mut self, layers: Vec<Layer>) {
        self.layers = layers;
    }

    /// Returns the number of the newest event; 0 where there is none.
    pub fn last(&self) -> u64 {
        self.first + self.entries.len() as u64 - 1
    }

    /// Appends an event, numbers it, and drops the oldest beyond the bound.
    ///
    /// An event of a layer that nobody asked for has no number and is not kept.
    pub fn append(&mut self, event: Event, reply_to: Option<&RequestId>, timestamp: &str) {
        if event
            .layer()
            .is_some_and(|layer| !self.layers.contains(&layer))
        {
            return;
        }
        if let Some(held) = &mut self.held {
            held.push((event, reply_to.cloned(), timestamp.to_owned()));
            return;
        }
        if content(&event).is_some() {
            self.append_delta(event, timestamp);
        } else {
            if let Some(conversation) = event.conversation() {
                self.open.remove(conversation);
            }
            self.push(&event, reply_to, timestamp, false);
        }
        self.evict();
    }

    /// Begins an account: what is appended while it is drawn up comes after it.
    pub fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Drops what is kept and appends the account that replaces it, then what came while it was drawn
    /// up; returns the number before it.
    pub fn restart(&mut self, account: Vec<Event>, timestamp: &str) -> u64 {
        let before = self.last();
        self.first = before + 1;
        self.entries.clear();
        self.open.clear();
        self.bytes = 0;
        for event in account {
            self.push(&event, None, timestamp, true);
        }
        self.pinned_bytes = self.bytes;
        for (event, reply_to, timestamp) in self.held.take().unwrap_or_default() {
            self.append(event, reply_to.as_ref(), &timestamp);
        }
        before
    }

    /// Copies frames after `after` to `out`, up to about `most` bytes and at least one.
    pub fn read(&mut self, after: u64, most: usize, out: &mut Vec<Utf8Bytes>) -> Read {
        if after.saturating_add(1) < self.first {
            return Read::Gap;
        }
        let mut seq = after.min(self.last());
        let mut taken = 0;
        while taken < most {
            let Some(frame) = self.frame(seq + 1) else {
                break;
            };
            taken += frame.len();
            out.push(frame);
            seq += 1;
        }
        self.read = self.read.max(seq);
        self.evict();
        Read::UpTo(seq)
    }

    fn append_delta(&mut self, event: Event, timestamp: &str) {
        let Some(conversation) = event.conversation().cloned() else {
            return;
        };
        if let Some(seq) = self.open.get(&conversation).copied()
            && seq > self.read
            && let Some(merged) = self.merge(seq, &event)
        {
            self.bytes += merged;
            return;
        }
        self.bytes += ENTRY_OVERHEAD + content(&event).map_or(0, |delta| delta.content.len());
        self.entries.push_back(Entry {
            body: Body::Unread {
                delta: event,
                timestamp: timestamp.to_owned(),
            },
            pinned: false,
        });
        self.open.insert(conversation, self.last());
    }

    /// Appends the text of `event` to the delta numbered `seq`; returns the bytes it grew by.
    fn merge(&mut self, seq: u64, event: &Event) -> Option<usize> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        let Body::Unread { delta, .. } = &mut self.entries.get_mut(index)?.body else {
            return None;
        };
        let alike = matches!(
            (&*delta, event),
            (Event::ChatTextDelta(_), Event::ChatTextDelta(_))
                | (Event::ChatThinkingDelta(_), Event::ChatThinkingDelta(_))
        );
        let (open, more) = (content_mut(delta)?, content(event)?);
        let same = alike && open.turn == more.turn && open.message_id == more.message_id;
        if !same || open.content.len() + more.content.len() > MERGED_BYTES {
            return None;
        }
        open.content.push_str(&more.content);
        Some(more.content.len())
    }

    fn push(&mut self, event: &Event, reply_to: Option<&RequestId>, timestamp: &str, pinned: bool) {
        let stamp = Stamp {
            seq: Some(self.last() + 1),
            reply_to,
            timestamp,
        };
        let frame = Utf8Bytes::from(envelope::write(event, &stamp));
        self.bytes += ENTRY_OVERHEAD + frame.len();
        self.entries.push_back(Entry {
            body: Body::Frame(frame),
            pinned,
        });
    }

    /// Returns the frame numbered `seq`, written now where it was not yet.
    fn frame(&mut self, seq: u64) -> Option<Utf8Bytes> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get_mut(index)?;
        if std::mem::take(&mut entry.pinned) {
            let bytes = ENTRY_OVERHEAD + entry.body.bytes();
            self.pinned_bytes = self.pinned_bytes.saturating_sub(bytes);
        }
        let frame = match &entry.body {
            Body::Frame(frame) => return Some(frame.clone()),
            Body::Unread { delta, timestamp } => {
                let stamp = Stamp {
                    seq: Some(seq),
                    reply_to: None,
                    timestamp,
                };
                Utf8Bytes::from(envelope::write(delta, &stamp))
            }
        };
        self.bytes = self.bytes + frame.len() - entry.body.bytes();
        entry.body = Body::Frame(frame.clone());
        Some(frame)
    }

    fn evict(&mut self) {
        while self.bytes > self.bound + self.pinned_bytes && self.entries.len() > 1 {
            if let Some(entry) = self.entries.pop_front() {
                let bytes = ENTRY_OVERHEAD + entry.body.bytes();
                self.bytes = self.bytes.saturating_sub(bytes);
                if entry.pinned {
                    self.pinned_bytes = self.pinned_bytes.saturating_sub(bytes);
                }
                self.first += 1;
            }
        }
    }
}

fn content(event: &Event) -> Option<&Delta> {
    match event {
        Event::ChatTextDelta(delta) | Event::ChatThinkingDelta(delta) => Some(delta),
        _ => None,
    }
}

fn content_mut(event: &mut Event) -> Option<&mut Delta> {
    match event {
        Event::ChatTextDelta(delta) | Event::ChatThinkingDelta(delta) => Some(delta),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
