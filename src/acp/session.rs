//! One session on a connection: orders of the client in, the session's events out.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::agent::Out;
use super::diff::MAX_WHOLE;
use super::open::CONVERSATION;
use super::options::Options;
use super::question::Question;
use super::render::Renderer;
use super::replies::Pending;
use super::rpc::{Id, RpcError};
use super::turn::Turn;
use super::wire::{Block, Input};
use crate::message::{ConversationId, InputId};
use crate::plain_text::frame::{Frame, request_id};
use crate::protocol::command::{ChatCancel, Command};
use crate::protocol::event::Event;
use crate::protocol::mcp::McpPrompt;
use crate::protocol::{Request, RequestId, SessionCode};
use crate::runtime::sleep_until;
use crate::session::{Attachment, Handle, ProjectFiles, Reader, UserSessions};

/// Bytes of events that are taken at once, before the client's orders are looked at again.
const BATCH: usize = 32 * 1024;

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

/// What a session is made of.
pub(super) struct Parts {
    pub sessions: UserSessions,
    pub handle: Handle,
    pub attachment: Attachment,
    /// The number of the last event that is of no interest.
    pub after: u64,
    pub renderer: Renderer,
    /// How the client asks the user for what MCP servers want.
    pub input: Input,
    pub files: ProjectFiles,
    pub out: Out,
    pub inbox: mpsc::Receiver<Order>,
    pub stop: CancellationToken,
}

pub(super) struct AcpSession {
    pub(super) sessions: UserSessions,
    pub(super) handle: Handle,
    attachment: Attachment,
    pub(super) reader: Reader,
    pub(super) renderer: Renderer,
    pub(super) out: Out,
    inbox: mpsc::Receiver<Order>,
    stop: CancellationToken,
    pub(super) input: Input,
    /// The texts of the project's files, to show changes whole.
    pub(super) files: ProjectFiles,
    /// `None` before the session said what is in force.
    pub(super) options: Option<Options>,
    pub(super) workflows: Vec<String>,
    /// Prompts of MCP servers, which are commands.
    pub(super) prompts: Vec<McpPrompt>,
    /// Frames that came before the client could be told of them.
    pub(super) early: Vec<Frame>,
    /// The number of the last request. They begin with the time: the session remembers sends of earlier connections by their
    /// numbers, and what comes again under the same one is not run.
    requests: u64,
    /// Requests to the daemon without an answer.
    pub(super) pending: HashMap<u64, Pending>,
    /// Questions that the client has not answered.
    pub(super) questions: HashMap<u64, Question>,
    /// The number of the last question.
    pub(super) last_question: u64,
    /// Pages that the client was asked to open.
    pub(super) pages: Vec<InputId>,
    /// Whether the client knows that there are other conversations.
    pub(super) knows_others: bool,
    /// The turn that runs for the client.
    pub(super) turn: Option<Turn>,
    /// MCP servers of the client's that have not answered yet, for which a first prompt waits.
    pub(super) starting: Vec<String>,
    /// Whether a prompt has waited for them in vain: no other one does.
    pub(super) has_waited: bool,
    /// What went wrong at the beginning, to be told with the first prompt.
    pub(super) problems: Vec<String>,
    flush_at: Option<Instant>,
}

impl AcpSession {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            reader: Reader::new(parts.handle.clone(), parts.after),
            sessions: parts.sessions,
            handle: parts.handle,
            attachment: parts.attachment,
            renderer: parts.renderer,
            out: parts.out,
            inbox: parts.inbox,
            stop: parts.stop,
            input: parts.input,
            files: parts.files,
            options: None,
            workflows: Vec::new(),
            prompts: Vec::new(),
            early: Vec::new(),
            requests: u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default(),
            pending: HashMap::new(),
            questions: HashMap::new(),
            last_question: 0,
            pages: Vec::new(),
            knows_others: false,
            turn: None,
            starting: Vec::new(),
            has_waited: false,
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
            self.take(frame).await;
        }
        let feed = Arc::clone(&self.handle.feed);
        let (sessions, handle) = (self.sessions.clone(), self.handle.clone());
        let taken_over = self.attachment.taken_over.clone();
        loop {
            // Before the look, so that nothing that comes after it is missed.
            let grown = feed.grown();
            let Some(is_more) = self.read().await else {
                return self.lost("the session ended").await;
            };
            let (flush_at, held_until) = (self.flush_at, self.held_until());
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                order = self.inbox.recv() => match order {
                    Some(order) => if self.order(order).await.is_break() {
                        return;
                    },
                    None => return,
                },
                () = taken_over.cancelled() => {
                    return self.lost("another client has taken the session over").await;
                }
                _ = sessions.lost(&handle) => return self.lost("the session ended").await,
                () = sleep_until(flush_at) => self.flush().await,
                () = sleep_until(held_until) => self.go_on_waiting().await,
                // The client's orders are looked at between any two batches, however much there is.
                () = std::future::ready(()), if is_more => {}
                () = grown => {}
            }
        }
    }

    /// Ends what the client waits for, because the session is over for it.
    async fn lost(&mut self, why: &str) {
        self.withdraw_questions().await;
        self.fail_turn(RpcError::internal(why, Some("session/load goes on in it")))
            .await;
    }

    /// Takes the next events; returns whether there may be more, `None` where the session ended.
    async fn read(&mut self) -> Option<bool> {
        let mut frames = Vec::new();
        if !self.reader.read(BATCH, &mut frames).await {
            return None;
        }
        for frame in frames.iter().filter_map(|text| Frame::read(text)) {
            self.take(frame).await;
        }
        Some(!frames.is_empty())
    }

    async fn take(&mut self, frame: Frame) {
        match frame
            .reply_to
            .and_then(|number| self.pending.remove(&number))
        {
            Some(pending) => self.replied(pending, frame.event).await,
            None => self.event(frame.event).await,
        }
    }

    pub(super) async fn event(&mut self, event: Event) {
        match event.conversation() {
            // What a task asks is asked here; the rest of it is its call's result.
            Some(id) if id.task().is_some() && !event.is_question() => return,
            Some(id) if id.task().is_none() && id.as_str() != CONVERSATION => {
                return self.elsewhere(&event).await;
            }
            _ => {}
        }
        if let Event::SessionError(error) = &event
            && error.code == SessionCode::ReplayGap
        {
            return self.after_gap().await;
        }
        let text = match self.renderer.changes(&event) {
            Some(path) => self.files.text(path.to_owned(), MAX_WHOLE).await,
            None => None,
        };
        for update in self.renderer.event(&event, text.as_deref()) {
            self.update(update).await;
        }
        if self.renderer.is_dirty() {
            self.flush_at
                .get_or_insert_with(|| Instant::now() + OUTPUT_EVERY);
        }
        if let Some(event) = self.question_event(event).await {
            self.turn_event(event).await;
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
            Order::Answer { number, outcome } => self.answered(number, outcome).await,
            Order::Close { id } => {
                // As if the turn was cancelled before.
                if let Some(turn) = &mut self.turn {
                    turn.cancel();
                }
                self.withdraw_questions().await;
                self.finish_turn("cancelled").await;
                self.handle.discard().await;
                // Nothing of it is left when the client hears of it.
                self.stop.run_until_cancelled(self.handle.ended()).await;
                self.out.answer(&id, Ok(serde_json::json!({}))).await;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Cancels the turn that runs; its prompts are answered when it has ended.
    pub(super) async fn cancel(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.cancel();
            if turn.is_held() {
                return self.finish_turn("cancelled").await;
            }
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
            for frame in frames.drain(..).filter_map(|text| Frame::read(&text)) {
                match frame.reply_to == Some(number) {
                    true => answer = Some(frame.event),
                    false => self.early.push(frame),
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
