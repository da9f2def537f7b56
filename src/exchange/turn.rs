//! One turn of the model: asked for, received, retried, and given up.

use std::pin::pin;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::accumulator::{Accumulator, ClientDelta, Turn};
use super::budget::{estimate, estimate_head, estimate_reply};
use super::failure;
use super::{Exchange, Leave, Progress};
use crate::message::{Message, ToolCall, ToolSpec, Usage};
use crate::protocol::event::{
    Delta, Event, State, StateName, ToolInputDelta, TurnDiscarded, TurnUsage,
};
use crate::protocol::word;
use crate::provider::retry::{Failures, Policy};
use crate::provider::{Chunk, ChunkStream, ErrorKind, ProviderError, Request, ToolChoice};
use crate::telemetry::metrics;
use crate::tool::Metadata;

/// What one attempt at a turn came to.
enum Attempt {
    Whole(Accumulator),
    Broken(Accumulator, ProviderError),
    Cancelled(Accumulator),
}

/// What the attempts of one turn share.
struct TurnRequest<'t> {
    turn: u32,
    offered: &'t [ToolSpec],
    choice: ToolChoice,
}

impl Exchange<'_> {
    /// Streams one turn, retried as the policy allows; says how to leave where it came to nothing.
    ///
    /// An attempt that failed before a client saw anything of it is repeated in silence; one that
    /// failed later is discarded and run again, a bounded number of times.
    pub(super) async fn stream_turn(
        &mut self,
        turn: u32,
        offered: &[ToolSpec],
        choice: ToolChoice,
        progress: &mut Progress,
    ) -> Result<Turn, Leave> {
        let request = TurnRequest {
            turn,
            offered,
            choice,
        };
        let policy = Policy::new(self.setup.max_retries);
        let restart_policy = Policy::new(self.setup.restarts);
        let (mut failures, mut retries, mut restarts) = (Failures::default(), 0, 0);
        loop {
            match self.attempt(&request, progress).await {
                Attempt::Whole(received) => {
                    metrics::provider_answered(&self.setup.provider_id, "ok");
                    return Ok(self.take_reply(&request, received, progress));
                }
                Attempt::Cancelled(received) => {
                    metrics::provider_answered(&self.setup.provider_id, "cancelled");
                    self.abandon(received, "cancelled", &cancelled(), progress);
                    return Err(Leave::Cancelled);
                }
                Attempt::Broken(received, error) => {
                    let failure = word(&failure::meaning(error.kind).0);
                    if error.not_sent {
                        tracing::debug!(kind = ?error.kind, "turn waits for the provider");
                    } else {
                        metrics::provider_answered(&self.setup.provider_id, &failure);
                        tracing::warn!(kind = ?error.kind, status = error.status, "turn failed");
                    }
                    let again = if received.has_output() {
                        restarts += 1;
                        restart_policy.next_delay(&error, restarts, jitter())
                    } else {
                        retries = failures.add(&error);
                        policy.next_delay(&error, retries, jitter())
                    };
                    let Some(delay) = again else {
                        return Err(self.give_up(received, &error, progress));
                    };
                    if received.has_output() {
                        progress.ended.cost.add_unknown();
                        self.discard(turn, &error);
                    }
                    if !error.not_sent {
                        metrics::provider_retried(&self.setup.provider_id, &failure);
                    }
                    self.wait_to_retry(retries + restarts, delay, &error)
                        .await?;
                }
            }
        }
    }

    async fn attempt(&self, request: &TurnRequest<'_>, progress: &mut Progress) -> Attempt {
        let mut received = Accumulator::default();
        self.conversation.announced.clear();
        let mut cancelled = pin!(self.cancel.cancelled());
        self.events()
            .send(Event::ChatState(self.state(StateName::Thinking)));
        let messages = self.history.for_request();
        let mut sent_at = Some(Instant::now());
        let provider_request = self.provider_request(request, &messages);
        let opened = tokio::select! {
            biased;
            () = &mut cancelled => return Attempt::Cancelled(received),
            opened = self.setup.provider.stream(provider_request) => opened,
        };
        drop(messages);
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
                    self.receive(request.turn, chunk, &mut received, progress);
                    if let Err(error) = received.check() {
                        return Attempt::Broken(received, error);
                    }
                    if done {
                        self.let_go(stream);
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

    /// Has the rest of an answer read, so that its connection can be used again; nobody waits for it.
    fn let_go(&self, mut stream: ChunkStream) {
        if stream.next().now_or_never().is_none() {
            let rest = async move { drop(stream.next().await) };
            self.services.exchanges.spawn(rest);
        }
    }

    fn provider_request<'r>(
        &'r self,
        request: &TurnRequest<'r>,
        messages: &'r [Message],
    ) -> Request<'r> {
        Request {
            model: &self.setup.model,
            system: &self.setup.system,
            messages,
            tools: request.offered,
            tool_choice: request.choice,
            max_tokens: self.setup.max_tokens,
            temperature: self.setup.temperature,
            thinking: self.setup.thinking,
            cache_key: &self.setup.cache_key,
        }
    }

    /// Takes a chunk and tells the client what it means.
    fn receive(
        &self,
        turn: u32,
        chunk: Chunk,
        received: &mut Accumulator,
        progress: &mut Progress,
    ) {
        if let Chunk::Notice(notice) = chunk {
            self.events().send(Event::SessionNotice(notice));
            return;
        }
        let first_text = !received.has_text();
        match received.push(chunk, || self.session.ids.tool()) {
            ClientDelta::Text(content) => {
                if first_text {
                    self.events()
                        .send(Event::ChatState(self.state(StateName::Responding)));
                }
                let delta = self.delta(turn, &mut progress.text_index, content);
                self.events().send(Event::ChatTextDelta(delta));
            }
            ClientDelta::Thinking(content) => {
                let delta = self.delta(turn, &mut progress.thinking_index, content);
                self.events().send(Event::ChatThinkingDelta(delta));
            }
            ClientDelta::CallInput {
                id,
                name,
                chunk,
                begins,
            } => {
                if begins {
                    self.conversation.announced.begin(id.clone());
                    self.events().send(Event::ChatState(State {
                        tool_id: Some(id.clone()),
                        ..self.state(StateName::ToolPlanned)
                    }));
                }
                self.events()
                    .send(Event::ChatToolInputDelta(ToolInputDelta {
                        conversation_id: self.setup.conversation_id.clone(),
                        message_id: self.setup.message_id.clone(),
                        turn,
                        tool_id: id,
                        tool_name: name,
                        chunk,
                    }));
            }
            ClientDelta::Nothing => {}
        }
    }

    fn delta(&self, turn: u32, index: &mut u64, content: String) -> Delta {
        let delta = Delta {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: self.setup.message_id.clone(),
            turn,
            index: *index,
            content,
        };
        *index += 1;
        delta
    }

    /// Closes a turn that ended well.
    fn take_reply(
        &self,
        request: &TurnRequest<'_>,
        received: Accumulator,
        progress: &mut Progress,
    ) -> Turn {
        let turn = request.turn;
        let stop = received.raw_stop().map(str::to_owned);
        let whole = received.finish();
        let estimated = || {
            estimate_head(&self.setup.system, request.offered)
                + estimate(&self.history.snapshot())
                + estimate_reply(&whole.reply)
        };
        let model = self.setup.provider.model(&self.setup.model);
        progress.budget.learn_window(model.context_window);
        progress.budget.counted(&whole.usage, estimated);
        progress.ended.turns += 1;
        progress.ended.usage = progress.ended.usage.plus(whole.usage);
        let pricing = model.pricing.as_ref();
        progress.ended.cost.add(&whole.usage, pricing);
        let Usage {
            input,
            output,
            cache_read,
            cache_write,
            ..
        } = whole.usage;
        for (kind, count) in [
            ("input", input),
            ("output", output),
            ("cache_read", cache_read),
            ("cache_write", cache_write),
        ] {
            if let Some(count) = count {
                metrics::tokens(&self.setup.provider_id, kind, count);
            }
        }
        self.events().send(Event::ChatUsage(TurnUsage {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: self.setup.message_id.clone(),
            turn,
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: cache_read,
            cache_write_tokens: cache_write,
            context: progress.budget.context(),
        }));
        tracing::info!(
            input,
            output,
            calls = whole.reply.calls.len(),
            stop,
            "turn ended"
        );
        whole
    }

    /// Remembers what came of a turn that will not be whole, each of its calls answered.
    fn abandon(
        &self,
        received: Accumulator,
        reason: &str,
        metadata: &Metadata,
        progress: &mut Progress,
    ) {
        progress.ended.partial |= received.has_text();
        if !received.has_output() {
            return;
        }
        progress.ended.cost.add_unknown();
        let turn = received.finish();
        let calls: Vec<ToolCall> = turn.reply.calls.clone();
        progress.ended.tool_calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        self.remember_reply(turn.reply, progress);
        self.refuse_calls(&calls, reason, metadata);
    }

    fn give_up(
        &self,
        received: Accumulator,
        error: &ProviderError,
        progress: &mut Progress,
    ) -> Leave {
        // Also where the client was shown no text: what it was shown is not whole.
        progress.ended.partial |= received.has_output();
        self.abandon(
            received,
            "the model's answer broke off before this call could run",
            &Metadata::default(),
            progress,
        );
        let mut told = failure::from_provider(
            error,
            &self.setup.provider_id,
            &self.setup.conversation_id,
            &self.setup.message_id,
        );
        told.message = self.safe(&told.message);
        Leave::Failed(told)
    }

    /// A provider's words without any secret of the daemon, in whatever form they have it.
    fn safe(&self, message: &str) -> String {
        self.services.redactor.redact(message).into_owned()
    }

    fn discard(&self, turn: u32, error: &ProviderError) {
        self.conversation.announced.clear();
        self.events().send(Event::ChatTurnDiscarded(TurnDiscarded {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: self.setup.message_id.clone(),
            turn,
            reason: self.safe(&error.message),
        }));
    }

    async fn wait_to_retry(
        &self,
        failures: u32,
        delay: Duration,
        error: &ProviderError,
    ) -> Result<(), Leave> {
        self.events().send(Event::ChatState(State {
            attempt: Some(failures + 1),
            delay_ms: Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            reason: Some(self.safe(&error.message)),
            ..self.state(StateName::Retrying)
        }));
        self.cancel
            .run_until_cancelled(error.wait(delay))
            .await
            .ok_or(Leave::Cancelled)
    }
}

/// The metadata of a call that a cancel ended.
pub(super) fn cancelled() -> Metadata {
    Metadata {
        cancelled: true,
        ..Metadata::default()
    }
}

/// A random number from 0 to 1, to spread retries.
fn jitter() -> f64 {
    let bits = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(bits) / f64::from(u32::MAX)
}
