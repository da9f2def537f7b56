//! What one exchange is to do: everything that is settled before its first turn.

use std::sync::Arc;
use std::time::Duration;

use crate::message::{ConversationId, MessageId, OnViolation, Part, Thinking, TrustLevel};
use crate::permission::Scope;
use crate::protocol::ChatCode;
use crate::protocol::event::ChatError;
use crate::provider::Provider;

/// One exchange, resolved from the send, the session, the workflow and the configuration.
#[derive(Clone)]
pub(crate) struct Setup {
    pub conversation_id: ConversationId,
    pub message_id: MessageId,
    pub content: Vec<Part>,
    pub provider: Arc<dyn Provider>,
    pub provider_id: String,
    /// The model's id; empty until its exchange begins, where nobody names one.
    pub model: String,
    pub system: String,
    pub trust: TrustLevel,
    pub on_violation: OnViolation,
    pub scope: Scope,
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub thinking: Option<Thinking>,
    pub max_turns: u32,
    /// Longest duration without tools on offer.
    pub timeout_plain: Duration,
    /// Longest duration with tools on offer.
    pub timeout_tools: Duration,
    /// Tokens kept free for the last answer.
    pub context_reserve: u64,
    pub max_retries: u32,
    /// How often a turn that broke off after output is run again.
    pub restarts: u32,
    /// Routes the conversation's requests to the same prompt cache.
    pub cache_key: String,
}

impl Setup {
    /// Returns an error of this exchange.
    pub(crate) fn error(&self, code: ChatCode, message: impl Into<String>) -> ChatError {
        ChatError::new(&self.conversation_id, Some(&self.message_id), code, message)
    }
}
