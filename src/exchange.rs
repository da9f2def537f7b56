//! The main flow, top to bottom: stream the model's turn, run its calls, inject the results, again.
//!
//! One exchange is one send of the user and all that follows from it. It ends in [`Ended`] whatever
//! happened: a failure of a tool is a result that the model reads, a failure of the provider ends it
//! with an error, a cancelled token ends it soon. The first and the last event of an exchange are
//! its caller's ([`crate::conversation`]), so there is exactly one end by construction.
//!
//! Read next: [`accumulator`] (chunks to a reply), [`call`] (one tool call), [`history`].

pub mod accumulator;
pub mod ask;
pub mod budget;
pub mod call;
pub mod events;
pub mod executions;
pub mod failure;
pub mod history;
pub mod setup;
pub mod stopwatch;
mod stream;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::message::{Message, Part, Reply, ToolSpec, Usage};
use crate::protocol::content::{Content, WireMessage};
use crate::protocol::event::{
    ChatError, Event, State, StateName, Steered, StopReason, WholeMessage,
};
use crate::provider::{Stop, ToolChoice};
use crate::tool::{Metadata, ToolSet};

use accumulator::{Fault, Turn};
use ask::Question;
use budget::Budget;
use events::Events;
use history::History;
use setup::{ConversationShared, Services, SessionShared, Setup};
use stopwatch::Stopwatch;

/// One exchange in flight.
pub struct Exchange<'a> {
    /// What it is to do.
    pub setup: &'a Setup,
    /// What the daemon's exchanges share.
    pub services: &'a Services,
    /// What the session's exchanges share.
    pub session: &'a SessionShared,
    /// What the conversation's exchanges share.
    pub conversation: &'a ConversationShared,
    /// What the conversation remembers.
    pub history: &'a History,
    /// Where questions to the user go.
    pub asks: mpsc::Sender<Question>,
    /// Messages of the user for the next turn boundary.
    pub steered: &'a mut mpsc::Receiver<Vec<Part>>,
    /// Stands still while the user is asked.
    pub stopwatch: &'a Stopwatch,
    /// Ends the exchange.
    pub cancel: &'a CancellationToken,
}

/// How an exchange ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// Why; the caller knows better where it cancelled.
    pub stop: Option<StopReason>,
    /// Whether text was cut.
    pub partial: bool,
    /// Turns that ended well.
    pub turns: u32,
    /// Calls that the model made.
    pub tool_calls: u32,
    /// Sums over the turns.
    pub usage: Usage,
    /// What went wrong, to be told before the end.
    pub error: Option<ChatError>,
    /// The last reply, not told to the message layer yet: it goes with what the exchange came to.
    pub closing: Option<WireMessage>,
}

/// Why a loop of turns is left.
enum Leave {
    /// With this reason.
    Stop(StopReason),
    /// With an error.
    Failed(ChatError),
    /// A call's path left the roots or is denied.
    Violated(ChatError),
    /// The token was cancelled.
    Cancelled,
}

/// What changes from turn to turn.
struct Progress {
    ended: Ended,
    budget: Budget,
    text_index: u64,
    thinking_index: u64,
    /// The last call and how often in a row the model has made it.
    repeated: Option<(String, serde_json::Map<String, serde_json::Value>, u32)>,
    /// Whether the turn before had a call cut off by the token limit.
    truncated: bool,
}

impl Exchange<'_> {
    /// Runs the exchange to its end.
    ///
    /// Ends soon after the token is cancelled, with nothing left running and a valid history.
    pub async fn run(mut self) -> Ended {
        let tools = self.services.registry.snapshot();
        let offered = offered(&tools, self.setup);
        let window = self.setup.provider.model(&self.setup.model).context_window;
        let mut progress = Progress {
            ended: Ended::default(),
            budget: Budget::new(window, self.setup.context_reserve),
            text_index: 0,
            thinking_index: 0,
            repeated: None,
            truncated: false,
        };
        self.remember(Message::User(self.setup.content.clone()));
        let leave = self.turns(&tools, &offered, &mut progress).await;
        let mut ended = progress.ended;
        match leave {
            Leave::Stop(stop) => ended.stop = Some(stop),
            Leave::Cancelled => ended.stop = Some(StopReason::Cancelled),
            Leave::Failed(error) => {
                ended.stop = Some(StopReason::Error);
                ended.error = Some(error);
            }
            Leave::Violated(error) => {
                ended.stop = Some(StopReason::SandboxViolation);
                ended.error = Some(error);
            }
        }
        ended
    }

    async fn turns(
        &mut self,
        tools: &Arc<ToolSet>,
        offered: &[ToolSpec],
        progress: &mut Progress,
    ) -> Leave {
        for turn in 0..self.setup.max_turns {
            let reply = match self
                .stream_turn(turn, offered, ToolChoice::Auto, progress)
                .await
            {
                Ok(reply) => reply,
                Err(leave) => return leave,
            };
            if let Some(leave) = self.take_turn(turn, tools, reply, progress).await {
                return leave;
            }
            if self.cancel.is_cancelled() {
                return Leave::Cancelled;
            }
            if progress.budget.is_spent() {
                let forced = self.answer_without_tools(turn + 1, offered, progress);
                return forced
                    .await
                    .unwrap_or(Leave::Stop(StopReason::ContextBudget));
            }
        }
        self.answer_without_tools(self.setup.max_turns, offered, progress)
            .await
            .unwrap_or(Leave::Stop(StopReason::MaxTurns))
    }

    /// Remembers a reply and runs its calls; says how to leave, or nothing where another turn follows.
    async fn take_turn(
        &mut self,
        turn: u32,
        tools: &Arc<ToolSet>,
        reply: Turn,
        progress: &mut Progress,
    ) -> Option<Leave> {
        let Turn {
            reply,
            faults,
            stop,
            ..
        } = reply;
        let calls = reply.calls.clone();
        self.remember_reply(reply, progress);
        if calls.is_empty() {
            let steered = self.take_steered(progress);
            return (!steered && stop != Stop::Pause).then(|| Leave::Stop(stop_reason(stop)));
        }
        let truncated = faults.contains(&Some(Fault::Truncated));
        let violation = self.run_calls(turn, tools, calls, faults, progress).await;
        if let Some(violation) = violation {
            return Some(violation);
        }
        if truncated && progress.truncated {
            return Some(Leave::Stop(StopReason::MaxTokens));
        }
        progress.truncated = truncated;
        self.take_steered(progress);
        None
    }

    /// Has the model answer in text alone; says how to leave where that failed.
    async fn answer_without_tools(
        &mut self,
        turn: u32,
        offered: &[ToolSpec],
        progress: &mut Progress,
    ) -> Option<Leave> {
        let reply = match self
            .stream_turn(turn, offered, ToolChoice::None, progress)
            .await
        {
            Ok(reply) => reply,
            Err(leave) => return Some(leave),
        };
        let calls = reply.reply.calls.clone();
        progress.ended.tool_calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        self.remember_reply(reply.reply, progress);
        self.refuse_calls(
            &calls,
            "no more calls are possible in this exchange",
            &Metadata::default(),
        );
        None
    }

    /// Injects what the user said meanwhile; whether there was something.
    fn take_steered(&mut self, progress: &mut Progress) -> bool {
        let mut any = false;
        while let Ok(content) = self.steered.try_recv() {
            any = true;
            self.events().send(Event::ChatSteered(Steered {
                conversation_id: self.setup.conversation_id.clone(),
                message_id: self.setup.message_id.clone(),
                content: Content::from(content.as_slice()),
            }));
            let message = Message::User(content);
            progress.budget.injected(std::slice::from_ref(&message));
            self.tell_closing(progress);
            self.remember(message);
        }
        any
    }

    /// Remembers a reply; one without calls may be the last and is told with the end.
    fn remember_reply(&self, reply: Reply, progress: &mut Progress) {
        self.tell_closing(progress);
        if reply.text.is_empty() && reply.calls.is_empty() && reply.native.is_none() {
            return;
        }
        let (is_last, message) = (reply.calls.is_empty(), Message::Reply(reply));
        if is_last {
            progress.ended.closing = Some(WireMessage::from(&message));
            self.history.extend([message]);
        } else {
            self.remember(message);
        }
    }

    /// Tells the message layer of a reply that turned out not to be the last.
    fn tell_closing(&self, progress: &mut Progress) {
        if let Some(message) = progress.ended.closing.take() {
            self.tell_message(message);
        }
    }

    /// Appends a message to the history and tells the message layer.
    fn remember(&self, message: Message) {
        self.tell_message(WireMessage::from(&message));
        self.history.extend([message]);
    }

    fn tell_message(&self, message: WireMessage) {
        self.events()
            .send(Event::ChatMessage(Box::new(WholeMessage {
                conversation_id: self.setup.conversation_id.clone(),
                message_id: self.setup.message_id.clone(),
                message,
                exchange: None,
            })));
    }

    fn events(&self) -> &Events {
        &self.session.events
    }

    fn state(&self, state: StateName) -> State {
        State {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: Some(self.setup.message_id.clone()),
            state,
            tool_id: None,
            attempt: None,
            delay_ms: None,
            reason: None,
        }
    }
}

/// The tools that the scope offers to the model, in the order of their names.
fn offered(tools: &ToolSet, setup: &Setup) -> Vec<ToolSpec> {
    tools
        .values()
        .map(|tool| tool.spec())
        .filter(|spec| setup.scope.allows(spec))
        .cloned()
        .collect()
}

fn stop_reason(stop: Stop) -> StopReason {
    match stop {
        Stop::EndTurn | Stop::ToolUse | Stop::Pause => StopReason::EndTurn,
        Stop::MaxTokens => StopReason::MaxTokens,
        Stop::StopSequence => StopReason::StopSequence,
        Stop::Refusal => StopReason::Refusal,
        Stop::ContentFilter => StopReason::ContentFilter,
    }
}
