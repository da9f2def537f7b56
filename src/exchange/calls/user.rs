//! What a running call asks the user for. When a question expires and which answer counts is decided in the table of
//! open questions (`crate::exchange::questions`).

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::config::Unattended;
use crate::exchange::Exchange;
use crate::exchange::context::Context;
use crate::exchange::questions::input::InputQuestion;
use crate::exchange::questions::{Open, Question, QuestionId};
use crate::exchange::stopwatch::Stopwatch;
use crate::message::{InputId, ToolId};
use crate::protocol::event::{By, StateName};
use crate::protocol::input::{InputMode, ToolInputRequest};
use crate::tool::user::{AskUser, Form, Given, Wanted};

/// The user, as one running call sees them.
pub(super) struct User<'a> {
    pub(super) exchange: &'a Exchange<'a>,
    pub(super) tool_id: &'a ToolId,
    /// The call's own clock.
    pub(super) clock: &'a Stopwatch,
}

impl User<'_> {
    fn request(&self, request_id: InputId, wanted: Wanted) -> ToolInputRequest {
        let setup = self.exchange.setup;
        let (mode, requested_schema, url) = match wanted.form {
            Form::Fields(schema) => (InputMode::Form, Some(schema), None),
            Form::Page(url) => (InputMode::Url, None, Some(url)),
        };
        ToolInputRequest {
            conversation_id: setup.conversation_id.clone(),
            message_id: setup.message_id.clone(),
            tool_id: self.tool_id.clone(),
            request_id,
            server: wanted.server,
            message: wanted.message,
            mode,
            requested_schema,
            url,
            expires_at: None,
        }
    }
}

impl AskUser for User<'_> {
    fn unable(&self) -> Option<String> {
        if self.exchange.context.services.config.approval.unattended == Unattended::Deny {
            return Some("nobody is there to answer (approval.unattended)".to_owned());
        }
        self.exchange.context.session.questions.unable()
    }

    fn ask(&self, wanted: Wanted) -> BoxFuture<'_, Given> {
        async move {
            let _pauses = (self.exchange.stopwatch.pause(), self.clock.pause());
            let context = self.exchange.context;
            let request_id = context.session.ids.input();
            let _asked = Asked {
                context,
                id: QuestionId::Input(request_id.clone()),
            };
            let (given, answer) = oneshot::channel();
            let question = InputQuestion {
                request: self.request(request_id, wanted),
                given,
            };
            let question = Question::Input(Box::new(question));
            self.exchange
                .emit_call_state(self.tool_id, StateName::AwaitingInput);
            context.conversation.questions.ask(question, context);
            // Dropped without an answer where it could not be asked.
            let given = answer.await.unwrap_or(Given::Cancelled);
            self.exchange
                .emit_call_state(self.tool_id, StateName::ToolExecuting);
            given
        }
        .boxed()
    }
}

/// Withdraws a question, where it is still open, when whoever waits for it is gone.
struct Asked<'a> {
    context: &'a Context,
    id: QuestionId,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let questions = &self.context.conversation.questions;
        let ours = |open: &Open| open.id == self.id;
        questions.withdraw(ours, By::Cancel, self.context);
    }
}
