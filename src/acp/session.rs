//! One session on a connection: orders of the client in, the session's events out.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::agent::Out;
use super::open::CONVERSATION;
use super::options::Options;
use super::question::{self, Question, Settled};
use super::render::Renderer;
use super::replies::Pending;
use super::rpc::{Id, RpcError};
use super::tool_call;
use super::turn::Turn;
use super::wire::Block;
use crate::message::ConversationId;
use crate::plain_text::frame::{Frame, request_id};
use crate::protocol::command::{ChatCancel, Command};
use crate::protocol::event::{By, Event};
use crate::protocol::{Request, RequestId};
use crate::runtime::sleep_until;
use crate::session::{Attachment, Handle, Reader, Sessions};

/// Bytes of events that are taken at once.
const BATCH: usize = 64 * 1024;

/// How often a running command's output is sent where it replaces what was sent before.
const OUTPUT_EVERY: Duration = Duration::from_millis(250);

/// What a client wants of a session.
#[derive(Debug)]
pub(super) enum Order {
    Prompt {
        id: Id,
        blocks: Vec<Block>,
        steers: bool,
    },
    SetMode {
        id: Id,
        mode: String,
    },
    SetOption {
        id: Id,
        option: String,
        value: Value,
    },
    SetTitle {
        id: Id,
        title: String,
    },
    Close {
        id: Id,
    },
    Cancel,
    /// The request with this id is to be cancelled.
    CancelRequest(Value),
    /// The client answers the question with this number.
    Answer {
        number: u64,
        outcome: Result<Value, Value>,
    },
}

pub(super) struct AcpSession {
    pub(super) sessions: Arc<Sessions>,
    handle: Handle,
    attachment: Attachment,
    reader: Reader,
    pub(super) renderer: Renderer,
    pub(super) out: Out,
    inbox: mpsc::Receiver<Order>,
    stop: CancellationToken,
    /// `None` before the session said what is in force.
    pub(super) options: Option<Options>,
    pub(super) workflows: Vec<String>,
    /// Frames that came before the client could be told of them.
    early: Vec<Utf8Bytes>,
    requests: u64,
    /// Requests to the daemon without an answer.
    pub(super) pending: HashMap<u64, Pending>,
    /// Questions that the client has not answered.
    questions: HashMap<u64, Question>,
    asked: u64,
    /// The turn that runs for the client.
    pub(super) turn: Option<Turn>,
    /// MCP servers that the client named: they go with the session.
    pub(super) servers: Vec<String>,
    /// Those that have not answered yet, for which a first prompt waits.
    pub(super) starting: Vec<String>,
    /// What went wrong at the beginning, to be told with the first prompt.
    pub(super) problems: Vec<String>,
    flush_at: Option<Instant>,
}

impl AcpSession {
    pub(super) fn new(
        sessions: Arc<Sessions>,
        handle: Handle,
        attachment: Attachment,
        after: u64,
        renderer: Renderer,
        (out, inbox, stop): (Out, mpsc::Receiver<Order>, CancellationToken),
    ) -> Self {
        Self {
            reader: Reader::new(handle.clone(), after),
            sessions,
            handle,
            attachment,
            renderer,
            out,
            inbox,
            stop,
            options: None,
            workflows: Vec::new(),
            early: Vec::new(),
            requests: 0,
            pending: HashMap::new(),
            questions: HashMap::new(),
            asked: 0,
            turn: None,
            servers: Vec::new(),
            starting: Vec::new(),
            problems: Vec::new(),
            flush_at: None,
        }
    }

    pub(super) fn id(&self) -> &str {
        self.handle.id.as_str()
    }

    /// Serves the session until it is closed, taken over, or the connection ends.
    pub(super) async fn run(mut self) {
        for frame in std::mem::take(&mut self.early) {
            self.take(&frame).await;
        }
        let feed = Arc::clone(&self.handle.feed);
        let (sessions, handle) = (Arc::clone(&self.sessions), self.handle.clone());
        let taken_over = self.attachment.taken_over.clone();
        loop {
            // Before the look, so that nothing that comes after it is missed.
            let grown = feed.grown();
            if !self.read().await {
                break;
            }
            let (flush_at, held_until) = (self.flush_at, self.held_until());
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                order = self.inbox.recv() => match order {
                    Some(order) => if self.order(order).await.is_break() {
                        return;
                    },
                    None => break,
                },
                () = taken_over.cancelled() => {
                    self.fail("another client has taken the session over").await;
                    break;
                }
                () = sessions.lost(&handle) => {
                    self.fail("the session ended").await;
                    break;
                }
                () = sleep_until(flush_at) => self.flush().await,
                () = sleep_until(held_until) => self.begin().await,
                () = grown => {}
            }
        }
        self.end_servers().await;
    }

    /// Takes all events that there are; returns whether the session goes on.
    async fn read(&mut self) -> bool {
        let mut frames = Vec::new();
        loop {
            if !self.reader.read(BATCH, &mut frames).await {
                return false;
            }
            if frames.is_empty() {
                return true;
            }
            for frame in frames.drain(..) {
                self.take(&frame).await;
            }
        }
    }

    async fn take(&mut self, frame: &str) {
        let Some(frame) = Frame::read(frame) else {
            return;
        };
        match frame
            .reply_to
            .and_then(|number| self.pending.remove(&number))
        {
            Some(pending) => self.replied(pending, frame.event).await,
            None => self.event(frame.event).await,
        }
    }

    async fn event(&mut self, event: Event) {
        for update in self.renderer.event(&event) {
            self.update(update).await;
        }
        if self.renderer.is_dirty() {
            self.flush_at
                .get_or_insert_with(|| Instant::now() + OUTPUT_EVERY);
        }
        match event {
            Event::ChatToolConfirm(confirm) => {
                let cwd = self.cwd();
                let unified = confirm.preview.as_deref();
                let diff = tool_call::diff(&confirm.tool_name, &confirm.input, unified, &cwd);
                let params = question::of_call(self.id(), &confirm, diff);
                self.ask_client(
                    "session/request_permission",
                    params,
                    Question::Call(confirm),
                )
                .await;
            }
            Event::ChatBudgetConfirm(confirm) => {
                let params = question::of_money(self.id(), &confirm);
                let question = Question::Money(confirm.request_id);
                self.ask_client("session/request_permission", params, question)
                    .await;
            }
            Event::ChatToolInputRequest(asked) => {
                let params = question::of_input(self.id(), &asked);
                let question = Question::Input(asked.request_id);
                self.ask_client("elicitation/create", params, question)
                    .await;
            }
            Event::ChatToolResolved(it) => {
                let settled = Settled::Call(&it.tool_id, it.host.as_deref());
                self.settled(&settled, it.by).await;
            }
            Event::ChatBudgetResolved(it) => {
                self.settled(&Settled::Money(&it.request_id), it.by).await;
            }
            Event::ChatToolInputResolved(it) => {
                self.settled(&Settled::Input(&it.request_id), it.by).await;
            }
            event => self.turn_event(event).await,
        }
    }

    /// Asks the client something.
    async fn ask_client(&mut self, method: &str, params: Value, question: Question) {
        self.asked += 1;
        let id = self.question_id(self.asked);
        self.questions.insert(self.asked, question);
        self.out.request(&id, method, params).await;
    }

    fn question_id(&self, number: u64) -> String {
        format!("{}#{number}", self.id())
    }

    /// Takes back a question that was settled otherwise: nobody needs to answer it any more.
    async fn settled(&mut self, settled: &Settled<'_>, by: By) {
        let mut open = self.questions.iter();
        let number = open
            .find(|(_, question)| question.is(settled))
            .map(|(number, _)| *number);
        let Some(number) = number else {
            return;
        };
        self.questions.remove(&number);
        if by != By::User {
            let id = self.question_id(number);
            self.out
                .notify("$/cancel_request", serde_json::json!({"requestId": id}))
                .await;
        }
    }

    /// Does what the client wants; breaks off where the session is closed.
    async fn order(&mut self, order: Order) -> ControlFlow<()> {
        match order {
            Order::Prompt { id, blocks, steers } => self.prompt(id, blocks, steers).await,
            Order::SetMode { id, mode } => self.set_mode(id, &mode).await,
            Order::SetOption { id, option, value } => self.set_option(id, &option, &value).await,
            Order::SetTitle { id, title } => self.set_title(id, title).await,
            Order::Cancel => self.cancel().await,
            Order::CancelRequest(id) => {
                if self.turn.as_ref().is_some_and(|turn| turn.is_of(&id)) {
                    self.cancel().await;
                }
            }
            Order::Answer { number, outcome } => {
                // One that was settled meanwhile needs no answer.
                if let Some(question) = self.questions.remove(&number) {
                    self.send_quietly(question.answered(outcome)).await;
                }
            }
            Order::Close { id } => {
                self.fail("the session was closed").await;
                self.end_servers().await;
                self.handle.discard().await;
                self.out.answer(&id, Ok(serde_json::json!({}))).await;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Cancels the turn that runs; its prompt is answered when it has ended.
    pub(super) async fn cancel(&mut self) {
        if self.turn.as_ref().is_some_and(Turn::is_held) {
            return self.finish_turn("cancelled").await;
        }
        self.send_quietly(Command::ChatCancel(ChatCancel {
            conversation_id: ConversationId::new(CONVERSATION),
            queued: true,
        }))
        .await;
    }

    async fn flush(&mut self) {
        self.flush_at = None;
        for update in self.renderer.flush() {
            self.update(update).await;
        }
    }

    pub(super) async fn update(&self, update: Value) {
        self.out.update(self.id(), update).await;
    }

    /// Sends a request to the session; what its answer is for comes with it.
    pub(super) async fn send(&mut self, command: Command, pending: Pending) {
        let number = self.hand_over(command).await;
        self.pending.insert(number, pending);
    }

    /// Sends a request whose answer changes nothing here but what is shown.
    pub(super) async fn send_quietly(&mut self, command: Command) {
        self.send(command, Pending::Quiet).await;
    }

    async fn hand_over(&mut self, command: Command) -> u64 {
        self.requests += 1;
        let id = request_id(self.requests);
        let id = Some(RequestId::from(id.as_str()));
        // Where the session has ended, that is noticed elsewhere.
        self.handle.request(Request { id, command }).await;
        self.requests
    }

    /// Sends a request and waits for its answer, while nothing is told yet.
    pub(super) async fn ask(&mut self, command: Command) -> Result<Event, RpcError> {
        let number = self.hand_over(command).await;
        let feed = Arc::clone(&self.handle.feed);
        let mut frames = Vec::new();
        loop {
            let grown = feed.grown();
            if !self.reader.read(BATCH, &mut frames).await {
                return Err(RpcError::internal("the session ended", None));
            }
            let mut answer = None;
            for frame in frames.drain(..) {
                match Frame::read(&frame) {
                    Some(read) if read.reply_to == Some(number) => answer = Some(read.event),
                    _ => self.early.push(frame),
                }
            }
            if let Some(answer) = answer {
                return Ok(answer);
            }
            tokio::select! {
                () = grown => {}
                () = self.handle.ended() => return Err(RpcError::internal("the session ended", None)),
                () = self.stop.cancelled() => return Err(RpcError::internal("the connection ended", None)),
            }
        }
    }
}
