//! Answers about kept sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::command::SessionFormat;
use crate::message::{ConversationId, SessionId};

/// Payload of `session:list-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionPage {
    /// The sessions, the one that changed last first; with `query` those in whose name the words are, then by the newest
    /// message that has them.
    pub sessions: Vec<KeptSession>,
    /// Asks for the next page; absent at the end, and with `query`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A session that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptSession {
    /// Its id, to resume it by.
    pub session_id: SessionId,
    /// Its name: the user's, or the first words that were said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The folder it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// When it was begun, RFC 3339.
    pub created_at: String,
    /// When something was said last, RFC 3339.
    pub updated_at: String,
    /// Whether it was put away.
    pub archived: bool,
    /// Its labels, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// How many messages it has.
    pub messages: u64,
    /// Whether it is there now: somebody is on it, or what runs in it goes on.
    pub live: bool,
    /// With `query`: the newest message that has the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
}

/// A piece of a message that has the words that were looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snippet {
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// Its place there, counted from 0.
    pub place: u64,
    /// The words with what stands around them, up to 160 characters.
    pub text: String,
}

/// Payload of `session:rename-result`, `session:archive-result` and `session:label-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionChanged {
    /// Which session.
    pub session_id: SessionId,
}

/// Payload of `session:delete-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionDeleted {
    /// Which session there is no more.
    pub session_id: SessionId,
}

/// Payload of `session:fork-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionForked {
    /// The new session, to resume it by.
    pub session_id: SessionId,
}

/// Payload of `session:export-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionExported {
    /// Which session.
    pub session_id: SessionId,
    /// As what.
    pub format: SessionFormat,
    /// The text of the range.
    pub text: String,
    /// First byte of it.
    pub offset: u64,
    /// Where the next range begins; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// Bytes altogether.
    pub total_bytes: u64,
}

/// Payload of `session:import-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionImported {
    /// Which piece was taken.
    pub part: u64,
    /// After the last piece: the new session, to resume it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// After the last piece: how many messages it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}
