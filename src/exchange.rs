//! The main flow, top to bottom: stream the model's turn, run its calls, inject the results, again.
//!
//! One exchange is one send of the user and all that follows from it. It ends in [`Ended`] whatever
//! happened: a failure of a tool is a result that the model reads, a failure of the provider ends it
//! with an error, a cancelled token ends it soon. The first and the last event of an exchange are
//! its caller's ([`crate::conversation`]), so there is exactly one end by construction.
//!
//! Read next: [`accumulator`] (chunks to a reply), [`calls`] (one tool call), [`history`].

pub mod accumulator;
pub mod announced;
pub mod ask;
pub mod audited;
pub mod budget;
pub mod calls;
mod clean;
pub mod context;
pub mod cost;
pub mod executions;
pub mod failure;
pub mod first_model;
pub mod history;
pub mod inputs;
pub mod recording;
pub mod searches;
pub mod setup;
pub mod stopwatch;
pub mod transcript;
mod turn;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::message::{Message, Part, Reply, ToolSpec, Usage};
use crate::protocol::content::WireMessage;
use crate::protocol::event::{ChatError, State, StateName, StopReason};
use crate::provider::{Stop, ToolChoice};
use crate::tool::{Metadata, ToolSet};

use accumulator::{Fault, Turn};
use ask::Question;
use budget::Budget;
use context::{ConversationContext, Services, SessionContext};
use cost::Cost;
use history::{Full, History};
use setup::Setup;
use stopwatch::Stopwatch;
use transcript::{Events, Transcript};

/// Turns that a last answer may take which the provider pauses.
const FORCED_TURNS: u32 = 4;

/// What a model is told that answered results with nothing.
const GO_ON: &str = "Continue.";

/// One exchange in flight.
pub struct Exchange<'a> {
    /// What it is to do.
    pub setup: &'a Setup,
    /// What the daemon's exchanges share.
    pub services: &'a Services,
    /// What the session's exchanges share.
    pub session: &'a SessionContext,
    /// What the conversation's exchanges share.
    pub conversation: &'a ConversationContext,
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
    /// What they cost.
    pub cost: Cost,
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
    /// A call's path left the roots or is denied, and the exchange ends for it.
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
    /// Whether the turn before had a call cut off by the token limit.
    truncated: bool,
    /// Whether the turn before ended in results.
    after_results: bool,
    /// Calls whose path left the roots or is denied.
    violations: u32,
    /// Whether the model was asked to go on after an answer without anything in it.
    nudged: bool,
}

impl Exchange<'_> {
    /// Runs the exchange to its end.
    ///
    /// Ends soon after the token is cancelled, with nothing left running and a valid history.
    pub async fn run(mut self) -> Ended {
        self.remember(Message::User(self.setup.content.clone()));
        let mut progress = Progress {
            ended: Ended::default(),
            budget: self.budget(),
            text_index: 0,
            thinking_index: 0,
            truncated: false,
            after_results: false,
            violations: 0,
            nudged: false,
        };
        self.conversation.repeats.restart();
        self.conversation.searches.restart();
        self.look_up_model();
        let leave = self.turns(&mut progress).await;
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

    /// The gauge with what the conversation holds already, as far as anybody counted it.
    fn budget(&self) -> Budget {
        let window = self.setup.provider.model(&self.setup.model).context_window;
        let counted = self
            .conversation
            .context_tokens
            .tokens(&self.history.snapshot());
        Budget::new(window, self.setup.context_reserve, counted.unwrap_or(0))
    }

    /// Has the provider asked for what is not known of the model; nobody waits for it.
    fn look_up_model(&self) {
        let (provider, model) = (Arc::clone(&self.setup.provider), self.setup.model.clone());
        let cancel = self.cancel.clone();
        // Not among the exchanges that a shutdown waits for: nothing is lost by dropping it.
        tokio::spawn(async move { cancel.run_until_cancelled(provider.look_up(&model)).await });
    }

    async fn turns(&mut self, progress: &mut Progress) -> Leave {
        let mut offer = Offer::new(self.services, self.setup);
        if progress.budget.is_spent_at_once() {
            return self
                .answer_at_last(0, StopReason::ContextBudget, &offer, progress)
                .await;
        }
        for turn in 0..self.setup.max_turns {
            if let Err(full) = self.history.room_for(1) {
                return Leave::Failed(self.history_full(full));
            }
            offer.refresh(self.services, self.setup);
            let span = tracing::info_span!("turn", turn);
            let run = self.turn(turn, &offer, progress).instrument(span);
            if let Err(leave) = run.await {
                return leave;
            }
            if self.cancel.is_cancelled() {
                return Leave::Cancelled;
            }
            if progress.budget.is_spent() {
                let stop = StopReason::ContextBudget;
                return self.answer_at_last(turn + 1, stop, &offer, progress).await;
            }
        }
        let (turn, stop) = (self.setup.max_turns, StopReason::MaxTurns);
        self.answer_at_last(turn, stop, &offer, progress).await
    }

    /// Has the model answer in text alone, for a limit was reached, which is why the exchange ends.
    async fn answer_at_last(
        &mut self,
        turn: u32,
        stop: StopReason,
        offer: &Offer,
        progress: &mut Progress,
    ) -> Leave {
        match self.answer_without_tools(turn, offer, progress).await {
            Ok(()) => Leave::Stop(stop),
            Err(leave) => leave,
        }
    }

    fn history_full(&self, full: Full) -> ChatError {
        let Setup {
            conversation_id,
            message_id,
            ..
        } = self.setup;
        failure::history_full(full, conversation_id, message_id)
    }

    /// Keeps for the next exchange what the provider counted, the reply remembered last included.
    fn keep_count(&self, progress: &Progress) {
        let (tokens, messages) = (progress.budget.used(), self.history.snapshot().len());
        self.conversation.context_tokens.keep(tokens, messages);
    }

    /// Has the model speak, remembers its reply and runs its calls; an error says how to leave, and
    /// where there is none another turn follows.
    async fn turn(
        &mut self,
        turn: u32,
        offer: &Offer,
        progress: &mut Progress,
    ) -> Result<(), Leave> {
        let streamed = self.stream_turn(turn, &offer.specs, ToolChoice::Auto, progress);
        let Turn {
            reply,
            faults,
            stop,
            ..
        } = streamed.await?;
        let calls = reply.calls.clone();
        let is_empty = says_nothing(&reply);
        self.remember_reply(reply, progress);
        self.keep_count(progress);
        if calls.is_empty() {
            let goes_on = self.take_steered(progress)
                || stop == Stop::Pause
                || (stop == Stop::EndTurn && is_empty && self.nudge(progress));
            progress.after_results = false;
            return match goes_on {
                true => Ok(()),
                false => Err(Leave::Stop(stop_reason(stop))),
            };
        }
        let is_cut = |fault| matches!(fault, Some(Fault::Truncated | Fault::TurnCut));
        let truncated = faults.iter().cloned().any(is_cut);
        let run = self.run_calls(turn, &offer.tools, calls, faults, progress);
        if let Some(violation) = run.await {
            return Err(violation);
        }
        if matches!(stop, Stop::Refusal | Stop::ContentFilter) {
            return Err(Leave::Stop(stop_reason(stop)));
        }
        progress.after_results = true;
        if truncated && progress.truncated {
            return Err(Leave::Stop(StopReason::MaxTokens));
        }
        progress.truncated = truncated;
        self.take_steered(progress);
        Ok(())
    }

    /// Has the model answer in text alone; an error says how to leave where that failed.
    async fn answer_without_tools(
        &mut self,
        turn: u32,
        offer: &Offer,
        progress: &mut Progress,
    ) -> Result<(), Leave> {
        // A provider that pauses is asked to go on, as in any other turn.
        for turn in turn..turn.saturating_add(FORCED_TURNS) {
            let span = tracing::info_span!("turn", turn, forced = true);
            let streamed = self.stream_turn(turn, &offer.specs, ToolChoice::None, progress);
            let Turn { reply, stop, .. } = streamed.instrument(span.clone()).await?;
            let calls = reply.calls.clone();
            progress.ended.tool_calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
            self.remember_reply(reply, progress);
            self.keep_count(progress);
            let reason = "no more calls are possible in this exchange";
            span.in_scope(|| self.refuse_calls(&calls, reason, &Metadata::default()));
            if stop != Stop::Pause {
                break;
            }
        }
        Ok(())
    }

    /// Asks a model that answered results with nothing at all to go on, once in an exchange; whether it
    /// did (`docs/providers.md`, "Stop reasons").
    fn nudge(&self, progress: &mut Progress) -> bool {
        if !progress.after_results || progress.nudged {
            return false;
        }
        progress.nudged = true;
        let content = vec![Part::text(GO_ON)];
        progress.budget.said(&content);
        self.remember(Message::User(content));
        true
    }

    /// Injects what the user said meanwhile; whether there was something.
    fn take_steered(&mut self, progress: &mut Progress) -> bool {
        let mut any = false;
        while let Ok(content) = self.steered.try_recv() {
            any = true;
            progress.budget.said(&content);
            self.transcript()
                .steered(content, &mut progress.ended.closing);
        }
        any
    }

    /// Remembers a reply; one without calls may be the last and is told with the end.
    fn remember_reply(&self, reply: Reply, progress: &mut Progress) {
        self.tell_closing(progress);
        if says_nothing(&reply) {
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
            self.transcript().tell(message);
        }
    }

    fn remember(&self, message: Message) {
        self.transcript().remember(message);
    }

    fn transcript(&self) -> Transcript<'_> {
        Transcript {
            events: self.events(),
            history: self.history,
            conversation_id: &self.setup.conversation_id,
            message_id: &self.setup.message_id,
        }
    }

    fn events(&self) -> &Events {
        &self.session.events
    }

    fn state(&self, state: StateName) -> State {
        let Setup {
            conversation_id,
            message_id,
            ..
        } = self.setup;
        State::new(conversation_id, Some(message_id), state)
    }
}

/// Whether there is nothing in a reply that could be remembered.
fn says_nothing(reply: &Reply) -> bool {
    reply.text.is_empty() && reply.calls.is_empty() && reply.native.is_none()
}

/// The tools there are, and those of them that the model is offered.
struct Offer {
    tools: Arc<ToolSet>,
    specs: Vec<ToolSpec>,
}

impl Offer {
    fn new(services: &Services, setup: &Setup) -> Self {
        let tools = services.registry.snapshot();
        let specs = offered(&tools, setup);
        Self { tools, specs }
    }

    /// Takes the tools as they are now: those of MCP servers come and go. Where none did, the schemas
    /// are not copied again.
    fn refresh(&mut self, services: &Services, setup: &Setup) {
        if !Arc::ptr_eq(&services.registry.snapshot(), &self.tools) {
            *self = Self::new(services, setup);
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
