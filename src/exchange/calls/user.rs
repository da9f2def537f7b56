//! A call that runs asks the user for something. Which answer counts, and when the question lapses, is the
//! conversation's affair (`crate::conversation::inputs`).

use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::config::Unattended;
use crate::exchange::Exchange;
use crate::exchange::ask::{AskInput, Question};
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
    asked: AtomicBool,
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
            asked: AtomicBool::new(false),
        }
    }

    /// Takes back what is still open, because the call is over.
    pub(super) async fn leave(&self) {
        if !self.asked.load(Ordering::Relaxed) {
            return;
        }
        let (settled, done) = oneshot::channel();
        let question = Question::WithdrawInput {
            tool_id: self.tool_id.clone(),
            request_id: None,
            settled,
        };
        if self.exchange.asks.send(question).await.is_ok() {
            // An error means that it was settled before.
            drop(done.await);
        }
    }

    fn state(&self, state: StateName) {
        self.exchange.events().send(Event::ChatState(State {
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
        if self.exchange.services.config.approval.unattended == Unattended::Deny {
            return Some("nobody is there to answer (approval.unattended)".to_owned());
        }
        self.exchange.session.inputs.unable()
    }

    fn ask(&self, wanted: Wanted) -> BoxFuture<'_, Given> {
        async move {
            let _pauses = (self.exchange.stopwatch.pause(), self.clock.pause());
            self.asked.store(true, Ordering::Relaxed);
            let request_id = self.exchange.session.ids.input();
            let (given, answer) = oneshot::channel();
            let ask = AskInput {
                request: self.request(request_id.clone(), wanted),
                given,
            };
            self.state(StateName::AwaitingInput);
            let asks = &self.exchange.asks;
            if asks.send(Question::Input(Box::new(ask))).await.is_err() {
                return Given::Cancelled;
            }
            let open = Open {
                asks,
                tool_id: self.tool_id,
                request_id: Some(request_id),
            };
            let given = answer.await.unwrap_or(Given::Cancelled);
            open.settled();
            self.state(StateName::ToolExecuting);
            given
        }
        .boxed()
    }
}

/// Takes a question back when whoever waits for it is gone.
struct Open<'a> {
    asks: &'a mpsc::Sender<Question>,
    tool_id: &'a ToolId,
    request_id: Option<InputId>,
}

impl Open<'_> {
    fn settled(mut self) {
        self.request_id = None;
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.request_id.take() {
            let question = Question::WithdrawInput {
                tool_id: self.tool_id.clone(),
                request_id: Some(id),
                settled: oneshot::channel().0,
            };
            // Where there is no room it stays open for a while: the end of the call settles it.
            drop(self.asks.try_send(question));
        }
    }
}
