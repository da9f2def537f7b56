//! A turn of the protocol: from a prompt to its answer. Each prompt is answered by the end of the exchange that took it in;
//! with what was steered, a turn may have several of both.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::blocks;
use super::open::CONVERSATION;
use super::options::Options;
use super::render::Renderer;
use super::replies::Pending;
use super::rpc::{Id, RpcError};
use super::servers::Held;
use super::session::AcpSession;
use super::slash::{self, Slash};
use super::wire::Block;
use crate::message::{ConversationId, MessageId, Part};
use crate::protocol::answer::{SendState, Sent};
use crate::protocol::command::{ChatSend, Command, WhenBusy};
use crate::protocol::content::Content;
use crate::protocol::event::{ChatError, CompactionPhase, Event, StopReason, StreamEnd};
use crate::protocol::mcp::McpListName;
use crate::protocol::word;

/// The most prompts of a turn: the daemon refuses more, too.
const MAX_ASKED: usize = 64;

/// What runs for the client.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Prompts without an answer, in their order.
    asked: Vec<Asked>,
    /// What is sent when the servers are there.
    pub(super) held: Option<Held>,
    /// Why exchanges failed that have not ended yet.
    errors: HashMap<MessageId, ChatError>,
    /// Whether the client got any text since the last answer.
    has_said: bool,
    pub(super) work: Work,
}

/// What a turn is made of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Work {
    /// Exchanges of the conversation.
    #[default]
    Exchanges,
    /// What a slash command does, into which nothing can be steered.
    Command,
    /// The command that has the daemon leave out messages: its end ends the turn.
    Compaction,
}

/// A prompt without an answer.
#[derive(Debug)]
struct Asked {
    id: Id,
    place: Place,
    is_cancelled: bool,
}

/// Where a prompt went.
#[derive(Debug, PartialEq)]
enum Place {
    /// The daemon has not said.
    Sent,
    /// It is of this exchange, and answered with it.
    Of(MessageId),
    /// It was admitted as steered. Of which exchange it will be is open until `chat:steered`: the one that runs may end
    /// without it, and another one begins with it.
    Steered,
}

impl Turn {
    fn new(id: Id) -> Self {
        Self {
            asked: vec![Asked::new(id)],
            ..Self::default()
        }
    }

    pub(super) fn is_of(&self, id: &Value) -> bool {
        self.asked.iter().any(|asked| asked.id.is(id))
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    fn takes_more(&self) -> bool {
        !self.is_held() && self.work == Work::Exchanges && self.asked.len() < MAX_ASKED
    }

    /// Notes that the client has cancelled all that was asked so far: it is answered so however it ends.
    pub(super) fn cancel(&mut self) {
        for asked in &mut self.asked {
            asked.is_cancelled = true;
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.asked.iter().all(|asked| asked.is_cancelled)
    }

    /// Notes that a prompt that waited is steered, behind those that were before.
    fn sent_now(&mut self, waited: &MessageId) {
        let sent = self.take(|asked| asked.is_in(waited));
        self.asked.extend(sent.into_iter().map(|asked| Asked {
            place: Place::Steered,
            ..asked
        }));
    }

    /// Takes out the prompts for which this holds.
    fn take(&mut self, is_it: impl Fn(&Asked) -> bool) -> Vec<Asked> {
        let (taken, rest) = std::mem::take(&mut self.asked)
            .into_iter()
            .partition(|asked| is_it(asked));
        self.asked = rest;
        taken
    }
}

impl Asked {
    fn new(id: Id) -> Self {
        Self {
            id,
            place: Place::Sent,
            is_cancelled: false,
        }
    }

    fn is_in(&self, exchange: &MessageId) -> bool {
        matches!(&self.place, Place::Of(own) if own == exchange)
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
        if let Some(turn) = &self.turn
            && !(steers && turn.takes_more())
        {
            return Err(RpcError::invalid_request(
                "a turn runs in this session: wait for its end, or cancel it with session/cancel",
            ));
        }
        let slash = match blocks.first() {
            Some(Block::Text { text }) if self.turn.is_none() => {
                slash::read(text, &self.workflows, &self.prompts)
            }
            _ => None,
        };
        let is_alone = blocks.len() == 1;
        let mut parts = blocks::parts(blocks, &[self.renderer.cwd(), &self.cwd()])?;
        let (mut workflow, mut using) = (None, None);
        match slash {
            Some(Slash::Prompt(wanted)) => {
                // What else is in it goes along.
                drop(parts.drain(..1));
                using = Some(wanted);
            }
            Some(Slash::Workflow { name, prompt }) if prompt.is_empty() && is_alone => {
                self.turn = Some(Turn::own(id.clone()));
                let text = format!("Say what is to be done, too: `/{name} look at src/main.rs`.");
                self.say_and_finish(&text).await;
                return Ok(());
            }
            Some(Slash::Workflow { name, prompt }) => {
                workflow = Some(name);
                match parts.first_mut() {
                    Some(_) if prompt.is_empty() => drop(parts.remove(0)),
                    Some(first) => *first = Part::Text { text: prompt },
                    None => {}
                }
            }
            Some(slash) => {
                self.turn = Some(Turn::own(id.clone()));
                self.slash(slash).await;
                return Ok(());
            }
            None => {}
        }
        let when_busy = match steers {
            true => WhenBusy::Steer,
            false => WhenBusy::Queue,
        };
        let send = Box::new(ChatSend {
            content: Content::Parts(parts),
            workflow,
            thinking: self.options.as_ref().and_then(Options::thinking),
            when_busy,
            ..ChatSend::text(ConversationId::new(CONVERSATION), String::new())
        });
        if let Some(turn) = &mut self.turn {
            turn.asked.push(Asked::new(id.clone()));
            self.send(Command::ChatSend(send), Pending::Prompt(id.clone()))
                .await;
            return Ok(());
        }
        if let Some(wanted) = using {
            self.turn = Some(Turn::own(id.clone()));
            let pending = Pending::Using(id.clone(), send);
            self.send(Command::McpUsePrompt(wanted), pending).await;
            return Ok(());
        }
        self.turn = Some(Turn::new(id.clone()));
        self.hold(send, id.clone()).await;
        Ok(())
    }

    /// Sends what is said, once the client's servers are there.
    pub(super) async fn hold(&mut self, send: Box<ChatSend>, id: Id) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        turn.work = Work::Exchanges;
        turn.held = Some(Held::new(send, id));
        for problem in std::mem::take(&mut self.problems) {
            self.say(&format!("*{problem}*\n\n")).await;
        }
        self.look_at_servers().await;
    }

    /// Takes an event that is no question's.
    pub(super) async fn turn_event(&mut self, event: Event) {
        match event {
            Event::ChatTextDelta(_) => {
                if let Some(turn) = &mut self.turn {
                    turn.has_said = true;
                }
            }
            Event::ChatSteered(steered) => self.steered(steered.message_id),
            // Another client has it be part of the exchange that runs.
            Event::ChatQueued(queued) if queued.position == 0 => {
                if let Some(turn) = &mut self.turn {
                    turn.sent_now(&queued.message_id);
                }
            }
            Event::ChatError(error) => {
                if let (Some(turn), Some(id)) = (&mut self.turn, error.message_id.clone())
                    && turn.asked.iter().any(|asked| asked.is_in(&id))
                {
                    turn.errors.insert(id, *error);
                }
            }
            Event::ChatStreamEnd(end) => self.ended(&end).await,
            Event::ChatCompaction(compaction)
                if compaction.phase != CompactionPhase::Started
                    && self
                        .turn
                        .as_ref()
                        .is_some_and(|turn| turn.work == Work::Compaction) =>
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
            Event::SessionNotice(notice) if notice.code.starts_with("mcp_") => {
                self.look_at_servers().await;
            }
            Event::McpChanged(changed) if changed.lists.contains(&McpListName::Prompts) => {
                self.look_at_prompts().await;
            }
            _ => {}
        }
    }

    /// Notes where a prompt went.
    pub(super) async fn sent(&mut self, id: &Id, sent: Sent) {
        if sent.duplicate {
            let why = "the session takes it for a prompt that was sent before, and did nothing";
            let error = RpcError::internal(why, Some("send it again"));
            return self.refuse(id, error).await;
        }
        let Some(turn) = &mut self.turn else {
            return;
        };
        let is_alone = turn.asked.len() == 1;
        if let Some(asked) = turn.asked.iter_mut().find(|asked| asked.id == *id) {
            asked.place = match sent.state {
                SendState::Steered => Place::Steered,
                SendState::Started | SendState::Queued => Place::Of(sent.message_id),
            };
            if sent.state == SendState::Queued && is_alone {
                let text =
                    "*Something else runs in this session; the prompt waits for its end.*\n\n";
                self.update(Renderer::say(text)).await;
            }
        }
    }

    /// Notes that an exchange took in what was steered: the first of those that wait for that, since they are taken in their
    /// order.
    fn steered(&mut self, exchange: MessageId) {
        let asked = self.turn.iter_mut().flat_map(|turn| &mut turn.asked);
        let mut waiting = asked.filter(|asked| asked.place == Place::Steered);
        if let Some(first) = waiting.next() {
            first.place = Place::Of(exchange);
        }
    }

    /// Answers the prompts of an exchange that has ended.
    async fn ended(&mut self, end: &StreamEnd) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let error = turn.errors.remove(&end.message_id);
        let answered = turn.take(|asked| asked.is_in(&end.message_id));
        if answered.is_empty() {
            return;
        }
        let has_said = std::mem::take(&mut turn.has_said);
        let is_cancelled = answered.iter().all(|asked| asked.is_cancelled);
        let (reason, why) = stop_reason(end.stop_reason);
        let outcome = match (end.stop_reason, error) {
            (StopReason::Error, Some(error)) => {
                Err(RpcError::internal(error.message, error.hint.as_deref()))
            }
            (StopReason::Error, None) => Err(RpcError::internal("the turn failed", None)),
            _ => Ok(reason),
        };
        if !is_cancelled && !why.is_empty() {
            self.update(Renderer::say(why)).await;
        } else if !is_cancelled && !has_said && outcome == Ok("end_turn") {
            // A turn without any text looks to some editors as if it went on.
            self.update(Renderer::say("")).await;
        }
        self.answer_all(answered, &outcome).await;
        if self.turn.as_ref().is_some_and(|turn| turn.asked.is_empty()) {
            self.turn = None;
        }
    }

    async fn answer_all(&self, answered: Vec<Asked>, outcome: &Result<&str, RpcError>) {
        for asked in answered {
            let outcome = match outcome {
                _ if asked.is_cancelled => Ok(json!({"stopReason": "cancelled"})),
                Ok(reason) => Ok(json!({ "stopReason": reason })),
                Err(error) => Err(error.clone()),
            };
            self.out.answer(&asked.id, outcome).await;
        }
    }

    pub(super) async fn say(&mut self, text: &str) {
        if let Some(turn) = &mut self.turn {
            turn.has_said = true;
        }
        self.update(Renderer::say(text)).await;
    }

    /// Says what a slash command came to, unless nobody wants to hear it any more.
    pub(super) async fn say_and_finish(&mut self, text: &str) {
        if self.turn.as_ref().is_some_and(|turn| !turn.is_cancelled()) {
            self.say(text).await;
        }
        self.finish_turn("end_turn").await;
    }

    /// Answers all prompts of the turn.
    pub(super) async fn finish_turn(&mut self, reason: &str) {
        if let Some(turn) = self.turn.take() {
            self.answer_all(turn.asked, &Ok(reason)).await;
        }
    }

    pub(super) async fn fail_turn(&mut self, error: RpcError) {
        if let Some(turn) = self.turn.take() {
            self.answer_all(turn.asked, &Err(error)).await;
        }
    }

    /// Answers one prompt with an error.
    pub(super) async fn refuse(&mut self, id: &Id, error: RpcError) {
        let Some(turn) = &mut self.turn else {
            return;
        };
        let refused = turn.take(|asked| asked.id == *id);
        if turn.asked.is_empty() {
            self.turn = None;
        }
        self.answer_all(refused, &Err(error)).await;
    }
}

impl Turn {
    fn own(id: Id) -> Self {
        Self {
            work: Work::Command,
            ..Self::new(id)
        }
    }
}

/// Returns the protocol's word for why an exchange ended, and what to say where it has none.
fn stop_reason(reason: StopReason) -> (&'static str, &'static str) {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Error => ("end_turn", ""),
        StopReason::MaxTokens => ("max_tokens", ""),
        StopReason::MaxTurns => (
            "max_turn_requests",
            "\n\n*The most turns that one prompt may take are used (limits.max_turns); prompt again to go on.*",
        ),
        StopReason::ContextBudget => (
            "max_turn_requests",
            "\n\n*What the model has to read for this prompt has grown beyond its cap.*",
        ),
        StopReason::Budget => (
            "max_turn_requests",
            "\n\n*No more may be spent: a cap on money is reached.*",
        ),
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
