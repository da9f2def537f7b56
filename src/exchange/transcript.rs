//! What an exchange emits and remembers, from its first event to its last.
//!
//! A message that is remembered is emitted too. A reply without calls may be the last: its event is held back, so that
//! it can say what the exchange came to.

use std::sync::Arc;
use std::time::Duration;

use super::Ended;
use super::background::RunningExchange;
use super::context::{Context, Setup, Steer};
use super::history::History;
use crate::message::{ConversationId, Message, MessageId, Part, Reply};
use crate::protocol::content::{Content, WireMessage};
use crate::protocol::event::{Event, Steered, StreamEnd, StreamStart, WholeMessage};
use crate::protocol::trust::InstructionFile;
use crate::protocol::{RequestId, word};
use crate::store::Journal;
use crate::telemetry::metrics;
use crate::units::millis;

type Sink = dyn Fn(Event, Option<&RequestId>) + Send + Sync;

/// The way of events to whoever follows a session: takes them in order, never waits, never fails. In a session it is
/// `Feed::append` (`Session::new`).
#[derive(Clone)]
pub(crate) struct Events(Arc<Sink>);

impl Events {
    pub(crate) fn new(sink: impl Fn(Event, Option<&RequestId>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    pub(crate) fn emit(&self, event: Event) {
        (self.0)(event, None);
    }

    pub(crate) fn answer(&self, reply_to: Option<&RequestId>, event: Event) {
        (self.0)(event, reply_to);
    }
}

/// One exchange as its client sees it and its conversation remembers it. Whoever makes one ends it.
#[must_use = "an exchange has an end"]
pub(crate) struct Transcript {
    events: Events,
    journal: Journal,
    history: Arc<History>,
    running: Arc<RunningExchange>,
    conversation_id: ConversationId,
    message_id: MessageId,
    /// A reply without calls, remembered already, which is emitted with what comes next.
    held_back: Option<WireMessage>,
}

impl Transcript {
    pub(crate) fn new(context: &Context, message_id: &MessageId) -> Self {
        Self {
            events: context.events().clone(),
            journal: context.session.journal.clone(),
            history: Arc::clone(&context.conversation.history),
            running: Arc::clone(&context.conversation.running),
            conversation_id: context.conversation.id.clone(),
            message_id: message_id.clone(),
            held_back: None,
        }
    }

    /// Emits that the exchange began, what its model is told in the user's name, and that it answers what was steered too late into
    /// the one before.
    pub(crate) fn begin(
        &self,
        setup: &Setup,
        steered: &[Steer],
        instructions: Vec<InstructionFile>,
    ) {
        self.journal.began(&self.conversation_id, &self.message_id);
        // Not at `info`: what it would say its end says too, and it would be written before the provider is asked.
        tracing::debug!(parts = setup.content.len(), "exchange began");
        self.events.emit(Event::ChatStreamStart(StreamStart {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message_id.clone(),
            provider: setup.provider_id.clone(),
            model: setup.model.clone(),
            instructions,
        }));
        self.running.begin(&self.message_id);
        for said in steered {
            self.emit_steered(&said.content);
        }
    }

    pub(crate) fn record(&mut self, message: Message) {
        self.emit_held_back();
        let shown = WireMessage::from(&message);
        self.history.extend(&self.message_id, [message]);
        self.emit_message(shown);
    }

    /// Remembers what the user said, which waited under these names until now.
    pub(crate) fn record_said(&mut self, content: Vec<Part>, waited: &[MessageId]) {
        self.emit_held_back();
        let message = Message::User(content);
        let shown = WireMessage::from(&message);
        self.history.say(&self.message_id, message, waited);
        self.emit_message(shown);
    }

    /// Remembers a reply, unless it is empty. One without calls may be the last, and its event is held back.
    pub(crate) fn record_reply(&mut self, reply: Reply) {
        self.emit_held_back();
        if reply.is_empty() {
            return;
        }
        if !reply.calls.is_empty() {
            return self.record(Message::Reply(reply));
        }
        let message = Message::Reply(reply);
        self.held_back = Some(WireMessage::from(&message));
        self.history.extend(&self.message_id, [message]);
    }

    /// Makes what the user said meanwhile part of the exchange.
    pub(crate) fn record_steered(&mut self, said: Steer) {
        self.emit_steered(&said.content);
        self.record_said(said.content, &[said.id]);
    }

    /// Emits how the exchange ended: its error, its last message, its end. One that never ran took no time.
    pub(crate) fn end(self, ended: Ended, took: Option<Duration>) {
        self.running.end(&self.message_id);
        let duration_ms = millis(took.unwrap_or_default());
        if let Some(error) = ended.error {
            self.events.emit(Event::ChatError(Box::new(error)));
        }
        tracing::info!(
            end = word(&ended.stop),
            turns = ended.turns,
            tool_calls = ended.tool_calls,
            duration_ms,
            "exchange ended"
        );
        let end = StreamEnd {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message_id.clone(),
            stop_reason: ended.stop,
            partial: ended.partial,
            turns: ended.turns,
            tool_calls: ended.tool_calls,
            usage: ended.spent.usage.into(),
            cost_usd: ended.spent.cost.whole(),
            spent_usd: ended.spent.counted,
            estimated: ended.spent.estimated,
            duration_ms,
        };
        if let Some(message) = self.held_back {
            let whole = WholeMessage {
                exchange: Some(end.clone()),
                ..WholeMessage::new(&self.conversation_id, &self.message_id, message)
            };
            self.events.emit(Event::ChatMessage(Box::new(whole)));
        }
        metrics::exchange_ended(&word(&end.stop_reason), took);
        self.events.emit(Event::ChatStreamEnd(Box::new(end)));
    }

    /// Emits a reply that turned out not to be the last.
    fn emit_held_back(&mut self) {
        if let Some(message) = self.held_back.take() {
            self.emit_message(message);
        }
    }

    fn emit_message(&self, message: WireMessage) {
        let whole = WholeMessage::new(&self.conversation_id, &self.message_id, message);
        self.events.emit(Event::ChatMessage(Box::new(whole)));
    }

    fn emit_steered(&self, content: &[Part]) {
        self.events.emit(Event::ChatSteered(Steered {
            conversation_id: self.conversation_id.clone(),
            message_id: self.message_id.clone(),
            content: Content::from(content),
        }));
    }
}
