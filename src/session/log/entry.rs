//! What is kept of an event: a frame, or what a frame is written of for each reader. Pure.

use axum::extract::ws::Utf8Bytes;

use super::MERGED_BYTES;
use crate::message::ConversationId;
use crate::protocol::envelope::{self, RequestId, Stamp, Timestamp};
use crate::protocol::event::{AnswerOutput, ChatError, Delta, DeltaEvent, Event, StreamEnd};
use crate::protocol::roles::SocketId;

/// What an entry costs besides its text, in bytes: its place, and what the allocator adds to the text.
const ENTRY_OVERHEAD: usize = size_of::<Entry>() + 24;

#[derive(Debug)]
pub(super) enum Entry {
    Frame(Utf8Bytes),
    /// The same for an answer to a request: a resync repeats what events said, not what answers did.
    Answer(Box<Answer>),
    Text(Text),
}

/// An answer. It stays as it is, since a resync may repeat it under another number.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) event: Event,
    pub(super) reply_to: RequestId,
    timestamp: Timestamp,
    bytes: usize,
}

impl Answer {
    pub(super) fn new(event: Event, reply_to: RequestId, timestamp: Timestamp) -> Self {
        let mut answer = Self {
            event,
            reply_to,
            timestamp,
            bytes: 0,
        };
        answer.bytes = answer.write(Some(0), true).len();
        answer
    }

    /// Returns its frame for a socket. One that did not ask for it sees no name of a request in it, which may be one of
    /// its own.
    fn frame(&self, seq: u64, reader: Option<SocketId>) -> Utf8Bytes {
        self.write(Some(seq), self.reply_to.socket() == reader)
    }

    pub(super) fn without_number(&self, reader: SocketId) -> Utf8Bytes {
        self.write(None, self.reply_to.socket() == Some(reader))
    }

    /// Returns whether a socket is told it: whoever asked, a socket without a role, and all where it changes what they show.
    pub(super) fn is_for(&self, reader: Option<SocketId>) -> bool {
        let changes_what_is_shown = matches!(
            self.event,
            Event::ChatCloseResult(_) | Event::SessionConfigureResult(_)
        );
        reader.is_none() || self.reply_to.socket() == reader || changes_what_is_shown
    }

    fn write(&self, seq: Option<u64>, is_its: bool) -> Utf8Bytes {
        let stamp = Stamp {
            seq,
            reply_to: Some(&self.reply_to).filter(|_| is_its),
            timestamp: self.timestamp,
            task: task_of(&self.event),
        };
        Utf8Bytes::from(envelope::write(&self.event, &stamp))
    }
}

/// A text or thinking delta. It stays as it is: the frame, which is written for each reader, is several times as large.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) kind: Kind,
    pub(super) delta: Delta,
    pub(super) timestamp: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Answer,
    Thinking,
}

/// The longest structured answer that is told again after a gap, in bytes of JSON; the history has the text of a longer
/// one.
const OUTPUT_BYTES: usize = 64 * 1024;

/// How an exchange ended. Hundreds of them are kept, so not as whole events.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    /// What it answered, where it was asked for data.
    Output(Box<AnswerOutput>),
    End(Box<StreamEnd>),
    Error(Box<ChatError>),
}

impl Ending {
    /// Returns what an event says of the end of an exchange; `None` where it says nothing of it.
    pub(super) fn of(event: &Event) -> Option<Self> {
        match event {
            // The exchange around a task says how that ended.
            event if task_of(event).is_some() => None,
            Event::ChatOutput(output) => {
                let fits = output.output.to_string().len() <= OUTPUT_BYTES;
                fits.then(|| Self::Output(output.clone()))
            }
            Event::ChatStreamEnd(end) => Some(Self::End(end.clone())),
            Event::ChatError(error) if error.message_id.is_some() => {
                Some(Self::Error(error.clone()))
            }
            _ => None,
        }
    }
}

/// Returns the task that an event is of.
pub(super) fn task_of(event: &Event) -> Option<&str> {
    event.conversation().and_then(ConversationId::task)
}

impl Ending {
    pub(super) fn conversation(&self) -> &ConversationId {
        match self {
            Self::Output(output) => &output.conversation_id,
            Self::End(end) => &end.conversation_id,
            Self::Error(error) => &error.conversation_id,
        }
    }
}

impl From<Ending> for Event {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Output(output) => Self::ChatOutput(output),
            Ending::End(end) => Self::ChatStreamEnd(end),
            Ending::Error(error) => Self::ChatError(error),
        }
    }
}

impl Entry {
    pub(super) fn bytes(&self) -> usize {
        let text = match self {
            Self::Frame(frame) => frame.len(),
            Self::Answer(answer) => answer.bytes,
            Self::Text(text) => text.delta.content.len(),
        };
        ENTRY_OVERHEAD + text
    }

    /// Returns the frame of this number for a socket; `None` where it is not told it.
    pub(super) fn frame(&self, seq: u64, reader: Option<SocketId>) -> Option<Utf8Bytes> {
        match self {
            Self::Frame(frame) => Some(frame.clone()),
            Self::Answer(answer) => answer.is_for(reader).then(|| answer.frame(seq, reader)),
            Self::Text(text) => Some(text.frame(seq)),
        }
    }
}

impl Text {
    /// Returns whether `next` may be merged into this one.
    pub(super) fn takes(&self, next: &Self) -> bool {
        self.kind == next.kind
            && self.delta.turn == next.delta.turn
            && self.delta.message_id == next.delta.message_id
            && self.delta.content.len() + next.delta.content.len() <= MERGED_BYTES
    }

    fn frame(&self, seq: u64) -> Utf8Bytes {
        let event = match self.kind {
            Kind::Answer => DeltaEvent::Text(&self.delta),
            Kind::Thinking => DeltaEvent::Thinking(&self.delta),
        };
        let stamp = Stamp {
            seq: Some(seq),
            reply_to: None,
            timestamp: self.timestamp,
            task: self.delta.conversation_id.task(),
        };
        Utf8Bytes::from(envelope::write(&event, &stamp))
    }
}
