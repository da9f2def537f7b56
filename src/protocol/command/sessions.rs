//! Requests about kept sessions: this one and others.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::default_conversation;
use crate::message::{ConversationId, SessionId};

/// Payload of `session:list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionList {
    /// Words that the user or the model said, or that are in the name; each has to be there, the last one, from three
    /// letters on, perhaps as a beginning. The first 32 words and 256 characters count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Only those that work in this folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Those that were put away, instead of the others.
    pub archived: bool,
    /// Only those that have each of these labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// At most so many; 1 to 200, 50 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// `nextCursor` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Payload of `session:rename`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRename {
    /// Which session; this one where absent.
    #[serde(default, alias = "session_id", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Its name, 1 to 200 characters.
    pub title: String,
}

/// Payload of `session:archive`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionArchive {
    /// Which session; this one where absent.
    #[serde(default, alias = "session_id", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Whether it is put away; `false` takes it back.
    #[serde(default = "yes")]
    pub archived: bool,
}

/// Payload of `session:label`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionLabel {
    /// Which session; this one where absent.
    #[serde(default, alias = "session_id", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Its labels, in place of those that it has: up to 16, of 1 to 64 characters.
    pub labels: Vec<String>,
}

/// Payload of `session:export`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionExport {
    /// Which session; this one where absent.
    #[serde(alias = "session_id", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// As what.
    pub format: SessionFormat,
    /// First byte. With 0 the session is exported as it is now; what follows is of that.
    pub offset: u64,
    /// Most bytes; 256 KiB where absent, 1 MiB at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// What a session is exported as.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum,
)]
#[serde(rename_all = "camelCase")]
pub enum SessionFormat {
    /// JSON lines, of which `session:import` makes the session again.
    #[default]
    Jsonl,
    /// Markdown, for people; without attachments.
    Markdown,
}

/// Payload of `session:import`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionImport {
    /// A piece of the file, cut wherever it may be.
    pub text: String,
    /// Which piece, counted from 0; with 0 a file begins, in place of one that was not finished.
    #[serde(default)]
    pub part: u64,
    /// Whether further pieces follow.
    #[serde(default)]
    pub more: bool,
}

impl std::fmt::Debug for SessionImport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionImport")
            .field("part", &self.part)
            .field("more", &self.more)
            .finish_non_exhaustive()
    }
}

/// Payload of `session:delete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionDelete {
    /// Which session; not this one.
    #[serde(alias = "session_id")]
    pub session_id: SessionId,
}

/// Payload of `session:fork`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionFork {
    /// Which session; this one where absent.
    #[serde(default, alias = "session_id", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// With `before`: the conversation that is taken; `default` where absent.
    #[serde(
        default,
        alias = "conversation_id",
        skip_serializing_if = "Option::is_none"
    )]
    pub conversation_id: Option<ConversationId>,
    /// How many messages of the conversation are taken, its first ones, as `chat:history` counts them; 1 to how many
    /// there are. All of all conversations are taken where neither is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

impl SessionFork {
    /// Returns the one conversation that is taken, where not all are, and up to where.
    pub fn part(&self) -> Option<(ConversationId, Option<u64>)> {
        if self.conversation_id.is_none() && self.before.is_none() {
            return None;
        }
        let id = self.conversation_id.clone();
        Some((id.unwrap_or_else(default_conversation), self.before))
    }
}

fn yes() -> bool {
    true
}
