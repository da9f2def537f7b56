//! What a running call asks the user for. When a question expires and which answer counts is decided in the table of
//! open questions (`crate::exchange::questions`).

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::host::HostsOfCall;
use crate::exchange::context::Context;
use crate::exchange::questions::client::{ClientQuestion, MAX_PROGRESS};
use crate::exchange::questions::input::InputQuestion;
use crate::exchange::questions::{Open, Question, QuestionId};
use crate::exchange::{Exchange, NOTHING_ASKED, Unasked};
use crate::message::{InputId, ToolCall};
use crate::protocol::client_tools::HandedOut;
use crate::protocol::event::{By, StateName};
use crate::protocol::input::{InputMode, InputPurpose, ToolInputRequest};
use crate::runtime::Stopwatch;
use crate::tool::Tool;
use crate::tool::user::{
    AskUser, Form, Given, HandOut, HostVerdict, KnownHosts, Purpose, Returned, Sample, Sampled,
    Standstill, Unsampled, Wanted,
};

/// The user, as one running call sees them.
pub(super) struct User<'a> {
    pub(super) exchange: &'a Exchange<'a>,
    pub(super) call: &'a ToolCall,
    pub(super) tool: Arc<dyn Tool>,
    /// Whether the scope gives its commands the network.
    pub(super) has_network: bool,
    /// The host that the call names, where the user let it run: they have seen it.
    pub(super) approved_host: Option<String>,
    /// The call's own clock.
    pub(super) clock: &'a Stopwatch,
    pub(super) cancel: &'a CancellationToken,
    /// What it has asked about hosts; held by the question that is open.
    pub(super) asks: tokio::sync::Mutex<HostsOfCall>,
}

impl User<'_> {
    /// Returns what withdraws a question of the call when it is dropped.
    pub(super) fn withdraws(&self, id: QuestionId) -> Asked<'_> {
        let context = self.exchange.context;
        Asked { context, id }
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
            tool_id: self.call.id.clone(),
            request_id,
            server: wanted.server,
            message: wanted.message,
            mode,
            requested_schema,
            url,
            purpose: match wanted.purpose {
                Purpose::Input => None,
                Purpose::Sampling => Some(InputPurpose::Sampling),
                Purpose::SampledAnswer => Some(InputPurpose::SampledAnswer),
            },
            expires_at: None,
        }
    }
}

impl AskUser for User<'_> {
    fn unable(&self) -> Option<String> {
        match self.exchange.unasked() {
            Some(Unasked::Policy) => Some(NOTHING_ASKED.to_owned()),
            Some(Unasked::Unattended) => {
                Some("nobody is there to answer (approval.unattended)".to_owned())
            }
            None => self.exchange.context.session.questions.unable(),
        }
    }

    fn ask(&self, wanted: Wanted) -> BoxFuture<'_, Given> {
        async move {
            let _pauses = (self.exchange.stopwatch.pause(), self.clock.pause());
            let context = self.exchange.context;
            let request_id = context.session.ids.input();
            let _asked = self.withdraws(QuestionId::Input(request_id.clone()));
            let (given, answer) = oneshot::channel();
            let question = InputQuestion {
                request: self.request(request_id, wanted),
                given,
            };
            let question = Question::Input(Box::new(question));
            let tool_id = &self.call.id;
            self.exchange
                .emit_call_state(tool_id, StateName::AwaitingInput);
            context.conversation.questions.ask(question, context);
            // Dropped without an answer where it could not be asked.
            let given = answer.await.unwrap_or(Given::Cancelled);
            self.exchange
                .emit_call_state(tool_id, StateName::ToolExecuting);
            given
        }
        .boxed()
    }

    fn stand_still(&self) -> Option<Standstill<'_>> {
        let is_somebody_there = self.exchange.unasked().is_none();
        let pauses = || (self.exchange.stopwatch.pause(), self.clock.pause());
        is_somebody_there.then(|| Box::new(pauses()) as Standstill<'_>)
    }

    fn sample(&self, wanted: Sample) -> BoxFuture<'_, Result<Sampled, Unsampled>> {
        self.sampled(wanted).boxed()
    }

    fn ask_host<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, HostVerdict> {
        self.host_verdict(host, port).boxed()
    }

    fn known_hosts(&self) -> KnownHosts {
        self.known_for_longer()
    }

    fn hand_out<'a>(
        &'a self,
        call: HandOut,
        progress: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Returned> {
        async move {
            let of_exchange = call.interactive.then(|| self.exchange.stopwatch.pause());
            let _pauses = (of_exchange, self.clock.pause());
            let context = self.exchange.context;
            let (setup, tool_id) = (self.exchange.setup, &self.call.id);
            let _asked = self.withdraws(QuestionId::Client(tool_id.clone()));
            let (returned, mut answer) = oneshot::channel();
            let (lines, mut said) = mpsc::channel(MAX_PROGRESS);
            let handed_out = HandedOut {
                conversation_id: setup.conversation_id.clone(),
                message_id: setup.message_id.clone(),
                tool_id: tool_id.clone(),
                tool_name: call.tool_name,
                name: call.name,
                input: call.input,
                expires_at: None,
            };
            let question = ClientQuestion::new(handed_out, call.timeout, returned, lines);
            self.exchange
                .emit_call_state(tool_id, StateName::AwaitingClient);
            let question = Question::Client(Box::new(question));
            context.conversation.questions.ask(question, context);
            let returned = loop {
                tokio::select! {
                    biased;
                    Some(line) = said.recv() => progress(&line),
                    // Dropped without an answer where it could not be handed out.
                    returned = &mut answer => break returned.unwrap_or(Returned::Cancelled),
                    () = self.cancel.cancelled() => break Returned::Cancelled,
                }
            };
            while let Ok(line) = said.try_recv() {
                progress(&line);
            }
            returned
        }
        .boxed()
    }
}

/// Withdraws a question, where it is still open, when whoever waits for it is gone.
pub(super) struct Asked<'a> {
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
