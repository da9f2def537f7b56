//! What a conversation remembers. While calls run their results are missing; in what a request is made of, every call
//! is answered exactly once, right after its reply.

mod room;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::message::{ConversationId, Message, MessageId, Part, Reply, ToolCall, ToolResult};
use crate::store::Journal;

use super::budget::estimate;
use super::compaction::Compacted;
use super::compaction::view::view;
pub(super) use room::bytes_of_map;
pub(crate) use room::{Full, Room, bytes_of_parts};

/// The messages of a conversation.
///
/// The exchange appends to it while its conversation reads it for a client, in one task: the mutex is never waited for.
/// A snapshot costs no copy of the messages. Whatever changes here is written to the session's journal.
#[derive(Debug)]
pub(crate) struct History {
    kept: Mutex<Kept>,
    room: Room,
    journal: Journal,
    conversation: ConversationId,
    /// Whether the client closed the conversation: nothing of it is kept any more.
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Kept {
    messages: Arc<Vec<Message>>,
    bytes: usize,
    /// What the model sees, where that is less.
    seen: Option<Seen>,
    /// What it sees in tokens, estimated.
    tokens: u64,
    /// Who it is, where it was asked since the begin.
    reader: Option<Reader>,
}

/// The model that a conversation is shown to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reader {
    provider: String,
    model: String,
}

/// What the model sees of a conversation that was compacted. It is no more than a window holds, and not counted as what is
/// remembered.
#[derive(Debug)]
struct Seen {
    compacted: Compacted,
    messages: Arc<Vec<Message>>,
}

impl Kept {
    /// Adds messages to what is remembered, and to what the model sees.
    fn append(&mut self, messages: Vec<Message>) {
        self.tokens = self.tokens.saturating_add(estimate(&messages));
        if let Some(seen) = &mut self.seen {
            Arc::make_mut(&mut seen.messages).extend(messages.iter().cloned());
        }
        Arc::make_mut(&mut self.messages).extend(messages);
    }

    /// Replaces all; the model sees it as it is.
    fn set(&mut self, messages: Vec<Message>) {
        self.tokens = estimate(&messages);
        self.seen = None;
        self.messages = Arc::new(messages);
    }

    /// Has the model see less; returns whether that is a valid history.
    fn see(&mut self, compacted: Compacted) -> bool {
        let messages = match &self.reader {
            Some(it) => view(&self.messages, &compacted.shown_to(&it.provider, &it.model)),
            None => view(&self.messages, &compacted),
        };
        let is_valid = is_valid(&messages);
        if is_valid {
            self.tokens = estimate(&messages);
            let messages = Arc::new(messages);
            self.seen = Some(Seen {
                compacted,
                messages,
            });
        }
        is_valid
    }
}

/// What [`repair`] had to change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repairs {
    /// Calls that had no result and got an error result.
    pub answered: usize,
    /// Results that belong to no call and were dropped.
    pub dropped: usize,
}

impl History {
    pub(crate) fn new(room: Room, journal: Journal, conversation: ConversationId) -> Self {
        Self {
            kept: Mutex::default(),
            room,
            journal,
            conversation,
            is_closed: AtomicBool::default(),
        }
    }

    /// Has nothing of the conversation kept, neither what there is nor what still comes.
    pub(crate) fn close(&self) {
        let _kept = self.kept.lock();
        self.is_closed.store(true, Ordering::Release);
        self.journal.forget(&self.conversation);
    }

    /// Returns whether nothing of the conversation is kept any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn is_written(&self) -> bool {
        self.journal.is_on() && !self.is_closed()
    }

    /// Takes back what the journal has.
    pub(crate) fn restore(&self, messages: Vec<Message>) {
        let mut kept = self.kept.lock();
        let bytes = room::bytes(&messages);
        kept.set(messages);
        self.resize(&mut kept, bytes);
    }

    /// Has the model see less of what is there, as it did before a restart.
    pub(crate) fn restore_compacted(&self, compacted: Compacted) {
        let mut kept = self.kept.lock();
        let is_there = compacted.made_at <= kept.messages.len();
        if !is_there || !kept.see(compacted) {
            tracing::error!("a compaction does not fit its conversation; the model sees all of it");
        }
    }

    /// Has the model see less from now on; returns whether it does.
    pub(crate) fn compact(&self, compacted: Compacted) -> bool {
        let mut kept = self.kept.lock();
        let written = self.is_written().then(|| compacted.clone());
        let is_valid = kept.see(compacted);
        if !is_valid {
            tracing::error!("a compaction would not be valid and is dropped");
        } else if let Some(compacted) = written {
            self.journal.compacted(&self.conversation, Some(&compacted));
        }
        is_valid
    }

    /// Has it shown to this model from now on, of this provider instance. What it sees is made anew where a vendor's own compaction
    /// is for one of both alone.
    pub(crate) fn show_to(&self, provider: &str, model: &str) {
        let mut kept = self.kept.lock();
        let is_same = |it: &Reader| it.provider == provider && it.model == model;
        if kept.reader.as_ref().is_some_and(is_same) {
            return;
        }
        kept.reader = Some(Reader {
            provider: provider.to_owned(),
            model: model.to_owned(),
        });
        let seen = kept.seen.as_ref().map(|seen| seen.compacted.clone());
        if let Some(compacted) = seen.filter(|compacted| compacted.native.is_some()) {
            kept.see(compacted);
        }
    }

    /// Has the summary stand in the place of a vendor's own compaction, for good, where the model is shown one; returns whether it is.
    pub(crate) fn drop_native(&self) -> bool {
        let mut kept = self.kept.lock();
        let (Some(seen), Some(reader)) = (&kept.seen, &kept.reader) else {
            return false;
        };
        let shown = seen.compacted.shown_to(&reader.provider, &reader.model);
        if shown.native.is_none() {
            return false;
        }
        let compacted = Compacted {
            native: None,
            ..shown
        };
        if self.is_written() {
            self.journal.compacted(&self.conversation, Some(&compacted));
        }
        kept.see(compacted)
    }

    /// Returns all that is remembered, and what of it the model does not see.
    pub(crate) fn compacted(&self) -> (Arc<Vec<Message>>, Option<Compacted>) {
        let kept = self.kept.lock();
        let compacted = kept.seen.as_ref().map(|seen| seen.compacted.clone());
        (Arc::clone(&kept.messages), compacted)
    }

    /// Returns what the model sees in tokens, estimated.
    pub(crate) fn tokens(&self) -> u64 {
        self.kept.lock().tokens
    }

    pub(crate) fn snapshot(&self) -> Arc<Vec<Message>> {
        Arc::clone(&self.kept.lock().messages)
    }

    /// Fails where so many bytes more would be too many. What is appended all the same, so that each call has
    /// its result, counts for the next question.
    pub(crate) fn room_for(&self, bytes: usize) -> Result<(), Full> {
        let kept = self.kept.lock();
        self.room
            .check(kept.bytes, kept.bytes.saturating_add(bytes))
    }

    /// Adds messages of an exchange.
    pub(crate) fn extend(&self, exchange: &MessageId, messages: impl IntoIterator<Item = Message>) {
        let messages: Vec<Message> = messages.into_iter().collect();
        let mut kept = self.kept.lock();
        let bytes = kept.bytes + room::bytes(&messages);
        if self.is_written() {
            self.journal
                .messages(&self.conversation, exchange, &messages);
        }
        kept.append(messages);
        self.resize(&mut kept, bytes);
    }

    /// Adds what the user said, which waited under these names until now.
    pub(crate) fn say(&self, exchange: &MessageId, message: Message, waited: &[MessageId]) {
        let mut kept = self.kept.lock();
        let bytes = kept.bytes + room::bytes(std::slice::from_ref(&message));
        if self.is_written() {
            self.journal
                .said(&self.conversation, exchange, &message, waited);
        }
        kept.append(vec![message]);
        self.resize(&mut kept, bytes);
    }

    /// Replaces everything by a client's own messages, repaired.
    /// Fails where they are too many bytes; everything then stays as it was.
    pub(crate) fn replace(
        &self,
        exchange: &MessageId,
        messages: Vec<Message>,
    ) -> Result<Repairs, Full> {
        let (messages, repairs) = repair(messages);
        let bytes = room::bytes(&messages);
        let mut kept = self.kept.lock();
        self.room.check(kept.bytes, bytes)?;
        self.rewrite(exchange, &kept.messages, &messages);
        if kept.seen.is_some() && self.is_written() {
            self.journal
                .compacted(&self.conversation, None::<&Compacted>);
        }
        kept.set(messages);
        self.resize(&mut kept, bytes);
        Ok(repairs)
    }

    /// Writes what is other than before: a client that sends all messages each time has most of them kept already.
    fn rewrite(&self, exchange: &MessageId, before: &[Message], messages: &[Message]) {
        if !self.is_written() {
            return;
        }
        let same = before.iter().zip(messages);
        let same = same.take_while(|(before, now)| before == now).count();
        let from = (same < before.len()).then_some(same);
        let other = messages.get(same..).unwrap_or_default();
        self.journal
            .rewrite(&self.conversation, exchange, from, other);
    }

    /// Returns the messages for a request to the model: what it sees of them, repaired where they are not valid.
    ///
    /// They always are, by construction; a provider would refuse everything that follows if they
    /// once were not, so it is looked at each time.
    pub(crate) fn view(&self) -> Arc<Vec<Message>> {
        let mut kept = self.kept.lock();
        if !is_valid(kept.messages.iter()) {
            let (repaired, repairs) = repair(kept.messages.to_vec());
            tracing::error!(?repairs, "the history was not valid");
            let bytes = room::bytes(&repaired);
            self.rewrite(&MessageId::new(""), &kept.messages, &repaired);
            kept.set(repaired);
            self.resize(&mut kept, bytes);
        }
        let seen = kept.seen.as_ref().map(|seen| &seen.messages);
        Arc::clone(seen.unwrap_or(&kept.messages))
    }

    fn resize(&self, kept: &mut Kept, bytes: usize) {
        self.room.changed(kept.bytes, bytes);
        kept.bytes = bytes;
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.room.changed(self.kept.lock().bytes, 0);
    }
}

/// Returns whether every call is answered exactly once, right after its reply and in the order of the calls.
pub(crate) fn is_valid<'a>(messages: impl IntoIterator<Item = &'a Message>) -> bool {
    let mut pending: &[ToolCall] = &[];
    for message in messages {
        match (message, pending) {
            (Message::ToolResult(result), [call, rest @ ..]) if result.id == call.id => {
                pending = rest;
            }
            (Message::ToolResult(_), _) | (_, [_, ..]) => return false,
            (Message::Reply(reply), []) => {
                let mut seen = HashSet::new();
                if !reply.calls.iter().all(|call| seen.insert(&call.id)) {
                    return false;
                }
                pending = &reply.calls;
            }
            (Message::User(_), []) => {}
        }
    }
    pending.is_empty()
}

/// Makes a history valid: calls without a result get an error result, results without a call are
/// dropped, results stand right after their reply in the order of the calls.
pub(crate) fn repair(messages: Vec<Message>) -> (Vec<Message>, Repairs) {
    repair_with(messages, unanswered)
}

/// The same; `unanswered` says what a call without a result came to.
pub(crate) fn repair_with(
    messages: Vec<Message>,
    mut unanswered: impl FnMut(&ToolCall) -> ToolResult,
) -> (Vec<Message>, Repairs) {
    let mut repairs = Repairs::default();
    let mut whole = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(message) = rest.next() {
        match message {
            Message::ToolResult(_) => repairs.dropped += 1,
            Message::User(_) => whole.push(message),
            Message::Reply(mut reply) => {
                distinct(&mut reply, &mut repairs);
                let mut results = Vec::new();
                let is_result = |next: &Message| matches!(next, Message::ToolResult(_));
                while let Some(Message::ToolResult(result)) = rest.next_if(is_result) {
                    results.push(result);
                }
                let answers = answer(&reply.calls, results, &mut unanswered, &mut repairs);
                whole.push(Message::Reply(reply));
                whole.extend(answers);
            }
        }
    }
    (whole, repairs)
}

/// Drops calls whose id another call of the same reply has; the native form then holds them still.
fn distinct(reply: &mut Reply, repairs: &mut Repairs) {
    let mut seen = HashSet::new();
    let before = reply.calls.len();
    reply.calls.retain(|call| seen.insert(call.id.clone()));
    if reply.calls.len() < before {
        repairs.dropped += before - reply.calls.len();
        reply.native = None;
    }
}

fn answer(
    calls: &[ToolCall],
    mut results: Vec<ToolResult>,
    unanswered: &mut impl FnMut(&ToolCall) -> ToolResult,
    repairs: &mut Repairs,
) -> Vec<Message> {
    let mut answers = Vec::with_capacity(calls.len());
    for call in calls {
        match results.iter().position(|result| result.id == call.id) {
            Some(at) => {
                let mut result = results.remove(at);
                result.name.clone_from(&call.name);
                answers.push(Message::ToolResult(result));
            }
            None => {
                repairs.answered += 1;
                answers.push(Message::ToolResult(unanswered(call)));
            }
        }
    }
    repairs.dropped += results.len();
    answers
}

/// Returns the result of a call of which nobody knows what became.
fn unanswered(call: &ToolCall) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: vec![Part::text(
            "no result: the call was interrupted, and whether it had an effect is not known",
        )],
        is_error: true,
    }
}

#[cfg(test)]
mod tests;
