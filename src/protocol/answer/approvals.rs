//! Answers about what the user said that counts for later calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{ConversationId, SessionId};
use crate::permission::Remember;

/// Payload of `approval:list-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRules {
    /// Those that may count in this session, in the order in which they were given.
    pub rules: Vec<ApprovalRule>,
}

/// An answer that counts for later calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRule {
    /// Its id, for `approval:revoke`.
    pub rule_id: String,
    /// The tool that it is for; absent where it is for hosts or files, whichever tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// What it is for, in words; secrets are left out.
    pub matches: String,
    /// Whether that runs without a question; else it is refused without one.
    pub approved: bool,
    /// How far it reaches.
    pub scope: Remember,
    /// With the scope `conversation`: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// With the scope `project`: its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Why it is refused, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The session it was given in.
    pub session_id: SessionId,
    /// When it was given, RFC 3339.
    pub given_at: String,
    /// Whether it counts: not an approval that reaches further than the operator lets them (`approval.remember`).
    pub in_force: bool,
}

/// Payload of `approval:revoke-result`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalsRevoked {
    /// Which count no more; none where the scope had none.
    pub rule_ids: Vec<String>,
}
