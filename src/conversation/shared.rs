//! What a conversation's exchanges share, and the events that begin and end them.

use std::time::Duration;

use super::queue::{QUEUED, QueuedSend};
use crate::exchange::Ended;
use crate::exchange::audited;
use crate::exchange::context::{ConversationContext, Services, SessionContext};
use crate::exchange::failure;
use crate::exchange::history::{self, Full, History, Repairs};
use crate::exchange::setup::Setup;
use crate::exchange::transcript::Events;
use crate::exchange::transcript::Transcript;
use crate::message::{ConversationId, Message, MessageId, Notice, Part, Severity, ToolId};
use crate::protocol::answer;
use crate::protocol::content::WireMessage;
use crate::protocol::event::{
    ChatError, Event, Queued, ResultStatus, State, StateName, StopReason, StreamEnd, StreamStart,
    ToolOutcome, WholeMessage,
};
use crate::protocol::record::ExecutionStatus;
use crate::protocol::{ChatCode, word};
use crate::telemetry::metrics;

/// Bytes of an answer besides the messages in it, more than enough.
const ENVELOPE_BYTES: usize = 512;

/// What the running exchange borrows.
pub(super) struct Shared {
    pub(super) id: ConversationId,
    pub(super) services: Services,
    pub(super) session: SessionContext,
    pub(super) conversation: ConversationContext,
    pub(super) history: History,
}

impl Shared {
    pub(super) fn events(&self) -> &Events {
        &self.session.events
    }

    /// Takes a client's history and tells that the exchange began, and which messages that were steered into
    /// the one before are part of it.
    ///
    /// # Errors
    ///
    /// What the exchange comes to where there is no room to remember what it says; nothing of it is remembered.
    pub(super) fn begin(
        &self,
        setup: &Setup,
        history: Option<Vec<WireMessage>>,
        steered: &[Vec<Part>],
    ) -> Result<(), Box<Ended>> {
        let replaced = history.map_or(Ok(()), |history| self.replace(history));
        let has_room = replaced.and_then(|()| {
            let content = history::bytes_of_parts(&setup.content);
            self.history.room_for(content)
        });
        // Not at `info`: what it would say its end says too, and it would be written before the provider is asked.
        tracing::debug!(parts = setup.content.len(), "exchange began");
        self.events().send(Event::ChatStreamStart(StreamStart {
            conversation_id: self.id.clone(),
            message_id: setup.message_id.clone(),
            provider: setup.provider_id.clone(),
            model: setup.model.clone(),
        }));
        for content in steered {
            self.transcript(setup).tell_steered(content);
        }
        has_room.map_err(|full| {
            Box::new(Ended {
                stop: Some(StopReason::Error),
                error: Some(failure::history_full(full, &self.id, &setup.message_id)),
                ..Ended::default()
            })
        })
    }

    /// Replaces what is remembered by a client's history.
    fn replace(&self, history: Vec<WireMessage>) -> Result<(), Full> {
        let messages = history.into_iter().map(Message::from).collect();
        let repairs = self.history.replace(messages)?;
        self.conversation.context_tokens.forget();
        if !repairs.is_empty() {
            self.events().send(Event::SessionNotice(repaired(repairs)));
        }
        Ok(())
    }

    /// Ends a send that was dropped before it ran. One that its client takes for begun begins here, and what it
    /// said is remembered.
    pub(super) fn drop_send(&self, waiting: QueuedSend) {
        let setup = &waiting.setup;
        if waiting.started {
            let begun = self.begin(setup, waiting.history, &waiting.steered);
            let ended = begun.map_or_else(|full| *full, |()| self.end_unsent(setup, None));
            self.end(setup, ended, None, None);
        } else {
            let ended = Ended {
                stop: Some(StopReason::Cancelled),
                ..Ended::default()
            };
            self.tell_end(&ended, &setup.message_id, None);
        }
    }

    /// What an exchange comes to that has begun and whose model is not asked, because its provider named none,
    /// which is the error, or because it was cancelled before. What was said is remembered as after any other end.
    pub(super) fn end_unsent(&self, setup: &Setup, error: Option<ChatError>) -> Ended {
        let said = Message::User(setup.content.clone());
        self.transcript(setup).remember(said);
        let error = error.map(|error| ChatError {
            message: self.services.redactor.redact(&error.message).into_owned(),
            ..error
        });
        let stop = match error {
            Some(_) => StopReason::Error,
            None => StopReason::Cancelled,
        };
        Ended {
            stop: Some(stop),
            error,
            ..Ended::default()
        }
    }

    /// What an exchange comes to that failed by a fault of the daemon: its open calls are answered.
    ///
    /// The history is made valid before the next request, as always.
    pub(super) fn fault(&self, setup: &Setup) -> Ended {
        tracing::error!("an exchange panicked");
        let executions = &self.session.executions;
        for id in executions.open_of(&self.id) {
            let text = "interrupted by a fault of the daemon";
            let settled = executions.settle(&id, |record| record.status = ExecutionStatus::Error);
            if let Some((record, ruling)) = &settled {
                let message_id = &setup.message_id;
                audited::record(
                    &self.services,
                    &self.session,
                    message_id,
                    record,
                    *ruling,
                    text,
                );
            }
            self.events()
                .send(Event::ChatToolResult(Box::new(ToolOutcome {
                    conversation_id: self.id.clone(),
                    message_id: setup.message_id.clone(),
                    tool_id: id,
                    tool_name: settled
                        .map(|(record, _)| record.tool_name)
                        .unwrap_or_default(),
                    status: ResultStatus::Error,
                    result: text.to_owned(),
                    duration_ms: 0,
                    metadata: None,
                })));
        }
        Ended {
            stop: Some(StopReason::Error),
            error: Some(ChatError {
                message_id: Some(setup.message_id.clone()),
                ..refused(
                    &self.id,
                    ChatCode::Internal,
                    "the daemon failed; see its log",
                )
            }),
            ..Ended::default()
        }
    }

    /// Remembers and tells what was to be steered into an exchange that ends before the model could read it.
    pub(super) fn tell_steered(&self, setup: &Setup, ended: &mut Ended, content: Vec<Part>) {
        self.transcript(setup).steered(content, &mut ended.closing);
    }

    fn transcript<'a>(&'a self, setup: &'a Setup) -> Transcript<'a> {
        Transcript {
            events: self.events(),
            history: &self.history,
            conversation_id: &self.id,
            message_id: &setup.message_id,
        }
    }

    /// Tells how an exchange ended, and that it did.
    pub(super) fn end(
        &self,
        setup: &Setup,
        mut ended: Ended,
        cause: Option<StopReason>,
        took: Option<Duration>,
    ) {
        if ended.stop == Some(StopReason::Cancelled) {
            ended.stop = cause.or(ended.stop);
        }
        if let Some(error) = ended.error.take() {
            self.events().send(Event::ChatError(Box::new(error)));
        }
        tracing::info!(
            end = word(&ended.stop.unwrap_or(StopReason::Error)),
            turns = ended.turns,
            tool_calls = ended.tool_calls,
            duration_ms = u64::try_from(took.unwrap_or_default().as_millis()).unwrap_or(u64::MAX),
            "exchange ended"
        );
        self.tell_end(&ended, &setup.message_id, took);
    }

    /// Tells the end of an exchange; one that never ran took no time.
    pub(super) fn tell_end(&self, ended: &Ended, message_id: &MessageId, took: Option<Duration>) {
        let duration = took.unwrap_or_default();
        let end = StreamEnd {
            conversation_id: self.id.clone(),
            message_id: message_id.clone(),
            stop_reason: ended.stop.unwrap_or(StopReason::Error),
            partial: ended.partial,
            turns: ended.turns,
            tool_calls: ended.tool_calls,
            usage: ended.usage.into(),
            cost_usd: ended.cost.dollars(),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        };
        if let Some(message) = &ended.closing {
            self.events()
                .send(Event::ChatMessage(Box::new(WholeMessage {
                    exchange: Some(end.clone()),
                    ..WholeMessage::new(&self.id, message_id, message.clone())
                })));
        }
        metrics::exchange_ended(&word(&end.stop_reason), took);
        self.events().send(Event::ChatStreamEnd(Box::new(end)));
    }

    pub(super) fn tell_queued(&self, message_id: &MessageId, position: usize) {
        self.events().send(Event::ChatQueued(Queued {
            conversation_id: self.id.clone(),
            message_id: message_id.clone(),
            position,
        }));
        self.tell_state(Some(message_id), StateName::Queued);
    }

    pub(super) fn tell_settings_ignored(&self, message_id: &MessageId) {
        self.events().send(Event::SessionNotice(Notice {
            severity: Severity::Warning,
            code: "steer_settings_ignored".to_owned(),
            message: format!(
                "a message was steered into {message_id} of conversation `{}`, which goes on with the settings that it began with; those of the message do not count",
                self.id
            ),
        }));
    }

    pub(super) fn tell_idle(&self) {
        self.tell_state(None, StateName::Idle);
    }

    pub(super) fn tell_state(&self, message_id: Option<&MessageId>, state: StateName) {
        let state = State::new(&self.id, message_id, state);
        self.events().send(Event::ChatState(state));
    }

    /// As many of the newest messages as one frame holds.
    pub(super) fn messages(&self) -> answer::History {
        let frame = self.services.config.server.max_frame_bytes;
        self.newest_messages(frame.saturating_sub(ENVELOPE_BYTES))
    }

    /// As many of the newest messages as `most` bytes hold.
    pub(super) fn newest_messages(&self, most: usize) -> answer::History {
        let remembered = self.history.snapshot();
        let mut bytes = 0;
        let mut messages: Vec<WireMessage> = remembered
            .iter()
            .rev()
            .map(WireMessage::from)
            .take_while(|message| {
                // With the comma between two.
                bytes = size(message).saturating_add(bytes).saturating_add(1);
                bytes <= most
            })
            .collect();
        messages.reverse();
        answer::History {
            conversation_id: self.id.clone(),
            truncated: messages.len() < remembered.len(),
            messages,
        }
    }

    /// The calls that a client knows of and that have no result yet, oldest first: the open ones and those
    /// that the model still writes.
    pub(super) fn calls_to_end(&self) -> Vec<ToolId> {
        let executions = &self.session.executions;
        let mut calls = executions.open_of(&self.id);
        let mut written = self.conversation.announced.ids();
        written.retain(|id| executions.get(id).is_none());
        calls.extend(written);
        calls
    }

    /// The time limit of an exchange that begins now: tools come and go, and it stays.
    pub(super) fn limit(&self, setup: &Setup) -> Limit {
        let tools = self.services.registry.snapshot();
        if tools.values().any(|tool| setup.scope.allows(tool.spec())) {
            Limit {
                time: setup.timeout_tools,
                setting: "chat.timeout_tools",
            }
        } else {
            Limit {
                time: setup.timeout_plain,
                setting: "chat.timeout_plain",
            }
        }
    }

    /// The error of an exchange that took longer than its limit.
    pub(super) fn overdue(&self, setup: &Setup, limit: &Limit) -> ChatError {
        let seconds = limit.time.as_secs_f64();
        ChatError {
            message_id: Some(setup.message_id.clone()),
            hint: Some(format!("raise limits.timeoutMs or {}", limit.setting)),
            ..refused(
                &self.id,
                ChatCode::ExchangeTimeout,
                &format!("the exchange took longer than {seconds} s"),
            )
        }
    }
}

/// How long an exchange may take, and the setting that says so.
pub(super) struct Limit {
    pub(super) time: Duration,
    setting: &'static str,
}

/// How many bytes a message is on the wire.
fn size(message: &WireMessage) -> usize {
    serde_json::to_vec(message).map_or(usize::MAX, |json| json.len())
}

fn repaired(repairs: Repairs) -> Notice {
    Notice {
        severity: Severity::Warning,
        code: "history_repaired".to_owned(),
        message: format!(
            "the history sent was not valid: {} calls without a result got an error result, {} results without a call were dropped",
            repairs.answered, repairs.dropped
        ),
    }
}

/// The error of a send that finds the queue full.
pub(super) fn full(id: &ConversationId) -> ChatError {
    refused(
        id,
        ChatCode::QueueFull,
        &format!("{QUEUED} sends wait in this conversation already"),
    )
}

/// An error that belongs to no exchange.
pub(super) fn refused(id: &ConversationId, code: ChatCode, message: &str) -> ChatError {
    ChatError {
        retryable: true,
        ..ChatError::new(id, None, code, message)
    }
}
