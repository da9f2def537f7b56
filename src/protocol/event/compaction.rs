//! Payload of the event that tells of a compaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tokens;
use crate::message::{CompactionId, ConversationId, MessageId, Money};

/// Payload of `chat:compaction`: what the model sees of a conversation is made shorter. What is kept of it, and
/// `chat:history` returns, stays whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The exchange in which it happens; absent for `chat:compact`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The same on all events of this compaction.
    pub compaction_id: CompactionId,
    /// How far it is.
    pub phase: CompactionPhase,
    /// What is done, and with `done` what was.
    pub kind: CompactionKind,
    /// Why.
    pub trigger: CompactionTrigger,
    /// Tokens of the next request before it.
    pub before_tokens: u64,
    /// The model's window, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// `failed`: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<CompactionFailure>,
    /// What the model was asked for it took; absent where none was, and with `started`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// What that cost, in US dollars, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Money>,
    /// `done`: what it came to.
    #[serde(default, flatten)]
    pub result: Option<CompactionResult>,
}

/// What a compaction came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// Tokens of the next request after it, estimated.
    pub after_tokens: u64,
    /// Messages that the model sees no more, but for a summary of them.
    pub messages_replaced: usize,
    /// Messages that it sees, some of them perhaps without what was large in them.
    pub messages_kept: usize,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What stands in the place of the messages, up to 32 KiB of it; absent where none was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// How far a compaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionPhase {
    /// It began.
    Started,
    /// The model sees less from now on.
    Done,
    /// Everything stays as it was.
    Failed,
}

/// How a conversation is made shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionKind {
    /// Large old results are left out.
    Prune,
    /// A model sums it up.
    Summary,
    /// It is summed up without a model.
    Mechanical,
    /// The vendor compacts it in its own form.
    Native,
}

/// Why a conversation is made shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionTrigger {
    /// It fills the window as far as `compaction.at` says.
    Auto,
    /// The provider said that it does not fit.
    Overflow,
    /// `chat:compact`.
    Manual,
    /// The next model has a smaller window.
    ModelChange,
}

/// Why a compaction came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionFailure {
    /// What would be left is not enough less.
    NoShrink,
    /// The window was full again too soon, several times: nothing is compacted until the user says something.
    Thrashing,
    /// It was cancelled.
    Cancelled,
    /// What has to stay is too large for the window.
    TooSmall,
}
