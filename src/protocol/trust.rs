//! Files of a project whose words may speak for the user: the question whether they may, its answer, and which are read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::Remember;
use super::event::By;
use crate::message::{ConversationId, MessageId, TrustId};

/// A file whose words the model is told as the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionFile {
    /// Its path: relative to the project, or absolute where it is the user's own.
    pub path: String,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Whose it is.
    pub source: InstructionSource,
    /// Whether it is known already that the model is told it; else the user is asked first.
    pub trusted: bool,
}

/// Whose a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InstructionSource {
    /// The user's own, in the folder of the configuration.
    User,
    /// The project's.
    Project,
}

/// Payload of `chat:instructions`: what the model is told from now on has changed within an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionsChanged {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// All files that it is told of now.
    pub files: Vec<InstructionFile>,
}

/// Payload of `chat:trust-confirm`: files of the project are there whose words the model would be told as the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustConfirm {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange waits.
    pub message_id: MessageId,
    /// What an answer names.
    pub request_id: TrustId,
    /// The files, whole: what is told is what is here, whatever they hold later.
    pub files: Vec<TrustFile>,
    /// How far a yes reaches: for these contents at these paths.
    pub remember: Remember,
    /// When the question lapses, RFC 3339; absent where it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// A file that the user is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustFile {
    /// Its path, relative to the project.
    pub path: String,
    /// What it is.
    pub kind: TrustKind,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// What it says, whole: without secrets, what is invisible escaped.
    pub text: String,
}

/// What a file is that the user is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TrustKind {
    /// Standing instructions.
    Instructions,
    /// A skill.
    Skill,
}

/// Payload of `skill:list-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsListed {
    /// The user's own first; of two of one name the first one counts.
    pub skills: Vec<SkillListed>,
    /// What is no skill though it looks like one, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A skill in `skill:list-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillListed {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its folder: relative to the project, or absolute where it is the user's own.
    pub folder: String,
    /// The SHA-256 of its `SKILL.md`, in hexadecimal digits.
    pub sha256: String,
    /// How many bytes that has.
    pub bytes: u64,
    /// Whose it is.
    pub source: InstructionSource,
    /// Whether it is known already that the model is told of it; else the user is asked first.
    pub trusted: bool,
    /// What its author lets it use; it allows nothing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<String>,
}

/// Payload of `chat:trust-approve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustApprove {
    /// The id from `chat:trust-confirm`.
    #[serde(alias = "request_id")]
    pub request_id: TrustId,
    /// Whether the model is told these files.
    pub approved: bool,
}

/// Payload of `chat:trust-approve-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustTaken {
    /// Which question.
    pub request_id: TrustId,
    /// Whether the answer counted.
    pub accepted: bool,
}

/// Payload of `chat:trust-resolved`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustResolved {
    /// Which conversation.
    pub conversation_id: ConversationId,
    /// Which exchange.
    pub message_id: MessageId,
    /// Which question.
    pub request_id: TrustId,
    /// How.
    pub outcome: TrustOutcome,
    /// By whom.
    pub by: By,
}

/// How the question was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TrustOutcome {
    /// The model is told the files.
    Trusted,
    /// It is not.
    Refused,
    /// Nobody answered in time: it is not.
    Expired,
    /// The exchange ended first.
    Cancelled,
}
