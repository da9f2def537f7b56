//! Requests about answers that count for later calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::ConversationId;
use crate::permission::Remember;

/// Payload of `approval:list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalList {
    /// Only those that reach so far; all that may count in this session where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Remember>,
}

/// Payload of `approval:revoke`: one answer, or all of a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalRevoke {
    /// Which, as `approval:list` names it.
    #[serde(alias = "rule_id", skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<String>,
    /// All that reach so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Remember>,
    /// With the scope `conversation`: only those of this one.
    #[serde(alias = "conversation_id", skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
}
