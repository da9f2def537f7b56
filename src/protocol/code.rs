//! Every code a client can receive, each with its one meaning.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Codes of `session:error`: what is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionCode {
    /// The frame is not one JSON object, or nests deeper than 128.
    InvalidJson,
    /// A field is missing or does not fit; the message names it.
    InvalidPayload,
    /// No request has this type.
    UnknownType,
    /// Binary frames carry nothing here.
    UnsupportedFrame,
    /// No approval with this id is open.
    ApprovalNotFound,
    /// No answer that counts for later calls has this id.
    RuleNotFound,
    /// No request for input with this id is open.
    InputNotFound,
    /// No question about money with this id is open.
    BudgetNotFound,
    /// No question about files with this id is open.
    TrustNotFound,
    /// No send with this id waits.
    NotQueued,
    /// No tool, or no call, has this name or id.
    ToolNotFound,
    /// No conversation has this id.
    ConversationNotFound,
    /// The conversation runs an exchange, or a call works on the files.
    ConversationBusy,
    /// No session has this id, or its grace period is over.
    SessionNotFound,
    /// The events kept no longer reach back to the number asked for.
    ReplayGap,
    /// No provider instance has this id.
    ProviderNotFound,
    /// The provider that was asked lacks its key.
    ProviderNotConfigured,
    /// The provider that was asked refused the key (401, 403).
    ProviderAuth,
    /// The provider that was asked wants to be left alone for a while (429).
    ProviderRateLimited,
    /// The provider that was asked wants money.
    ProviderQuota,
    /// The provider that was asked is overloaded (529, 503).
    ProviderOverloaded,
    /// The provider that was asked cannot be reached, or failed (other 5xx).
    ProviderUnavailable,
    /// The provider that was asked was silent for too long.
    ProviderTimeout,
    /// The answer of the provider that was asked broke its format.
    ProviderProtocol,
    /// The provider that was asked refused the request (400, 404, 422).
    ProviderInvalidRequest,
    /// An MCP server failed or does not exist.
    McpError,
    /// The configuration does not allow it.
    Forbidden,
    /// The configuration that was read again is wrong; the one before stays in force.
    ConfigInvalid,
    /// The client has registered as many tools as it may, or as many bytes of them.
    TooManyTools,
    /// Too many requests, or too many who come back to their sessions at once: `retryAfterMs` says when to come again then.
    RateLimited,
    /// What sessions are kept in does not answer now, or this daemon was silent for so long that others may have its sessions.
    StoreUnavailable,
    /// Another daemon on the same database has the session; try again in a while.
    SessionElsewhere,
    /// The user does, or keeps, as much as one may (`auth.limits`): `retryAfterMs` says when that is over, where it is known.
    QuotaExceeded,
    /// The daemon is about to end and begins nothing new.
    ShuttingDown,
    /// A fault of the daemon.
    Internal,
}

/// Codes of `chat:error`: why an exchange went wrong, or a send was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatCode {
    /// The provider instance does not exist or lacks its key.
    ProviderNotConfigured,
    /// The provider refused the key (401, 403).
    ProviderAuth,
    /// The provider wants to be left alone for a while (429).
    ProviderRateLimited,
    /// The provider wants money.
    ProviderQuota,
    /// The provider is overloaded (529, 503).
    ProviderOverloaded,
    /// The provider cannot be reached, or failed (other 5xx).
    ProviderUnavailable,
    /// The provider was silent for too long.
    ProviderTimeout,
    /// The answer broke its format or ended early.
    ProviderProtocol,
    /// The provider refused the request (400, 404, 422).
    ProviderInvalidRequest,
    /// A cap on what may be spent is reached.
    BudgetExhausted,
    /// Money is capped, and nobody knows what the model costs.
    ModelNotPriced,
    /// The conversation does not fit the model's context.
    ContextOverflow,
    /// The conversation, or all together, have as many bytes as they may have.
    HistoryFull,
    /// The answer does not fit the schema that the send asks for.
    OutputInvalid,
    /// The model cannot call tools.
    ModelNoTools,
    /// A call's path left the roots or is denied.
    SandboxViolation,
    /// The exchange took longer than it may.
    ExchangeTimeout,
    /// The conversation's queue is full.
    QueueFull,
    /// The conversation runs an exchange, and the send asked to be rejected then.
    ConversationBusy,
    /// The daemon stopped while the exchange ran.
    Interrupted,
    /// A fault of the daemon.
    Internal,
}

impl From<ChatCode> for SessionCode {
    /// Returns the code of the same name; `internal` for what befalls exchanges alone.
    fn from(code: ChatCode) -> Self {
        let same = serde_json::to_value(code).and_then(serde_json::from_value);
        same.unwrap_or(Self::Internal)
    }
}
