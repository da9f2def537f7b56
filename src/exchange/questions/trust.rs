//! Questions whether files of the project may speak for the user.

use std::time::Duration;

use tokio::sync::oneshot;

use super::{Action, Open, Question, QuestionId, Questions, Unanswered};
use crate::config::ApprovalConfig;
use crate::exchange::context::Context;
use crate::permission::Remember;
use crate::permission::rule::Key;
use crate::protocol::event::{By, Event, SessionError};
use crate::protocol::trust::{TrustApprove, TrustConfirm, TrustOutcome, TrustResolved, TrustTaken};

pub(crate) struct TrustQuestion {
    /// What the user is shown; its deadline is set when it is announced.
    pub confirm: TrustConfirm,
    /// What an answer is kept for: each of the files.
    pub keys: Vec<Key>,
    pub decided: oneshot::Sender<TrustOutcome>,
}

/// Returns how long such a question stays open: a text takes longer to be read than a command, and only clients are asked
/// that said that they answer.
pub(super) fn patience(approval: &ApprovalConfig) -> Option<Duration> {
    let timeout = approval.timeout?;
    Some(timeout.max(approval.max_timeout))
}

impl Questions {
    /// Takes a client's answer.
    pub(super) fn trust(
        &self,
        answer: TrustApprove,
        context: &Context,
    ) -> Result<Event, SessionError> {
        let id = QuestionId::Trust(answer.request_id.clone());
        let is_open = self.find(&id).is_some_and(|open| {
            let Open { question, .. } = &*open;
            matches!(question, Question::Trust(_))
        });
        if !is_open {
            return Err(Action::Trust(answer).not_found());
        }
        let accepted = match self.close(&id, context) {
            Some(Question::Trust(open)) => {
                // A yes counts wherever the project is worked in; a no until the session ends.
                let reach = match answer.approved {
                    true => Remember::Project,
                    false => Remember::Session,
                };
                let memory = &context.conversation.memory;
                for key in &open.keys {
                    if key.fits() {
                        memory.keep(key.clone(), answer.approved, None, reach);
                    }
                }
                let outcome = match answer.approved {
                    true => TrustOutcome::Trusted,
                    false => TrustOutcome::Refused,
                };
                open.settle(outcome, By::User, context)
            }
            _ => false,
        };
        Ok(Event::ChatTrustApproveResult(TrustTaken {
            request_id: answer.request_id,
            accepted,
        }))
    }
}

impl TrustQuestion {
    pub(super) fn settle_unanswered(self, how: Unanswered, context: &Context) {
        let (outcome, by) = match how {
            Unanswered::Expired => (TrustOutcome::Expired, By::Timeout),
            Unanswered::Withdrawn(by) => (TrustOutcome::Cancelled, by),
            Unanswered::Gone => (TrustOutcome::Cancelled, By::Cancel),
        };
        self.settle(outcome, by, context);
    }

    /// Emits how the question ended and passes it on; returns whether somebody waited for it.
    fn settle(self, outcome: TrustOutcome, by: By, context: &Context) -> bool {
        let confirm = self.confirm;
        let files = confirm.files.len();
        tracing::info!(request_id = %confirm.request_id, files, ?outcome, "a question about files settled");
        let resolved = TrustResolved {
            conversation_id: confirm.conversation_id,
            message_id: confirm.message_id,
            request_id: confirm.request_id,
            outcome,
            by,
        };
        context.events().emit(Event::ChatTrustResolved(resolved));
        self.decided.send(outcome).is_ok()
    }
}
