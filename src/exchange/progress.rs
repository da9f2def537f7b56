//! What an exchange counts from turn to turn, and what it comes to.

use super::ledger::{Ledger, Spent};
use crate::protocol::event::{ChatError, StopReason};

/// How an exchange ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// Why; `None` counts as an error. The conversation knows better where it cancelled.
    pub stop: Option<StopReason>,
    /// Whether text was cut.
    pub partial: bool,
    /// Turns that ended well.
    pub turns: u32,
    /// Calls that the model made.
    pub tool_calls: u32,
    /// What it used.
    pub spent: Spent,
    /// What went wrong.
    pub error: Option<ChatError>,
}

/// Why a loop of turns is left.
pub(super) enum Leave {
    /// With this reason.
    Stop(StopReason),
    /// With this reason and an error.
    Failed(StopReason, ChatError),
}

/// What changes from turn to turn.
pub(super) struct Progress<'a> {
    pub(super) ledger: Ledger<'a>,
    pub(super) turns: u32,
    pub(super) tool_calls: u32,
    /// Whether text was cut.
    pub(super) partial: bool,
    pub(super) text_index: u64,
    pub(super) thinking_index: u64,
    /// Whether the turn before had a call cut off by the token limit.
    pub(super) truncated: bool,
    /// Whether the turn before ended in results.
    pub(super) after_results: bool,
    /// Calls whose path left the roots or is denied.
    pub(super) violations: u32,
    /// Whether the model was nudged after an empty reply.
    pub(super) nudged: bool,
}

impl<'a> Progress<'a> {
    pub(super) fn new(ledger: Ledger<'a>) -> Self {
        Self {
            ledger,
            turns: 0,
            tool_calls: 0,
            partial: false,
            text_index: 0,
            thinking_index: 0,
            truncated: false,
            after_results: false,
            violations: 0,
            nudged: false,
        }
    }

    pub(super) fn count_calls(&mut self, calls: usize) {
        self.tool_calls += u32::try_from(calls).unwrap_or(u32::MAX);
    }

    pub(super) fn end(self, leave: Leave) -> Ended {
        let (stop, error) = match leave {
            Leave::Stop(stop) => (stop, None),
            Leave::Failed(stop, error) => (stop, Some(error)),
        };
        Ended {
            stop: Some(stop),
            partial: self.partial,
            turns: self.turns,
            tool_calls: self.tool_calls,
            spent: self.ledger.spent(),
            error,
        }
    }
}
