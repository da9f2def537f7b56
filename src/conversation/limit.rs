//! How long an exchange may take, and what is said of one that took longer.

use std::time::Duration;

use crate::exchange::context::{Context, Setup};
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;

/// Returns how long an exchange that begins now may take, whatever tools come and go, and the setting that says so.
pub(super) fn time_limit(setup: &Setup, context: &Context) -> (Duration, &'static str) {
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
        hint: Some(format!("raise limits.timeoutMs or {setting}")),
        retryable: true,
        ..setup.error(
            ChatCode::ExchangeTimeout,
            format!("the exchange took longer than {seconds} s"),
        )
    }
}
