//! When a question to the user expires, and how far a client may move that.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::ApprovalConfig;

#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    opened: Instant,
    /// When the question expires; `None` for never.
    pub(super) at: Option<Instant>,
}

impl Deadline {
    pub(super) fn new(now: Instant, timeout: Option<Duration>) -> Self {
        Self {
            opened: now,
            at: timeout.and_then(|timeout| now.checked_add(timeout)),
        }
    }

    /// Moves the deadline to `approval.timeout` from now, but not beyond `approval.max_timeout` after the question
    /// was opened, and never back. Returns whether it moved.
    pub(super) fn extend(&mut self, now: Instant, rules: &ApprovalConfig) -> bool {
        let (Some(at), Some(timeout)) = (self.at, rules.timeout) else {
            return false;
        };
        let wanted = now.checked_add(timeout);
        let last = self.opened.checked_add(rules.max_timeout);
        let moved = wanted.min(last).filter(|moved| *moved > at);
        self.at = moved.or(self.at);
        moved.is_some()
    }

    /// Returns the deadline as clients are given it, RFC 3339; `None` for never.
    pub(super) fn expires_at(&self, now: Instant) -> Option<String> {
        let left = self.at?.saturating_duration_since(now);
        let at = jiff::Timestamp::now().checked_add(left).ok()?;
        Some(format!("{at:.3}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Unattended;
    use crate::permission::Remember;

    fn rules(timeout: u64, max_timeout: u64) -> ApprovalConfig {
        ApprovalConfig {
            timeout: (timeout > 0).then(|| Duration::from_secs(timeout)),
            max_timeout: Duration::from_secs(max_timeout),
            policy: crate::permission::ApprovalPolicy::Ask,
            auto_approve_safe_commands: false,
            remember: Remember::Session,
            unattended: Unattended::Ask,
        }
    }

    #[test]
    fn a_deadline_moves_on_with_each_sign_up_to_the_longest_and_never_back() {
        let asked = Instant::now();
        let seconds = |of: Option<Instant>| of.map(|at| (at - asked).as_secs());
        // (timeout, max_timeout), then when the client gives a sign and what the deadline is after it.
        for ((timeout, max_timeout), signs) in [
            (
                (30, 60),
                &[
                    (0, Some(30)),
                    (10, Some(40)),
                    (29, Some(59)),
                    (50, Some(60)),
                    (59, Some(60)),
                ][..],
            ),
            // The longest time is shorter than the usual one: nothing is taken away.
            ((30, 10), &[(5, Some(30)), (29, Some(30))]),
            ((30, 0), &[(5, Some(30))]),
            // It never lapses.
            ((0, 60), &[(5, None)]),
        ] {
            let rules = rules(timeout, max_timeout);
            let mut deadline = Deadline::new(asked, rules.timeout);
            for (after, expected) in signs {
                let before = deadline.at;
                let moved = deadline.extend(asked + Duration::from_secs(*after), &rules);
                assert_eq!(
                    seconds(deadline.at),
                    *expected,
                    "{timeout} {max_timeout} {after}"
                );
                assert_eq!(moved, deadline.at != before);
            }
        }
    }
}
