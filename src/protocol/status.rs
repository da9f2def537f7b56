//! How a session stands, in one word: for callers without a screen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{ConversationId, MessageId, ToolId};

/// Payload of `session:status-result` and of `session:status-changed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// The word.
    pub state: SessionStateName,
    /// What somebody has to answer, the oldest first: 64 of them at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Required>,
    /// How many there are in all, where they are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_total: Option<usize>,
}

/// How a session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStateName {
    /// Nothing runs. What waits since the daemon was started anew does not run.
    #[default]
    Idle,
    /// An exchange runs, and nobody has to answer anything.
    Running,
    /// Somebody has to answer something; others may run meanwhile.
    RequiresAction,
    /// Nothing runs, and the last exchange of a conversation ended by `error` or `timeout`.
    Failed,
}

/// Something that somebody has to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Required {
    /// What it is.
    pub kind: RequiredKind,
    /// Whose.
    pub conversation_id: ConversationId,
    /// Which exchange's.
    pub message_id: MessageId,
    /// Which call's; absent for a question about money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// The `requestId` of a request for input, or of a question about money or files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The host, where a command asks to connect to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// What somebody has to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequiredKind {
    /// A `chat:tool-confirm`, by `chat:tool-approve`.
    Approval,
    /// A `chat:tool-input-request`, by `chat:tool-input`.
    Input,
    /// A `chat:budget-confirm`, by `chat:budget-approve`.
    Budget,
    /// A `chat:trust-confirm`, by `chat:trust-approve`.
    Trust,
    /// A `chat:tool-call`, by `chat:tool-output`.
    ToolOutput,
}
