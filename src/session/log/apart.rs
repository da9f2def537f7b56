//! Frames for one socket alone, without numbers: answers to what an approver or observer asked, and, where a socket with a
//! role fell behind, how everything stands. No other socket sees anything of them. Pure.
//!
//! Each such frame has its place, the number of an event: it is sent after that event and before the next one. An answer's
//! place is the last event when it was made. All of a resync has the place at which it began, and it ends by
//! `session:resynced` with that number: a client that loses its line before that frame asks for the same again.

use std::collections::{BTreeSet, HashMap, VecDeque};

use axum::extract::ws::Utf8Bytes;
use tokio_util::sync::CancellationToken;

use super::Log;
use super::entry::{Entry, task_of};
use crate::message::ConversationId;
use crate::protocol::RequestId;
use crate::protocol::envelope::{self, Stamp, Timestamp};
use crate::protocol::event::Event;
use crate::protocol::roles::{Resynced, SocketId};
use crate::session::live::LiveSnapshot;

/// The most that waits for one socket, in bytes: more than a resync holds, and the longest page of a history. A single
/// frame may be larger.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The clients that are gone of which is known what a resync told them; a session has few that come and go.
const MAX_GONE: usize = 16;

/// The sockets that get frames of their own.
#[derive(Debug, Default)]
pub(super) struct Apart {
    here: HashMap<SocketId, Own>,
    /// Of clients that are gone: events that their resync held; the newest last. They come back to a place before those.
    gone: VecDeque<(SocketId, BTreeSet<u64>)>,
}

#[derive(Debug)]
struct Own {
    /// The connection of the client, which alone takes from here.
    socket: SocketId,
    frames: VecDeque<OwnFrame>,
    bytes: usize,
    /// Events that a resync of this socket holds already. They are not in order with what it holds, so it may read past
    /// them more than once.
    told: BTreeSet<u64>,
    resync: Option<OwnResync>,
    /// Cancelled where more waits than may.
    too_slow: CancellationToken,
}

#[derive(Debug)]
struct OwnFrame {
    /// The number of the event that it comes after.
    after: u64,
    /// Which change has to be safe before it leaves.
    change: u64,
    frame: Utf8Bytes,
}

/// A resync that is being made.
#[derive(Debug)]
struct OwnResync {
    /// The last event that the socket has.
    after: u64,
    /// The last event when it began: the place of all its frames.
    place: u64,
    /// What conversations have emitted since it began.
    since: Vec<(u64, ConversationId)>,
}

impl Own {
    fn push(&mut self, after: u64, change: u64, frame: Utf8Bytes) {
        if !self.frames.is_empty() && self.bytes + frame.len() > MOST_BYTES {
            self.too_slow.cancel();
            return;
        }
        self.bytes += frame.len();
        // Behind those that have the same place, and before answers that came while a resync was made.
        let at = self.frames.partition_point(|it| it.after <= after);
        let frame = OwnFrame {
            after,
            change,
            frame,
        };
        self.frames.insert(at, frame);
    }
}

impl Apart {
    /// Returns whether a resync of one of them is being made.
    pub(super) fn is_resyncing(&self) -> bool {
        self.here.values().any(|own| own.resync.is_some())
    }

    /// Moves the frames of a socket that come after this event, or before it, to `out`, up to the first that waits for a change
    /// after `safe`; returns their bytes.
    pub(super) fn take(
        &mut self,
        socket: SocketId,
        seq: u64,
        safe: u64,
        out: &mut Vec<Utf8Bytes>,
    ) -> usize {
        let own = self.here.get_mut(&socket);
        let Some(own) = own.filter(|own| own.socket.is_connection(socket)) else {
            return 0;
        };
        let mut taken = 0;
        let leaves = |it: &mut OwnFrame| it.after <= seq && it.change <= safe;
        while let Some(OwnFrame { frame, .. }) = own.frames.pop_front_if(leaves) {
            taken += frame.len();
            out.push(frame);
        }
        own.bytes -= taken;
        taken
    }

    /// Returns whether a frame of a socket that comes after this event, or before it, waits for a change after `safe`.
    pub(super) fn holds(&self, socket: SocketId, seq: u64, safe: u64) -> bool {
        let own = self.here.get(&socket);
        let first = own.and_then(|own| own.frames.front());
        first.is_some_and(|it| it.after <= seq && it.change > safe)
    }

    /// Returns whether a resync has told a socket what this event says.
    pub(super) fn has_told(&self, socket: SocketId, seq: u64) -> bool {
        let own = self.here.get(&socket);
        own.is_some_and(|own| own.told.contains(&seq))
    }

    /// Notes whose event got this number.
    pub(super) fn numbered(&mut self, seq: u64, conversation: Option<&ConversationId>) {
        let Some(conversation) = conversation else {
            return;
        };
        for own in self.here.values_mut() {
            if let Some(resync) = &mut own.resync {
                resync.since.push((seq, conversation.clone()));
            }
        }
    }
}

impl Log {
    /// Has a socket get frames of its own, and no earlier connection of the same client; the token is cancelled where it
    /// takes them too slowly.
    pub(crate) fn watch(&mut self, socket: SocketId) -> CancellationToken {
        self.unwatch(socket);
        let gone = &mut self.apart.gone;
        let at = gone.iter().position(|(it, _)| *it == socket);
        let told = at.and_then(|at| gone.remove(at)).map(|(_, told)| told);
        let too_slow = CancellationToken::new();
        let own = Own {
            socket,
            frames: VecDeque::new(),
            bytes: 0,
            told: told.unwrap_or_default(),
            resync: None,
            too_slow: too_slow.clone(),
        };
        self.apart.here.insert(socket, own);
        too_slow
    }

    /// Forgets what waits for a socket that is gone.
    pub(crate) fn unwatch(&mut self, socket: SocketId) {
        let Some(mut own) = self.apart.here.remove(&socket) else {
            return;
        };
        // What is not kept is sent to nobody.
        own.told = own.told.split_off(&self.first);
        if !own.told.is_empty() {
            self.apart.gone.push_back((socket, own.told));
        }
        if self.apart.gone.len() > MAX_GONE {
            self.apart.gone.pop_front();
        }
    }

    /// Has all sockets that get frames of their own get this after what was numbered so far.
    pub(crate) fn tell_named(&mut self, event: &Event, timestamp: Timestamp) {
        let last = self.last();
        let named: Vec<_> = self.apart.here.keys().copied().collect();
        for socket in named {
            self.tell(socket, last, event, None, timestamp);
        }
    }

    /// Has a socket get this first of all, after the session's `session:ready`.
    pub(crate) fn greet(&mut self, socket: SocketId, event: &Event, timestamp: Timestamp) {
        self.tell(socket, 1, event, None, timestamp);
    }

    /// Has a socket get an answer after what was numbered so far.
    pub(super) fn answer_apart(
        &mut self,
        event: &Event,
        reply_to: &RequestId,
        timestamp: Timestamp,
    ) {
        if let Some(socket) = reply_to.socket() {
            let last = self.last();
            self.tell(socket, last, event, Some(reply_to), timestamp);
        }
    }

    fn tell(
        &mut self,
        socket: SocketId,
        after: u64,
        event: &Event,
        reply_to: Option<&RequestId>,
        timestamp: Timestamp,
    ) {
        let change = self.given;
        if let Some(own) = self.apart.here.get_mut(&socket) {
            let stamp = Stamp {
                seq: None,
                reply_to,
                timestamp,
                task: task_of(event),
            };
            let frame = envelope::write(event, &stamp);
            own.push(after, change, Utf8Bytes::from(frame));
        }
    }

    /// Begins to tell a socket how everything stands, which has everything up to `after`: `first`, and the answers that
    /// are for it and that it has not got. Returns the number from which on it reads.
    pub(crate) fn begin_own_resync(
        &mut self,
        socket: SocketId,
        after: u64,
        first: &Event,
        timestamp: Timestamp,
    ) -> u64 {
        let last = self.last();
        // What is said from here on is merged into nothing before.
        self.open.clear();
        self.tell(socket, last, first, None, timestamp);
        let answers = self.entries.iter().zip(self.first..);
        let answers = answers.filter_map(|(entry, seq)| match entry {
            Entry::Answer(answer) if seq > after && answer.is_for(Some(socket)) => Some(answer),
            _ => None,
        });
        let frames: Vec<_> = answers
            .map(|answer| answer.without_number(socket))
            .collect();
        let change = self.given;
        if let Some(own) = self.apart.here.get_mut(&socket) {
            own.told.clear();
            own.resync = Some(OwnResync {
                after,
                place: last,
                since: Vec::new(),
            });
            for frame in frames {
                own.push(last, change, frame);
            }
        }
        last
    }

    /// Tells the socket how a conversation stands at this moment; `say` is given what runs in it. What the conversation
    /// has emitted since the resync began is part of that.
    pub(crate) fn own_snapshot(
        &mut self,
        socket: SocketId,
        conversation: &ConversationId,
        say: impl FnOnce(LiveSnapshot) -> Vec<Event>,
        timestamp: Timestamp,
    ) {
        let says = say(self.live.snapshot(conversation));
        let own = self.apart.here.get_mut(&socket);
        let Some((told, resync)) = own.and_then(|own| Some((&mut own.told, own.resync.as_mut()?)))
        else {
            return;
        };
        let its = resync.since.extract_if(.., |(_, of)| of == conversation);
        told.extend(its.map(|(seq, _)| seq));
        let (after, place) = (resync.after, resync.place);
        let ends = self.endings_after(after, |of| of == conversation);
        self.open.remove(conversation);
        let is_history = |event: &Event| matches!(event, Event::ChatHistoryResult(_));
        let (histories, rest): (Vec<_>, Vec<_>) = says.into_iter().partition(is_history);
        let ends = ends.into_iter().map(|(_, end)| end);
        for event in histories.into_iter().chain(ends).chain(rest) {
            if self.is_wanted(&event) {
                self.tell(socket, place, &event, None, timestamp);
            }
        }
    }

    /// Ends such a resync: how exchanges ended whose conversations are closed meanwhile, then `rest`, and up to which
    /// number all of it tells.
    pub(crate) fn finish_own_resync(
        &mut self,
        socket: SocketId,
        open: &[ConversationId],
        rest: Vec<Event>,
        timestamp: Timestamp,
    ) {
        let own = self.apart.here.get_mut(&socket);
        let Some(OwnResync { after, place, .. }) = own.and_then(|own| own.resync.take()) else {
            return;
        };
        let ends = self.endings_after(after, |of| !open.contains(of));
        // What comes later comes by its number.
        let closed = ends.into_iter().filter(|(seq, _)| *seq <= place);
        let status = Event::SessionStatusChanged(self.status());
        let resynced = Event::SessionResynced(Resynced { seq: place });
        let rest = closed.map(|(_, end)| end).chain(rest);
        for event in rest.chain([status, resynced]) {
            if self.is_wanted(&event) {
                self.tell(socket, place, &event, None, timestamp);
            }
        }
    }

    /// Returns how exchanges of these conversations ended after this event, with the numbers of those ends.
    fn endings_after(&self, after: u64, of: impl Fn(&ConversationId) -> bool) -> Vec<(u64, Event)> {
        let ends = self.endings.iter();
        let ends = ends.filter(|(seq, end)| *seq > after && of(end.conversation()));
        ends.map(|(seq, end)| (*seq, end.clone().into())).collect()
    }
}

#[cfg(test)]
mod tests;
