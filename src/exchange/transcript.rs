//! What an exchange emits and remembers: a message that is remembered is emitted too.

use std::sync::Arc;

use super::history::History;
use crate::message::{ConversationId, Message, MessageId, Part};
use crate::protocol::RequestId;
use crate::protocol::content::{Content, WireMessage};
use crate::protocol::event::{Event, Steered, WholeMessage};

type Sink = dyn Fn(Event, Option<&RequestId>) + Send + Sync;

/// Takes events in order; never waits, never fails.
#[derive(Clone)]
pub struct Events(Arc<Sink>);

impl Events {
    /// Makes a handle of a sink.
    pub fn new(sink: impl Fn(Event, Option<&RequestId>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Tells an event.
    pub fn send(&self, event: Event) {
        (self.0)(event, None);
    }

    /// Tells the answer to a request.
    pub fn answer(&self, reply_to: Option<&RequestId>, event: Event) {
        (self.0)(event, reply_to);
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}

/// The messages of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct Transcript<'a> {
    /// Where events go.
    pub events: &'a Events,
    /// What its conversation remembers.
    pub history: &'a History,
    /// Which conversation.
    pub conversation_id: &'a ConversationId,
    /// Which exchange.
    pub message_id: &'a MessageId,
}

impl Transcript<'_> {
    /// Remembers a message and tells it.
    pub fn remember(&self, message: Message) {
        self.tell(WireMessage::from(&message));
        self.history.extend([message]);
    }

    /// Tells a message that is remembered already.
    pub fn tell(&self, message: WireMessage) {
        let whole = WholeMessage::new(self.conversation_id, self.message_id, message);
        self.events.send(Event::ChatMessage(Box::new(whole)));
    }

    /// Tells that what the user said is part of the exchange from here on.
    pub fn tell_steered(&self, content: &[Part]) {
        self.events.send(Event::ChatSteered(Steered {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message_id.clone(),
            content: Content::from(content),
        }));
    }

    /// Takes in what the user said meanwhile. It comes after `closing`, the reply that was taken for the last.
    pub fn steered(&self, content: Vec<Part>, closing: &mut Option<WireMessage>) {
        self.tell_steered(&content);
        if let Some(closing) = closing.take() {
            self.tell(closing);
        }
        self.remember(Message::User(content));
    }
}
