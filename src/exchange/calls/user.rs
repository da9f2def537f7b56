//! What a running call asks the user for. When a question expires and which answer counts is decided in the table of
//! open questions (`crate::exchange::questions`).

use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::config::Unattended;
use crate::exchange::Exchange;
use crate::exchange::questions::input::InputQuestion;
use crate::exchange::questions::{Question, QuestionId, QuestionRequest, Which};
use crate::exchange::stopwatch::Stopwatch;
use crate::message::{InputId, ToolId};
use crate::protocol::event::{Event, State, StateName};
use crate::protocol::input::{InputMode, ToolInputRequest};
use crate::tool::user::{AskUser, Form, Given, Wanted};

/// The user, as one running call sees them.
pub(super) struct User<'a> {
    exchange: &'a Exchange<'a>,
    tool_id: &'a ToolId,
    /// The call's own clock.
    clock: &'a Stopwatch,
    /// Whether anything was asked.
    has_asked: AtomicBool,
}

impl<'a> User<'a> {
    pub(super) fn new(
        exchange: &'a Exchange<'a>,
        tool_id: &'a ToolId,
        clock: &'a Stopwatch,
    ) -> Self {
        Self {
            exchange,
            tool_id,
            clock,
            has_asked: AtomicBool::new(false),
        }
    }

    /// Withdraws what is still open, because the call is over.
    pub(super) async fn withdraw(&self) {
        if !self.has_asked.load(Ordering::Relaxed) {
            return;
        }
        let (settled, done) = oneshot::channel();
        let request = QuestionRequest::Withdraw {
            which: Which::Call(self.tool_id.clone()),
            settled,
        };
        if self.exchange.questions.send(request).await.is_ok() {
            // An error means that it was settled before.
            drop(done.await);
        }
    }

    fn state(&self, state: StateName) {
        self.exchange.emit(Event::ChatState(State {
            tool_id: Some(self.tool_id.clone()),
            ..self.exchange.state(state)
        }));
    }

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
            self.has_asked.store(true, Ordering::Relaxed);
            let request_id = self.exchange.context.session.ids.input();
            let (given, answer) = oneshot::channel();
            let question = Question::Input(Box::new(InputQuestion {
                request: self.request(request_id.clone(), wanted),
                given,
            }));
            self.state(StateName::AwaitingInput);
            let questions = &self.exchange.questions;
            let request = QuestionRequest::Ask(question);
            if questions.send(request).await.is_err() {
                return Given::Cancelled;
            }
            let open = Open {
                questions,
                id: Some(QuestionId::Input(request_id)),
            };
            let given = answer.await.unwrap_or(Given::Cancelled);
            open.settled();
            self.state(StateName::ToolExecuting);
            given
        }
        .boxed()
    }
}

/// Withdraws a question when whoever waits for it is gone.
struct Open<'a> {
    questions: &'a mpsc::Sender<QuestionRequest>,
    id: Option<QuestionId>,
}

impl Open<'_> {
    fn settled(mut self) {
        self.id = None;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let request = QuestionRequest::Withdraw {
                which: Which::One(id),
                settled: oneshot::channel().0,
            };
            // Where there is no room it stays open for a while: the end of the call settles it.
            drop(self.questions.try_send(request));
        }
    }
}
