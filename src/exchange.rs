//! The main flow, top to bottom: stream the model's turn, run its calls, add the results, again.
//!
//! One exchange is one send of the user and all that follows from it. It ends in [`Ended`] whatever
//! happened: a failure of a tool is a result that the model reads, a failure of the provider ends it
//! with an error, a cancelled token ends it soon. Its first and its last event are emitted by its
//! [`Transcript`], which its conversation makes and ends, so there is exactly one of each.
//!
//! Read next: `turn` (one turn of the model), [`calls`] (its calls), [`transcript`] (what is emitted and remembered).

pub mod accumulator;
pub mod announced;
pub mod audited;
pub mod budget;
pub mod calls;
pub mod context;
pub mod cost;
pub mod executions;
pub mod failure;
pub mod first_model;
pub mod history;
pub mod ledger;
mod offer;
mod progress;
pub mod questions;
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

use crate::message::{Message, Part};
use crate::protocol::event::{Event, State, StateName, StopReason};
use crate::provider::{Stop, ToolChoice};
use crate::tool::Metadata;

use accumulator::{Fault, Turn};
use context::Context;
use ledger::Ledger;
use offer::ToolOffer;
pub use progress::Ended;
use progress::{Leave, Progress};
use questions::QuestionRequest;
use setup::Setup;
use stopwatch::Stopwatch;
use transcript::Transcript;
use turn::TurnRequest;

/// Most continuations where the provider pauses (`pause_turn`) during the final answer, which has no tools.
const MAX_FINAL_TURNS: u32 = 4;

/// The nudge sent when the model answers tool results with an empty reply.
const NUDGE: &str = "Continue.";

/// One exchange in flight.
pub struct Exchange<'a> {
    /// What it is to do.
    pub setup: &'a Setup,
    /// Where it runs.
    pub context: &'a Context,
    /// What it emits and remembers.
    pub transcript: &'a mut Transcript,
    /// Where questions to the user go.
    pub questions: mpsc::Sender<QuestionRequest>,
    /// Messages of the user for the next turn boundary.
    pub steered: &'a mut mpsc::Receiver<Vec<Part>>,
    /// The time limit, which stands still while the user is asked.
    pub stopwatch: &'a Stopwatch,
    /// Ends the exchange.
    pub cancel: &'a CancellationToken,
}

impl<'a> Exchange<'a> {
    /// Runs the exchange to its end.
    ///
    /// Ends soon after the token is cancelled, with nothing left running and a valid history.
    pub async fn run(mut self) -> Ended {
        let content = self.setup.content.clone();
        self.transcript.record(Message::User(content));
        self.context.conversation.repeats.restart();
        self.context.conversation.searches.restart();
        self.look_up_model();
        let mut progress = Progress::new(Ledger::new(self.context, self.setup));
        let leave = self.turns(&mut progress).await;
        progress.end(leave)
    }

    /// Streams turns until the model is done or a limit is reached.
    async fn turns(&mut self, progress: &mut Progress<'a>) -> Leave {
        let mut tools = ToolOffer::current(self.context, self.setup);
        if progress.ledger.gauge.is_spent_at_once() {
            return self
                .answer_without_tools(0, &tools, StopReason::ContextBudget, progress)
                .await;
        }
        for turn in 0..self.setup.max_turns {
            if let Err(full) = self.context.conversation.history.room_for(1) {
                let error = failure::history_full(full, self.setup);
                return Leave::Failed(StopReason::Error, error);
            }
            tools = tools.refreshed(self.context, self.setup);
            let span = tracing::info_span!("turn", turn);
            let run = self.turn(turn, &tools, progress).instrument(span);
            if let Err(leave) = run.await {
                return leave;
            }
            if self.cancel.is_cancelled() {
                return Leave::Stop(StopReason::Cancelled);
            }
            if progress.ledger.gauge.is_spent() {
                let stop = StopReason::ContextBudget;
                return self
                    .answer_without_tools(turn + 1, &tools, stop, progress)
                    .await;
            }
        }
        let (turn, stop) = (self.setup.max_turns, StopReason::MaxTurns);
        self.answer_without_tools(turn, &tools, stop, progress)
            .await
    }

    /// Streams one turn, remembers the reply and runs its calls. Where it returns no reason to leave, another turn
    /// follows.
    async fn turn(
        &mut self,
        turn: u32,
        tools: &Arc<ToolOffer>,
        progress: &mut Progress<'a>,
    ) -> Result<(), Leave> {
        let request = TurnRequest::new(turn, tools, ToolChoice::Auto);
        let Turn {
            reply,
            faults,
            stop,
            ..
        } = self.stream_turn(&request, progress).await?;
        let (calls, is_empty) = (reply.calls.clone(), reply.is_empty());
        self.transcript.record_reply(reply);
        progress.ledger.keep_context_tokens();
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
        let is_cut =
            |fault: &Option<Fault>| matches!(fault, Some(Fault::Truncated | Fault::TurnCut));
        let truncated = faults.iter().any(is_cut);
        self.run_calls(&request, calls, faults, progress).await?;
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

    /// Has the model answer in text alone, because a limit was reached; `stop` is that limit.
    async fn answer_without_tools(
        &mut self,
        first: u32,
        tools: &Arc<ToolOffer>,
        stop: StopReason,
        progress: &mut Progress<'a>,
    ) -> Leave {
        for turn in first..first.saturating_add(MAX_FINAL_TURNS) {
            let span = tracing::info_span!("turn", turn, forced = true);
            let request = TurnRequest::new(turn, tools, ToolChoice::None);
            let streamed = self
                .stream_turn(&request, progress)
                .instrument(span.clone());
            let turn = match streamed.await {
                Ok(turn) => turn,
                Err(leave) => return leave,
            };
            let calls = turn.reply.calls.clone();
            progress.count_calls(calls.len());
            self.transcript.record_reply(turn.reply);
            progress.ledger.keep_context_tokens();
            let reason = "no more calls are possible in this exchange";
            span.in_scope(|| self.refuse_calls(&calls, reason, &Metadata::default()));
            if turn.stop != Stop::Pause {
                break;
            }
        }
        Leave::Stop(stop)
    }

    /// Asks a model that answered results with nothing at all to go on, once in an exchange; returns whether it did
    /// (`docs/providers.md`, "Stop reasons").
    fn nudge(&mut self, progress: &mut Progress<'a>) -> bool {
        if !progress.after_results || progress.nudged {
            return false;
        }
        progress.nudged = true;
        let content = vec![Part::text(NUDGE)];
        progress.ledger.gauge.said(&content);
        self.transcript.record(Message::User(content));
        true
    }

    /// Adds what the user said meanwhile; returns whether there was something.
    fn take_steered(&mut self, progress: &mut Progress<'a>) -> bool {
        let mut any = false;
        while let Ok(content) = self.steered.try_recv() {
            any = true;
            progress.ledger.gauge.said(&content);
            self.transcript.record_steered(content);
        }
        any
    }

    /// Has the provider asked for what is not known of the model; nobody waits for it.
    fn look_up_model(&self) {
        let (provider, model) = (Arc::clone(&self.setup.provider), self.setup.model.clone());
        let cancel = self.cancel.clone();
        // Not among the exchanges that a shutdown waits for: nothing is lost by dropping it.
        tokio::spawn(async move { cancel.run_until_cancelled(provider.look_up(&model)).await });
    }

    fn emit(&self, event: Event) {
        self.context.events().emit(event);
    }

    fn state(&self, state: StateName) -> State {
        let id = &self.setup.conversation_id;
        State::new(id, Some(&self.setup.message_id), state)
    }
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
