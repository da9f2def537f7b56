//! The main flow, top to bottom: stream the model's turn, run its calls, add the results, again.
//!
//! One exchange is one send of the user and all that follows from it. It ends in `Ended` whatever
//! happened: a failure of a tool is a result that the model reads, a failure of the provider ends it
//! with an error, a cancelled token ends it soon. Its first and its last event are emitted by its
//! `Transcript`, which its conversation makes and ends, so there is exactly one of each.
//!
//! Read next: `turn` (one turn of the model), `calls` (its calls), `transcript` (what is emitted and remembered).

pub(crate) mod accumulator;
pub(crate) mod budget;
pub(crate) mod calls;
pub(crate) mod context;
pub(crate) mod executions;
pub(crate) mod failure;
pub(crate) mod first_model;
pub(crate) mod history;
pub(crate) mod ledger;
mod progress;
pub(crate) mod questions;
pub(crate) mod recording;
pub(crate) mod searches;
pub(crate) mod setup;
pub(crate) mod stopwatch;
pub(crate) mod transcript;
mod turn;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::message::{Message, Part, ToolId};
use crate::protocol::event::{Event, State, StateName, StopReason};
use crate::provider::{Stop, ToolChoice};
use crate::tool::Metadata;

use accumulator::{Fault, Turn};
use context::Context;
use ledger::Ledger;
pub(crate) use progress::Ended;
use progress::{Leave, Progress};
use setup::Setup;
use stopwatch::Stopwatch;
use transcript::Transcript;

/// Most continuations where the provider pauses (`pause_turn`) during the final answer, which has no tools.
const MAX_FINAL_TURNS: u32 = 4;

/// The nudge sent when the model answers tool results with an empty reply.
const NUDGE: &str = "Continue.";

pub(crate) struct Exchange<'a> {
    setup: &'a Setup,
    context: &'a Context,
    transcript: &'a mut Transcript,
    /// Messages of the user for the next turn boundary.
    steered: &'a mut mpsc::Receiver<Vec<Part>>,
    /// The time limit, which stands still while the user is asked.
    stopwatch: &'a Stopwatch,
    cancel: &'a CancellationToken,
    ledger: Ledger<'a>,
    progress: Progress,
}

impl<'a> Exchange<'a> {
    pub(crate) fn begin(
        setup: &'a Setup,
        context: &'a Context,
        transcript: &'a mut Transcript,
        steered: &'a mut mpsc::Receiver<Vec<Part>>,
        stopwatch: &'a Stopwatch,
        cancel: &'a CancellationToken,
    ) -> Self {
        transcript.record(Message::User(setup.content.clone()));
        context.conversation.repeats.restart();
        context.conversation.searches.restart();
        Self {
            setup,
            context,
            transcript,
            steered,
            stopwatch,
            cancel,
            ledger: Ledger::new(context, setup),
            progress: Progress::default(),
        }
    }

    /// Runs the exchange to its end.
    ///
    /// Ends soon after the token is cancelled, with nothing left running and a valid history.
    pub(crate) async fn run(mut self) -> Ended {
        self.look_up_model();
        let (stop, error) = match self.turns().await {
            Leave::Stop(stop) => (stop, None),
            Leave::Failed(stop, error) => (stop, Some(error)),
        };
        Ended {
            stop: Some(stop),
            error,
            spent: self.ledger.spent,
            ..self.progress.ended
        }
    }

    async fn turns(&mut self) -> Leave {
        if self.ledger.gauge.is_spent_at_once() {
            return self
                .answer_without_tools(0, StopReason::ContextBudget)
                .await;
        }
        for turn in 0..self.setup.max_turns {
            if let Err(full) = self.context.conversation.history.room_for(1) {
                let error = failure::history_full(full, self.setup);
                return Leave::Failed(StopReason::Error, error);
            }
            let span = tracing::info_span!("turn", turn);
            if let Err(leave) = self.turn(turn).instrument(span).await {
                return leave;
            }
            if self.cancel.is_cancelled() {
                return Leave::Stop(StopReason::Cancelled);
            }
            if self.ledger.gauge.is_spent() {
                let stop = StopReason::ContextBudget;
                return self.answer_without_tools(turn + 1, stop).await;
            }
        }
        self.answer_without_tools(self.setup.max_turns, StopReason::MaxTurns)
            .await
    }

    /// Streams one turn, remembers the reply and runs its calls. Where it returns no reason to leave, another turn
    /// follows.
    async fn turn(&mut self, turn: u32) -> Result<(), Leave> {
        let request = self.request(turn, ToolChoice::Auto);
        let Turn {
            reply,
            faults,
            stop,
            ..
        } = self.stream_turn(&request).await?;
        let (calls, is_empty) = (reply.calls.clone(), reply.is_empty());
        self.transcript.record_reply(reply);
        self.ledger.keep_context_tokens();
        if calls.is_empty() {
            let goes_on = self.take_steered()
                || stop == Stop::Pause
                || (stop == Stop::EndTurn && is_empty && self.nudge());
            self.progress.after_results = false;
            return match goes_on {
                true => Ok(()),
                false => Err(Leave::Stop(stop_reason(stop))),
            };
        }
        let is_cut =
            |fault: &Option<Fault>| matches!(fault, Some(Fault::Truncated | Fault::TurnCut));
        let truncated = faults.iter().any(is_cut);
        self.run_calls(&request, calls, faults).await?;
        if matches!(stop, Stop::Refusal | Stop::ContentFilter) {
            return Err(Leave::Stop(stop_reason(stop)));
        }
        self.progress.after_results = true;
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
            let request = self.request(turn, ToolChoice::None);
            let streamed = self.stream_turn(&request).instrument(span.clone());
            let turn = match streamed.await {
                Ok(turn) => turn,
                Err(leave) => return leave,
            };
            let calls = turn.reply.calls.clone();
            self.transcript.record_reply(turn.reply);
            self.ledger.keep_context_tokens();
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
    fn nudge(&mut self) -> bool {
        if !self.progress.after_results || self.progress.nudged {
            return false;
        }
        self.progress.nudged = true;
        let content = vec![Part::text(NUDGE)];
        self.ledger.gauge.said(&content);
        self.transcript.record(Message::User(content));
        true
    }

    /// Adds what the user said meanwhile; returns whether there was something.
    fn take_steered(&mut self) -> bool {
        let mut any = false;
        while let Ok(content) = self.steered.try_recv() {
            any = true;
            self.ledger.gauge.said(&content);
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

    fn emit_call_state(&self, tool_id: &ToolId, state: StateName) {
        self.emit(Event::ChatState(State {
            tool_id: Some(tool_id.clone()),
            ..self.state(state)
        }));
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
