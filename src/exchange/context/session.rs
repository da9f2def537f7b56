//! What all exchanges of a session share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::exchange::executions::Executions;
use crate::exchange::ledger::Totals;
use crate::exchange::questions::QuestionRegistry;
use crate::exchange::transcript::Events;
use crate::message::{InputId, MessageId, SessionId, ToolId};
use crate::sandbox::quota::WriteQuota;

/// A session, as its exchanges see it.
#[derive(Clone)]
pub struct SessionContext {
    /// Its id, for the audit log.
    pub id: SessionId,
    /// Where events go.
    pub events: Events,
    /// The records of its calls.
    pub executions: Arc<Executions>,
    /// Mints the ids of exchanges and calls.
    pub ids: Arc<Ids>,
    /// What the session may still write.
    pub quota: Arc<WriteQuota>,
    /// Whose open question is whose.
    pub questions: Arc<QuestionRegistry>,
    /// What its exchanges have used.
    pub totals: Arc<Totals>,
}

/// Mints the ids of a session: short, so that a person can type them.
#[derive(Debug, Default)]
pub struct Ids {
    messages: AtomicU64,
    tools: AtomicU64,
    inputs: AtomicU64,
}

impl Ids {
    /// Returns the next exchange's id: `m1`, `m2`, ….
    pub fn message(&self) -> MessageId {
        MessageId::new(format!(
            "m{}",
            self.messages.fetch_add(1, Ordering::Relaxed) + 1
        ))
    }

    /// Returns the next call's id: `t1`, `t2`, …; see also [`Ids::taken`].
    pub fn tool(&self) -> ToolId {
        ToolId::new(format!(
            "t{}",
            self.tools.fetch_add(1, Ordering::Relaxed) + 1
        ))
    }

    /// Returns the next request's for input: `i1`, `i2`, ….
    pub fn input(&self) -> InputId {
        InputId::new(format!(
            "i{}",
            self.inputs.fetch_add(1, Ordering::Relaxed) + 1
        ))
    }

    /// Notes a call that a client's own history has: no later call gets its id.
    pub fn taken(&self, id: &ToolId) {
        let number = id.as_str().strip_prefix('t').map(str::parse::<u32>);
        if let Some(Ok(number)) = number {
            self.tools.fetch_max(u64::from(number), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_gets_an_id_that_a_history_has() {
        let ids = Ids::default();
        assert_eq!(ids.tool().as_str(), "t1");
        for (taken, next) in [
            ("t4", "t5"),
            ("t2", "t6"),
            ("t", "t7"),
            ("call_9", "t8"),
            // No daemon comes so far.
            ("t99999999999999999999", "t9"),
            ("t18446744073709551615", "t10"),
        ] {
            ids.taken(&ToolId::new(taken));
            assert_eq!(ids.tool().as_str(), next, "{taken}");
        }
    }
}
