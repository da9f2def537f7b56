//! The end of an exchange, and of the chat: how it went, and what was refused since nobody could be asked. Pure.

use std::collections::BTreeSet;

use super::{Action, End, Talk};
use crate::message::{StopReason, TrustLevel};
use crate::plain_text::exposed_line;
use crate::plain_text::style::Style;
use crate::protocol::event::ToolOutcome;

/// Most hosts that are named; further ones are left out.
const MAX_HOSTS: usize = 64;

/// What was refused since nobody could be asked.
#[derive(Debug, Default)]
pub(super) struct Refused {
    calls: u32,
    hosts: BTreeSet<String>,
}

impl Refused {
    fn is_empty(&self) -> bool {
        self.calls == 0 && self.hosts.is_empty()
    }

    /// Returns what it was, with its verb.
    fn text(&self) -> String {
        let hosts: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
        let calls = match self.calls {
            0 => None,
            1 => Some("1 call".to_owned()),
            count => Some(format!("{count} calls")),
        };
        let hosts = match hosts.len() {
            0 => None,
            1 => Some(format!("1 host ({})", hosts.concat())),
            count => Some(format!("{count} hosts ({})", hosts.join(", "))),
        };
        let is_one = self.calls as usize + self.hosts.len() == 1;
        let what: Vec<String> = calls.into_iter().chain(hosts).collect();
        let verb = if is_one { "was" } else { "were" };
        format!("{} {verb} refused", what.join(" and "))
    }
}

impl Talk {
    /// Counts a call that was refused since nobody could be asked, and hosts that one did not reach for the same reason; those of
    /// a task, too.
    pub(super) fn count(&mut self, result: &ToolOutcome) {
        let Some(facts) = result.metadata.as_ref().filter(|_| !self.options.attended) else {
            return;
        };
        let refused = &mut self.refused_unattended;
        refused.calls += u32::from(facts.unattended || facts.expired);
        let mut hosts = facts.unanswered_hosts.clone();
        if let Some(task) = &facts.task {
            refused.calls += task.unattended_calls;
            hosts.extend_from_slice(&task.unanswered_hosts);
        }
        for host in &hosts {
            if refused.hosts.len() < MAX_HOSTS {
                refused.hosts.insert(exposed_line(host));
            }
        }
    }

    /// Ends; says what to do about what was refused without anybody being asked.
    pub(super) fn quit(&mut self, well: bool) {
        let refused = &self.refused_unattended;
        if !refused.is_empty() {
            let answers = match self.options.no_stdin {
                true => None,
                false => Some("answers are read from stdin (y, n, a)"),
            };
            // What is asked for under it, too, only the operator's words can allow.
            let calls = match self.trust == Some(TrustLevel::Autonomous) {
                true => {
                    "a workflow of the configuration can allow more (docs/protocol.md, permissions)"
                }
                false => "--trust-level autonomous asks less",
            };
            let hosts = "`tools.bash.hosts` of the configuration lists hosts that need no question";
            let asks_less = [
                answers,
                (refused.calls > 0).then_some(calls),
                (!refused.hosts.is_empty()).then_some(hosts),
            ];
            let asks_less: Vec<&str> = asks_less.into_iter().flatten().collect();
            let refused = refused.text();
            self.say(
                Style::Yellow,
                format!(
                    "{refused}, since nobody could be asked: {}",
                    asks_less.join(", and ")
                ),
            );
        }
        let is_refused = !self.refused_unattended.is_empty();
        self.actions.push(Action::Quit(match (well, is_refused) {
            (false, _) if self.is_over_budget => End::Budget,
            (false, _) => End::Badly,
            (true, false) => End::Well,
            (true, true) => End::Refused,
        }));
    }
}

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
