//! What a client sets for a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::TrustLevel;
use crate::permission::ApprovalPolicy;
use crate::protocol::budget::SessionBudget;

/// Payload of `session:configure`; what is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Configure {
    /// How much is done without asking.
    #[serde(alias = "trust_level", skip_serializing_if = "Option::is_none")]
    pub trust_level: Option<TrustLevel>,
    /// What becomes of calls that the user would be asked about.
    #[serde(alias = "approval_policy", skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<ApprovalPolicy>,
    /// Provider instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model; empty for the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which layers of events are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<Layer>>,
    /// Named workflow; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// Whether somebody here answers what MCP servers ask of the user in the middle of a call.
    #[serde(alias = "input_requests", skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<bool>,
    /// Whether somebody here answers whether files of the project may speak for the user.
    #[serde(alias = "trust_questions", skip_serializing_if = "Option::is_none")]
    pub trust_questions: Option<bool>,
    /// Absolute path of the folder to work in: one that the operator allows (`project.allowed`), or the daemon's own
    /// project. Only while the session has no conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `true`: nothing of this session is kept from now on, and what was kept is deleted; it ends with the daemon, or
    /// `resumeGraceMs` after its last socket. There is no way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// How much the session may spend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<SessionBudget>,
}

/// A layer of events; `exchange` is always on and not named.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Layer {
    /// Deltas and tool events.
    Stream,
    /// `chat:state`.
    State,
    /// `chat:message`: whole messages.
    Message,
    /// `session:updated`: what changes about kept sessions, this one and others.
    Sessions,
    /// `session:status-changed`: how the session stands, in one word.
    Status,
    /// What tasks do, besides what they ask; each event only where its own layer is wanted, too.
    Tasks,
    /// `mcp:log` and `mcp:changed`: what MCP servers say by themselves.
    Servers,
    /// Always on; accepted so that a client may name it.
    Exchange,
}
