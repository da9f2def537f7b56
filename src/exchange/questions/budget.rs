//! Questions whether more may be spent.

use tokio::sync::oneshot;

use super::{Action, Open, Question, QuestionId, Questions, Unanswered};
use crate::exchange::context::Context;
use crate::message::Money;
use crate::protocol::SessionCode;
use crate::protocol::budget::{
    BudgetApprove, BudgetConfirm, BudgetOutcome, BudgetResolved, BudgetTaken,
};
use crate::protocol::event::{By, Event, SessionError};
use crate::spend::{Cap, Raise};

pub(crate) struct BudgetQuestion {
    /// What the user is shown; its deadline is set when it is announced.
    pub confirm: BudgetConfirm,
    /// The cap that an answer raises.
    pub cap: Cap,
    pub decided: oneshot::Sender<Decision>,
}

/// What became of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The cap is raised, or there is room without that.
    Extended,
    /// The exchange ends; the user may want a last answer.
    Stopped {
        finish: bool,
    },
    /// Nobody answered.
    Expired,
    Cancelled,
}

impl Questions {
    /// Takes a client's answer.
    pub(super) fn afford(
        &self,
        answer: BudgetApprove,
        context: &Context,
    ) -> Result<Event, SessionError> {
        let id = QuestionId::Budget(answer.request_id.clone());
        let found = self.find(&id);
        let Some(Open {
            question: Question::Budget(open),
            ..
        }) = found.as_deref()
        else {
            return Err(Action::Budget(answer).not_found());
        };
        let by = match (answer.unlimited, answer.extend_usd) {
            (true, _) => Raise::Unlimited,
            (false, Some(amount)) => Raise::By(amount),
            (false, None) => open.offered(),
        };
        if answer.approved && by == Raise::By(Money::ZERO) {
            let message = "field `extendUsd` must be more than 0; the question stays open";
            return Err(SessionError::new(SessionCode::InvalidPayload, message));
        }
        drop(found);
        let accepted = match self.close(&id, context) {
            Some(Question::Budget(open)) if answer.approved => {
                open.cap.raise(by);
                open.settle(Decision::Extended, By::User, context)
            }
            Some(Question::Budget(open)) => {
                let finish = answer.finish;
                open.settle(Decision::Stopped { finish }, By::User, context)
            }
            _ => false,
        };
        Ok(Event::ChatBudgetApproveResult(BudgetTaken {
            request_id: answer.request_id,
            accepted,
        }))
    }
}

impl BudgetQuestion {
    /// Returns what is offered first.
    fn offered(&self) -> Raise {
        let mut choices = self.confirm.choices.iter();
        let first = choices.find_map(|choice| choice.extend_usd);
        first.map_or(Raise::Unlimited, Raise::By)
    }

    pub(super) fn settle_unanswered(self, how: Unanswered, context: &Context) {
        let (decision, by) = match how {
            Unanswered::Expired => (Decision::Expired, By::Timeout),
            Unanswered::Withdrawn(By::Room) => (Decision::Extended, By::Room),
            Unanswered::Withdrawn(by) => (Decision::Cancelled, by),
            Unanswered::Gone => (Decision::Cancelled, By::Cancel),
        };
        self.settle(decision, by, context);
    }

    /// Emits how the question ended and passes it on; returns whether somebody waited for it.
    fn settle(self, decision: Decision, by: By, context: &Context) -> bool {
        let confirm = self.confirm;
        let outcome = match decision {
            Decision::Extended => BudgetOutcome::Extended,
            Decision::Stopped { .. } => BudgetOutcome::Stopped,
            Decision::Expired => BudgetOutcome::Expired,
            Decision::Cancelled => BudgetOutcome::Cancelled,
        };
        tracing::info!(request_id = %confirm.request_id, scope = ?confirm.scope, ?outcome, "a question about money settled");
        let resolved = BudgetResolved {
            conversation_id: confirm.conversation_id,
            message_id: confirm.message_id,
            request_id: confirm.request_id,
            outcome,
            by,
            limit_usd: self.cap.limit(),
        };
        let events = context.events();
        events.emit(Event::ChatBudgetResolved(resolved));
        self.decided.send(decision).is_ok()
    }
}
