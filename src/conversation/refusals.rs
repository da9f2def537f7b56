//! Why a conversation does not take what it is asked for.

use super::state::QUEUED;
use crate::message::ConversationId;
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;

/// Returns the error of one send more than may wait.
pub(super) fn full(id: &ConversationId) -> Box<ChatError> {
    refused(
        id,
        ChatCode::QueueFull,
        &format!("{QUEUED} sends wait in this conversation already"),
    )
}

/// Returns an error after which the same may be asked again.
pub(super) fn refused(id: &ConversationId, code: ChatCode, message: &str) -> Box<ChatError> {
    Box::new(ChatError {
        retryable: true,
        ..ChatError::new(id, None, code, message)
    })
}
