//! Answers that count for later calls, on their way into the store.

use outrigger_store::{Change, Owner};

use super::{Journal, json};
use crate::permission::rule::{Place, Rule};

impl Journal {
    /// Notes an answer that counts for later calls, in the place of others.
    pub(crate) fn rule(&self, rule: &Rule, instead_of: &[String]) {
        if !self.is_on() {
            return;
        }
        let rule = Change::Rule(outrigger_store::Rule {
            id: rule.id.clone(),
            owner: match &rule.place {
                Place::Conversation(conversation) => Owner::Conversation(conversation.to_string()),
                Place::Session => Owner::Session,
                Place::Project(_) | Place::Always => Owner::None,
            },
            rule: json(rule),
        });
        self.write(revoked(instead_of).chain([rule]).collect());
    }

    /// Notes that answers count no more. Of a session that is not kept they are others'.
    pub(crate) fn revoke(&self, ids: &[String]) {
        if let Some(shared) = &self.0
            && !ids.is_empty()
        {
            let order = shared.order.lock();
            shared.outbox.give(&order, revoked(ids).collect());
        }
    }
}

fn revoked(ids: &[String]) -> impl Iterator<Item = Change> {
    ids.iter().map(|id| Change::Revoke { id: id.clone() })
}
