//! How long an exchange may take.

use std::time::Duration;

use crate::exchange::context::Context;
use crate::exchange::setup::Setup;
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;

/// How long an exchange may take, and the setting that says so.
pub(super) struct Limit {
    pub(super) time: Duration,
    setting: &'static str,
}

impl Limit {
    /// Returns the limit of an exchange that begins now: tools come and go, and it stays.
    pub(super) fn of(setup: &Setup, context: &Context) -> Self {
        let tools = context.services.registry.snapshot();
        if tools.values().any(|tool| setup.scope.allows(tool.spec())) {
            Self {
                time: setup.timeout_tools,
                setting: "chat.timeout_tools",
            }
        } else {
            Self {
                time: setup.timeout_plain,
                setting: "chat.timeout_plain",
            }
        }
    }

    /// Returns the error of an exchange that took longer.
    pub(super) fn error(&self, setup: &Setup) -> ChatError {
        let seconds = self.time.as_secs_f64();
        ChatError {
            hint: Some(format!("raise limits.timeoutMs or {}", self.setting)),
            retryable: true,
            ..ChatError::new(
                &setup.conversation_id,
                Some(&setup.message_id),
                ChatCode::ExchangeTimeout,
                format!("the exchange took longer than {seconds} s"),
            )
        }
    }
}
