//! A turn of the protocol: from a prompt to its answer. It is one exchange of the daemon's, or what a slash command does.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::blocks;
use super::open::CONVERSATION;
use super::options::{Choice, Options, model};
use super::render::Renderer;
use super::replies::Pending;
use super::rpc::{Id, RpcError};
use super::session::AcpSession;
use super::slash::{self, Slash};
use super::wire::Block;
use crate::message::{ConversationId, MessageId, Part};
use crate::protocol::command::{ChatCompact, ChatSend, Command, Empty, FilesChanges, WhenBusy};
use crate::protocol::content::Content;
use crate::protocol::event::{ChatError, CompactionPhase, Event, StopReason, StreamEnd};
use crate::protocol::word;

/// How long a first prompt waits for MCP servers that the client named.
const SERVERS_TIME: Duration = Duration::from_secs(10);

/// What runs for the client.
#[derive(Debug)]
pub(super) struct Turn {
    /// The prompt, and those that went into it.
    ids: Vec<Id>,
    /// The exchange, once it has begun.
    message_id: Option<MessageId>,
    /// What is sent when the servers are there, and how long it waits for them.
    held: Option<(Box<ChatSend>, Instant)>,
    error: Option<ChatError>,
    /// Whether the client got any text.
    has_said: bool,
    is_compaction: bool,
}

impl Turn {
    fn new(id: Id) -> Self {
        Self {
            ids: vec![id],
            message_id: None,
            held: None,
            error: None,
            has_said: false,
            is_compaction: false,
        }
    }

    pub(super) fn is_of(&self, id: &Value) -> bool {
        self.ids.iter().any(|own| own.is(id))
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }
}

impl AcpSession {
    pub(super) fn cwd(&self) -> PathBuf {
        let options = self.options.as_ref();
        let project = options.and_then(|options| options.in_force.project.as_ref());
        project
            .map(|project| project.root.clone())
            .unwrap_or_default()
    }

    pub(super) async fn prompt(&mut self, id: Id, blocks: Vec<Block>, steers: bool) {
        if let Err(error) = self.try_prompt(&id, blocks, steers).await {
            self.out.answer(&id, Err(error)).await;
        }
    }

    async fn try_prompt(
        &mut self,
        id: &Id,
        blocks: Vec<Block>,
        steers: bool,
    ) -> Result<(), RpcError> {
        let steers = steers
            && self
                .turn
                .as_ref()
                .is_some_and(|turn| turn.message_id.is_some());
        if self.turn.is_some() && !steers {
            return Err(RpcError::invalid_request(
                "a turn runs in this session: wait for its end, or cancel it with session/cancel",
            ));
        }
        let first = blocks.first();
        let slash = match first {
            Some(Block::Text { text }) if !steers => slash::read(text, &self.workflows),
            _ => None,
        };
        let mut parts = blocks::parts(blocks, &self.cwd())?;
        let mut workflow = None;
        match slash {
            Some(Slash::Workflow { name, prompt }) => {
                workflow = Some(name);
                if let Some(first) = parts.first_mut() {
                    *first = Part::Text { text: prompt };
                }
            }
            Some(slash) => {
                self.turn = Some(Turn::new(id.clone()));
                self.slash(slash).await;
                return Ok(());
            }
            None => {}
        }
        let send = ChatSend {
            content: Content::Parts(parts),
            workflow,
            thinking: self.options.as_ref().and_then(Options::thinking),
            when_busy: if steers {
                WhenBusy::Steer
            } else {
                WhenBusy::Queue
            },
            ..ChatSend::text(ConversationId::new(CONVERSATION), String::new())
        };
        if let Some(turn) = self.turn.as_mut().filter(|_| steers) {
            turn.ids.push(id.clone());
            self.send(
                Command::ChatSend(Box::new(send)),
                Pending::Steer(id.clone()),
            )
            .await;
            return Ok(());
        }
        let until = Instant::now() + SERVERS_TIME;
        self.turn = Some(Turn {
            held: Some((Box::new(send), until)),
            ..Turn::new(id.clone())
        });
        for problem in std::mem::take(&mut self.problems) {
            self.say(&format!("*{problem}*\n\n")).await;
        }
        match self.starting.is_empty() {
            true => self.begin().await,
            false => {
                self.send(Command::McpList(Empty {}), Pending::Servers)
                    .await;
            }
        }
        Ok(())
    }

    /// When a prompt is sent whether or not its servers are there.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let held = self.turn.as_ref()?.held.as_ref()?;
        Some(held.1)
    }

    /// Sends the prompt that was held back.
    pub(super) async fn begin(&mut self) {
        self.starting.clear();
        let held = self.turn.as_mut().and_then(|turn| turn.held.take());
        if let Some((send, _)) = held {
            self.send(Command::ChatSend(send), Pending::Prompt).await;
        }
    }

    async fn slash(&mut self, slash: Slash) {
        match slash {
            Slash::Compact(instructions) => {
                if let Some(turn) = &mut self.turn {
                    turn.is_compaction = true;
                }
                let compact = ChatCompact {
                    conversation_id: ConversationId::new(CONVERSATION),
                    instructions: Some(instructions).filter(|it| !it.is_empty()),
                    mode: None,
                    when_busy: WhenBusy::Reject,
                };
                self.send(Command::ChatCompact(compact), Pending::Compact)
                    .await;
            }
            Slash::Undo => {
                let last = FilesChanges {
                    conversation_id: Some(ConversationId::new(CONVERSATION)),
                    limit: Some(1),
                    ..FilesChanges::default()
                };
                self.send(Command::FilesChanges(last), Pending::UndoWhat)
                    .await;
            }
            Slash::Cost => {
                let text = format!(
                    "This session has cost {} since it was opened here.",
                    self.renderer.cost()
                );
                self.say_and_finish(&text).await;
            }
            Slash::Model(name) if name.is_empty() => {
                let options = self.options.as_ref().map(|it| &it.in_force);
                let text = options.map(|it| format!("{} {}", it.provider, it.model));
                self.say_and_finish(&text.unwrap_or_default()).await;
            }
            Slash::Model(name) => {
                let configure = Command::SessionConfigure(model(&name));
                self.send(configure, Pending::Told).await;
            }
            Slash::Trust(level) => match self.options.as_ref().map(|options| options.trust(&level))
            {
                Some(Ok(Choice::Configure(configure))) => {
                    self.send(Command::SessionConfigure(*configure), Pending::Told)
                        .await;
                }
                _ => {
                    let text = "Trust is supervised, guided or autonomous: `/trust guided`.";
                    self.say_and_finish(text).await;
                }
            },
            // A prompt, and no command of this agent's.
            Slash::Workflow { .. } => {}
        }
    }

    /// Takes an event that is no question's.
    pub(super) async fn turn_event(&mut self, event: Event) {
        match event {
            Event::ChatTextDelta(_) => {
                if let Some(turn) = &mut self.turn {
                    turn.has_said = true;
                }
            }
            Event::ChatError(error) if error.message_id.is_some() => {
                if let Some(turn) = self
                    .turn
                    .as_mut()
                    .filter(|it| it.message_id == error.message_id)
                {
                    turn.error = Some(*error);
                }
            }
            Event::ChatStreamEnd(end) => self.ended(&end).await,
            Event::ChatCompaction(compaction)
                if compaction.phase != CompactionPhase::Started
                    && self.turn.as_ref().is_some_and(|turn| turn.is_compaction) =>
            {
                let text = match (&compaction.result, &compaction.reason) {
                    (Some(result), _) => format!(
                        "The model sees {} tokens now, where it saw {}.",
                        result.after_tokens, compaction.before_tokens
                    ),
                    (None, Some(reason)) => format!("Nothing was left out: {}.", word(reason)),
                    (None, None) => "Nothing was left out.".to_owned(),
                };
                self.say_and_finish(&text).await;
            }
            Event::SessionUpdated(updated) if updated.session_id.as_str() == self.id() => {
                if let Some(title) = updated.title {
                    let update = json!({"sessionUpdate": "session_info_update", "title": title,
                        "updatedAt": updated.updated_at});
                    self.update(update).await;
                }
            }
            Event::SessionNotice(notice)
                if !self.starting.is_empty() && notice.code.starts_with("mcp_") =>
            {
                self.send(Command::McpList(Empty {}), Pending::Servers)
                    .await;
            }
            _ => {}
        }
    }

    /// Notes which exchange the prompt became.
    pub(super) fn began(&mut self, message_id: MessageId) {
        if let Some(turn) = &mut self.turn {
            turn.message_id = Some(message_id);
        }
    }

    async fn ended(&mut self, end: &StreamEnd) {
        let is_ours = |turn: &Turn| turn.message_id.as_ref() == Some(&end.message_id);
        if !self.turn.as_ref().is_some_and(is_ours) {
            return;
        }
        if end.stop_reason == StopReason::Error {
            let error = self.turn.as_mut().and_then(|turn| turn.error.take());
            let error = match error {
                Some(error) => RpcError::internal(error.message, error.hint.as_deref()),
                None => RpcError::internal("the turn failed", None),
            };
            return self.fail_turn(error).await;
        }
        let (reason, why) = stop_reason(end.stop_reason);
        if !why.is_empty() {
            self.say(why).await;
        }
        // A turn without any text looks to some editors as if it went on.
        let is_silent = self.turn.as_ref().is_some_and(|turn| !turn.has_said);
        if is_silent && reason == "end_turn" {
            self.say("").await;
        }
        self.finish_turn(reason).await;
    }

    pub(super) async fn say(&mut self, text: &str) {
        if let Some(turn) = &mut self.turn {
            turn.has_said = true;
        }
        self.update(Renderer::say(text)).await;
    }

    pub(super) async fn say_and_finish(&mut self, text: &str) {
        self.say(text).await;
        self.finish_turn("end_turn").await;
    }

    /// Answers the prompts of the turn.
    pub(super) async fn finish_turn(&mut self, reason: &str) {
        let Some(turn) = self.turn.take() else {
            return;
        };
        for id in turn.ids {
            let result = json!({"stopReason": reason});
            self.out.answer(&id, Ok(result)).await;
        }
    }

    pub(super) async fn fail_turn(&mut self, error: RpcError) {
        let Some(turn) = self.turn.take() else {
            return;
        };
        for id in turn.ids {
            self.out.answer(&id, Err(error.clone())).await;
        }
    }

    /// Ends the turn, where one runs, because the session is over for this client.
    pub(super) async fn fail(&mut self, why: &str) {
        self.fail_turn(RpcError::internal(why, Some("session/load goes on in it")))
            .await;
    }
}

/// Returns the protocol's word for why an exchange ended, and what to say where it has none.
fn stop_reason(reason: StopReason) -> (&'static str, &'static str) {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Error => ("end_turn", ""),
        StopReason::MaxTokens => ("max_tokens", ""),
        StopReason::MaxTurns | StopReason::ContextBudget | StopReason::Budget => {
            ("max_turn_requests", "")
        }
        StopReason::Cancelled => ("cancelled", ""),
        // The protocol's `refusal` promises that the prompt is forgotten, which it is not.
        StopReason::Refusal => ("end_turn", "\n\n*The model refused to go on.*"),
        StopReason::ContentFilter => (
            "end_turn",
            "\n\n*A filter of the provider stopped the answer.*",
        ),
        StopReason::Timeout => ("end_turn", "\n\n*The turn took too long and was ended.*"),
        StopReason::SandboxViolation => (
            "end_turn",
            "\n\n*The turn was ended: a path leaves the project, or is one that no tool may reach.*",
        ),
    }
}
