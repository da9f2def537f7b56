//! What running calls ask the user for. Of an answer nothing is kept.

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::{Action, Open, Question, QuestionId, Questions, Unanswered, form};
use crate::exchange::context::Context;
use crate::protocol::event::{By, Event, SessionError};
use crate::protocol::input::{
    InputAction, InputOutcome, InputTaken, ToolInput, ToolInputRequest, ToolInputResolved,
};
use crate::protocol::{SessionCode, json_bytes};
use crate::tool::user::Given;

/// The most bytes of an answer as JSON: a form that a person fills in, and no file.
const MAX_CONTENT: usize = 64 * 1024;

pub(crate) struct InputQuestion {
    /// What the user is shown; its deadline is set when it is announced.
    pub request: ToolInputRequest,
    pub given: oneshot::Sender<Given>,
}

impl Questions {
    /// Takes a client's answer. Where the content does not fit what was asked for, the question stays open.
    pub(super) fn give(&self, input: ToolInput, context: &Context) -> Result<Event, SessionError> {
        let id = QuestionId::Input(input.request_id.clone());
        let found = self.find(&id);
        let Some(Open {
            question: Question::Input(open),
            ..
        }) = found.as_deref()
        else {
            return Err(Action::Input(input).not_found());
        };
        let ToolInput {
            request_id,
            action,
            content,
        } = input;
        let given = match action {
            InputAction::Accept => Given::Accepted(fitting(&open.request, content)?),
            InputAction::Decline => Given::Declined,
            InputAction::Cancel => Given::Cancelled,
        };
        drop(found);
        let accepted = match self.close(&id, context) {
            Some(Question::Input(open)) => open.settle(
                InputOutcome::Answered,
                Some(action),
                By::User,
                given,
                context,
            ),
            _ => false,
        };
        Ok(Event::ChatToolInputResult(InputTaken {
            request_id,
            accepted,
        }))
    }
}

impl InputQuestion {
    pub(super) fn settle_unanswered(self, how: Unanswered, context: &Context) {
        let (outcome, by) = match how {
            Unanswered::Expired => (InputOutcome::Expired, By::Timeout),
            Unanswered::Withdrawn(by) => (InputOutcome::Cancelled, by),
            Unanswered::Gone => (InputOutcome::Cancelled, By::Cancel),
        };
        self.settle(outcome, None, by, Given::Cancelled, context);
    }

    /// Emits how the question ended and passes the answer on; returns whether somebody waited for it.
    fn settle(
        self,
        outcome: InputOutcome,
        action: Option<InputAction>,
        by: By,
        given: Given,
        context: &Context,
    ) -> bool {
        let Self {
            request,
            given: waiting,
        } = self;
        tracing::info!(request_id = %request.request_id, tool_id = %request.tool_id, ?outcome, ?action, "a request for input settled");
        let resolved = ToolInputResolved {
            conversation_id: request.conversation_id,
            message_id: request.message_id,
            tool_id: request.tool_id,
            request_id: request.request_id,
            outcome,
            action,
            by,
        };
        context
            .events()
            .emit(Event::ChatToolInputResolved(resolved));
        waiting.send(given).is_ok()
    }
}

/// Returns what an accepting answer gives, where it fits.
fn fitting(
    request: &ToolInputRequest,
    content: Option<Map<String, Value>>,
) -> Result<Option<Map<String, Value>>, SessionError> {
    let wrong = |problem: String| {
        let message = format!("field `content`: {problem}; the question stays open");
        SessionError::new(SessionCode::InvalidPayload, message)
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
    let size = json_bytes(&content);
    if size > MAX_CONTENT {
        return Err(wrong(format!("{size} bytes are more than {MAX_CONTENT}")));
    }
    let content = form::filled(schema, content);
    form::fits(schema, &content).map_err(wrong)?;
    Ok(Some(content))
}
