//! Requests about what ran: records, sums, and records for other programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::ConversationId;
use crate::protocol::record::ExecutionStatus;

/// Whose calls are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// This session's.
    #[default]
    Session,
    /// Those of all sessions that are kept.
    Daemon,
}

/// Payload of `tool:history`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolHistory {
    /// Whose calls.
    pub scope: Scope,
    /// Only of conversations with this id.
    #[serde(alias = "conversation_id", skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// Only of exchanges with this provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Only this tool's.
    #[serde(alias = "tool_name", skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Only with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ExecutionStatus>,
    /// Only started at or after this time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Only started before this time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Most records; 50 where absent, 1,000 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The `nextCursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Payload of `tool:metrics`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsRequest {
    /// Whose calls.
    pub scope: Scope,
    /// Of the last so many days (UTC), today among them; 1 to 800. Where absent, of all that there are sums of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub days: Option<u32>,
}

/// How records are written for other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ExportFormat {
    /// One record a line, as JSON.
    Jsonl,
    /// Comma-separated values as in RFC 4180.
    Csv,
}

/// Payload of `tool:export`; all but `format` as in `tool:history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolExport {
    /// How they are written.
    pub format: ExportFormat,
    /// Whose calls.
    #[serde(default)]
    pub scope: Scope,
    /// Only of conversations with this id.
    #[serde(
        alias = "conversation_id",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub conversation_id: Option<ConversationId>,
    /// Only of exchanges with this provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Only this tool's.
    #[serde(alias = "tool_name", default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Only with this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ExecutionStatus>,
    /// Only started at or after this time, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Only started before this time, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Most records of this piece; 1,000 where absent, and at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The `nextCursor` of the piece before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl ToolExport {
    /// Returns how the format is written, and the request for its records.
    pub fn into_history(self) -> (ExportFormat, ToolHistory) {
        let wanted = ToolHistory {
            scope: self.scope,
            conversation_id: self.conversation_id,
            provider: self.provider,
            tool_name: self.tool_name,
            status: self.status,
            since: self.since,
            until: self.until,
            limit: self.limit,
            cursor: self.cursor,
        };
        (self.format, wanted)
    }
}
