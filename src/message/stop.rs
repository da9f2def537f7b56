//! Why an exchange ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had said what it had to say.
    EndTurn,
    /// The limit of output tokens was reached.
    MaxTokens,
    /// The model wrote a stop sequence.
    StopSequence,
    /// The model refused.
    Refusal,
    /// A filter of the provider stopped it.
    ContentFilter,
    /// The user, or the end of the session, stopped it.
    Cancelled,
    /// It took too long.
    Timeout,
    /// The limit of turns was reached.
    MaxTurns,
    /// The context was nearly full.
    ContextBudget,
    /// A cap on what may be spent was reached.
    Budget,
    /// A call's path left the roots or is denied.
    SandboxViolation,
    /// Something failed.
    Error,
}
