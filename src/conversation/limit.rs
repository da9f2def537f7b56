//! How long an exchange may take, and what is said of one that took longer.

use std::time::Duration;

use crate::exchange::context::{Context, Setup};
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;

/// Returns how long an exchange that begins now may take, whatever tools come and go, and the setting that says so.
pub(super) fn time_limit(setup: &Setup, context: &Context) -> (Duration, &'static str) {
    if context.conversation.within.is_some() {
        return (setup.timeout_tools, "tasks.timeout");
    }
    let tools = context.session.tools.snapshot();
    match tools.values().any(|tool| setup.scope.allows(tool.spec())) {
        true => (setup.timeout_tools, "chat.timeout_tools"),
        false => (setup.timeout_plain, "chat.timeout_plain"),
    }
}

/// Returns the error of an exchange that took longer.
pub(super) fn overdue(setup: &Setup, limit: Duration, setting: &str) -> ChatError {
    let seconds = limit.as_secs_f64();
    ChatError {
        hint: Some(match setup.conversation_id.task() {
            Some(_) => format!("raise {setting}"),
            None => format!("raise limits.timeoutMs or {setting}"),
        }),
        retryable: true,
        ..setup.error(
            ChatCode::ExchangeTimeout,
            match setup.conversation_id.task() {
                Some(_) => format!("the task took longer than {seconds} s"),
                None => format!("the exchange took longer than {seconds} s"),
            },
        )
    }
}
