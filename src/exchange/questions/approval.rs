//! Questions whether a call may run.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::{Action, Check, Open, Question, QuestionId, Questions, Unanswered};
use crate::exchange::calls::FAULT;
use crate::exchange::context::Context;
use crate::protocol::answer::Approved;
use crate::protocol::command::{Remember, ToolApprove};
use crate::protocol::event::{By, Event, Outcome, SessionError, ToolConfirm, ToolResolved};
use crate::protocol::{RequestId, SessionCode};
use crate::tool::{Refusal, RememberKey, Tool};

/// The most calls remembered in one scope; a further one is asked again.
const REMEMBERED: usize = 1_000;

pub(crate) struct ApprovalQuestion {
    /// What the user is shown; its deadline is set when it is announced.
    pub confirm: ToolConfirm,
    pub tool: Arc<dyn Tool>,
    /// What an approval with `remember` stands for.
    pub remember: Option<RememberKey>,
    /// Whether an approval may be remembered: not under `supervised`, where every call is asked for.
    pub may_remember: bool,
    pub sender: oneshot::Sender<Verdict>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The call runs, with another input where one is given.
    Approved(Option<Map<String, Value>>),
    /// The call does not run; the user may have said why.
    Denied(Option<String>),
    /// The call does not run: nobody was there to be asked.
    Unattended,
    Expired,
    Cancelled,
}

pub(crate) struct Checked {
    id: QuestionId,
    /// What an approval of it with `remember` stands for.
    outcome: Result<Option<RememberKey>, String>,
}

impl Questions {
    /// Takes a verdict and returns the answer to it; `None` where an edited input has to be checked first. The question
    /// stays open meanwhile: the check looks at files, and may take as long as they do.
    pub(super) fn approve(
        &self,
        mut verdict: ToolApprove,
        reply_to: Option<&RequestId>,
        context: &Context,
    ) -> Option<Result<Event, SessionError>> {
        let id = verdict.question();
        let mut found = self.find(&id);
        let Some(Open {
            question: Question::Approval(approval),
            check,
            ..
        }) = found.as_deref_mut()
        else {
            return Some(Err(Action::Approve(verdict).not_found()));
        };
        verdict.input = verdict
            .input
            .filter(|input| verdict.approved && *input != approval.confirm.input);
        let Some(input) = verdict.input.clone() else {
            let key = approval.remember.clone();
            drop(found);
            return Some(self.settle_approval(verdict, key, context));
        };
        if approval.confirm.host.is_some() {
            let message = format!(
                "field `input`: `{}` runs already; approve the host or deny it",
                verdict.tool_id
            );
            let error = SessionError::new(SessionCode::InvalidPayload, message);
            return Some(Err(error));
        }
        if check.is_some() {
            let message = format!(
                "an edited input of `{}` is being checked; answer again when that is done",
                verdict.tool_id
            );
            return Some(Err(SessionError::new(SessionCode::RateLimited, message)));
        }
        let tool = Arc::clone(&approval.tool);
        *check = Some(Check {
            verdict,
            reply_to: reply_to.cloned(),
        });
        self.checks.lock().spawn_blocking(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| check_edit(&*tool, &input)));
            let outcome = outcome.unwrap_or_else(|_| Err(FAULT.to_owned()));
            Checked { id, outcome }
        });
        None
    }

    /// Settles the approval whose edited input was checked, where it is still open.
    pub(super) fn take_checked(&self, checked: Checked, context: &Context) {
        let Checked { id, outcome } = checked;
        let waiting = self.find(&id).and_then(|mut open| open.check.take());
        let Some(Check { verdict, reply_to }) = waiting else {
            return;
        };
        let answer = match outcome {
            Ok(key) => self.settle_approval(verdict, key, context),
            Err(problem) => Err(SessionError::new(
                SessionCode::InvalidPayload,
                format!("field `input`: {problem}; the approval stays open"),
            )),
        };
        let answer = answer.unwrap_or_else(Event::SessionError);
        context.events().answer(reply_to.as_ref(), answer);
    }

    /// Settles an approval by a verdict, whose input is what the user changed; `key` is what `remember` stands for.
    fn settle_approval(
        &self,
        verdict: ToolApprove,
        key: Option<RememberKey>,
        context: &Context,
    ) -> Result<Event, SessionError> {
        let id = verdict.question();
        let Some(Question::Approval(approval)) = self.close(&id, context) else {
            return Err(Action::Approve(verdict).not_found());
        };
        let ToolApprove {
            tool_id,
            host: _,
            approved,
            input,
            remember,
            reason,
            unattended,
        } = verdict;
        let remembered = &context.conversation.remembered;
        let reach = match key {
            Some(key) if approved && approval.may_remember => remembered.add(key, remember),
            _ => Remember::Once,
        };
        let outcome = match approved {
            true => Outcome::Approved,
            false => Outcome::Denied,
        };
        let resolved = ToolResolved {
            remember: (reach != Remember::Once).then_some(reach),
            edited: input.is_some(),
            ..approval.resolved(outcome, By::User)
        };
        context.events().emit(Event::ChatToolResolved(resolved));
        let verdict = match (approved, unattended) {
            (true, _) => Verdict::Approved(input),
            (false, false) => Verdict::Denied(reason),
            (false, true) => Verdict::Unattended,
        };
        let accepted = approval.sender.send(verdict).is_ok();
        Ok(Event::ChatToolApproveResult(Approved { tool_id, accepted }))
    }
}

impl ToolApprove {
    /// Returns the question that it answers.
    pub(super) fn question(&self) -> QuestionId {
        QuestionId::of_call(&self.tool_id, self.host.as_deref())
    }
}

impl ApprovalQuestion {
    pub(super) fn settle_unanswered(self, how: Unanswered, context: &Context) {
        let (outcome, by, verdict) = match how {
            Unanswered::Expired => (Outcome::Expired, By::Timeout, Verdict::Expired),
            Unanswered::Withdrawn(by) => (Outcome::Cancelled, by, Verdict::Cancelled),
        };
        let resolved = self.resolved(outcome, by);
        context.events().emit(Event::ChatToolResolved(resolved));
        // Who waited may be gone.
        drop(self.sender.send(verdict));
    }

    fn resolved(&self, outcome: Outcome, by: By) -> ToolResolved {
        ToolResolved {
            conversation_id: self.confirm.conversation_id.clone(),
            message_id: self.confirm.message_id.clone(),
            tool_id: self.confirm.tool_id.clone(),
            host: self.confirm.host.clone(),
            outcome,
            by,
            remember: None,
            edited: false,
        }
    }
}

/// Checks an edited input. Returns what an approval of it with `remember` stands for: what the user approved.
fn check_edit(tool: &dyn Tool, input: &Map<String, Value>) -> Result<Option<RememberKey>, String> {
    match tool.prepare(input) {
        Ok(prepared) => Ok(prepared.facts().remember),
        Err(Refusal::Invalid(message)) => Err(message),
        Err(Refusal::Violation(violation)) => Err(violation.message),
    }
}

/// What need not be asked again, in one conversation and in its session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remembered {
    conversation: Arc<Mutex<HashSet<RememberKey>>>,
    session: Arc<Mutex<HashSet<RememberKey>>>,
}

impl Remembered {
    /// Returns a fresh conversation's, which shares what its session remembers.
    #[must_use]
    pub(crate) fn for_conversation(&self) -> Self {
        Self {
            conversation: Arc::default(),
            session: Arc::clone(&self.session),
        }
    }

    pub(crate) fn holds(&self, key: &RememberKey) -> bool {
        [&self.conversation, &self.session]
            .iter()
            .any(|scope| scope.lock().contains(key))
    }

    /// Remembers; returns the scope that it is now remembered in.
    pub(crate) fn add(&self, key: RememberKey, reach: Remember) -> Remember {
        let scope = match reach {
            Remember::Once => return Remember::Once,
            Remember::Conversation => &self.conversation,
            Remember::Session => &self.session,
        };
        let mut scope = scope.lock();
        if scope.len() >= REMEMBERED {
            return Remember::Once;
        }
        scope.insert(key);
        reach
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_beyond_what_is_remembered_is_asked_again() {
        let remembered = Remembered::default();
        let key = |number: usize| RememberKey::Tool(format!("t{number}"));
        for number in 0..REMEMBERED {
            assert_eq!(
                remembered.add(key(number), Remember::Session),
                Remember::Session
            );
        }
        let further = key(REMEMBERED);
        assert_eq!(
            remembered.add(further.clone(), Remember::Session),
            Remember::Once
        );
        assert!(!remembered.holds(&further) && remembered.holds(&key(0)));
        let reach = remembered.add(further.clone(), Remember::Conversation);
        assert_eq!(reach, Remember::Conversation);
        assert!(remembered.holds(&further));
        assert!(!remembered.for_conversation().holds(&further));
    }
}
