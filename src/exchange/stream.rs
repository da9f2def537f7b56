//! One turn of the model: asked for, heard, retried, and given up.

use std::pin::pin;
use std::time::Duration;

use futures::{FutureExt, StreamExt};

use super::accumulator::{Accumulator, Heard, Turn};
use super::budget::estimate;
use super::failure;
use super::{Exchange, Leave, Progress};
use crate::message::{Message, ToolCall, ToolSpec, Usage};
use crate::protocol::event::{
    Delta, Event, State, StateName, ToolInputDelta, TurnDiscarded, TurnUsage,
};
use crate::provider::retry::Policy;
use crate::provider::{Chunk, ChunkStream, ErrorKind, ProviderError, Request, ToolChoice};
use crate::tool::Metadata;

/// The longest answer of one turn, in bytes: several times what the largest output limits allow.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// What one attempt at a turn came to.
enum Attempt {
    Whole(Accumulator),
    Broken(Accumulator, ProviderError),
    Cancelled(Accumulator),
}

/// What the attempts of one turn share.
struct Asked<'t> {
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
        let asked = Asked {
            turn,
            offered,
            choice,
        };
        let policy = Policy::new(self.setup.max_retries);
        let restart_policy = Policy::new(self.setup.restarts);
        let (mut retries, mut restarts) = (0, 0);
        loop {
            match self.attempt(&asked, progress).await {
                Attempt::Whole(heard) => return Ok(self.take_reply(turn, heard, progress)),
                Attempt::Cancelled(heard) => {
                    self.abandon(heard, "cancelled", &cancelled(), progress);
                    return Err(Leave::Cancelled);
                }
                Attempt::Broken(heard, error) => {
                    tracing::warn!(turn, kind = ?error.kind, status = error.status, "turn failed");
                    let again = if heard.has_output() {
                        restarts += 1;
                        let may_pass =
                            failure::is_transient(error.kind) || error.is_model_mistake();
                        (restarts <= self.setup.restarts && may_pass)
                            .then(|| restart_policy.next_delay(&error, restarts, jitter()))
                            .flatten()
                    } else {
                        retries += 1;
                        policy.next_delay(&error, retries, jitter())
                    };
                    let Some(delay) = again else {
                        return Err(self.give_up(heard, &error, progress));
                    };
                    if heard.has_output() {
                        self.discard(turn, &error);
                    }
                    self.wait_to_retry(retries + restarts, delay, &error)
                        .await?;
                }
            }
        }
    }

    async fn attempt(&self, asked: &Asked<'_>, progress: &mut Progress) -> Attempt {
        let mut heard = Accumulator::default();
        let mut cancelled = pin!(self.cancel.cancelled());
        self.events()
            .send(Event::ChatState(self.state(StateName::Thinking)));
        let messages = self.history.for_request();
        let request = self.request(asked, &messages);
        let opened = tokio::select! {
            biased;
            () = &mut cancelled => return Attempt::Cancelled(heard),
            opened = self.setup.provider.stream(request) => opened,
        };
        drop(messages);
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(error) => return Attempt::Broken(heard, error),
        };
        loop {
            let chunk = tokio::select! {
                biased;
                () = &mut cancelled => return Attempt::Cancelled(heard),
                chunk = stream.next() => chunk,
            };
            match chunk {
                Some(Ok(_)) if heard.bytes() > MAX_REPLY_BYTES => {
                    let error = ProviderError::new(
                        ErrorKind::InvalidRequest,
                        format!(
                            "the answer has more than {MAX_REPLY_BYTES} bytes and was given up"
                        ),
                    );
                    return Attempt::Broken(heard, error);
                }
                Some(Ok(chunk)) => {
                    // A provider that always has more must not keep its conversation from listening.
                    tokio::task::coop::consume_budget().await;
                    let done = matches!(chunk, Chunk::End(_));
                    self.hear(asked.turn, chunk, &mut heard, progress);
                    if done {
                        self.let_go(stream);
                        return Attempt::Whole(heard);
                    }
                }
                Some(Err(error)) => return Attempt::Broken(heard, error),
                None => {
                    let error = ProviderError::new(
                        ErrorKind::IncompleteStream,
                        "the answer ended before its end marker",
                    );
                    return Attempt::Broken(heard, error);
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

    fn request<'r>(&'r self, asked: &Asked<'r>, messages: &'r [Message]) -> Request<'r> {
        Request {
            model: &self.setup.model,
            system: &self.setup.system,
            messages,
            tools: asked.offered,
            tool_choice: asked.choice,
            max_tokens: self.setup.max_tokens,
            temperature: self.setup.temperature,
            thinking: self.setup.thinking,
            cache_key: &self.setup.cache_key,
        }
    }

    /// Takes a chunk and tells the client what it means.
    fn hear(&self, turn: u32, chunk: Chunk, heard: &mut Accumulator, progress: &mut Progress) {
        if let Chunk::Notice(notice) = chunk {
            self.events().send(Event::SessionNotice(notice));
            return;
        }
        let first_text = !heard.has_text();
        match heard.push(chunk, || self.session.ids.tool()) {
            Heard::Text(content) => {
                if first_text {
                    self.events()
                        .send(Event::ChatState(self.state(StateName::Responding)));
                }
                let delta = self.delta(turn, &mut progress.text_index, content);
                self.events().send(Event::ChatTextDelta(delta));
            }
            Heard::Thinking(content) => {
                let delta = self.delta(turn, &mut progress.thinking_index, content);
                self.events().send(Event::ChatThinkingDelta(delta));
            }
            Heard::CallInput { id, name, chunk } => {
                if chunk.is_empty() {
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
            Heard::Nothing => {}
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
    fn take_reply(&self, turn: u32, heard: Accumulator, progress: &mut Progress) -> Turn {
        let whole = heard.finish();
        let said = [Message::Reply(whole.reply.clone())];
        let estimate = estimate(&self.history.snapshot()) + estimate(&said);
        progress.budget.counted(&whole.usage, estimate);
        progress.ended.turns += 1;
        progress.ended.usage = progress.ended.usage.plus(whole.usage);
        let Usage {
            input,
            output,
            cache_read,
            cache_write,
            ..
        } = whole.usage;
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
        whole
    }

    /// Remembers what came of a turn that will not be whole, each of its calls answered.
    fn abandon(
        &self,
        heard: Accumulator,
        reason: &str,
        metadata: &Metadata,
        progress: &mut Progress,
    ) {
        progress.ended.partial |= heard.has_text();
        if !heard.has_output() {
            return;
        }
        let turn = heard.finish();
        let calls: Vec<ToolCall> = turn.reply.calls.clone();
        progress.ended.tool_calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        self.remember_reply(turn.reply, progress);
        self.refuse_calls(&calls, reason, metadata);
    }

    fn give_up(&self, heard: Accumulator, error: &ProviderError, progress: &mut Progress) -> Leave {
        self.abandon(
            heard,
            "the model's answer broke off before this call could run",
            &Metadata::default(),
            progress,
        );
        Leave::Failed(failure::from_provider(
            error,
            &self.setup.provider_id,
            &self.setup.conversation_id,
            &self.setup.message_id,
        ))
    }

    fn discard(&self, turn: u32, error: &ProviderError) {
        self.events().send(Event::ChatTurnDiscarded(TurnDiscarded {
            conversation_id: self.setup.conversation_id.clone(),
            message_id: self.setup.message_id.clone(),
            turn,
            reason: error.message.clone(),
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
            reason: Some(error.message.clone()),
            ..self.state(StateName::Retrying)
        }));
        self.cancel
            .run_until_cancelled(tokio::time::sleep(delay))
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
