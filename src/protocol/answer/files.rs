//! Answers about files that calls changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{ChangedFiles, ConversationId, MessageId, NotReverted, ToolId};

/// Payload of `files:changes-result`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChanges {
    /// The changes, the newest first.
    pub changes: Vec<FilesChanged>,
    /// Asks for the next page; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What one call changed, or the user put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesChanged {
    /// In which conversation.
    pub conversation_id: ConversationId,
    /// The exchange, or the id of what the user put back.
    pub message_id: MessageId,
    /// The call; absent where the user put a file back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// When, RFC 3339.
    pub at: String,
    /// The folder that the files are below, an absolute path; absent for those of a command, which are below the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The file, or those of a command.
    #[serde(flatten)]
    pub files: ChangedFiles,
    /// A unified diff, without secrets; absent where one of the two is no text, and for those of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why `files:revert` leaves it, whatever the file is by now; absent where it may put it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotReverted>,
}

/// Payload of `files:revert-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesReverted {
    /// Undoes this, as `messageId` of another `files:revert`; absent where nothing was put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// What became of each file.
    pub files: Vec<FileReverted>,
    /// How many more files were left that commands changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileReverted {
    /// Its path below `root`, or below the project.
    pub path: String,
    /// The folder that it is below, an absolute path; absent for those of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Whether it was put back.
    pub outcome: RevertOutcome,
    /// Why it was left, or not put back further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotReverted>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Whether a file was put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RevertOutcome {
    /// It is as it was before.
    Reverted,
    /// The later of several changes are undone.
    Partly,
    /// It was not touched.
    Left,
}
