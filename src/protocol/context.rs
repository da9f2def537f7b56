//! Where the window of a conversation's model goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::ConversationId;

/// Payload of `chat:context-result`: what the next request of a conversation would hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextUse {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// The provider instance.
    pub provider: String,
    /// The model; empty where the provider has not said yet which one it is.
    pub model: String,
    /// All tokens: counted by the provider and, since that, estimated.
    pub used: u64,
    /// The model's window; absent where nobody knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// From how many tokens on the conversation is compacted; absent where nobody knows the window, or it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_at: Option<u64>,
    /// What they are for, in the order of a request; together they are `used`.
    pub parts: Vec<ContextPart>,
}

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextPart {
    /// What it is.
    pub kind: ContextKind,
    /// Of `tools`: whose they are, such as `core`, `client` or `mcp:NAME`; of `instructions`: the file; of `skills`: the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// About how many tokens.
    pub tokens: u64,
    /// How many there are: tools, messages, results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// What a part of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ContextKind {
    /// The system prompt.
    System,
    /// Descriptions of tools.
    Tools,
    /// Standing instructions from files.
    Instructions,
    /// The name and description of a skill.
    Skills,
    /// What the user and the model said; what stands in the place of left-out messages is among it.
    History,
    /// Results of calls.
    Results,
}
