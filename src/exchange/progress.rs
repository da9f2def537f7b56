//! What an exchange counts from turn to turn, and what it comes to.

use std::sync::Arc;

use super::ledger::Spent;
use super::turn::ToolOffer;
use crate::protocol::event::{ChatError, StopReason};

/// How an exchange ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Why; `None` counts as an error. The conversation knows better where it cancelled.
    pub stop: Option<StopReason>,
    /// Whether text was cut.
    pub partial: bool,
    /// Turns that ended well.
    pub turns: u32,
    pub tool_calls: u32,
    pub spent: Spent,
    pub error: Option<ChatError>,
}

/// Why a loop of turns is left.
pub(super) enum Leave {
    Stop(StopReason),
    Failed(StopReason, ChatError),
}

/// What changes from turn to turn.
#[derive(Default)]
pub(super) struct Progress {
    /// What it has come to so far.
    pub(super) ended: Ended,
    /// The tools of the turn before.
    pub(super) offer: Option<Arc<ToolOffer>>,
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

impl Progress {
    pub(super) fn count_calls(&mut self, calls: usize) {
        self.ended.tool_calls += u32::try_from(calls).unwrap_or(u32::MAX);
    }
}
