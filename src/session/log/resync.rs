//! What a reader gets in place of events that are lost: how everything stands. Pure.
//!
//! It is made in three steps, which the session takes one after the other (`crate::session::gap`):
//!
//! 1. [`Log::begin_resync`] begins a [`ResyncBuilder`]. From here on nothing is numbered: what
//!    conversations emit is either part of the resync or comes after it.
//! 2. [`Log::snapshot`], once for each conversation and from its own task: what it has emitted so
//!    far is in the snapshot, and what it emits from here on comes after the resync.
//! 3. [`Log::finish_resync`] drops what is kept, and numbers the resync and then what was
//!    deferred.
//!
//! The [`Resync`] stays until it was read, so that a reader who is slow gets on, resync by resync. Answers
//! that the reader has not got are repeated in it, and in the next one too where this one is lost as well.

use std::collections::HashSet;

use super::Log;
use super::entry::{Answer, Ending, Entry};
use crate::message::ConversationId;
use crate::protocol::envelope::{RequestId, Timestamp};
use crate::protocol::event::Event;
use crate::session::live::LiveSnapshot;

/// The last resync: entries without a gap from `first` on.
#[derive(Debug, Default)]
pub(super) struct Resync {
    entries: Vec<Entry>,
    first: u64,
    bytes: usize,
}

impl Resync {
    /// Returns a resync of nothing yet, whose first entry will have this number.
    pub(super) fn from(first: u64) -> Self {
        Self {
            first,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.bytes += entry.bytes();
        self.entries.push(entry);
    }

    pub(super) fn entry(&self, seq: u64) -> Option<&Entry> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.entries.get(index)
    }

    /// Returns the number after the last entry's.
    pub(super) fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the entries with their numbers.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (u64, Entry)> {
        (self.first..).zip(self.entries)
    }
}

pub(super) type Deferred = (Event, Option<RequestId>, Timestamp);

#[derive(Debug)]
pub(super) enum Item {
    Event(Event),
    Answer(Answer),
}

#[derive(Debug)]
pub(super) struct ResyncBuilder {
    pub(super) after: u64,
    first: Event,
    histories: Vec<Event>,
    /// How exchanges ended that the reader does not know of.
    endings: Vec<Ending>,
    /// What runs and what waits.
    rest: Vec<Event>,
    /// Conversations that have not said yet how they stand. What they emit is part of that, but for
    /// ends and answers.
    awaited: HashSet<ConversationId>,
    deferred: Vec<Deferred>,
}

impl ResyncBuilder {
    pub(super) fn new(
        after: u64,
        first: Event,
        endings: Vec<Ending>,
        awaited: HashSet<ConversationId>,
    ) -> Self {
        Self {
            after,
            first,
            histories: Vec::new(),
            endings,
            rest: Vec::new(),
            awaited,
            deferred: Vec::new(),
        }
    }

    /// Takes an event that is emitted meanwhile.
    pub(super) fn take(&mut self, (event, reply_to, timestamp): Deferred) {
        let awaited = |conversation| self.awaited.contains(conversation);
        let belongs = event.conversation().is_some_and(awaited);
        if reply_to.is_some() || !belongs || is_refusal(&event) {
            self.deferred.push((event, reply_to, timestamp));
        } else if let Some(ending) = Ending::of(&event) {
            self.endings.push(ending);
        }
    }

    /// Takes what a conversation says of how it stands.
    pub(super) fn snapshot(&mut self, conversation: &ConversationId, says: Vec<Event>) {
        self.awaited.remove(conversation);
        let is_history = |event: &Event| matches!(event, Event::ChatHistoryResult(_));
        let (histories, rest): (Vec<_>, Vec<_>) = says.into_iter().partition(is_history);
        self.histories.extend(histories);
        self.rest.extend(rest);
    }

    /// Returns the entries in order, with the answers that the reader has not got; and what comes after it.
    pub(super) fn finish(self, answers: Vec<Answer>) -> (Vec<Item>, Vec<Deferred>) {
        let is_superseded = |answer: &Answer| is_superseded(&answer.event);
        let (older, answers): (Vec<_>, Vec<_>) = answers.into_iter().partition(is_superseded);
        let mut items = vec![Item::Event(self.first)];
        items.extend(older.into_iter().map(Item::Answer));
        items.extend(self.histories.into_iter().map(Item::Event));
        items.extend(answers.into_iter().map(Item::Answer));
        let endings = self.endings.into_iter().map(Event::from);
        let rest = endings.chain(self.rest);
        items.extend(rest.map(Item::Event));
        (items, self.deferred)
    }
}

impl Log {
    /// Begins a resync for a reader that has everything up to `after`: `first`, then the histories, how
    /// exchanges ended since, and what else the conversations say by [`snapshot`](Self::snapshot). What comes
    /// meanwhile comes after it.
    pub(crate) fn begin_resync(
        &mut self,
        after: u64,
        first: Event,
        awaited: impl IntoIterator<Item = ConversationId>,
    ) {
        let unread = self.endings.partition_point(|(seq, _)| *seq <= after);
        let endings = self.endings.drain(unread..).map(|(_, ending)| ending);
        let (endings, awaited) = (endings.collect(), awaited.into_iter().collect());
        self.resyncing = Some(ResyncBuilder::new(after, first, endings, awaited));
    }

    /// Adds how a conversation stands at this moment to the resync; `say` is given what runs in it.
    pub(crate) fn snapshot(
        &mut self,
        conversation: &ConversationId,
        say: impl FnOnce(LiveSnapshot) -> Vec<Event>,
    ) {
        let live = self.live.snapshot(conversation);
        if let Some(builder) = &mut self.resyncing {
            builder.snapshot(conversation, say(live));
        }
    }

    /// Replaces what is kept by the resync, in which are answers too that are kept and were not read, and appends
    /// what was deferred meanwhile. Returns the number before it.
    pub(crate) fn finish_resync(&mut self, timestamp: Timestamp) -> u64 {
        let before = self.last();
        let Some(builder) = self.resyncing.take() else {
            return before;
        };
        let answers = self.answers_after(builder.after);
        self.open.clear();
        self.large.clear();
        self.bytes = 0;
        self.first = before + 1;
        self.resync = Resync::from(self.first);
        let (items, deferred) = builder.finish(answers);
        for item in items {
            let entry = match item {
                Item::Event(event) if !self.is_wanted(&event) => continue,
                Item::Event(event) => Entry::Frame(self.frame_of(&event, timestamp)),
                Item::Answer(answer) => Entry::Answer(Box::new(answer)),
            };
            self.resync.push(entry);
            self.first += 1;
        }
        for (event, reply_to, timestamp) in deferred {
            self.number(event, reply_to.as_ref(), timestamp);
        }
        let status = Event::SessionStatusChanged(self.status());
        self.number(status, None, timestamp);
        before
    }

    /// Takes the answers that a reader has not got who has everything up to `after`, out of the resync
    /// before too.
    fn answers_after(&mut self, after: u64) -> Vec<Answer> {
        let entries = (self.first..).zip(self.entries.drain(..));
        std::mem::take(&mut self.resync)
            .into_entries()
            .chain(entries)
            .filter_map(|(seq, entry)| match entry {
                Entry::Answer(answer) if seq > after => Some(*answer),
                _ => None,
            })
            .collect()
    }
}

/// Returns whether an answer says how things stood, so that the resync has to come after it.
fn is_superseded(event: &Event) -> bool {
    matches!(
        event,
        Event::SessionStateResult(_) | Event::ChatCloseResult(_)
    )
}

/// Returns whether an event says that a send was not admitted, which no resync repeats.
fn is_refusal(event: &Event) -> bool {
    matches!(event, Event::ChatError(error) if error.message_id.is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, payload: &Value) -> Event {
        serde_json::from_value(json!({"type": kind, "payload": payload})).unwrap()
    }

    fn queued(conversation: &str, position: usize) -> Event {
        let place =
            json!({"conversationId": conversation, "messageId": "m1", "position": position});
        event("chat:queued", &place)
    }

    fn end(conversation: &str) -> Event {
        let end = json!({"conversationId": conversation, "messageId": "m1", "stopReason": "end_turn",
            "partial": false, "turns": 1, "toolCalls": 0, "usage": {}, "durationMs": 1});
        event("chat:stream-end", &end)
    }

    fn error(message_id: &Value) -> Event {
        let error = json!({"conversationId": "a", "messageId": message_id, "code": "queue_full",
            "message": "full", "retryable": true});
        event("chat:error", &error)
    }

    fn history() -> Event {
        event(
            "chat:history-result",
            &json!({"conversationId": "a", "messages": []}),
        )
    }

    fn answer(event: Event) -> Answer {
        let reply_to = RequestId::from("q");
        Answer::new(event, reply_to, Timestamp::default())
    }

    fn kind(event: &Event) -> String {
        serde_json::to_value(event).unwrap()["type"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn builder() -> ResyncBuilder {
        let awaited = HashSet::from([ConversationId::new("a")]);
        let gap = event(
            "session:error",
            &json!({"code": "replay_gap", "message": "lost"}),
        );
        ResyncBuilder::new(0, gap, Ending::of(&end("b")).into_iter().collect(), awaited)
    }

    #[test]
    fn what_a_conversation_emits_before_its_snapshot_is_in_the_resync_and_later_events_follow() {
        let mut builder = builder();
        let id = RequestId::from("q");
        for (event, reply_to) in [
            (queued("a", 1), None),
            (queued("b", 2), None),
            (queued("a", 3), Some(id)),
            (error(&Value::Null), None),
            (error(&json!("m1")), None),
        ] {
            builder.take((event, reply_to, Timestamp::default()));
        }
        builder.snapshot(&ConversationId::new("a"), Vec::new());
        builder.take((queued("a", 4), None, Timestamp::default()));
        let (items, deferred) = builder.finish(Vec::new());
        let deferred: Vec<Event> = deferred.into_iter().map(|(event, _, _)| event).collect();
        assert_eq!(
            deferred,
            [
                queued("b", 2),
                queued("a", 3),
                error(&Value::Null),
                queued("a", 4)
            ]
        );
        assert_eq!(items.len(), 3, "the gap and two ends: {items:?}");
    }

    #[test]
    fn a_resync_has_its_order() {
        let mut builder = builder();
        let says = vec![queued("a", 1), history()];
        builder.snapshot(&ConversationId::new("a"), says);
        let closed = json!({"conversationId": "c", "closed": true});
        let answers = vec![
            answer(event("session:ping-result", &json!({}))),
            answer(event("chat:close-result", &closed)),
        ];
        let (items, deferred) = builder.finish(answers);
        let kinds = items.iter().map(|item| match item {
            Item::Event(event) | Item::Answer(Answer { event, .. }) => kind(event),
        });
        let expected = [
            "session:error",
            "chat:close-result",
            "chat:history-result",
            "session:ping-result",
            "chat:stream-end",
            "chat:queued",
        ];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
        assert!(deferred.is_empty());
    }
}
