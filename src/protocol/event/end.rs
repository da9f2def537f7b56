//! Payloads of the events that end an exchange: what went wrong, and what it came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tokens;
pub use crate::message::StopReason;
use crate::message::{BudgetScope, ConversationId, MessageId, Money};
use crate::protocol::code::ChatCode;

/// Payload of `chat:error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatError {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange; absent where the send was not admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// What went wrong, for programs.
    pub code: ChatCode,
    /// What went wrong, for people.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether sending again may help.
    pub retryable: bool,
    /// The provider's HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// When to try again, in milliseconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The provider instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// `budget_exhausted`: what the cap is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<BudgetScope>,
    /// `budget_exhausted`, of a day: when the next one begins, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<String>,
}

impl ChatError {
    /// An error of an exchange, or of a send that was not admitted, which sending again does not help.
    pub fn new(
        conversation_id: &ConversationId,
        message_id: Option<&MessageId>,
        code: ChatCode,
        message: impl Into<String>,
    ) -> Self {
        Self {
            conversation_id: conversation_id.clone(),
            message_id: message_id.cloned(),
            code,
            message: message.into(),
            hint: None,
            retryable: false,
            http_status: None,
            retry_after_ms: None,
            provider: None,
            scope: None,
            resets_at: None,
        }
    }
}

/// Payload of `chat:output`: the answer as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswerOutput {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// An object that fits the schema.
    pub output: serde_json::Value,
}

/// Payload of `chat:stream-end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamEnd {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Whether what was shown of a turn is not whole: text was cut or, where the provider failed, thinking or a call.
    pub partial: bool,
    /// Provider calls that ended well.
    pub turns: u32,
    /// Calls that the model made.
    pub tool_calls: u32,
    /// Sums over the turns.
    pub usage: Tokens,
    /// What it cost in US dollars, where all of it was counted and has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Money>,
    /// What of it counts against caps, where anything has a price: turns that broke off are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_usd: Option<Money>,
    /// Whether a part of `spentUsd` is an estimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// From `stream-start` to the end.
    pub duration_ms: u64,
}
