//! A step of a script as the stream that a provider would send.

use std::time::Duration;

use futures::stream::{self, StreamExt};
use serde_json::{Map, Value};

use super::recording::Recording;
use super::script::{Act, CallAct, ErrorAct, Figures, Script, Step};
use super::situation::Situation;
use crate::message::Usage;
use crate::provider::{CallInput, Chunk, ChunkStream, End, ProviderError, Stop};

/// Bytes of a token, for estimates.
const BYTES_PER_TOKEN: usize = 4;

/// Something that happens after a pause.
struct Beat {
    pause: Duration,
    item: Result<Chunk, ProviderError>,
}

/// Plays a step.
///
/// # Errors
///
/// The step's error where it comes in front; a recording's own refusal, or
/// `NotConfigured` where it cannot be read.
pub(super) fn step(
    script: &Script,
    step: &Step,
    situation: &Situation,
    provider: &str,
    model: &str,
) -> Result<ChunkStream, ProviderError> {
    match step.play.first() {
        Some(Act::Recording(act)) => {
            return Recording::read(&step.folder, &act.file, &act.api, act.status)?
                .play(provider, model);
        }
        Some(Act::Error(act)) => return Err(error(act)),
        _ => {}
    }
    let mut beats = Beats {
        script,
        beats: Vec::new(),
        pause: Duration::ZERO,
        calls: 0,
        bytes: 0,
        stop: step.stop.map(Stop::from),
    };
    beats.push(Ok(Chunk::Start {
        model: Some(script.model.clone().unwrap_or_else(|| model.to_owned())),
    }));
    for act in &step.play {
        if beats.act(act, situation).is_break() {
            return Ok(beats.into_stream());
        }
    }
    beats.end(step.usage, situation);
    Ok(beats.into_stream())
}

/// The beats of a step, as far as they are written.
struct Beats<'s> {
    script: &'s Script,
    beats: Vec<Beat>,
    /// What passes before the next beat.
    pause: Duration,
    calls: usize,
    bytes: usize,
    stop: Option<Stop>,
}

impl Beats<'_> {
    fn push(&mut self, item: Result<Chunk, ProviderError>) {
        let pause = std::mem::take(&mut self.pause);
        self.beats.push(Beat { pause, item });
    }

    /// Adds an act; breaks after an error, which ends the answer.
    fn act(&mut self, act: &Act, situation: &Situation) -> std::ops::ControlFlow<()> {
        match act {
            Act::Text(text) => self.pieces(&situation.fill(text), Chunk::Text),
            Act::Thinking(text) => self.pieces(&situation.fill(text), Chunk::Thinking),
            Act::Call(call) => self.call(call),
            Act::Pause(pause) => self.pause += *pause,
            Act::Error(act) => {
                self.push(Err(error(act)));
                return std::ops::ControlFlow::Break(());
            }
            // Alone in its step, and played by then.
            Act::Recording(_) => {}
        }
        std::ops::ControlFlow::Continue(())
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

    fn end(&mut self, figures: Option<Figures>, situation: &Situation) {
        let by_calls = if self.calls > 0 {
            Stop::ToolUse
        } else {
            Stop::EndTurn
        };
        let usage = match figures {
            Some(figures) => Usage {
                input: figures.input,
                output: figures.output,
                cache_read: figures.cache_read,
                cache_write: figures.cache_write,
                cache_write_1h: None,
                reasoning: figures.reasoning,
            },
            None => Usage {
                input: Some(tokens(situation.bytes)),
                output: Some(tokens(self.bytes)),
                ..Usage::default()
            },
        };
        self.push(Ok(Chunk::End(End {
            stop: self.stop.unwrap_or(by_calls),
            raw_stop: None,
            usage,
            native: None,
        })));
    }

    fn into_stream(self) -> ChunkStream {
        stream::iter(self.beats)
            .then(|beat| async move {
                if !beat.pause.is_zero() {
                    tokio::time::sleep(beat.pause).await;
                }
                beat.item
            })
            .boxed()
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

fn error(act: &ErrorAct) -> ProviderError {
    let message = act
        .message
        .clone()
        .unwrap_or_else(|| format!("the script fails here: {:?}", act.kind));
    ProviderError {
        status: act.status,
        retry_after: act.retry_after,
        ..ProviderError::new(act.kind, message)
    }
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}
