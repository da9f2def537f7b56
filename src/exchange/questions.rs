//! The open questions of a conversation: one table for everything that the user is asked.
//!
//! A question is in the table before it is announced, so that no answer comes too early, and it leaves the table when
//! it is settled, which happens once. An answer to a question that is not open gets an error and needs no bookkeeping.
//! Only the conversation's task and what runs in it look here, so the lock is never waited for. What differs between the
//! kinds is in [`approval`], [`input`], [`budget`], [`trust`] and [`client`]; a further kind is one more variant of [`Question`] and [`QuestionId`] with a
//! file of its own.

pub(crate) mod approval;
pub(crate) mod budget;
pub(crate) mod client;
mod deadline;
mod form;
pub(crate) mod input;
mod registry;
pub(crate) mod trust;

use std::future::poll_fn;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::context::Context;
use crate::message::{BudgetId, InputId, ToolId, TrustId};
use crate::protocol::budget::BudgetApprove;
use crate::protocol::client_tools::ClientOutput;
use crate::protocol::command::{ToolApprove, ToolExtend};
use crate::protocol::event::{By, Event, SessionError, StateName, ToolExtended};
use crate::protocol::input::ToolInput;
use crate::protocol::trust::TrustApprove;
use crate::protocol::{RequestId, SessionCode, answer};
use crate::provider::MAX_CALLS;
use crate::runtime::sleep_until;

use approval::{ApprovalQuestion, Checked};
use budget::BudgetQuestion;
use client::ClientQuestion;
use deadline::Deadline;
use input::InputQuestion;
use registry::Presence;
pub(crate) use registry::QuestionRegistry;
use trust::TrustQuestion;

/// The most questions that are open in one conversation: an approval or the client's output for each call of a turn, a session's requests
/// for input, and whether more may be spent or files may speak for the user.
const MAX_OPEN: usize = MAX_CALLS + registry::MAX_INPUTS + 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum QuestionId {
    /// Whether this call may run.
    Approval(ToolId),
    /// Whether this call, which runs, may connect to this host.
    Host(ToolId, String),
    /// What a running call asks for.
    Input(InputId),
    /// Whether more may be spent.
    Budget(BudgetId),
    /// Whether files may speak for the user.
    Trust(TrustId),
    /// What this call came to, which the client runs.
    Client(ToolId),
}

/// A question to the user. Dropping its sender counts as cancelled.
pub(crate) enum Question {
    /// Whether a call may run.
    Approval(Box<ApprovalQuestion>),
    /// What a running call asks for.
    Input(Box<InputQuestion>),
    /// Whether more may be spent.
    Budget(Box<BudgetQuestion>),
    /// Whether files may speak for the user.
    Trust(Box<TrustQuestion>),
    /// A call that the client runs.
    Client(Box<ClientQuestion>),
}

/// What a client does about an open question.
pub(crate) enum Action {
    Approve(ToolApprove),
    Input(ToolInput),
    Budget(BudgetApprove),
    Trust(TrustApprove),
    Output(ClientOutput),
    Extend(ToolExtend),
}

impl QuestionId {
    /// Returns that of a call's question, by what `chat:tool-confirm` says of it. The call's own and those for its hosts are
    /// different ones, so that no answer settles another than it is for.
    pub(crate) fn of_call(tool_id: &ToolId, host: Option<&str>) -> Self {
        match host {
            None => Self::Approval(tool_id.clone()),
            Some(host) => Self::Host(tool_id.clone(), host.to_owned()),
        }
    }
}

impl Action {
    pub(crate) fn question(&self) -> QuestionId {
        match self {
            Self::Approve(verdict) => verdict.question(),
            Self::Input(input) => QuestionId::Input(input.request_id.clone()),
            Self::Budget(answer) => QuestionId::Budget(answer.request_id.clone()),
            Self::Trust(answer) => QuestionId::Trust(answer.request_id.clone()),
            Self::Output(output) => QuestionId::Client(output.tool_id.clone()),
            Self::Extend(ToolExtend {
                request_id: Some(id),
                ..
            }) => QuestionId::Input(id.clone()),
            Self::Extend(extend) => QuestionId::of_call(&extend.tool_id, extend.host.as_deref()),
        }
    }

    /// Returns the error of an action whose question is not open.
    pub(crate) fn not_found(&self) -> SessionError {
        let (code, what) = match self {
            Self::Approve(ToolApprove { tool_id, host, .. })
            | Self::Extend(ToolExtend {
                tool_id,
                host,
                request_id: None,
            }) => {
                let of_host = host.as_ref().map(|host| format!(" for the host {host:?}"));
                let of_host = of_host.unwrap_or_default();
                (
                    SessionCode::ApprovalNotFound,
                    format!("no approval `{tool_id}`{of_host}"),
                )
            }
            Self::Input(input) => (
                SessionCode::InputNotFound,
                format!("no request for input `{}`", input.request_id),
            ),
            Self::Budget(answer) => (
                SessionCode::BudgetNotFound,
                format!("no question about money `{}`", answer.request_id),
            ),
            Self::Trust(answer) => (
                SessionCode::TrustNotFound,
                format!("no question about files `{}`", answer.request_id),
            ),
            Self::Output(output) => (
                SessionCode::ToolNotFound,
                format!("no call `{}` of the client", output.tool_id),
            ),
            Self::Extend(ToolExtend {
                tool_id,
                request_id: Some(id),
                ..
            }) => (
                SessionCode::ApprovalNotFound,
                format!("no request for input `{id}` of the call `{tool_id}`"),
            ),
        };
        SessionError {
            code,
            message: format!("{what} is open; it was answered, has expired, or never was"),
        }
    }
}

#[derive(Default)]
pub(crate) struct Questions {
    /// The oldest first.
    open: Mutex<Vec<Open>>,
    /// Notified of a question that was opened, which may be the next to expire.
    opened: Notify,
    /// Checks of edited inputs, one for each approval at most.
    checks: Mutex<JoinSet<Checked>>,
}

pub(crate) struct Open {
    pub id: QuestionId,
    /// The call that it is about; one about money is about none.
    pub tool_id: Option<ToolId>,
    question: Question,
    deadline: Deadline,
    /// The approval whose edited input is being checked.
    check: Option<Check>,
}

/// An approval that waits for the check of its edited input.
struct Check {
    verdict: ToolApprove,
    reply_to: Option<RequestId>,
}

pub(crate) enum Due {
    Expiry,
    Checked(Checked),
}

/// How a question ends without an answer.
#[derive(Clone, Copy)]
enum Unanswered {
    Expired,
    Withdrawn(By),
    /// Whoever was to answer is gone: only of a call that the client runs.
    Gone,
}

impl Questions {
    /// Opens a question and announces it. One beyond a bound is dropped, which counts as cancelled.
    pub(crate) fn ask(&self, mut question: Question, context: &Context) {
        let registry = &context.session.questions;
        let (id, tool_id) = question.ids();
        let conversation = context.conversation.id.clone();
        let mut open = self.open.lock();
        if open.len() >= MAX_OPEN || !registry.open(id.clone(), conversation) {
            return;
        }
        let now = Instant::now();
        let config = &context.services.config();
        let timeout = match &question {
            Question::Approval(_) | Question::Input(_) => config.approval.timeout,
            Question::Budget(_) => config.budget.ask_timeout,
            Question::Trust(_) => trust::patience(&config.approval),
            // It has a clock of its own.
            Question::Client(_) => None,
        };
        let deadline = Deadline::new(now, timeout);
        let presence = registry.presence();
        match &mut question {
            Question::Client(it) => it.begin(presence),
            other => *other.expires_at() = deadline.expires_at(now),
        }
        if let Question::Approval(it) = &mut question {
            it.confirm.remember = it.matter.offer(&context.conversation.memory.on_offer());
        }
        let announcement = question.announcement(presence);
        open.push(Open {
            id,
            tool_id,
            question,
            deadline,
            check: None,
        });
        drop(open);
        self.opened.notify_one();
        context.events().emit(announcement);
    }

    /// Takes what a client does about a question, and answers its request.
    pub(crate) fn act(&self, action: Action, reply_to: Option<&RequestId>, context: &Context) {
        let answer = match action {
            Action::Approve(verdict) => match self.approve(verdict, reply_to, context) {
                Some(answer) => answer,
                // The answer comes with the check.
                None => return,
            },
            Action::Input(input) => self.give(input, context),
            Action::Budget(answer) => self.afford(answer, context),
            Action::Trust(answer) => self.trust(answer, context),
            Action::Output(output) => self.output(output, context),
            Action::Extend(extend) => self.extend(extend, context),
        };
        let answer = answer.unwrap_or_else(Event::SessionError);
        context.events().answer(reply_to, answer);
    }

    /// Gives a question more time and announces when it expires now.
    fn extend(&self, extend: ToolExtend, context: &Context) -> Result<Event, SessionError> {
        let (tool_id, host) = (extend.tool_id.clone(), extend.host.clone());
        let action = Action::Extend(extend);
        let found = self.find(&action.question());
        let is_meant = |open: &MappedMutexGuard<'_, Open>| {
            open.tool_id.as_ref() == Some(&tool_id) && open.question.host() == host.as_deref()
        };
        let Some(mut open) = found.filter(is_meant) else {
            return Err(action.not_found());
        };
        let now = Instant::now();
        let moved = open
            .deadline
            .extend(now, &context.services.config().approval);
        if moved {
            *open.question.expires_at() = open.deadline.expires_at(now);
        }
        let extended = open.extended(tool_id);
        let answer = Event::ChatToolExtendResult(answer::Extended {
            tool_id: extended.tool_id.clone(),
            request_id: extended.request_id.clone(),
            host: extended.host.clone(),
            expires_at: extended.expires_at.clone(),
        });
        if moved {
            context.events().emit(Event::ChatToolExtended(extended));
        }
        Ok(answer)
    }

    /// Waits until a question expires or the check of an edited input is done.
    pub(crate) async fn due(&self, context: &Context) -> Due {
        // Before the look, so that nobody comes or goes unseen after it.
        let mut presence = context.session.questions.watch_presence();
        let now = *presence.borrow_and_update();
        let deadlines = |open: &Vec<Open>| open.iter().filter_map(|open| open.expires(now)).min();
        let next = deadlines(&self.open.lock());
        tokio::select! {
            () = sleep_until(next) => Due::Expiry,
            // None is late then; who waits comes again, with the new deadline.
            () = self.opened.notified() => Due::Expiry,
            Ok(()) = presence.changed() => Due::Expiry,
            Some(Ok(checked)) = poll_fn(|task| self.checks.lock().poll_join_next(task)) => {
                Due::Checked(checked)
            }
        }
    }

    pub(crate) fn settle_due(&self, due: Due, context: &Context) {
        match due {
            Due::Checked(checked) => self.take_checked(checked, context),
            Due::Expiry => {
                let now = Instant::now();
                let presence = context.session.questions.presence();
                let late = |open: &Open| open.expires(presence).is_some_and(|at| at <= now);
                self.settle_unanswered(late, Unanswered::Expired, context);
            }
        }
    }

    /// Settles questions because whoever asked is gone.
    pub(crate) fn withdraw(&self, which: impl Fn(&Open) -> bool, by: By, context: &Context) {
        self.settle_unanswered(which, Unanswered::Withdrawn(by), context);
    }

    /// Takes calls of these tools back from a client that does not have them.
    pub(crate) fn give_up_calls(&self, tools: &[String], context: &Context) {
        self.settle_unanswered(|open| open.is_call_of(tools), Unanswered::Gone, context);
    }

    /// Returns the state of an exchange by its open questions; `None` where there is none.
    pub(crate) fn state(&self) -> Option<StateName> {
        let open = self.open.lock();
        let states = open.iter().map(|open| match open.question {
            Question::Approval(_) => (0, StateName::AwaitingApproval),
            Question::Input(_) => (1, StateName::AwaitingInput),
            Question::Budget(_) => (2, StateName::AwaitingBudget),
            Question::Trust(_) => (3, StateName::AwaitingTrust),
            Question::Client(_) => (4, StateName::AwaitingClient),
        });
        let first = states.min_by_key(|(order, _)| *order);
        first.map(|(_, state)| state)
    }

    /// Returns every open question as it is announced now, the oldest first.
    pub(crate) fn announcements(&self, context: &Context) -> Vec<Event> {
        let presence = context.session.questions.presence();
        let open = self.open.lock();
        open.iter()
            .map(|open| open.question.announcement(presence))
            .collect()
    }

    fn find(&self, id: &QuestionId) -> Option<MappedMutexGuard<'_, Open>> {
        MutexGuard::try_map(self.open.lock(), |open| {
            open.iter_mut().find(|open| open.id == *id)
        })
        .ok()
    }

    /// Takes a question out of the table. An approval of it that is being checked comes too late.
    fn close(&self, id: &QuestionId, context: &Context) -> Option<Question> {
        let open = {
            let mut open = self.open.lock();
            let at = open.iter().position(|open| open.id == *id)?;
            open.remove(at)
        };
        context.session.questions.close(id);
        if let Some(Check { verdict, reply_to }) = open.check {
            let error = Action::Approve(verdict).not_found();
            let answer = Event::SessionError(error);
            context.events().answer(reply_to.as_ref(), answer);
        }
        Some(open.question)
    }

    fn settle_unanswered(&self, which: impl Fn(&Open) -> bool, how: Unanswered, context: &Context) {
        let open = self.open.lock();
        let ids = open.iter().filter(|open| which(open));
        let ids: Vec<_> = ids.map(|open| open.id.clone()).collect();
        drop(open);
        for id in ids {
            match self.close(&id, context) {
                Some(Question::Approval(approval)) => approval.settle_unanswered(how, context),
                Some(Question::Input(input)) => input.settle_unanswered(how, context),
                Some(Question::Budget(budget)) => budget.settle_unanswered(how, context),
                Some(Question::Trust(trust)) => trust.settle_unanswered(how, context),
                Some(Question::Client(call)) => call.settle_unanswered(how, context),
                None => {}
            }
        }
    }
}

impl Open {
    /// Returns when it expires, as things stand.
    fn expires(&self, presence: Presence) -> Option<Instant> {
        match &self.question {
            Question::Client(call) => call.expires(presence),
            _ => self.deadline.at,
        }
    }

    /// Returns whether it is a call of one of these tools that the client runs.
    fn is_call_of(&self, tools: &[String]) -> bool {
        match &self.question {
            Question::Client(call) => tools.contains(&call.call.tool_name),
            _ => false,
        }
    }

    /// Returns the event that says when it expires now.
    fn extended(&mut self, tool_id: ToolId) -> ToolExtended {
        let (conversation_id, message_id) = match &self.question {
            Question::Approval(it) => (&it.confirm.conversation_id, &it.confirm.message_id),
            Question::Input(it) => (&it.request.conversation_id, &it.request.message_id),
            Question::Budget(it) => (&it.confirm.conversation_id, &it.confirm.message_id),
            Question::Trust(it) => (&it.confirm.conversation_id, &it.confirm.message_id),
            Question::Client(it) => (&it.call.conversation_id, &it.call.message_id),
        };
        ToolExtended {
            conversation_id: conversation_id.clone(),
            message_id: message_id.clone(),
            tool_id,
            request_id: match &self.id {
                QuestionId::Approval(_)
                | QuestionId::Host(..)
                | QuestionId::Budget(_)
                | QuestionId::Trust(_)
                | QuestionId::Client(_) => None,
                QuestionId::Input(id) => Some(id.clone()),
            },
            host: self.question.host().map(str::to_owned),
            expires_at: self.question.expires_at().clone(),
        }
    }
}

impl Question {
    /// Returns its id, and whose call's it is.
    fn ids(&self) -> (QuestionId, Option<ToolId>) {
        match self {
            Self::Approval(approval) => {
                let tool_id = &approval.confirm.tool_id;
                let id = QuestionId::of_call(tool_id, self.host());
                (id, Some(tool_id.clone()))
            }
            Self::Input(input) => {
                let request = &input.request;
                let id = QuestionId::Input(request.request_id.clone());
                (id, Some(request.tool_id.clone()))
            }
            Self::Budget(budget) => {
                let id = budget.confirm.request_id.clone();
                (QuestionId::Budget(id), None)
            }
            Self::Trust(trust) => {
                let id = trust.confirm.request_id.clone();
                (QuestionId::Trust(id), None)
            }
            Self::Client(call) => {
                let tool_id = call.call.tool_id.clone();
                (QuestionId::Client(tool_id.clone()), Some(tool_id))
            }
        }
    }

    /// Returns the host that it is for.
    fn host(&self) -> Option<&str> {
        match self {
            Self::Approval(approval) => approval.confirm.host.as_deref(),
            Self::Input(_) | Self::Budget(_) | Self::Trust(_) | Self::Client(_) => None,
        }
    }

    fn expires_at(&mut self) -> &mut Option<String> {
        match self {
            Self::Approval(approval) => &mut approval.confirm.expires_at,
            Self::Input(input) => &mut input.request.expires_at,
            Self::Budget(budget) => &mut budget.confirm.expires_at,
            Self::Trust(trust) => &mut trust.confirm.expires_at,
            Self::Client(call) => &mut call.call.expires_at,
        }
    }

    fn announcement(&self, presence: Presence) -> Event {
        match self {
            Self::Approval(approval) => Event::ChatToolConfirm(Box::new(approval.confirm.clone())),
            Self::Input(input) => Event::ChatToolInputRequest(Box::new(input.request.clone())),
            Self::Budget(budget) => Event::ChatBudgetConfirm(Box::new(budget.confirm.clone())),
            Self::Trust(trust) => Event::ChatTrustConfirm(Box::new(trust.confirm.clone())),
            Self::Client(call) => Event::ChatToolCall(Box::new(call.announced(presence))),
        }
    }
}
