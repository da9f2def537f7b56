//! What the end of an exchange says. Pure.

use crate::message::StopReason;

/// Whether an exchange that ended so has answered what it was asked.
pub(super) fn went_well(reason: StopReason) -> bool {
    match reason {
        StopReason::EndTurn
        | StopReason::MaxTokens
        | StopReason::StopSequence
        | StopReason::Refusal
        | StopReason::ContentFilter
        | StopReason::MaxTurns
        | StopReason::ContextBudget => true,
        StopReason::Cancelled
        | StopReason::Timeout
        | StopReason::Budget
        | StopReason::SandboxViolation
        | StopReason::Error => false,
    }
}
