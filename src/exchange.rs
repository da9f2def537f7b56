//! The main flow, top to bottom: stream the model's turn, run its calls, add the results, again.
//!
//! One exchange is one send of the user and all that follows from it. It ends in `Ended` whatever
//! happened: a failure of a tool is a result that the model reads, a failure of the provider ends it
//! with an error, a cancelled token ends it soon. Its first and its last event are emitted by its
//! `Transcript`, which its conversation makes and ends, so there is exactly one of each.
//!
//! Read next: `turn` (one turn of the model: `request`, `stream_turn`), `calls` (its calls: `run_calls`, `refuse_calls`),
//! `window` (how a turn's request fits the model's window: `make_room`), `transcript` (what is emitted and remembered).

pub(crate) mod accumulator;
mod afford;
pub(crate) mod background;
pub(crate) mod budget;
pub(crate) mod calls;
pub(crate) mod compaction;
pub(crate) mod context;
mod execute;
pub(crate) mod executions;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod history;
mod hooks;
pub(crate) mod instructions;
pub(crate) mod ledger;
pub(crate) mod memory;
mod offer;
pub(crate) mod output;
pub(crate) mod parts;
pub(crate) mod questions;
pub(crate) mod recording;
pub(crate) mod searches;
pub(crate) mod spans;
pub(crate) mod tasks;
pub(crate) mod transcript;
mod turn;
mod window;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::config::{HookPoint, Unattended};
use crate::message::{Message, Part, ToolId};
use crate::permission::ApprovalPolicy;
use crate::protocol::event::{ChatError, Event, State, StateName, StopReason};
use crate::provider::{Stop, ToolChoice};
use crate::telemetry::traces;
use crate::tool::Metadata;

use crate::runtime::Stopwatch;
use accumulator::Fault;
use context::{Context, Setup, Steer};
pub(crate) use execute::{Execute, execute};
use ledger::{Ledger, Spent};
use offer::ToolOffer;
use transcript::Transcript;
use turn::TurnRequest;

/// Most turns of the final answer, which has no tools: a provider may pause in it (`pause_turn`), and then goes on.
const MAX_FINAL_TURNS: u32 = 4;

/// The nudge sent when the model answers tool results with an empty reply.
pub(crate) const NUDGE: &str = "Continue.";

/// How an exchange ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub stop: StopReason,
    pub error: Option<ChatError>,
    /// Whether what was shown of a turn is not whole: text was cut or, where the provider failed, thinking or a call.
    pub partial: bool,
    /// Turns that ended well.
    pub turns: u32,
    pub tool_calls: u32,
    pub spent: Spent,
}

impl Ended {
    pub(crate) fn before_turns(stop: StopReason, error: Option<ChatError>) -> Self {
        Self {
            stop,
            error,
            partial: false,
            turns: 0,
            tool_calls: 0,
            spent: Spent::default(),
        }
    }
}

/// Why a loop of turns is left.
enum Leave {
    Stop(StopReason),
    /// With a last answer, without tools.
    Finish(StopReason),
    Failed(StopReason, Box<ChatError>),
}

/// Why a call does without an answer, under the policy `deny_all`.
const NOTHING_ASKED: &str = "nothing is asked here (the approval policy is `deny_all`)";

/// Why nobody is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unasked {
    /// The approval policy is `deny_all`.
    Policy,
    /// Nobody is there to answer (`approval.unattended`).
    Unattended,
}

struct Exchange<'a> {
    setup: &'a Setup,
    context: &'a Context,
    transcript: &'a mut Transcript,
    /// Messages of the user for the next turn boundary.
    steered: &'a mut mpsc::Receiver<Steer>,
    /// The time limit, which stands still while the user is asked.
    stopwatch: &'a Arc<Stopwatch>,
    cancel: &'a CancellationToken,
    ledger: Ledger<'a>,
    /// Whether its call is the client's, and no model's.
    is_clients: bool,
    progress: Progress,
}

/// What changes from turn to turn.
#[derive(Default)]
struct Progress {
    partial: bool,
    turns: u32,
    tool_calls: u32,
    /// The tools of the turn before.
    offer: Option<Arc<ToolOffer>>,
    text_index: u64,
    thinking_index: u64,
    /// Whether the turn before had a call cut off by the token limit.
    truncated: bool,
    /// Whether the turn before ended in results.
    after_results: bool,
    /// Calls whose path left the roots or is denied.
    violations: u32,
    /// Whether the model was nudged after an empty reply.
    nudged: bool,
    /// How often a hook had the model go on that was about to end the exchange.
    held: u32,
    /// How often an answer was asked for again that did not fit its schema.
    corrections: u32,
    /// Whether nothing but its form is left to be corrected, so that the next turn has no tools.
    corrects_form: bool,
    /// Whether a last answer is given that a cap does not allow any more.
    is_last: bool,
}

/// Runs an exchange, whose first message is remembered already, to its end.
///
/// Ends soon after the token is cancelled, with nothing left running and a valid history.
pub(crate) async fn run(
    setup: &Setup,
    context: &Context,
    transcript: &mut Transcript,
    steered: &mut mpsc::Receiver<Steer>,
    stopwatch: &Arc<Stopwatch>,
    cancel: &CancellationToken,
) -> Ended {
    context.conversation.repeats.restart();
    if context.conversation.within.is_none() {
        context.conversation.searches.restart();
    }
    context.conversation.breaker.lock().restart();
    let mut exchange = Exchange {
        setup,
        context,
        transcript,
        steered,
        stopwatch,
        cancel,
        ledger: Ledger::new(context, setup),
        is_clients: false,
        progress: Progress::default(),
    };
    exchange.look_up_model();
    let left = exchange.turns().await;
    exchange.ended(left)
}

impl Exchange<'_> {
    fn ended(self, left: Leave) -> Ended {
        let (stop, error) = match left {
            Leave::Stop(stop) | Leave::Finish(stop) => (stop, None),
            Leave::Failed(stop, error) => (stop, Some(*error)),
        };
        Ended {
            stop,
            error,
            partial: self.progress.partial,
            turns: self.progress.turns,
            tool_calls: self.progress.tool_calls,
            spent: self.ledger.total(),
        }
    }

    async fn turns(&mut self) -> Leave {
        for turn in 0..self.setup.max_turns {
            // One byte: only a history that is full already stops here.
            if let Err(full) = self.context.conversation.history.room_for(1) {
                let error = failure::history_full(full, self.setup);
                return Leave::Failed(StopReason::Error, Box::new(error));
            }
            if let Err(leave) = self.learn_of_folders().await {
                return leave;
            }
            let choice = match self.progress.corrects_form {
                true => ToolChoice::None,
                false => ToolChoice::Auto,
            };
            let request = self.request(turn, choice);
            match self.make_room(&request).await {
                Ok(true) => {}
                Ok(false) => {
                    let stop = StopReason::ContextBudget;
                    return self.answer_without_tools(turn, stop).await;
                }
                Err(leave) => return leave,
            }
            let span = tracing::info_span!("turn", turn);
            let went = self.turn(request).instrument(span.clone()).await;
            traces::ended(&span);
            match went {
                Ok(()) => {}
                Err(Leave::Finish(stop)) => return self.answer_without_tools(turn, stop).await,
                Err(leave) => return leave,
            }
            if self.cancel.is_cancelled() {
                return Leave::Stop(StopReason::Cancelled);
            }
        }
        if let Err(leave) = self.learn_of_folders().await {
            return leave;
        }
        let request = self.request(self.setup.max_turns, ToolChoice::None);
        if let Err(leave) = self.make_room(&request).await {
            return leave;
        }
        self.answer_without_tools(self.setup.max_turns, StopReason::MaxTurns)
            .await
    }

    /// Streams one turn, remembers the reply and runs its calls. Where it returns no reason to leave, another turn
    /// follows.
    async fn turn(&mut self, request: TurnRequest) -> Result<(), Leave> {
        let streamed = self.stream_turn(&request).await?;
        let (reply, stop) = (streamed.reply, streamed.stop);
        let (calls, is_empty) = (reply.calls.clone(), reply.is_empty());
        let is_wordless = is_empty || reply.text.trim().is_empty();
        let is_of_task = self.context.conversation.within.is_some();
        let is_asked = self.has_hooks(HookPoint::Stop) && !is_of_task;
        let text = (is_asked || self.setup.output.is_some()).then(|| reply.text.clone());
        self.transcript.record_reply(reply);
        if calls.is_empty() {
            let after_results = std::mem::take(&mut self.progress.after_results);
            if self.take_steered() || stop == Stop::Pause {
                return Ok(());
            }
            if after_results && is_empty && stop == Stop::EndTurn && !self.progress.nudged {
                self.nudge();
                return Ok(());
            }
            if is_of_task && is_wordless {
                return self.ask_for_words(stop);
            }
            let (StopReason::EndTurn, Some(text)) = (stop_reason(stop), text) else {
                return Err(Leave::Stop(stop_reason(stop)));
            };
            let checked = self.check_answer(&text);
            let is_free = self.setup.output.is_none();
            return match checked {
                Err(Leave::Stop(_)) if is_free && self.is_held(&text).await => Ok(()),
                checked => checked,
            };
        }
        let was_cut = |fault: &Option<_>| matches!(fault, Some(Fault::Truncated | Fault::TurnCut));
        let truncated = streamed.faults.iter().any(was_cut);
        self.run_calls(&request, calls, streamed.faults).await?;
        if matches!(stop, Stop::Refusal | Stop::ContentFilter) {
            return Err(Leave::Stop(stop_reason(stop)));
        }
        self.progress.after_results = true;
        // The second turn in a row that the token limit cut is the last.
        if truncated && self.progress.truncated {
            return Err(Leave::Stop(StopReason::MaxTokens));
        }
        self.progress.truncated = truncated;
        self.take_steered();
        Ok(())
    }

    /// Has the model answer in text alone, because a limit was reached; `stop` is that limit.
    async fn answer_without_tools(&mut self, first: u32, stop: StopReason) -> Leave {
        for turn in first..first.saturating_add(MAX_FINAL_TURNS) {
            let span = tracing::info_span!("turn", turn, forced = true);
            let went = self.final_turn(turn).instrument(span.clone()).await;
            traces::ended(&span);
            match went {
                Ok(Stop::Pause) => {}
                Ok(_) => break,
                Err(leave) => return leave,
            }
        }
        Leave::Stop(stop)
    }

    /// Streams a turn without tools and remembers the reply; calls in it are refused.
    async fn final_turn(&mut self, turn: u32) -> Result<Stop, Leave> {
        let request = self.request(turn, ToolChoice::None);
        let streamed = self.stream_turn(&request).await?;
        let calls = streamed.reply.calls.clone();
        self.transcript.record_reply(streamed.reply);
        let reason = "no more calls are possible in this exchange";
        self.refuse_calls(&calls, reason, &Metadata::default());
        Ok(streamed.stop)
    }

    /// Asks a model that answered results with nothing at all to go on (`docs/providers.md`, "Stop reasons").
    /// The client sees it as a message of the user.
    fn nudge(&mut self) {
        self.progress.nudged = true;
        self.transcript
            .record(Message::User(vec![Part::text(NUDGE)]));
    }

    /// Asks a task that ends without a word to go on, and then has it answer: its words are all that comes of it.
    fn ask_for_words(&mut self, stop: Stop) -> Result<(), Leave> {
        let stop = stop_reason(stop);
        match stop {
            StopReason::EndTurn if !self.progress.nudged => {
                self.nudge();
                Ok(())
            }
            StopReason::EndTurn | StopReason::StopSequence | StopReason::MaxTokens => {
                Err(Leave::Finish(stop))
            }
            stop => Err(Leave::Stop(stop)),
        }
    }

    /// Adds what the user said meanwhile; returns whether there was something.
    fn take_steered(&mut self) -> bool {
        let mut any = false;
        while let Ok(said) = self.steered.try_recv() {
            any = true;
            self.transcript.record_steered(said);
        }
        any
    }

    /// Has the provider asked for what is not known of the model; nobody waits for it.
    fn look_up_model(&self) {
        let (provider, model) = (Arc::clone(&self.setup.provider), self.setup.model.clone());
        let cancel = self.cancel.clone();
        // Not among the exchanges that a shutdown waits for: nothing is lost by dropping it.
        let look_up = async move { cancel.run_until_cancelled(provider.look_up(&model)).await };
        tokio::spawn(look_up.in_current_span());
    }

    /// Returns why nobody is asked, whatever the question is; `None` where somebody may be.
    fn unasked(&self) -> Option<Unasked> {
        unasked(self.setup, self.context)
    }

    fn emit(&self, event: Event) {
        self.context.events().emit(event);
    }

    fn state(&self, state: StateName) -> State {
        let id = &self.setup.conversation_id;
        State::new(id, Some(&self.setup.message_id), state)
    }

    fn emit_call_state(&self, tool_id: &ToolId, state: StateName) {
        self.emit(Event::ChatState(State {
            tool_id: Some(tool_id.clone()),
            ..self.state(state)
        }));
    }
}

/// Returns why nobody is asked in such an exchange; `None` where somebody may be.
fn unasked(setup: &Setup, context: &Context) -> Option<Unasked> {
    if setup.freedom.policy() == ApprovalPolicy::DenyAll {
        return Some(Unasked::Policy);
    }
    let unattended = context.services.config().approval.unattended;
    (unattended == Unattended::Deny).then_some(Unasked::Unattended)
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
