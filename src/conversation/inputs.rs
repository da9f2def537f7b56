//! What running calls ask the user for, by the id of the question.
//!
//! Owed first, then announced, as with approvals; each is settled exactly once. Of an answer nothing is kept.

mod check;
mod defaults;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::deadline::Deadline;
use crate::config::ApprovalConfig;
use crate::exchange::ask::AskInput;
use crate::exchange::context::SessionContext;
use crate::message::{InputId, ToolId};
use crate::protocol::SessionCode;
use crate::protocol::answer::Extended;
use crate::protocol::event::{By, Event, SessionError, ToolExtended};
use crate::protocol::input::{
    InputAction, InputOutcome, InputTaken, ToolInput, ToolInputRequest, ToolInputResolved,
};
use crate::tool::user::Given;

/// The most bytes of an answer as JSON: a form that a person fills in, and no file.
const MAX_CONTENT: usize = 64 * 1024;

/// The questions open in one conversation.
#[derive(Default)]
pub struct Inputs {
    open: BTreeMap<InputId, Owed>,
}

struct Owed {
    request: ToolInputRequest,
    given: oneshot::Sender<Given>,
    deadline: Deadline,
}

impl Inputs {
    /// Takes up a question and announces it; where too many are open, it counts as cancelled.
    pub fn register(&mut self, ask: AskInput, rules: &ApprovalConfig, session: &SessionContext) {
        let AskInput { mut request, given } = ask;
        let id = request.request_id.clone();
        // Nobody waits any more, or nobody could: dropping the sender says so.
        if given.is_closed()
            || !session
                .inputs
                .open(id.clone(), request.conversation_id.clone())
        {
            return;
        }
        let now = Instant::now();
        let deadline = Deadline::new(now, rules);
        request.expires_at = deadline.expires_at(now);
        let announced = Event::ChatToolInputRequest(Box::new(request.clone()));
        let owed = Owed {
            request,
            given,
            deadline,
        };
        self.open.insert(id, owed);
        session.events.send(announced);
    }

    /// Takes a client's answer.
    ///
    /// # Errors
    ///
    /// `input_not_found`; or `invalid_payload` where the content does not fit what was asked for, and then
    /// the question stays open.
    pub fn answer(
        &mut self,
        input: ToolInput,
        session: &SessionContext,
    ) -> Result<InputTaken, SessionError> {
        let ToolInput {
            request_id,
            action,
            content,
        } = input;
        let owed = self.open.get(&request_id);
        let owed = owed.ok_or_else(|| not_found(&request_id))?;
        let given = match action {
            InputAction::Accept => Given::Accepted(fitting(&owed.request, content)?),
            InputAction::Decline => Given::Declined,
            InputAction::Cancel => Given::Cancelled,
        };
        let accepted = self.settle(
            &request_id,
            (InputOutcome::Answered, Some(action), By::User),
            given,
            session,
        );
        Ok(InputTaken {
            request_id,
            accepted,
        })
    }

    /// Gives a question of a call more time and tells when it lapses now.
    ///
    /// # Errors
    ///
    /// `approval_not_found`, as for every question that is given more time.
    pub fn extend(
        &mut self,
        tool_id: &ToolId,
        request_id: &InputId,
        rules: &ApprovalConfig,
        session: &SessionContext,
    ) -> Result<Extended, SessionError> {
        let owed = self.open.get_mut(request_id);
        let owed = owed
            .filter(|owed| owed.request.tool_id == *tool_id)
            .ok_or_else(|| not_open(tool_id, request_id))?;
        let now = Instant::now();
        let request = &mut owed.request;
        if owed.deadline.extend(now, rules) {
            request.expires_at = owed.deadline.expires_at(now);
            session.events.send(Event::ChatToolExtended(ToolExtended {
                conversation_id: request.conversation_id.clone(),
                message_id: request.message_id.clone(),
                tool_id: request.tool_id.clone(),
                request_id: Some(request.request_id.clone()),
                expires_at: request.expires_at.clone(),
            }));
        }
        Ok(Extended {
            tool_id: request.tool_id.clone(),
            request_id: Some(request.request_id.clone()),
            expires_at: request.expires_at.clone(),
        })
    }

    /// Returns when the next question lapses.
    pub fn next_expiry(&self) -> Option<Instant> {
        let deadlines = self.open.values().filter_map(|owed| owed.deadline.at());
        deadlines.min()
    }

    /// Settles the questions whose time is up.
    pub fn expire(&mut self, now: Instant, session: &SessionContext) {
        let late = |owed: &Owed| owed.deadline.has_passed(now);
        let how = (InputOutcome::Expired, None, By::Timeout);
        for id in self.ids(late) {
            self.settle(&id, how, Given::Cancelled, session);
        }
    }

    /// Settles questions because who asked them is gone.
    pub fn void(
        &mut self,
        which: impl Fn(&ToolInputRequest) -> bool,
        by: By,
        session: &SessionContext,
    ) {
        let how = (InputOutcome::Cancelled, None, by);
        for id in self.ids(|owed| which(&owed.request)) {
            self.settle(&id, how, Given::Cancelled, session);
        }
    }

    /// Returns the open questions as they were announced.
    pub fn requests(&self) -> Vec<ToolInputRequest> {
        self.open
            .values()
            .map(|owed| owed.request.clone())
            .collect()
    }

    fn ids(&self, which: impl Fn(&Owed) -> bool) -> Vec<InputId> {
        let chosen = self.open.iter().filter(|(_, owed)| which(owed));
        chosen.map(|(id, _)| id.clone()).collect()
    }

    /// Settles a question; whether somebody waited for it.
    fn settle(
        &mut self,
        id: &InputId,
        (outcome, action, by): (InputOutcome, Option<InputAction>, By),
        given: Given,
        session: &SessionContext,
    ) -> bool {
        let Some(Owed {
            request,
            given: waiting,
            ..
        }) = self.open.remove(id)
        else {
            return false;
        };
        session.inputs.close(id);
        tracing::info!(request_id = %id, tool_id = %request.tool_id, ?outcome, ?action, "a request for input settled");
        session
            .events
            .send(Event::ChatToolInputResolved(ToolInputResolved {
                conversation_id: request.conversation_id,
                message_id: request.message_id,
                tool_id: request.tool_id,
                request_id: request.request_id,
                outcome,
                action,
                by,
            }));
        waiting.send(given).is_ok()
    }
}

/// What an accepting answer gives, where it fits.
fn fitting(
    request: &ToolInputRequest,
    content: Option<Map<String, Value>>,
) -> Result<Option<Map<String, Value>>, SessionError> {
    let wrong = |problem: String| SessionError {
        code: SessionCode::InvalidPayload,
        message: format!("field `content`: {problem}; the question stays open"),
    };
    let Some(schema) = &request.requested_schema else {
        return match content {
            Some(content) if !content.is_empty() => Err(wrong(
                "a page was asked to be opened, which takes none".to_owned(),
            )),
            _ => Ok(None),
        };
    };
    let content = content.unwrap_or_default();
    let size = serde_json::to_vec(&content).map_or(usize::MAX, |json| json.len());
    if size > MAX_CONTENT {
        return Err(wrong(format!("{size} bytes are more than {MAX_CONTENT}")));
    }
    let content = defaults::filled(schema, content);
    check::fits(schema, &content).map_err(wrong)?;
    Ok(Some(content))
}

/// The error of a request for input that is not open.
pub fn not_found(id: &InputId) -> SessionError {
    SessionError {
        code: SessionCode::InputNotFound,
        message: format!(
            "no request for input `{id}` is open; it was answered, has expired, or never was"
        ),
    }
}

/// The error of a `chat:tool-extend` for a request for input that is not open.
pub fn not_open(tool_id: &ToolId, request_id: &InputId) -> SessionError {
    SessionError {
        code: SessionCode::ApprovalNotFound,
        message: format!(
            "no request for input `{request_id}` of the call `{tool_id}` is open; it was answered, has expired, or never was"
        ),
    }
}
