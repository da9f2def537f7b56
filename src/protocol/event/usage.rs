//! Tokens as the events have them: of a turn, summed up, and in the context. Counted elsewhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::message::Tokens;
use crate::message::{ConversationId, MessageId};
use crate::protocol::budget::BudgetUse;

/// Payload of `chat:usage`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnUsage {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which turn of it.
    pub turn: u32,
    /// Its tokens.
    #[serde(flatten)]
    pub tokens: Tokens,
    /// How full the context is.
    pub context: Context,
    /// How much is spent of the cap of which least is left, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetUse>,
}

/// How full the model's context is, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// What the next request will hold, estimated where the provider has not counted it yet.
    pub used: u64,
    /// The model's window, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What is left of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
}
