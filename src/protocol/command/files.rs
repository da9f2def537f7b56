//! Requests about files that calls changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{ConversationId, MessageId, ToolId};

/// Payload of `files:changes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FilesChanges {
    /// Only those in this conversation.
    #[serde(alias = "conversation_id", skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// Only those of this exchange and later ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<MessageId>,
    /// At most so many; 1 to 200, 50 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// `nextCursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Payload of `files:revert`: one of the two ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FilesRevert {
    /// The exchange whose changes are undone, or the `messageId` that an earlier `files:revert` was answered with.
    #[serde(alias = "message_id", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The one call whose change is undone.
    #[serde(alias = "tool_id", skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
}
