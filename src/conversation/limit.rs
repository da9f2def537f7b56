//! How long an exchange may take, whether the user may have one more, and what is said where not.

use std::time::Duration;

use super::state::ActorState;
use crate::exchange::context::{Context, Setup};
use crate::protocol::event::{ChatError, SessionError};
use crate::protocol::{ChatCode, SessionCode};

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

impl ActorState {
    /// Counts the conversation as one at work; returns false where as many of the user's are as may be.
    pub(super) fn may_work(&mut self, context: &Context) -> bool {
        if self.at_work.is_none() {
            let most = context.services.config().auth.limits.exchanges;
            self.at_work = context.services.quota.exchange(most);
        }
        self.at_work.is_some()
    }
}

/// Returns the error of what would have one more of the user's conversations work than may.
pub(super) fn over_quota() -> SessionError {
    let message = "as many exchanges of this user run as may at once (auth.limits.exchanges); send it again when one of them has ended";
    SessionError::new(SessionCode::QuotaExceeded, message)
}
