//! When a call has to stop by itself, and the output of one that did.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::{Metadata, Output, Run};

#[derive(Clone, Debug)]
pub(super) struct Stop {
    cancel: CancellationToken,
    /// `None` where it is too far away for the clock.
    deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    Cancelled,
    TimedOut,
}

impl Stop {
    pub(super) fn of(run: &Run<'_>) -> Self {
        Self {
            cancel: run.cancel.clone(),
            deadline: Instant::now().checked_add(run.timeout),
        }
    }

    /// Returns why the call has to stop now; `None` where it may go on.
    pub(super) fn reached(&self) -> Option<Stopped> {
        if self.cancel.is_cancelled() {
            return Some(Stopped::Cancelled);
        }
        self.deadline
            .filter(|deadline| Instant::now() >= *deadline)
            .map(|_| Stopped::TimedOut)
    }
}

impl Stopped {
    /// Returns the output of a call that was stopped before it did anything.
    pub(super) fn output(self) -> Output {
        match self {
            Self::Cancelled => Output::error("the call was cancelled; nothing was changed"),
            Self::TimedOut => Output::error("the time for the call was up; nothing was changed"),
        }
        .with(self.metadata())
    }

    pub(super) fn metadata(self) -> Metadata {
        Metadata {
            cancelled: self == Self::Cancelled,
            timed_out: self == Self::TimedOut,
            ..Metadata::default()
        }
    }
}
