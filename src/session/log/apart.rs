//! What one socket gets besides the numbered events: answers to what it asked, and, where it fell behind, how everything
//! stands. It has no numbers, and no other socket sees anything of it. Pure.
//!
//! Each such frame has its place: after the event that was the last when it was made.

use std::collections::{BTreeSet, HashMap, VecDeque};

use axum::extract::ws::Utf8Bytes;
use tokio_util::sync::CancellationToken;

use super::Log;
use super::entry::{Ending, Entry};
use crate::message::ConversationId;
use crate::protocol::RequestId;
use crate::protocol::envelope::{self, SocketId, Stamp, Timestamp};
use crate::protocol::event::Event;
use crate::session::live::LiveSnapshot;

/// The most that waits for one socket, in bytes: more than a resync holds, and the longest page of a history. A single
/// frame may be larger.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The sockets that get frames of their own.
#[derive(Debug, Default)]
pub(super) struct Apart(HashMap<SocketId, Own>);

#[derive(Debug, Default)]
struct Own {
    /// Frames, each with the number of the event that it comes after.
    frames: VecDeque<(u64, Utf8Bytes)>,
    bytes: usize,
    /// Events that a resync of this socket holds already.
    skipped: BTreeSet<u64>,
    resync: Option<OwnResync>,
    /// Cancelled where more waits than may.
    too_slow: CancellationToken,
}

/// A resync that is being made.
#[derive(Debug)]
struct OwnResync {
    /// The last event that the socket has.
    after: u64,
    /// What conversations have emitted since it began.
    since: Vec<(u64, ConversationId)>,
}

impl Own {
    fn push(&mut self, after: u64, frame: Utf8Bytes) {
        if !self.frames.is_empty() && self.bytes + frame.len() > MOST_BYTES {
            self.too_slow.cancel();
            return;
        }
        self.bytes += frame.len();
        self.frames.push_back((after, frame));
    }
}

impl Apart {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Moves the frames of a socket that come after this event, or before it, to `out`; returns their bytes.
    pub(super) fn take(&mut self, socket: SocketId, seq: u64, out: &mut Vec<Utf8Bytes>) -> usize {
        let Some(own) = self.0.get_mut(&socket) else {
            return 0;
        };
        let mut taken = 0;
        while own.frames.front().is_some_and(|(after, _)| *after <= seq)
            && let Some((_, frame)) = own.frames.pop_front()
        {
            taken += frame.len();
            out.push(frame);
        }
        own.bytes -= taken;
        taken
    }

    /// Returns whether a socket does not get this event, since a resync has told it.
    pub(super) fn skips(&mut self, socket: SocketId, seq: u64) -> bool {
        let own = self.0.get_mut(&socket);
        own.is_some_and(|own| own.skipped.remove(&seq))
    }

    /// Notes whose event got this number.
    pub(super) fn numbered(&mut self, seq: u64, conversation: Option<&ConversationId>) {
        let Some(conversation) = conversation else {
            return;
        };
        for own in self.0.values_mut() {
            if let Some(resync) = &mut own.resync {
                resync.since.push((seq, conversation.clone()));
            }
        }
    }
}

impl Log {
    /// Has a socket get frames of its own; the token is cancelled where it takes them too slowly.
    pub(crate) fn watch(&mut self, socket: SocketId) -> CancellationToken {
        let own = Own::default();
        let too_slow = own.too_slow.clone();
        self.apart.0.insert(socket, own);
        too_slow
    }

    /// Forgets a socket that is gone.
    pub(crate) fn unwatch(&mut self, socket: SocketId) {
        self.apart.0.remove(&socket);
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
        if let Some(own) = self.apart.0.get_mut(&socket) {
            let stamp = Stamp {
                seq: None,
                reply_to,
                timestamp,
            };
            own.push(after, Utf8Bytes::from(envelope::write(event, &stamp)));
        }
    }

    /// Begins to tell a socket how everything stands, which has everything up to `after`: `first`, and the answers that
    /// it has not got. Returns the number from which on it reads.
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
            Entry::Answer(answer) if seq > after && answer.reply_to.socket() == Some(socket) => {
                Some(answer)
            }
            _ => None,
        });
        let frames: Vec<_> = answers.map(|answer| answer.without_number()).collect();
        if let Some(own) = self.apart.0.get_mut(&socket) {
            own.skipped.clear();
            own.resync = Some(OwnResync {
                after,
                since: Vec::new(),
            });
            for frame in frames {
                own.push(last, frame);
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
        let own = self.apart.0.get_mut(&socket);
        let Some((own, after)) = own.and_then(|own| {
            let after = own.resync.as_ref()?.after;
            Some((own, after))
        }) else {
            return;
        };
        if let Some(resync) = &mut own.resync {
            let its = resync.since.extract_if(.., |(_, of)| of == conversation);
            own.skipped.extend(its.map(|(seq, _)| seq));
        }
        let ends = self.endings.iter().filter(|(seq, _)| *seq > after);
        let ends = ends.map(|(_, ending)| ending.event());
        let ends: Vec<Event> = ends
            .filter(|end| end.conversation() == Some(conversation))
            .collect();
        self.open.remove(conversation);
        let is_history = |event: &Event| matches!(event, Event::ChatHistoryResult(_));
        let (histories, rest): (Vec<_>, Vec<_>) = says.into_iter().partition(is_history);
        let last = self.last();
        for event in histories.into_iter().chain(ends).chain(rest) {
            if self.is_wanted(&event) {
                self.tell(socket, last, &event, None, timestamp);
            }
        }
    }

    /// Ends such a resync.
    pub(crate) fn finish_own_resync(&mut self, socket: SocketId, timestamp: Timestamp) {
        let status = Event::SessionStatusChanged(self.status());
        if self.is_wanted(&status) {
            let last = self.last();
            self.tell(socket, last, &status, None, timestamp);
        }
        if let Some(own) = self.apart.0.get_mut(&socket) {
            own.resync = None;
        }
    }
}

impl Ending {
    fn event(&self) -> Event {
        match self {
            Self::End(end) => Event::ChatStreamEnd(end.clone()),
            Self::Error(error) => Event::ChatError(error.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::command::Empty;

    fn event(kind: &str, payload: &Value) -> Event {
        serde_json::from_value(json!({"type": kind, "payload": payload})).unwrap()
    }

    fn queued(conversation: &str, position: usize) -> Event {
        let place =
            json!({"conversationId": conversation, "messageId": "m1", "position": position});
        event("chat:queued", &place)
    }

    /// What a socket reads from there on, by number (0 for none) and type, or by the position.
    fn read(log: &mut Log, socket: Option<SocketId>, after: u64) -> Vec<(u64, String)> {
        let mut frames = Vec::new();
        log.read(after, usize::MAX, u64::MAX, socket, &mut frames);
        let seen = frames.iter().map(|frame| {
            let frame: Value = serde_json::from_str(frame).unwrap();
            let what = match frame["payload"]["position"].as_u64() {
                Some(position) => position.to_string(),
                None => frame["type"].as_str().unwrap().to_owned(),
            };
            (frame["seq"].as_u64().unwrap_or_default(), what)
        });
        seen.collect()
    }

    fn log() -> Log {
        Log::new(1 << 20, Vec::new())
    }

    fn at() -> Timestamp {
        Timestamp::default()
    }

    #[test]
    fn an_answer_is_its_sockets_alone_and_has_its_place() {
        let (one, two) = (SocketId(1), SocketId(2));
        let mut log = log();
        log.watch(one);
        log.watch(two);
        log.append(queued("a", 1), None, at());
        let asked = RequestId::apart(Some(RequestId::from("q")), one);
        log.append(Event::SessionPingResult(Empty {}), Some(&asked), at());
        log.append(queued("a", 2), None, at());
        let numbered = [(1, "1".to_owned()), (2, "2".to_owned())];
        assert_eq!(read(&mut log, None, 0), numbered);
        assert_eq!(read(&mut log, Some(two), 0), numbered);
        let own = read(&mut log, Some(one), 0);
        let answer = (0, "session:ping-result".to_owned());
        assert_eq!(own, [numbered[0].clone(), answer, numbered[1].clone()]);
        // Once.
        assert_eq!(read(&mut log, Some(one), 0), numbered);
    }

    #[test]
    fn an_answer_to_the_driver_names_its_request_to_nobody_else() {
        let (driver, other) = (SocketId(1), SocketId(2));
        let mut log = log();
        log.watch(driver);
        log.watch(other);
        let asked = RequestId::from("q").of(driver);
        log.append(Event::SessionPingResult(Empty {}), Some(&asked), at());
        for (socket, expected) in [(driver, json!("q")), (other, Value::Null)] {
            let mut frames = Vec::new();
            log.read(0, usize::MAX, u64::MAX, Some(socket), &mut frames);
            let frame: Value = serde_json::from_str(&frames[0]).unwrap();
            assert_eq!(frame["replyTo"], expected);
            assert_eq!(frame["seq"], 1);
        }
    }

    #[test]
    fn who_fell_behind_is_told_how_things_stand_and_others_see_nothing_of_it() {
        let (slow, other) = (SocketId(1), SocketId(2));
        let mut log = log();
        log.watch(slow);
        log.watch(other);
        log.append(queued("a", 1), None, at());
        let gap = json!({"code": "replay_gap", "message": "lost"});
        let from = log.begin_own_resync(slow, 0, &event("session:error", &gap), at());
        assert_eq!(from, 1);
        // Before and after the moment at which `a` says how it stands.
        log.append(queued("a", 2), None, at());
        log.append(queued("b", 3), None, at());
        let a = ConversationId::new("a");
        log.own_snapshot(slow, &a, |_| vec![queued("a", 4)], at());
        log.append(queued("a", 5), None, at());
        log.finish_own_resync(slow, at());
        let seen = read(&mut log, Some(slow), from);
        let expected = [(0, "session:error"), (3, "3"), (0, "4"), (4, "5")];
        let expected = expected.map(|(seq, what)| (seq, what.to_owned()));
        assert_eq!(seen, expected);
        assert_eq!(read(&mut log, Some(other), 0).len(), 4);
    }

    #[test]
    fn who_takes_nothing_is_given_up_and_one_frame_always_fits() {
        let one = SocketId(1);
        let mut log = log();
        let too_slow = log.watch(one);
        let asked = RequestId::apart(None, one);
        let large = "x".repeat(MOST_BYTES);
        let large = event(
            "session:error",
            &json!({"code": "internal", "message": large}),
        );
        log.append(large.clone(), Some(&asked), at());
        assert!(!too_slow.is_cancelled());
        log.append(large, Some(&asked), at());
        assert!(too_slow.is_cancelled());
        log.unwatch(one);
        assert!(log.apart.is_empty());
    }
}
