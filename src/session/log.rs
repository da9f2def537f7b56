//! The numbered events of a session, kept for a resume, bounded in bytes. Pure.
//!
//! Whatever a client sees passes through here: conversations append, and each socket reads at its own
//! pace. A text or thinking delta that nobody has read yet takes up the ones that follow it, so
//! that a slow reader costs bytes of text and not frames; nothing else is merged, nothing dropped
//! but by the bound, and what the bound drops is reported as a gap. After a gap comes a `resync`: events
//! that say how things stand.

mod apart;
mod entry;
mod resync;

use std::collections::{HashMap, HashSet, VecDeque};

use axum::extract::ws::Utf8Bytes;

use apart::Apart;
use entry::{Answer, Ending, Entry, Kind, Text, task_of};
use resync::{Deferred, Resync, ResyncBuilder};

use super::live::Live;
use super::status::{News, Status};
use crate::message::ConversationId;
use crate::protocol::command::Layer;
use crate::protocol::envelope::{self, RequestId, Stamp, Timestamp};
use crate::protocol::event::{Event, StateName, StreamEnd};
use crate::protocol::roles::SocketId;
use crate::protocol::status::SessionStatus;

/// The most text that one merged delta holds, in bytes: a frame stays small enough to be drawn at once.
const MERGED_BYTES: usize = 16 * 1024;

/// An event is large that is more than this part of the bound. One large event that nobody has read is kept beside the
/// bound: a client that reads as fast as it can has had no chance to take it, nor what came just before.
const LARGE_PART: usize = 4;

/// Ends of exchanges, and their errors, that are emitted again after a gap: as many exchanges as sends are
/// remembered (256), with an error each.
const ENDINGS: usize = 2 * 256;

/// Of those, structured answers: each may be as long as [`entry`] says.
const OUTPUTS: usize = 16;

/// Events by number.
#[derive(Debug)]
pub struct Log {
    entries: VecDeque<Entry>,
    first: u64,
    bytes: usize,
    bound: usize,
    /// Numbers and sizes of large events that the driver has not read, the oldest first.
    large: VecDeque<(u64, usize)>,
    /// The highest number that a reader was given: what it read is changed no more.
    read: u64,
    /// The highest number that the driver was given: what it has not read is not dropped for who looks on.
    driver_read: u64,
    /// The driver's name; `None` where it has none.
    driver: Option<SocketId>,
    /// The layers whose events are numbered and sent.
    pub(crate) layers: Vec<Layer>,
    resync: Resync,
    resyncing: Option<ResyncBuilder>,
    /// Conversations whose state is part of an answer that is not appended yet.
    deferring: HashSet<ConversationId>,
    deferred: Vec<Deferred>,
    /// The delta that further ones of the same conversation are merged into.
    open: HashMap<ConversationId, u64>,
    live: Live,
    status: Status,
    apart: Apart,
    /// How exchanges ended, with the numbers of those events.
    endings: VecDeque<(u64, Ending)>,
    /// From which number on events wait for which change to be safe; oldest first.
    held: VecDeque<(u64, u64)>,
    /// The highest number that was looked at for `held`.
    considered: u64,
    /// The change that frames without numbers wait for: all that was given before.
    given: u64,
}

/// What a reader got.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadResult {
    /// Frames up to and with this number; the number asked for where there are none.
    UpTo(u64),
    /// The events asked for are no longer kept.
    Gap,
}

impl Log {
    /// Returns an empty log that keeps about `bound` bytes.
    pub fn new(bound: usize, layers: Vec<Layer>) -> Self {
        Self::after(0, bound, layers)
    }

    /// Returns one whose first event has the number after `last`.
    pub(crate) fn after(last: u64, bound: usize, layers: Vec<Layer>) -> Self {
        Self {
            entries: VecDeque::new(),
            first: last + 1,
            bytes: 0,
            bound,
            large: VecDeque::new(),
            read: last,
            driver_read: last,
            driver: None,
            layers,
            resync: Resync::default(),
            resyncing: None,
            deferring: HashSet::new(),
            deferred: Vec::new(),
            open: HashMap::new(),
            live: Live::default(),
            status: Status::default(),
            apart: Apart::default(),
            endings: VecDeque::new(),
            held: VecDeque::new(),
            considered: last,
            given: 0,
        }
    }

    /// Takes back how an exchange ended before the daemon was started anew, in the event of this number.
    pub(crate) fn restore_end(&mut self, seq: u64, end: StreamEnd) {
        self.endings.push_back((seq, Ending::End(Box::new(end))));
    }

    /// Has frames without numbers wait from here on for this change to be safe.
    pub(crate) fn note_given(&mut self, change: u64) {
        self.given = change;
    }

    /// Holds back what was numbered since the last time until `change` is safe, where it is not yet.
    pub(crate) fn hold(&mut self, change: u64, safe: u64) {
        // Where nobody reads, what is safe is not kept for a reader.
        while self.held.front().is_some_and(|(_, held)| *held <= safe) {
            self.held.pop_front();
        }
        let first = self.considered + 1;
        self.considered = self.last();
        let is_new = self.held.back().is_none_or(|(_, held)| *held < change);
        if first <= self.considered && change > safe && is_new {
            self.held.push_back((first, change));
        }
    }

    /// Returns the ends of exchanges that were numbered since the last time.
    pub(crate) fn new_ends(&self) -> Vec<(u64, StreamEnd)> {
        let new = self.endings.iter().rev();
        let new = new.take_while(|(seq, _)| *seq > self.considered);
        let ends = new.filter_map(|(seq, ending)| match ending {
            Ending::End(end) => Some((*seq, (**end).clone())),
            Ending::Output(_) | Ending::Error(_) => None,
        });
        let mut ends: Vec<_> = ends.collect();
        ends.reverse();
        ends
    }

    /// Says who drives, and so for whom events are kept.
    pub(super) fn set_driver(&mut self, driver: Option<SocketId>) {
        self.driver = driver;
    }

    /// Returns the number of the newest event; 0 where there is none.
    pub fn last(&self) -> u64 {
        self.first + self.entries.len() as u64 - 1
    }

    /// Appends an event, numbers it, and drops the oldest beyond the bound.
    ///
    /// An event of a layer that nobody asked for has no number and is not kept.
    pub fn append(&mut self, event: Event, reply_to: Option<&RequestId>, timestamp: Timestamp) {
        if let Some(id) = reply_to.filter(|id| id.is_apart()) {
            return self.answer_apart(&event, id, timestamp);
        }
        self.live.fold(&event);
        self.status.fold(&event);
        let conversation = event.conversation();
        let is_deferred = conversation.is_some_and(|id| self.deferring.contains(id));
        match &mut self.resyncing {
            // It comes after the answer that is being made.
            _ if is_deferred => self.deferred.push((event, reply_to.cloned(), timestamp)),
            // It is part of the resync that is being made, or comes after it.
            Some(builder) => builder.take((event, reply_to.cloned(), timestamp)),
            None => self.number(event, reply_to, timestamp),
        }
    }

    /// Returns how the session stands.
    pub(crate) fn status(&self) -> SessionStatus {
        self.status.now()
    }

    /// Returns what the status is folded into, for what no event says.
    pub(crate) fn status_mut(&mut self) -> &mut Status {
        &mut self.status
    }

    /// Returns how the session stands, where that is other than what this said last.
    pub(crate) fn new_status(&mut self) -> Option<News> {
        self.status.news()
    }

    /// Returns whether something runs that does not wait for the user, as far as was emitted.
    pub(crate) fn is_at_work(&self) -> bool {
        self.live.is_at_work()
    }

    /// Defers what a conversation emits from here on until [`Self::flush_deferred`], so that an answer that says how
    /// several of them stand comes before it. Returns the state emitted last; `None` where nothing runs.
    pub(crate) fn defer(&mut self, conversation: &ConversationId) -> Option<StateName> {
        self.deferring.insert(conversation.clone());
        self.live.state_of(conversation)
    }

    /// Appends the answer for which events were deferred, and then those events.
    pub(crate) fn flush_deferred(
        &mut self,
        answer: Event,
        reply_to: Option<&RequestId>,
        timestamp: Timestamp,
    ) {
        for conversation in self.deferring.drain() {
            // What it says next is not merged into what came before the answer.
            self.open.remove(&conversation);
        }
        self.append(answer, reply_to, timestamp);
        for (event, reply_to, timestamp) in std::mem::take(&mut self.deferred) {
            self.number(event, reply_to.as_ref(), timestamp);
        }
    }

    fn number(&mut self, event: Event, reply_to: Option<&RequestId>, timestamp: Timestamp) {
        if reply_to.is_none() && !self.is_wanted(&event) {
            return;
        }
        let text = |kind, delta| Text {
            kind,
            delta,
            timestamp,
        };
        let noted = match self.apart.is_resyncing() {
            true => event.conversation().cloned(),
            false => None,
        };
        let is_new = match event {
            Event::ChatTextDelta(delta) => self.append_text(text(Kind::Answer, delta)),
            Event::ChatThinkingDelta(delta) => self.append_text(text(Kind::Thinking, delta)),
            event => {
                if let Some(conversation) = event.conversation() {
                    self.open.remove(conversation);
                }
                let entry = match reply_to {
                    Some(id) => Entry::Answer(Box::new(Answer::new(event, id.clone(), timestamp))),
                    None => Entry::Frame(self.frame_of(&event, timestamp)),
                };
                self.push(entry);
                true
            }
        };
        if is_new {
            self.apart.numbered(self.last(), noted.as_ref());
        }
        self.evict();
    }

    fn is_wanted(&self, event: &Event) -> bool {
        let wants = |layer| self.layers.contains(&layer);
        if task_of(event).is_some() && !event.is_question() && !wants(Layer::Tasks) {
            return false;
        }
        event.layer().is_none_or(wants)
    }

    /// Copies frames after `after` to `out`, up to about `most` bytes and at least one, for a socket that has a name or for
    /// one that has none. What waits for a change after `safe` is not there yet.
    pub fn read(
        &mut self,
        after: u64,
        most: usize,
        safe: u64,
        reader: Option<SocketId>,
        out: &mut Vec<Utf8Bytes>,
    ) -> ReadResult {
        let next = after.saturating_add(1);
        if next < self.first && self.resync.entry(next).is_none() {
            return ReadResult::Gap;
        }
        while self.held.front().is_some_and(|(_, change)| *change <= safe) {
            self.held.pop_front();
        }
        let held = self.held.front().map_or(u64::MAX, |(first, _)| *first);
        let mut seq = after.min(self.last());
        let mut taken = 0;
        loop {
            if let Some(socket) = reader {
                taken += self.apart.take(socket, seq, safe, out);
                if self.apart.holds(socket, seq, safe) {
                    break;
                }
            }
            if taken >= most || seq + 1 >= held {
                break;
            }
            let Some(entry) = self.kept(seq + 1) else {
                break;
            };
            seq += 1;
            let is_told = reader.is_some_and(|socket| self.apart.has_told(socket, seq));
            if !is_told && let Some(frame) = entry.frame(seq, reader) {
                taken += frame.len();
                out.push(frame);
            }
        }
        self.read = self.read.max(seq);
        if reader == self.driver {
            self.driver_read = self.driver_read.max(seq);
        }
        self.evict();
        ReadResult::UpTo(seq)
    }

    /// Returns whether the text got a number of its own, and was not merged into what has one.
    fn append_text(&mut self, text: Text) -> bool {
        let read = self.read;
        let open = self.open.get(&text.delta.conversation_id).copied();
        if let Some(seq) = open.filter(|seq| *seq > read)
            && let Some(Entry::Text(unread)) = self.entry(seq)
            && unread.takes(&text)
        {
            unread.delta.content.push_str(&text.delta.content);
            self.bytes += text.delta.content.len();
            return false;
        }
        let conversation = text.delta.conversation_id.clone();
        self.open.insert(conversation, self.last() + 1);
        self.push(Entry::Text(text));
        true
    }

    fn entry(&mut self, seq: u64) -> Option<&mut Entry> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.entries.get_mut(index)
    }

    fn push(&mut self, entry: Entry) {
        let bytes = entry.bytes();
        self.bytes += bytes;
        if self.entries.len() == self.entries.capacity() {
            // By an eighth: room for twice as many would be as much again as the bound, and is never used.
            self.entries.reserve_exact(64.max(self.entries.len() / 8));
        }
        self.entries.push_back(entry);
        if bytes > self.bound / LARGE_PART {
            self.large.push_back((self.last(), bytes));
        }
    }

    fn frame_of(&mut self, event: &Event, timestamp: Timestamp) -> Utf8Bytes {
        let seq = self.last() + 1;
        if let Some(ending) = Ending::of(event) {
            self.endings.push_back((seq, ending));
            if self.endings.len() > ENDINGS {
                self.endings.pop_front();
            }
            let is_output = |(_, it): &(u64, Ending)| matches!(it, Ending::Output(_));
            if self.endings.iter().filter(|it| is_output(it)).count() > OUTPUTS
                && let Some(oldest) = self.endings.iter().position(is_output)
            {
                self.endings.remove(oldest);
            }
        }
        let stamp = Stamp {
            seq: Some(seq),
            reply_to: None,
            timestamp,
            task: task_of(event),
        };
        let mut frame = envelope::write(event, &stamp);
        // It is kept: what it was written with has room for up to as much again.
        frame.shrink_to_fit();
        Utf8Bytes::from(frame)
    }

    /// Returns what is kept under this number, also of the last resync.
    fn kept(&self, seq: u64) -> Option<&Entry> {
        let entry = || {
            let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
            self.entries.get(index)
        };
        self.resync.entry(seq).or_else(entry)
    }

    /// Returns the size of the largest event that the driver has not read; 0 where none is large.
    fn large_unread(&mut self) -> usize {
        let gone = self.first.max(self.driver_read + 1);
        while self.large.front().is_some_and(|(seq, _)| *seq < gone) {
            self.large.pop_front();
        }
        self.large
            .iter()
            .map(|(_, bytes)| *bytes)
            .max()
            .unwrap_or(0)
    }

    /// Drops the oldest beyond the bound: a resync that the driver has read first, one that it has not read never.
    fn evict(&mut self) {
        let resync_is_read = self.resync.end() <= self.driver_read + 1;
        if resync_is_read && self.bytes + self.resync.bytes() > self.bound {
            self.resync = Resync::default();
        }
        while self.bytes > self.bound + self.large_unread() && self.entries.len() > 1 {
            if let Some(entry) = self.entries.pop_front() {
                self.bytes = self.bytes.saturating_sub(entry.bytes());
                self.first += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
