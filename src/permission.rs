//! Decides of each call whether it runs, is asked for, or is refused, and says why. Pure.
//!
//! Trust level, scope (workflow and what a send narrowed it to) and facts about the call go in; a
//! decision comes out. Nothing here asks anybody, opens a path or parses a command.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{Money, OnViolation, TrustLevel};
use crate::units::{Share, Timeout};

pub mod decision;
mod freedom;
pub mod rule;
pub mod scope;

pub use decision::{Decision, Subject, decide};
pub(crate) use freedom::Freedom;
pub use rule::Remember;
pub use scope::{Permissions, Scope};

/// A named way of working: prompt, model, trust, limits and permissions.
#[derive(Clone, Debug, Default)]
pub struct Workflow {
    /// The system prompt; the configuration's where absent.
    pub system_prompt: Option<String>,
    /// How much is done without asking.
    pub trust_level: Option<TrustLevel>,
    /// What becomes of an exchange in which a path leaves the roots or is denied.
    pub on_violation: Option<OnViolation>,
    /// Provider instance.
    pub provider: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Limits of an exchange.
    pub limits: Limits,
    /// What tools may do; none means read-only.
    pub permissions: Arc<Permissions>,
}

/// Limits of an exchange; the configuration's where absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Most turns; 1 to 200.
    #[serde(default, alias = "max_turns", skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Longest duration in milliseconds, waiting for the user not counted.
    #[serde(default, alias = "timeout_ms", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Tokens of context kept free for the last answer.
    #[serde(alias = "context_reserve", skip_serializing_if = "Option::is_none")]
    pub context_reserve: Option<u64>,
    /// From which share of the model's window on the conversation is compacted, 0 to 1; 0 for never.
    #[serde(alias = "compact_at", skip_serializing_if = "Option::is_none")]
    pub compact_at: Option<Share>,
    /// Most that it may cost in US dollars, by the prices of the model.
    #[serde(
        default,
        alias = "max_cost_usd",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_cost_usd: Option<Money>,
    /// Most fresh tokens: input that no cache had, and output.
    #[serde(
        default,
        alias = "max_fresh_tokens",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_fresh_tokens: Option<u64>,
}

/// Permissions by tool name, or by a pattern with `*` for MCP tools.
pub type PermissionMap = BTreeMap<String, Permission>;

/// What one tool may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Permission {
    /// Whether the tool is offered at all.
    pub allowed: bool,
    /// Globs, relative to both roots, that its paths must match; all paths where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Longest run of one call: `"120s"` or milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
    /// Patterns over the words of each simple command: where all match, it is not asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Patterns over the words of each simple command: where one matches, it is refused, and where one may, it is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Whether commands classed dangerous are in scope.
    #[serde(alias = "allow_dangerous")]
    pub allow_dangerous: bool,
    /// Whether commands may use the network without a question.
    #[serde(alias = "allow_network")]
    pub allow_network: bool,
}

/// What becomes of calls that the user would be asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalPolicy {
    /// They are refused, without a question.
    DenyAll,
    /// The user is asked.
    #[default]
    Ask,
    /// The user is asked, but for commands that are proven to read only.
    AutoApproveSafe,
    /// They run, without a question, as if somebody had said yes. What is blocked or denied stays so.
    AllowAll,
}

impl ApprovalPolicy {
    /// Returns what is left of it for who may have no more done without asking than this: below `autonomous`, calls that are
    /// asked for do not run without an answer.
    #[must_use]
    pub(crate) fn capped(self, most: TrustLevel) -> Self {
        match self {
            Self::AllowAll if most < TrustLevel::Autonomous => Self::Ask,
            policy => policy,
        }
    }

    /// Returns whether more is done without a question than by another one.
    pub fn is_looser(self, other: Self) -> bool {
        let freedom = |policy| match policy {
            Self::DenyAll => 0,
            Self::Ask => 1,
            Self::AutoApproveSafe => 2,
            Self::AllowAll => 3,
        };
        freedom(self) > freedom(other)
    }
}

/// Whether commands may use the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    /// The call asks for it and the user decides.
    #[default]
    Ask,
    /// Always.
    On,
    /// Never.
    Off,
}
