//! The chunks of one turn, put together into one reply. Pure.

use serde_json::Map;

use crate::message::{Reply, ToolCall, ToolId, Usage};
use crate::provider::{CallInput, Chunk, End, ErrorKind, MAX_CALLS, ProviderError, Stop};

/// The longest answer of one turn, in bytes of text, thinking and calls: several times what the largest output
/// limits allow.
pub const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// A turn as far as it has come.
#[derive(Debug, Default)]
pub struct Accumulator {
    bytes: usize,
    text: String,
    thinking: String,
    calls: Vec<Call>,
    end: Option<End>,
}

#[derive(Debug)]
struct Call {
    index: usize,
    id: ToolId,
    provider_call_id: Option<String>,
    name: String,
    input: Option<CallInput>,
}

/// What a chunk means to a client.
#[derive(Debug, PartialEq)]
pub enum ClientDelta {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A call began, or more of its input came.
    CallInput {
        /// Which call.
        id: ToolId,
        /// The tool's name.
        name: String,
        /// A piece of JSON text; empty where the call only began.
        chunk: String,
        /// Whether the call begins with it.
        begins: bool,
    },
    /// Nothing to show.
    Nothing,
}

/// A whole turn.
#[derive(Debug)]
pub struct Turn {
    /// The reply, as it is remembered.
    pub reply: Reply,
    /// For each call of the reply, in order, why it must not run; `None` where it may.
    pub faults: Vec<Option<Fault>>,
    /// Why the model stopped.
    pub stop: Stop,
    /// The provider's figures.
    pub usage: Usage,
}

/// Why a call of the model must not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its input is no JSON object.
    Invalid(String),
    /// The token limit, or the end of the stream, cut it off.
    Truncated,
    /// It is whole, and the answer around it was cut off by the token limit.
    TurnCut,
    /// It is whole, and the answer around it ended in a refusal.
    TurnRefused,
}

impl Accumulator {
    /// Takes a chunk; `mint` makes the daemon's id of a new call.
    pub fn push(&mut self, chunk: Chunk, mint: impl FnOnce() -> ToolId) -> ClientDelta {
        self.bytes = self.bytes.saturating_add(size(&chunk));
        match chunk {
            Chunk::Text(text) => {
                self.text.push_str(&text);
                ClientDelta::Text(text)
            }
            Chunk::Thinking(text) => {
                self.thinking.push_str(&text);
                ClientDelta::Thinking(text)
            }
            Chunk::ToolCallStart {
                index,
                provider_call_id,
                name,
            } => {
                let id = mint();
                self.calls.push(Call {
                    index,
                    id: id.clone(),
                    provider_call_id,
                    name: name.clone(),
                    input: None,
                });
                ClientDelta::CallInput {
                    id,
                    name,
                    chunk: String::new(),
                    begins: true,
                }
            }
            Chunk::ToolCallDelta { index, fragment } => match self.call(index) {
                // Contract: never empty. One that is says nothing.
                Some(_) if fragment.is_empty() => ClientDelta::Nothing,
                Some(call) => ClientDelta::CallInput {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    chunk: fragment,
                    begins: false,
                },
                None => ClientDelta::Nothing,
            },
            Chunk::ToolCallEnd {
                index,
                provider_call_id,
                input,
            } => {
                if let Some(call) = self.call(index) {
                    call.input = Some(input);
                    call.provider_call_id = provider_call_id.or(call.provider_call_id.take());
                }
                ClientDelta::Nothing
            }
            Chunk::End(end) => {
                self.end = Some(end);
                ClientDelta::Nothing
            }
            Chunk::Start { .. } | Chunk::Notice(_) => ClientDelta::Nothing,
        }
    }

    /// Returns whether something came that a client was shown.
    pub fn has_output(&self) -> bool {
        !(self.text.is_empty() && self.thinking.is_empty() && self.calls.is_empty())
    }

    /// Fails where the turn has more than any answer of a model.
    ///
    /// # Errors
    ///
    /// One that says which limit it is.
    pub fn check(&self) -> Result<(), ProviderError> {
        if self.calls.len() > MAX_CALLS {
            return Err(ProviderError::too_many_calls());
        }
        if self.bytes > MAX_REPLY_BYTES {
            let message = format!(
                "the answer has more than {} MiB of text, thinking and calls and was given up",
                MAX_REPLY_BYTES / (1024 * 1024)
            );
            return Err(ProviderError::new(ErrorKind::InvalidRequest, message));
        }
        Ok(())
    }

    /// Returns whether text came.
    pub fn has_text(&self) -> bool {
        !self.text.is_empty()
    }

    /// Returns the provider's own word for why the model stopped.
    pub fn raw_stop(&self) -> Option<&str> {
        self.end.as_ref()?.raw_stop.as_deref()
    }

    /// Closes the turn. One that has no [`Chunk::End`] broke off: none of its calls may run, and
    /// nothing of it goes back to the provider in its own form.
    pub fn finish(self) -> Turn {
        let (stop, usage, native) = match self.end {
            Some(end) => (Some(end.stop), end.usage, end.native),
            None => (None, Usage::default(), None),
        };
        let (calls, faults): (Vec<_>, Vec<_>) = self
            .calls
            .into_iter()
            .map(|call| call.settle(stop.is_some()))
            .map(|(call, fault)| (call, fault.or_else(|| fault_of_turn(stop))))
            .unzip();
        let stop = match stop {
            Some(Stop::EndTurn) if !calls.is_empty() => Stop::ToolUse,
            Some(Stop::ToolUse) if calls.is_empty() => Stop::EndTurn,
            stop => stop.unwrap_or(Stop::EndTurn),
        };
        Turn {
            reply: Reply {
                text: self.text,
                thinking: self.thinking,
                calls,
                native,
            },
            faults,
            stop,
            usage,
        }
    }

    fn call(&mut self, index: usize) -> Option<&mut Call> {
        self.calls.iter_mut().rev().find(|call| call.index == index)
    }
}

/// Bytes that a chunk adds to what is kept or passed on.
fn size(chunk: &Chunk) -> usize {
    let id = |id: &Option<String>| id.as_ref().map_or(0, String::len);
    match chunk {
        Chunk::Text(text) | Chunk::Thinking(text) => text.len(),
        Chunk::ToolCallStart {
            provider_call_id,
            name,
            ..
        } => name.len() + id(provider_call_id),
        // The input of a call's end is what the fragments came to.
        Chunk::ToolCallDelta { fragment, .. } => fragment.len(),
        Chunk::ToolCallEnd {
            provider_call_id, ..
        } => id(provider_call_id),
        Chunk::Start { .. } | Chunk::Notice(_) | Chunk::End(_) => 0,
    }
}

/// Returns why even a whole call of a turn that stopped so must not run: nobody knows what was to follow
/// (`docs/providers.md`, "Stop reasons").
fn fault_of_turn(stop: Option<Stop>) -> Option<Fault> {
    match stop? {
        Stop::MaxTokens => Some(Fault::TurnCut),
        Stop::Refusal | Stop::ContentFilter => Some(Fault::TurnRefused),
        Stop::EndTurn | Stop::ToolUse | Stop::StopSequence | Stop::Pause => None,
    }
}

impl Call {
    fn settle(self, turn_is_whole: bool) -> (ToolCall, Option<Fault>) {
        let (input, fault) = match self.input {
            Some(CallInput::Object(input)) if turn_is_whole => (input, None),
            Some(CallInput::Object(input)) => (input, Some(Fault::Truncated)),
            Some(CallInput::Invalid { reason, .. }) => (Map::new(), Some(Fault::Invalid(reason))),
            Some(CallInput::Truncated { .. }) | None => (Map::new(), Some(Fault::Truncated)),
        };
        let call = ToolCall {
            id: self.id,
            provider_call_id: self.provider_call_id,
            name: self.name,
            input,
        };
        (call, fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(index: usize, fragment: &str) -> [Chunk; 3] {
        [
            Chunk::ToolCallStart {
                index,
                provider_call_id: None,
                name: "f".to_owned(),
            },
            Chunk::ToolCallDelta {
                index,
                fragment: fragment.to_owned(),
            },
            Chunk::ToolCallEnd {
                index,
                provider_call_id: None,
                input: CallInput::Object(Map::new()),
            },
        ]
    }

    /// Pushes calls until that is refused; returns how many were taken, and the refusal.
    fn fill(fragment: &str) -> (usize, ProviderError) {
        let mut turn = Accumulator::default();
        for index in 0.. {
            for chunk in call(index, fragment) {
                turn.push(chunk, || ToolId::new(format!("t{index}")));
            }
            if let Err(error) = turn.check() {
                return (index, error);
            }
        }
        unreachable!()
    }

    #[test]
    fn calls_count_like_text() {
        let (calls, error) = fill(&"x".repeat(1024 * 1024));
        assert_eq!(calls, 15);
        assert!(error.message.contains("16 MiB"), "{error}");
        let (calls, error) = fill("{}");
        assert_eq!(calls, MAX_CALLS);
        assert!(error.message.contains("512 tool calls"), "{error}");
    }
}
