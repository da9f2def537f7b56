//! What a conversation's exchanges share, and the events that begin and end them.

use std::time::Duration;

use super::queue::QUEUED;
use crate::exchange::Ended;
use crate::exchange::events::Events;
use crate::exchange::history::{History, Repairs};
use crate::exchange::setup::{ConversationShared, Services, SessionShared, Setup};
use crate::message::{ConversationId, Message, MessageId, Notice, Severity};
use crate::protocol::ChatCode;
use crate::protocol::answer;
use crate::protocol::content::WireMessage;
use crate::protocol::event::{
    ChatError, Event, Queued, ResultStatus, State, StateName, StopReason, StreamEnd, StreamStart,
    ToolOutcome, WholeMessage,
};
use crate::protocol::record::ExecutionStatus;

/// What the running exchange borrows.
pub(super) struct Shared {
    pub(super) id: ConversationId,
    pub(super) services: Services,
    pub(super) session: SessionShared,
    pub(super) conversation: ConversationShared,
    pub(super) history: History,
}

impl Shared {
    pub(super) fn events(&self) -> &Events {
        &self.session.events
    }

    /// Takes a client's history and tells that the exchange began.
    pub(super) fn begin(&self, setup: &Setup, history: Option<Vec<WireMessage>>) {
        if let Some(history) = history {
            let repairs = self
                .history
                .replace(history.into_iter().map(Message::from).collect());
            if !repairs.is_empty() {
                self.events().send(Event::SessionNotice(repaired(repairs)));
            }
        }
        self.events().send(Event::ChatStreamStart(StreamStart {
            conversation_id: self.id.clone(),
            message_id: setup.message_id.clone(),
            provider: setup.provider_id.clone(),
            model: setup.model.clone(),
        }));
    }

    /// What an exchange comes to that failed by a fault of the daemon: its open calls are answered.
    ///
    /// The history is made valid before the next request, as always.
    pub(super) fn fault(&self, setup: &Setup) -> Ended {
        tracing::error!("an exchange panicked");
        let executions = &self.session.executions;
        for id in executions.open_of(&self.id) {
            let settled = executions.settle(&id, |record| record.status = ExecutionStatus::Error);
            self.events()
                .send(Event::ChatToolResult(Box::new(ToolOutcome {
                    conversation_id: self.id.clone(),
                    message_id: setup.message_id.clone(),
                    tool_id: id,
                    tool_name: settled.map(|record| record.tool_name).unwrap_or_default(),
                    status: ResultStatus::Error,
                    result: "interrupted by a fault of the daemon".to_owned(),
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

    /// Tells how an exchange ended, and that it did.
    pub(super) fn end(
        &self,
        setup: &Setup,
        mut ended: Ended,
        cause: Option<StopReason>,
        took: Duration,
    ) {
        if ended.stop == Some(StopReason::Cancelled) {
            ended.stop = cause.or(ended.stop);
        }
        if ended.stop == Some(StopReason::Timeout) {
            ended.error = Some(ChatError {
                message_id: Some(setup.message_id.clone()),
                retryable: true,
                hint: Some("raise limits.timeoutMs or chat.timeout_tools".to_owned()),
                ..refused(
                    &self.id,
                    ChatCode::ExchangeTimeout,
                    &format!(
                        "the exchange took longer than {} s",
                        self.timeout(setup).as_secs()
                    ),
                )
            });
        }
        if let Some(error) = ended.error.take() {
            self.events().send(Event::ChatError(Box::new(error)));
        }
        let pricing = setup.provider.model(&setup.model).pricing;
        let cost = pricing.map(|pricing| crate::provider::models::cost(&ended.usage, &pricing));
        self.tell_end(&ended, &setup.message_id, cost, took);
    }

    pub(super) fn tell_end(
        &self,
        ended: &Ended,
        message_id: &MessageId,
        cost: Option<f64>,
        took: Duration,
    ) {
        let end = StreamEnd {
            conversation_id: self.id.clone(),
            message_id: message_id.clone(),
            stop_reason: ended.stop.unwrap_or(StopReason::Error),
            partial: ended.partial,
            turns: ended.turns,
            tool_calls: ended.tool_calls,
            usage: ended.usage.into(),
            cost_usd: cost,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        if let Some(message) = &ended.closing {
            self.events()
                .send(Event::ChatMessage(Box::new(WholeMessage {
                    conversation_id: self.id.clone(),
                    message_id: message_id.clone(),
                    message: message.clone(),
                    exchange: Some(end.clone()),
                })));
        }
        self.events().send(Event::ChatStreamEnd(Box::new(end)));
    }

    pub(super) fn tell_queued(&self, message_id: MessageId, position: usize) {
        self.events().send(Event::ChatQueued(Queued {
            conversation_id: self.id.clone(),
            message_id: message_id.clone(),
            position,
        }));
        self.tell_state(Some(message_id), StateName::Queued);
    }

    pub(super) fn tell_idle(&self) {
        self.tell_state(None, StateName::Idle);
    }

    pub(super) fn tell_state(&self, message_id: Option<MessageId>, state: StateName) {
        self.events().send(Event::ChatState(State {
            conversation_id: self.id.clone(),
            message_id,
            state,
            tool_id: None,
            attempt: None,
            delay_ms: None,
            reason: None,
        }));
    }

    pub(super) fn messages(&self) -> answer::History {
        answer::History {
            conversation_id: self.id.clone(),
            messages: self
                .history
                .snapshot()
                .iter()
                .map(WireMessage::from)
                .collect(),
        }
    }

    pub(super) fn timeout(&self, setup: &Setup) -> Duration {
        let tools = self.services.registry.snapshot();
        if tools.values().any(|tool| setup.scope.allows(tool.spec())) {
            setup.timeout_tools
        } else {
            setup.timeout_plain
        }
    }
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
        conversation_id: id.clone(),
        message_id: None,
        code,
        message: message.to_owned(),
        hint: None,
        retryable: true,
        http_status: None,
        retry_after_ms: None,
        provider: None,
    }
}
