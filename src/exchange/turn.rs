//! One turn of the model: requested, received, retried, and given up.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::accumulator::{Accumulator, Turn};
use super::budget::{Shares, estimate_reply, text_tokens};
use super::calls::cancelled;
use super::context::Setup;
use super::offer::ToolOffer;
use super::{Exchange, Leave, failure, spans, window};
use crate::message::{Message, ToolId, Usage};
use crate::protocol::event::{
    Delta, Event, State, StateName, StopReason, ToolInputDelta, TurnDiscarded, TurnUsage,
};
use crate::protocol::word;
use crate::provider::retry::{Failures, next_delay};
use crate::provider::{Chunk, ChunkStream, ErrorKind, ProviderError, Request, ToolChoice};
use crate::telemetry::metrics;
use crate::tool::Metadata;
use crate::units::millis;

/// How often one turn is sent again since it did not fit: what is learnt from each refusal is a tenth less.
const MAX_RECOVERIES: u32 = 3;

/// The fewest tokens that an answer is limited to where the window is nearly full.
const LEAST_ANSWER: u64 = 2_048;

enum Attempt {
    Whole(Accumulator),
    Broken(Accumulator, ProviderError),
    Cancelled(Accumulator),
}

/// What one turn asks of the model; its attempts share it.
pub(super) struct TurnRequest {
    pub(super) turn: u32,
    pub(super) offer: Arc<ToolOffer>,
    pub(super) choice: ToolChoice,
}

impl TurnRequest {
    /// Returns the provider's request, made of the history and the tools as they are at one moment.
    fn to_provider<'r>(
        &'r self,
        setup: &'r Setup,
        history: &'r [Message],
        max_tokens: Option<u32>,
    ) -> Request<'r> {
        let form = setup.output.as_ref().and_then(|form| form.held());
        let may_call = self.choice == ToolChoice::Auto && !self.offer.specs.is_empty();
        let goes_beside_tools = setup.provider.forms_beside_tools();
        let output = form.filter(|_| !may_call || goes_beside_tools);
        // Local servers hold calls to the form too, where any are on offer.
        let hides_tools = output.is_some() && !goes_beside_tools;
        Request {
            model: &setup.model,
            system: &setup.system,
            front: &self.offer.front,
            messages: history,
            tools: match hides_tools {
                true => &[],
                false => &self.offer.specs,
            },
            tool_choice: self.choice,
            max_tokens,
            temperature: setup.temperature,
            thinking: setup.thinking,
            cache_key: &setup.cache_key,
            output,
            compact: None,
        }
    }
}

impl Exchange<'_> {
    /// Returns what a turn asks with the tools as they are now.
    pub(super) fn request(&mut self, turn: u32, choice: ToolChoice) -> TurnRequest {
        let (setup, conversation) = (self.setup, &self.context.conversation);
        conversation
            .history
            .show_to(&setup.provider_id, &setup.model);
        let offer = ToolOffer::now(self.setup, self.context, self.progress.offer.take());
        self.progress.offer = Some(Arc::clone(&offer));
        TurnRequest {
            turn,
            offer,
            choice,
        }
    }

    /// Streams one turn, retried as the settings allow; an error says how to leave where it came to nothing.
    ///
    /// An attempt that failed before a client saw anything of it is repeated in silence; one that
    /// failed later is discarded and run again, a bounded number of times.
    pub(super) async fn stream_turn(&mut self, request: &TurnRequest) -> Result<Turn, Leave> {
        let provider = &self.setup.provider_id;
        let (mut failures, mut retries, mut restarts) = (Failures::default(), 0, 0);
        let mut recoveries = 0;
        loop {
            self.ledger.reserved = Some(self.afford(request).await?);
            let mut admitted = self.admit(request).await?;
            let span = spans::of_request("turn", provider, &self.setup.model);
            let attempt = self.attempt(request).instrument(span.clone()).await;
            match &attempt {
                Attempt::Whole(_) => {}
                Attempt::Broken(_, error) => spans::failed(&span, error),
                Attempt::Cancelled(_) => spans::cancelled(&span),
            }
            match attempt {
                Attempt::Whole(received) => {
                    metrics::provider_answered(provider, "ok");
                    let turn = self.finish_turn(request, received);
                    spans::answered(&span, turn.stop, &turn.usage);
                    if let Usage {
                        input: Some(input),
                        output: Some(output),
                        ..
                    } = turn.usage
                    {
                        admitted.took(input.saturating_add(output));
                    }
                    return Ok(turn);
                }
                Attempt::Cancelled(received) => {
                    metrics::provider_answered(provider, "cancelled");
                    self.abandon(request, received, "cancelled", &cancelled());
                    return Err(Leave::Stop(StopReason::Cancelled));
                }
                Attempt::Broken(received, error)
                    if error.kind == ErrorKind::ContextLength
                        && !received.has_output()
                        && recoveries < MAX_RECOVERIES =>
                {
                    recoveries += 1;
                    metrics::provider_answered(provider, &word(&failure::meaning(error.kind).0));
                    drop((self.ledger.reserved.take(), admitted));
                    if !self.recover_from_overflow(request, error.window).await? {
                        return Err(self.give_up(request, received, &error));
                    }
                }
                // At most once for each: what is dropped is not sent again.
                Attempt::Broken(received, error)
                    if error.names_compaction()
                        && !received.has_output()
                        && self.drop_native_compaction() =>
                {
                    drop((self.ledger.reserved.take(), admitted));
                    metrics::provider_answered(provider, &word(&failure::meaning(error.kind).0));
                }
                Attempt::Broken(received, error) => {
                    let failure = word(&failure::meaning(error.kind).0);
                    if error.not_sent {
                        tracing::debug!(kind = ?error.kind, "turn waits for the provider");
                    } else {
                        metrics::provider_answered(provider, &failure);
                        tracing::warn!(kind = ?error.kind, status = error.status, "turn failed");
                    }
                    let again = if received.has_output() {
                        restarts += 1;
                        next_delay(self.setup.restarts, &error, restarts, jitter())
                    } else {
                        retries = failures.add(&error);
                        next_delay(self.setup.max_retries, &error, retries, jitter())
                    };
                    let Some(delay) = again else {
                        return Err(self.give_up(request, received, &error));
                    };
                    if received.has_output() {
                        self.add_broken_turn(request, &received);
                        self.discard(request.turn, &error);
                    }
                    if !error.not_sent {
                        metrics::provider_retried(provider, &failure);
                    }
                    // Others go meanwhile.
                    drop((self.ledger.reserved.take(), admitted));
                    self.wait_to_retry(retries + restarts, delay, &error)
                        .await?;
                }
            }
        }
    }

    async fn attempt(&mut self, request: &TurnRequest) -> Attempt {
        let mut received = Accumulator::default();
        self.context.conversation.announced.lock().clear();
        let mut cancelled = pin!(self.cancel.cancelled());
        self.emit(Event::ChatState(self.state(StateName::Thinking)));
        let history = self.context.conversation.history.view();
        let max_tokens = self.max_tokens(request);
        let sent = request.to_provider(self.setup, &history, max_tokens);
        let mut sent_at = Some(Instant::now());
        let opened = tokio::select! {
            biased;
            () = &mut cancelled => return Attempt::Cancelled(received),
            opened = self.setup.provider.stream(sent) => opened,
        };
        // The history is appended to in place only where nobody else holds it.
        drop(history);
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(error) => return Attempt::Broken(received, error),
        };
        loop {
            let chunk = tokio::select! {
                biased;
                () = &mut cancelled => return Attempt::Cancelled(received),
                chunk = stream.next() => chunk,
            };
            if let Some(sent_at) = sent_at.take() {
                metrics::first_byte(&self.setup.provider_id, sent_at.elapsed());
            }
            match chunk {
                Some(Ok(chunk)) => {
                    // A provider that always has more must not keep its conversation from listening.
                    tokio::task::coop::consume_budget().await;
                    let done = matches!(chunk, Chunk::End(_));
                    self.receive(request.turn, chunk, &mut received);
                    if let Err(error) = received.check() {
                        return Attempt::Broken(received, error);
                    }
                    if done {
                        self.read_rest(stream);
                        return Attempt::Whole(received);
                    }
                }
                Some(Err(error)) => return Attempt::Broken(received, error),
                None => {
                    let error = ProviderError::new(
                        ErrorKind::IncompleteStream,
                        "the answer ended before its end marker",
                    );
                    return Attempt::Broken(received, error);
                }
            }
        }
    }

    /// Returns the most tokens of the answer: no more than what is left of the window, which some providers refuse. The model's own
    /// limit is lowered where it is one of its own, and not the window.
    pub(super) fn max_tokens(&self, request: &TurnRequest) -> Option<u32> {
        let wanted = self.setup.max_tokens;
        let Some(shares) = window::shares(self.setup, self.context, &request.offer) else {
            return wanted;
        };
        let used = window::used(self.context, &request.offer);
        let left = shares.window.saturating_sub(used).max(LEAST_ANSWER);
        let model = self.setup.provider.model(&self.setup.model);
        let own = model.max_output_tokens.filter(|most| *most < shares.window);
        let most = wanted.map(u64::from).or(own)?;
        match most > left {
            true => u32::try_from(left).ok(),
            false => wanted,
        }
    }

    /// Has the rest of an answer read, so that its connection can be used again; nobody waits for it.
    fn read_rest(&self, mut stream: ChunkStream) {
        if stream.next().now_or_never().is_none() {
            let rest = async move { drop(stream.next().await) };
            self.context.services.exchanges.spawn(rest);
        }
    }

    /// Adds a chunk to the turn and emits what it means to the client.
    fn receive(&mut self, turn: u32, chunk: Chunk, received: &mut Accumulator) {
        match chunk {
            Chunk::Text(content) => {
                if !received.has_text() {
                    self.emit(Event::ChatState(self.state(StateName::Responding)));
                }
                received.add_text(&content);
                let delta = self.delta(turn, self.progress.text_index, content);
                self.progress.text_index += 1;
                self.emit(Event::ChatTextDelta(delta));
            }
            Chunk::Thinking(content) => {
                received.add_thinking(&content);
                let delta = self.delta(turn, self.progress.thinking_index, content);
                self.progress.thinking_index += 1;
                self.emit(Event::ChatThinkingDelta(delta));
            }
            Chunk::ToolCallStart {
                index,
                provider_call_id,
                name,
            } => {
                let id = self.context.session.ids.tool();
                self.context.conversation.announced.lock().push(id.clone());
                self.emit_call_state(&id, StateName::ToolPlanned);
                self.emit_input(turn, &id, &name, String::new());
                received.begin_call(index, id, name, provider_call_id);
            }
            Chunk::ToolCallDelta { index, fragment } => {
                if let Some(call) = received.add_input(index, &fragment) {
                    self.emit_input(turn, &call.id, &call.name, fragment);
                }
            }
            Chunk::ToolCallEnd {
                index,
                provider_call_id,
                input,
            } => received.end_call(index, provider_call_id, input),
            Chunk::Notice(notice) => self.emit(Event::SessionNotice(notice)),
            Chunk::End(end) => received.end(end),
            Chunk::Start { .. } => {}
        }
    }

    fn delta(&self, turn: u32, index: u64, content: String) -> Delta {
        Delta {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: self.setup.message_id.clone(),
            turn,
            index,
            content,
        }
    }

    /// Emits a piece of a call's input; an empty one where the call only begins.
    fn emit_input(&self, turn: u32, tool_id: &ToolId, tool_name: &str, chunk: String) {
        self.emit(Event::ChatToolInputDelta(ToolInputDelta {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: self.setup.message_id.clone(),
            turn,
            tool_id: tool_id.clone(),
            tool_name: tool_name.to_owned(),
            chunk,
        }));
    }

    fn finish_turn(&mut self, request: &TurnRequest, received: Accumulator) -> Turn {
        let whole = received.finish();
        let is_counted = whole.usage.input.is_some() && whole.usage.output.is_some();
        let conversation = &self.context.conversation;
        let sent = request.offer.tokens + conversation.history.tokens();
        let answered = estimate_reply(&whole.reply);
        let estimate = match is_counted {
            true => (0, 0),
            false => (sent, answered),
        };
        let model = self.setup.known_model();
        self.ledger.add_turn(&whole.usage, &model, estimate);
        conversation.breaker.lock().turn();
        let estimated = sent.saturating_add(answered);
        let mut gauge = conversation.gauge.lock();
        gauge.count(&whole.usage, sent, estimated);
        let window = gauge.window(&self.setup.model_key(), model.context_window);
        let used = gauge.used(estimated);
        drop(gauge);
        self.progress.turns += 1;
        self.emit(Event::ChatUsage(TurnUsage {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: self.setup.message_id.clone(),
            turn: request.turn,
            tokens: whole.usage.into(),
            context: Shares::context(window, used),
            budget: self.ledger.budget_use(),
        }));
        tracing::info!(
            input = whole.usage.input,
            output = whole.usage.output,
            calls = whole.reply.calls.len(),
            stop = whole.raw_stop,
            "turn ended"
        );
        whole
    }

    /// Returns about how many tokens a request's prompt has.
    fn estimated_input(&self, request: &TurnRequest) -> u64 {
        request.offer.tokens + self.context.conversation.history.tokens()
    }

    fn add_broken_turn(&mut self, request: &TurnRequest, received: &Accumulator) {
        let model = self.setup.known_model();
        let input = self.estimated_input(request);
        self.ledger
            .add_broken_turn(&model, input, text_tokens(received.bytes()));
    }

    fn abandon(
        &mut self,
        request: &TurnRequest,
        received: Accumulator,
        reason: &str,
        metadata: &Metadata,
    ) {
        self.progress.partial |= received.has_text();
        // What was asked for is billed, also where nothing of the answer had come when it was cancelled.
        if received.has_output() || self.cancel.is_cancelled() {
            self.add_broken_turn(request, &received);
        }
        if !received.has_output() {
            return;
        }
        let reply = received.finish().reply;
        let calls = reply.calls.clone();
        self.transcript.record_reply(reply);
        self.refuse_calls(&calls, reason, metadata);
    }

    fn give_up(
        &mut self,
        request: &TurnRequest,
        received: Accumulator,
        error: &ProviderError,
    ) -> Leave {
        // Also where the client was shown no text: what it was shown is not whole.
        self.progress.partial |= received.has_output();
        let reason = "the model's answer broke off before this call could run";
        self.abandon(request, received, reason, &Metadata::default());
        let mut shown = failure::from_provider(error, self.setup);
        shown.message = self.redacted(&shown.message);
        Leave::Failed(StopReason::Error, Box::new(shown))
    }

    /// Returns a provider's words without any secret of the daemon, in whatever form they have it.
    fn redacted(&self, message: &str) -> String {
        self.context.services.redactor.redact(message).into_owned()
    }

    fn discard(&self, turn: u32, error: &ProviderError) {
        self.context.conversation.announced.lock().clear();
        self.emit(Event::ChatTurnDiscarded(TurnDiscarded {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: self.setup.message_id.clone(),
            turn,
            reason: self.redacted(&error.message),
        }));
    }

    async fn wait_to_retry(
        &self,
        failures: u32,
        delay: Duration,
        error: &ProviderError,
    ) -> Result<(), Leave> {
        self.emit(Event::ChatState(State {
            attempt: Some(failures + 1),
            delay_ms: Some(millis(delay)),
            reason: Some(self.redacted(&error.message)),
            ..self.state(StateName::Retrying)
        }));
        let waited = self.cancel.run_until_cancelled(error.wait(delay)).await;
        waited.ok_or(Leave::Stop(StopReason::Cancelled))
    }
}

/// Returns a random number from 0 to 1, to spread retries.
pub(super) fn jitter() -> f64 {
    let bits = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(bits) / f64::from(u32::MAX)
}
