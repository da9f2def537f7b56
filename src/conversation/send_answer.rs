//! The answer to a `chat:send`, kept so that the same send is not run twice.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::message::MessageId;
use crate::protocol::answer::Sent;

/// The answer to one send, shared by who gives it and who remembers it.
#[derive(Clone, Debug, Default)]
pub struct Answer(Arc<Mutex<Answered>>);

/// What is known of an answer.
#[derive(Clone, Debug, Default)]
pub enum Answered {
    /// The conversation has not taken the send yet.
    #[default]
    Waiting,
    /// It was admitted.
    Admitted(Sent),
    /// It was not admitted and may be sent again.
    Refused,
}

impl Answer {
    /// Returns what is known.
    pub fn get(&self) -> Answered {
        self.0.lock().clone()
    }

    /// Keeps what the send came to.
    pub(super) fn set(&self, answered: Answered) {
        *self.0.lock() = answered;
    }

    /// Names another exchange: the one that answers what was steered too late into its own.
    pub(super) fn moved(&self, to: &MessageId) {
        if let Answered::Admitted(sent) = &mut *self.0.lock() {
            sent.message_id.clone_from(to);
        }
    }
}
