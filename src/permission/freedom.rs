//! How much an exchange does without asking: as its send wants, and no more than each of those may whose words are part of it.

use std::sync::Arc;

use parking_lot::Mutex;

use super::ApprovalPolicy;
use crate::message::TrustLevel;

/// How much an exchange does without asking. Clones are of the same exchange, and so are its tasks: what one of them may no
/// longer, none may.
#[derive(Clone, Debug)]
pub(crate) struct Freedom {
    trust: TrustLevel,
    policy: ApprovalPolicy,
    most: Arc<Mutex<TrustLevel>>,
}

impl Freedom {
    /// Returns what a send wants, whose sender may have so much done.
    pub(crate) fn new(trust: TrustLevel, policy: ApprovalPolicy, most: TrustLevel) -> Self {
        Self {
            trust,
            policy,
            most: Arc::new(Mutex::new(most)),
        }
    }

    /// Returns the trust level that counts now.
    pub(crate) fn trust(&self) -> TrustLevel {
        self.trust.min(self.most())
    }

    /// Returns what becomes now of calls that are asked for.
    pub(crate) fn policy(&self) -> ApprovalPolicy {
        self.policy.capped(self.most())
    }

    /// Returns the most that may be done without asking.
    pub(crate) fn most(&self) -> TrustLevel {
        *self.most.lock()
    }

    /// Has no more be done than somebody else may have done, whose words become part of the exchange.
    pub(crate) fn narrow(&self, most: TrustLevel) {
        let mut known = self.most.lock();
        *known = most.min(*known);
    }

    /// Returns that of a task, which has its own trust level.
    pub(crate) fn of_task(&self, own: Option<TrustLevel>) -> Self {
        Self {
            trust: own.unwrap_or(self.trust).min(self.trust),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_words_become_part_of_an_exchange_narrows_it_and_all_that_it_began() {
        use TrustLevel::{Autonomous, Guided, Supervised};
        let freedom = Freedom::new(Autonomous, ApprovalPolicy::AllowAll, Autonomous);
        let task = freedom.of_task(Some(Guided));
        let now = |it: &Freedom| (it.trust(), it.policy());
        assert_eq!(now(&freedom), (Autonomous, ApprovalPolicy::AllowAll));
        assert_eq!(now(&task), (Guided, ApprovalPolicy::AllowAll));
        for (most, expected, of_task) in [
            (Autonomous, (Autonomous, ApprovalPolicy::AllowAll), Guided),
            (Guided, (Guided, ApprovalPolicy::Ask), Guided),
            (Supervised, (Supervised, ApprovalPolicy::Ask), Supervised),
            // It is not taken back.
            (Autonomous, (Supervised, ApprovalPolicy::Ask), Supervised),
        ] {
            freedom.narrow(most);
            assert_eq!(now(&freedom), expected, "{most:?}");
            assert_eq!(task.trust(), of_task, "{most:?}");
            assert_eq!(task.policy(), expected.1, "{most:?}");
        }
    }

    #[test]
    fn a_task_has_no_more_trust_than_what_is_around_it() {
        use TrustLevel::{Autonomous, Guided, Supervised};
        for (around, own, expected) in [
            (Guided, None, Guided),
            (Guided, Some(Autonomous), Guided),
            (Guided, Some(Supervised), Supervised),
            (Supervised, Some(Guided), Supervised),
            (Autonomous, Some(Guided), Guided),
            (Autonomous, Some(Autonomous), Autonomous),
        ] {
            let around = Freedom::new(around, ApprovalPolicy::Ask, Autonomous);
            assert_eq!(around.of_task(own).trust(), expected, "{around:?} {own:?}");
        }
    }
}
