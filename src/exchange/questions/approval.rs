//! Questions whether a call may run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::{Action, Check, Open, Question, QuestionId, Questions, Unanswered};
use crate::exchange::calls::FAULT;
use crate::exchange::context::Context;
use crate::message::TrustLevel;
use crate::permission::Remember;
use crate::permission::rule::{Call, File, Key};
use crate::protocol::answer::Approved;
use crate::protocol::command::ToolApprove;
use crate::protocol::event::{
    By, Event, Outcome, RememberOffer, SessionError, ToolConfirm, ToolResolved,
};
use crate::protocol::{RequestId, SessionCode};
use crate::tool::{Facts, Refusal, Tool};

pub(crate) struct ApprovalQuestion {
    /// What the user is shown; how far an answer may reach and its deadline are set when it is announced.
    pub confirm: ToolConfirm,
    pub tool: Arc<dyn Tool>,
    pub matter: Matter,
    pub trust: TrustLevel,
    pub sender: oneshot::Sender<Verdict>,
}

/// What an answer is for that is remembered.
#[derive(Clone, Debug)]
pub(crate) struct Matter {
    /// An approval; `None` where it is for this call alone.
    approval: Option<Key>,
    /// A denial; `None` where it is for this call alone.
    denial: Option<Key>,
    /// The folders that the file is in which it writes: as they are named to the user, and absolute; the nearest first.
    folders: Vec<(String, String)>,
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
    outcome: Result<Box<Matter>, String>,
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
            let key = approval.matter.key(&verdict);
            drop(found);
            return Some(key.and_then(|key| self.settle_approval(verdict, key, context)));
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
        let (tool, trust) = (Arc::clone(&approval.tool), approval.trust);
        *check = Some(Check {
            verdict,
            reply_to: reply_to.cloned(),
        });
        self.checks.lock().spawn_blocking(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| check_edit(&*tool, &input, trust)));
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
            Ok(matter) => {
                let key = matter.key(&verdict);
                key.and_then(|key| self.settle_approval(verdict, key, context))
            }
            Err(problem) => Err(SessionError::new(
                SessionCode::InvalidPayload,
                format!("field `input`: {problem}; the approval stays open"),
            )),
        };
        let answer = answer.unwrap_or_else(Event::SessionError);
        context.events().answer(reply_to.as_ref(), answer);
    }

    /// Settles an approval by a verdict, whose input is what the user changed; `key` is what it is for where it is remembered.
    fn settle_approval(
        &self,
        verdict: ToolApprove,
        key: Option<Key>,
        context: &Context,
    ) -> Result<Event, SessionError> {
        let id = verdict.question();
        let Some(Question::Approval(approval)) = self.close(&id, context) else {
            return Err(Action::Approve(verdict).not_found());
        };
        let ToolApprove {
            tool_id,
            host,
            approved,
            input,
            remember,
            folder: _,
            reason,
            unattended,
        } = verdict;
        // Before anybody is told of the answer.
        let kept = key.filter(|_| approved || !unattended).and_then(|key| {
            // A host is asked for once in a conversation.
            let least = match host.is_some() && approval.trust != TrustLevel::Supervised {
                true => Remember::Conversation,
                false => Remember::Once,
            };
            let why = reason.clone().filter(|_| !approved);
            let memory = &context.conversation.memory;
            memory.keep(key, approved, why, remember.max(least))
        });
        let (reach, rule_id) = kept.unzip();
        let outcome = match approved {
            true => Outcome::Approved,
            false => Outcome::Denied,
        };
        let resolved = ToolResolved {
            remember: reach,
            rule_id,
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
            Unanswered::Gone => (Outcome::Cancelled, By::Cancel, Verdict::Cancelled),
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
            rule_id: None,
            edited: false,
        }
    }
}

impl Matter {
    /// Returns what an answer about a call is for. Where every call is asked for, no approval is for more than one.
    pub(crate) fn of(tool: &str, facts: &Facts, trust: TrustLevel) -> Self {
        let call = Call {
            tool,
            approval: facts.remember.as_ref(),
            commands: &facts.commands,
            file: facts.file.as_ref(),
        };
        let file = facts.file.as_ref();
        Self {
            denial: Key::denied(&call),
            approval: lasting(facts.remember.clone(), trust),
            folders: file.map(File::folders).unwrap_or_default(),
        }
    }

    /// Returns what an answer about a host is for.
    pub(crate) fn of_host(host: Key, trust: TrustLevel) -> Self {
        Self {
            approval: lasting(Some(host.clone()), trust),
            denial: Some(host),
            folders: Vec::new(),
        }
    }

    /// Returns what the user is offered; `reaches` are those beyond the call.
    pub(super) fn offer(&self, reaches: &[Remember]) -> Option<RememberOffer> {
        let of = |key: &Option<Key>| match key {
            Some(_) => reaches.to_vec(),
            None => Vec::new(),
        };
        let (approval, denial) = (of(&self.approval), of(&self.denial));
        if approval.is_empty() && denial.is_empty() {
            return None;
        }
        let folders = self.folders.iter();
        Some(RememberOffer {
            approval,
            denial,
            folders: folders.map(|(named, _)| named.clone()).collect(),
        })
    }

    /// Returns what a verdict is for; `None` where it is for this call alone. Fails where the user names a folder that does
    /// not hold the file.
    fn key(&self, verdict: &ToolApprove) -> Result<Option<Key>, SessionError> {
        let own = match verdict.approved {
            true => self.approval.clone(),
            false => self.denial.clone(),
        };
        let Some(named) = &verdict.folder else {
            return Ok(own.filter(Key::fits));
        };
        let is_named = |(name, path): &&(String, String)| {
            let named = named.strip_prefix("./").unwrap_or(named);
            let named = named.trim_end_matches('/');
            name == named || path == named
        };
        let problem = match self.folders.iter().find(is_named) {
            Some(_) if verdict.remember == Remember::Once => {
                "is for an answer that is remembered; say how far with `remember`".to_owned()
            }
            Some((_, path)) => {
                let folder = own.map(|_| Key::Folder { path: path.clone() });
                return Ok(folder.filter(Key::fits));
            }
            None if self.folders.is_empty() => "is for calls that write a file".to_owned(),
            None => {
                let names: Vec<&str> = self.folders.iter().map(|(name, _)| name.as_str()).collect();
                format!(
                    "{named:?} is none of the folders that the file is in: {}",
                    names.join(", ")
                )
            }
        };
        let message = format!("field `folder`: {problem}; the approval stays open");
        Err(SessionError::new(SessionCode::InvalidPayload, message))
    }
}

fn lasting(approval: Option<Key>, trust: TrustLevel) -> Option<Key> {
    approval.filter(|_| trust != TrustLevel::Supervised)
}

/// Checks an edited input. Returns what an answer about it is for: what the user approved.
fn check_edit(
    tool: &dyn Tool,
    input: &Map<String, Value>,
    trust: TrustLevel,
) -> Result<Box<Matter>, String> {
    match tool.prepare(input) {
        Ok(prepared) => {
            let matter = Matter::of(&tool.spec().name, &prepared.facts(), trust);
            Ok(Box::new(matter))
        }
        Err(Refusal::Invalid(message)) => Err(message),
        Err(Refusal::Violation(violation)) => Err(violation.message),
    }
}
