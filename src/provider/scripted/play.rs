//! A step of a script as the stream that a provider would send.

use std::time::Duration;

use futures::stream::{self, Stream, StreamExt};
use serde_json::{Map, Value};

use super::recording;
use super::script::{Act, CallAct, Script, Step};
use super::situation::Situation;
use crate::message::Usage;
use crate::provider::{CallInput, Chunk, ChunkStream, End, ProviderError, Stop};

/// Bytes of a token, for estimates.
const BYTES_PER_TOKEN: usize = 4;

/// Plays a step.
///
/// The error is the step's where that comes in front, or one of [`recording::play`].
pub(super) fn step(
    script: &Script,
    step: &Step,
    situation: &Situation,
    provider: &str,
    model: &str,
) -> Result<ChunkStream, ProviderError> {
    match step.play.first() {
        Some(Act::Recording(entry)) => {
            return recording::play(&step.folder, entry, provider, model);
        }
        Some(Act::Error(act)) => return Err(act.error()),
        _ => {}
    }
    let mut beats = Beats {
        script,
        beats: Vec::new(),
        pause: Duration::ZERO,
        calls: 0,
        bytes: 0,
        stop: step.stop,
    };
    beats.push(Ok(Chunk::Start {
        model: Some(script.model.clone().unwrap_or_else(|| model.to_owned())),
    }));
    for act in &step.play {
        match act {
            Act::Text(text) => beats.pieces(&situation.fill(text), Chunk::Text),
            Act::Thinking(text) => beats.pieces(&situation.fill(text), Chunk::Thinking),
            Act::Call(call) => beats.call(call),
            Act::Pause(pause) => beats.pause += *pause,
            Act::Error(act) => {
                beats.push(Err(act.error()));
                return Ok(paused(beats.beats).boxed());
            }
            // Alone in its step, and played by then.
            Act::Recording(_) => {}
        }
    }
    beats.end(step.usage, situation);
    Ok(paused(beats.beats).boxed())
}

/// The beats of a step, as far as they are written.
struct Beats<'s> {
    script: &'s Script,
    /// What happens, each after a pause.
    beats: Vec<(Duration, Result<Chunk, ProviderError>)>,
    /// What passes before the next beat.
    pause: Duration,
    calls: usize,
    bytes: usize,
    stop: Option<Stop>,
}

impl Beats<'_> {
    fn push(&mut self, item: Result<Chunk, ProviderError>) {
        let pause = std::mem::take(&mut self.pause);
        self.beats.push((pause, item));
    }

    fn pieces(&mut self, text: &str, chunk: impl Fn(String) -> Chunk) {
        self.bytes += text.len();
        let mut characters = text.chars().peekable();
        while characters.peek().is_some() {
            let piece = characters.by_ref().take(self.script.chunk()).collect();
            self.push(Ok(chunk(piece)));
            self.pause += self.script.pace;
        }
    }

    fn call(&mut self, call: &CallAct) {
        let index = self.calls;
        self.calls += 1;
        self.push(Ok(Chunk::ToolCallStart {
            index,
            provider_call_id: None,
            name: call.name.clone(),
        }));
        let raw = call
            .raw
            .clone()
            .unwrap_or_else(|| Value::Object(call.input.clone()).to_string());
        self.pieces(&raw, |fragment| Chunk::ToolCallDelta { index, fragment });
        let input = input(raw, self.stop == Some(Stop::MaxTokens));
        self.push(Ok(Chunk::ToolCallEnd {
            index,
            provider_call_id: None,
            input,
        }));
    }

    fn end(&mut self, usage: Option<Usage>, situation: &Situation) {
        let by_calls = if self.calls > 0 {
            Stop::ToolUse
        } else {
            Stop::EndTurn
        };
        let usage = usage.unwrap_or_else(|| Usage {
            input: Some(tokens(situation.bytes)),
            output: Some(tokens(self.bytes)),
            ..Usage::default()
        });
        self.push(Ok(Chunk::End(End {
            stop: self.stop.unwrap_or(by_calls),
            raw_stop: None,
            usage,
            native: None,
        })));
    }
}

fn input(raw: String, cut: bool) -> CallInput {
    let text = if raw.trim().is_empty() { "{}" } else { &raw };
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(input) => CallInput::Object(input),
        Err(_) if cut => CallInput::Truncated { raw },
        Err(error) => CallInput::Invalid {
            reason: error.to_string(),
            raw,
        },
    }
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// Gives out items, each after its pause.
pub(super) fn paused<T>(items: Vec<(Duration, T)>) -> impl Stream<Item = T> {
    stream::iter(items).then(|(pause, item)| async move {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        item
    })
}
