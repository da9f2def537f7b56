//! What one exchange is to do: everything that is settled before its first turn.

use std::sync::Arc;
use std::time::Duration;

use crate::message::{ConversationId, MessageId, OnViolation, Part, Thinking, TrustLevel};
use crate::permission::Scope;
use crate::provider::Provider;

/// One exchange, resolved from the send, the session, the workflow and the configuration.
#[derive(Clone)]
pub struct Setup {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// What the user says.
    pub content: Vec<Part>,
    /// Who answers.
    pub provider: Arc<dyn Provider>,
    /// The provider instance's name.
    pub provider_id: String,
    /// The model's id; empty until its exchange begins, where nobody names one.
    pub model: String,
    /// The system prompt.
    pub system: String,
    /// How much is done without asking.
    pub trust: TrustLevel,
    /// What becomes of the exchange where a call's path leaves the roots or is denied.
    pub on_violation: OnViolation,
    /// What tools may do.
    pub scope: Scope,
    /// Most tokens of each answer.
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Thinking.
    pub thinking: Option<Thinking>,
    /// Most turns.
    pub max_turns: u32,
    /// Longest duration without tools on offer.
    pub timeout_plain: Duration,
    /// Longest duration with tools on offer.
    pub timeout_tools: Duration,
    /// Tokens kept free for the last answer.
    pub context_reserve: u64,
    /// Most retries of a turn.
    pub max_retries: u32,
    /// How often a turn that broke off after output is run again.
    pub restarts: u32,
    /// Routes the conversation's requests to the same prompt cache.
    pub cache_key: String,
}
