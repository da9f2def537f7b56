//! Why a conversation does not take what it is asked for.

use super::state::QUEUED;
use crate::message::ConversationId;
use crate::protocol::event::{ChatError, SessionError};
use crate::protocol::{ChatCode, SessionCode};

/// Returns the error of one send more than may wait.
pub(super) fn full(id: &ConversationId) -> Box<ChatError> {
    refused(
        id,
        ChatCode::QueueFull,
        &format!("{QUEUED} sends wait in this conversation already"),
    )
}

/// Returns the error of what would have one more of the user's conversations work than may.
pub(crate) fn over_quota() -> SessionError {
    let message = "as many exchanges of this user run as may at once (auth.limits.exchanges); send it again when one of them has ended";
    SessionError::new(SessionCode::QuotaExceeded, message)
}

/// Returns an error after which the same may be asked again.
pub(super) fn refused(id: &ConversationId, code: ChatCode, message: &str) -> Box<ChatError> {
    Box::new(ChatError {
        retryable: true,
        ..ChatError::new(id, None, code, message)
    })
}
