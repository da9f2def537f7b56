//! The open questions of a conversation: one table for everything that the user is asked.
//!
//! A question is in the table before it is announced, so that no answer comes too early, and it leaves the table when
//! it is settled, which happens once. An answer to a question that is not open gets an error and needs no bookkeeping.
//! The table belongs to the conversation's task. What differs between the kinds is in [`approval`] and [`input`]; a
//! further kind is one more variant of [`Question`] and [`QuestionId`] with a file of its own.

pub mod approval;
mod check;
mod deadline;
mod defaults;
pub mod input;
mod registry;
mod remembered;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::context::Context;
use crate::message::{InputId, ToolId};
use crate::protocol::command::{ToolApprove, ToolExtend};
use crate::protocol::event::{By, Event, SessionError, ToolConfirm, ToolExtended};
use crate::protocol::input::{ToolInput, ToolInputRequest};
use crate::protocol::{RequestId, SessionCode, answer};
use crate::provider::MAX_CALLS;
use crate::runtime::sleep_until;

use approval::{Approval, Checked};
use deadline::Deadline;
use input::InputQuestion;
pub use registry::QuestionRegistry;
pub use remembered::Remembered;

/// The most questions that are open in one conversation: an approval for each call of a turn, and a session's requests
/// for input.
const MAX_OPEN: usize = MAX_CALLS + registry::MAX_INPUTS;

/// Checked edits that wait to be taken: the conversation takes them at once.
const CHECKED: usize = 16;

/// Names an open question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuestionId {
    /// Whether this call may run.
    Approval(ToolId),
    /// What a running call asks for.
    Input(InputId),
}

/// A question to the user. Dropping its sender counts as cancelled.
pub enum Question {
    /// Whether a call may run.
    Approval(Box<Approval>),
    /// What a running call asks for.
    Input(Box<InputQuestion>),
}

/// Which questions.
#[derive(Clone, Debug)]
pub enum Which {
    /// This one.
    One(QuestionId),
    /// All of one call.
    Call(ToolId),
    /// All of the conversation.
    All,
}

/// What an exchange asks of the table.
pub enum QuestionRequest {
    /// The user is to be asked.
    Ask(Question),
    /// Questions are void, because whoever asked is gone.
    Withdraw {
        /// Which questions.
        which: Which,
        /// Fires when they are settled, so that no result comes before.
        settled: oneshot::Sender<()>,
    },
}

/// What a client does about an open question.
pub enum Action {
    /// Allows or denies a call.
    Approve(ToolApprove),
    /// Gives what a call asks for.
    Input(ToolInput),
    /// Gives a question more time.
    Extend(ToolExtend),
}

impl Action {
    /// Returns the question that it is about.
    pub fn question(&self) -> QuestionId {
        match self {
            Self::Approve(verdict) => QuestionId::Approval(verdict.tool_id.clone()),
            Self::Input(input) => QuestionId::Input(input.request_id.clone()),
            Self::Extend(ToolExtend {
                request_id: Some(id),
                ..
            }) => QuestionId::Input(id.clone()),
            Self::Extend(extend) => QuestionId::Approval(extend.tool_id.clone()),
        }
    }

    /// Returns the error of an action whose question is not open.
    pub fn not_found(&self) -> SessionError {
        let (code, what) = match self {
            Self::Approve(ToolApprove { tool_id, .. })
            | Self::Extend(ToolExtend {
                tool_id,
                request_id: None,
            }) => (
                SessionCode::ApprovalNotFound,
                format!("no approval `{tool_id}`"),
            ),
            Self::Input(input) => (
                SessionCode::InputNotFound,
                format!("no request for input `{}`", input.request_id),
            ),
            Self::Extend(ToolExtend {
                tool_id,
                request_id: Some(id),
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

/// The open questions of one conversation.
pub struct Questions {
    /// The oldest first.
    open: Vec<Open>,
    checked: mpsc::Receiver<Checked>,
    checks: mpsc::Sender<Checked>,
}

struct Open {
    id: QuestionId,
    tool_id: ToolId,
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

/// What became due in the table.
pub enum Due {
    /// A question has expired.
    Expiry,
    /// An edited input was checked.
    Checked(Checked),
}

/// How a question ends without an answer.
#[derive(Clone, Copy)]
enum Unanswered {
    Expired,
    Withdrawn(By),
}

impl Default for Questions {
    fn default() -> Self {
        let (checks, checked) = mpsc::channel(CHECKED);
        Self {
            open: Vec::new(),
            checked,
            checks,
        }
    }
}

impl Questions {
    /// Takes what an exchange requests.
    pub fn take(&mut self, request: QuestionRequest, context: &Context) {
        match request {
            QuestionRequest::Ask(question) => self.ask(question, context),
            QuestionRequest::Withdraw { which, settled } => {
                self.withdraw(&which, By::Cancel, context);
                // Whoever asked may be gone.
                settled.send(()).ok();
            }
        }
    }

    /// Opens a question and announces it. One that nobody waits for, or beyond a bound, is dropped, which counts as
    /// cancelled.
    fn ask(&mut self, mut question: Question, context: &Context) {
        let registry = &context.session.questions;
        let (id, tool_id) = question.ids();
        let conversation = context.conversation.id.clone();
        if question.is_abandoned()
            || self.open.len() >= MAX_OPEN
            || !registry.open(id.clone(), conversation)
        {
            return;
        }
        let now = Instant::now();
        let deadline = Deadline::new(now, &context.services.config.approval);
        *question.expires_at() = deadline.expires_at(now);
        let announcement = question.announcement();
        self.open.push(Open {
            id,
            tool_id,
            question,
            deadline,
            check: None,
        });
        context.events().emit(announcement);
    }

    /// Takes what a client does about a question, and answers its request.
    pub fn act(&mut self, action: Action, reply_to: Option<&RequestId>, context: &Context) {
        let answer = match action {
            Action::Approve(verdict) => match self.approve(verdict, reply_to, context) {
                Some(answer) => answer,
                // The answer comes with the check.
                None => return,
            },
            Action::Input(input) => self.give(input, context),
            Action::Extend(extend) => self.extend(extend, context),
        };
        let answer = answer.unwrap_or_else(Event::SessionError);
        context.events().answer(reply_to, answer);
    }

    /// Gives a question more time and announces when it expires now.
    fn extend(&mut self, extend: ToolExtend, context: &Context) -> Result<Event, SessionError> {
        let tool_id = extend.tool_id.clone();
        let action = Action::Extend(extend);
        let id = action.question();
        let found = self.find(&id);
        let Some(open) = found.filter(|open| open.tool_id == tool_id) else {
            return Err(action.not_found());
        };
        let now = Instant::now();
        let moved = open.deadline.extend(now, &context.services.config.approval);
        if moved {
            *open.question.expires_at() = open.deadline.expires_at(now);
        }
        let extended = open.question.extended();
        let answer = Event::ChatToolExtendResult(answer::Extended {
            tool_id: extended.tool_id.clone(),
            request_id: extended.request_id.clone(),
            expires_at: extended.expires_at.clone(),
        });
        if moved {
            context.events().emit(Event::ChatToolExtended(extended));
        }
        Ok(answer)
    }

    /// Waits until a question expires or the check of an edited input is done.
    pub async fn due(&mut self) -> Due {
        let next = self.open.iter().filter_map(|open| open.deadline.at()).min();
        tokio::select! {
            () = sleep_until(next) => Due::Expiry,
            Some(checked) = self.checked.recv() => Due::Checked(checked),
        }
    }

    /// Does what became due.
    pub fn settle_due(&mut self, due: Due, context: &Context) {
        match due {
            Due::Checked(checked) => self.take_checked(checked, context),
            Due::Expiry => {
                let now = Instant::now();
                let late = self.ids(|open| open.deadline.has_passed(now));
                self.settle_unanswered(late, Unanswered::Expired, context);
            }
        }
    }

    /// Settles questions because whoever asked is gone.
    pub fn withdraw(&mut self, which: &Which, by: By, context: &Context) {
        let ids = match which {
            Which::One(id) => vec![id.clone()],
            Which::Call(tool_id) => self.ids(|open| open.tool_id == *tool_id),
            Which::All => self.ids(|_| true),
        };
        self.settle_unanswered(ids, Unanswered::Withdrawn(by), context);
    }

    /// Returns the open approvals as they were announced.
    pub fn approvals(&self) -> Vec<ToolConfirm> {
        let confirms = self.open.iter().filter_map(|open| match &open.question {
            Question::Approval(approval) => Some(approval.confirm.clone()),
            Question::Input(_) => None,
        });
        confirms.collect()
    }

    /// Returns the open requests for input as they were announced.
    pub fn inputs(&self) -> Vec<ToolInputRequest> {
        let requests = self.open.iter().filter_map(|open| match &open.question {
            Question::Input(input) => Some(input.request.clone()),
            Question::Approval(_) => None,
        });
        requests.collect()
    }

    fn find(&mut self, id: &QuestionId) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.id == *id)
    }

    fn ids(&self, which: impl Fn(&Open) -> bool) -> Vec<QuestionId> {
        let chosen = self.open.iter().filter(|open| which(open));
        chosen.map(|open| open.id.clone()).collect()
    }

    /// Takes a question out of the table. An approval of it that is being checked comes too late.
    fn close(&mut self, id: &QuestionId, context: &Context) -> Option<Question> {
        let at = self.open.iter().position(|open| open.id == *id)?;
        let open = self.open.remove(at);
        context.session.questions.close(id);
        if let Some(Check { verdict, reply_to }) = open.check {
            let error = Action::Approve(verdict).not_found();
            let answer = Event::SessionError(error);
            context.events().answer(reply_to.as_ref(), answer);
        }
        Some(open.question)
    }

    fn settle_unanswered(&mut self, ids: Vec<QuestionId>, how: Unanswered, context: &Context) {
        for id in ids {
            match self.close(&id, context) {
                Some(Question::Approval(approval)) => approval.settle_unanswered(how, context),
                Some(Question::Input(input)) => input.settle_unanswered(how, context),
                None => {}
            }
        }
    }
}

impl Question {
    /// Returns its id, and whose call's it is.
    fn ids(&self) -> (QuestionId, ToolId) {
        match self {
            Self::Approval(approval) => {
                let tool_id = approval.confirm.tool_id.clone();
                (QuestionId::Approval(tool_id.clone()), tool_id)
            }
            Self::Input(input) => {
                let ToolInputRequest {
                    request_id,
                    tool_id,
                    ..
                } = &input.request;
                (QuestionId::Input(request_id.clone()), tool_id.clone())
            }
        }
    }

    /// Returns whether nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Approval(approval) => approval.verdict.is_closed(),
            Self::Input(input) => input.given.is_closed(),
        }
    }

    fn expires_at(&mut self) -> &mut Option<String> {
        match self {
            Self::Approval(approval) => &mut approval.confirm.expires_at,
            Self::Input(input) => &mut input.request.expires_at,
        }
    }

    fn announcement(&self) -> Event {
        match self {
            Self::Approval(approval) => Event::ChatToolConfirm(Box::new(approval.confirm.clone())),
            Self::Input(input) => Event::ChatToolInputRequest(Box::new(input.request.clone())),
        }
    }

    /// Returns the event that says when it expires now.
    fn extended(&self) -> ToolExtended {
        let (conversation_id, message_id, tool_id, request_id, expires_at) = match self {
            Self::Approval(approval) => {
                let it = &approval.confirm;
                (
                    &it.conversation_id,
                    &it.message_id,
                    &it.tool_id,
                    None,
                    &it.expires_at,
                )
            }
            Self::Input(input) => {
                let it = &input.request;
                let id = Some(it.request_id.clone());
                (
                    &it.conversation_id,
                    &it.message_id,
                    &it.tool_id,
                    id,
                    &it.expires_at,
                )
            }
        };
        ToolExtended {
            conversation_id: conversation_id.clone(),
            message_id: message_id.clone(),
            tool_id: tool_id.clone(),
            request_id,
            expires_at: expires_at.clone(),
        }
    }
}
