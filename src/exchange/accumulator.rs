//! The chunks of one turn, put together into one reply. Pure.

use serde_json::Map;

use crate::message::{Reply, ToolCall, ToolId, Usage};
use crate::provider::{CallInput, End, ErrorKind, MAX_CALLS, ProviderError, Stop};

/// The longest answer of one turn, in bytes of text, thinking and calls: several times what the largest output
/// limits allow.
pub(crate) const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    bytes: usize,
    text: String,
    thinking: String,
    calls: Vec<Call>,
    end: Option<End>,
}

/// A call whose input is still streaming.
#[derive(Debug)]
pub(crate) struct Call {
    index: usize,
    pub id: ToolId,
    pub name: String,
    provider_call_id: Option<String>,
    input: Option<CallInput>,
}

#[derive(Debug)]
pub(crate) struct Turn {
    pub reply: Reply,
    /// For each call of the reply, in order, why it must not run; `None` where it may.
    pub faults: Vec<Option<Fault>>,
    pub stop: Stop,
    /// The provider's own word for that.
    pub raw_stop: Option<String>,
    pub usage: Usage,
}

/// Why a call of the model must not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
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
    pub(crate) fn add_text(&mut self, text: &str) {
        self.bytes += text.len();
        self.text.push_str(text);
    }

    pub(crate) fn add_thinking(&mut self, text: &str) {
        self.bytes += text.len();
        self.thinking.push_str(text);
    }

    pub(crate) fn begin_call(
        &mut self,
        index: usize,
        id: ToolId,
        name: String,
        provider_call_id: Option<String>,
    ) {
        self.bytes += name.len() + provider_call_id.as_ref().map_or(0, String::len);
        self.calls.push(Call {
            index,
            id,
            name,
            provider_call_id,
            input: None,
        });
    }

    /// Counts a piece of a call's input, which comes whole at its end; returns the call, where there is something new
    /// to show of it.
    pub(crate) fn add_input(&mut self, index: usize, fragment: &str) -> Option<&Call> {
        self.bytes += fragment.len();
        // Contract: never empty. One that is says nothing.
        self.call(index)
            .filter(|_| !fragment.is_empty())
            .map(|call| &*call)
    }

    pub(crate) fn end_call(
        &mut self,
        index: usize,
        provider_call_id: Option<String>,
        input: CallInput,
    ) {
        self.bytes += provider_call_id.as_ref().map_or(0, String::len);
        if let Some(call) = self.call(index) {
            call.input = Some(input);
            call.provider_call_id = provider_call_id.or(call.provider_call_id.take());
        }
    }

    pub(crate) fn end(&mut self, mut end: End) {
        end.usage = end.usage.believed();
        self.end = Some(end);
    }

    /// Returns how many bytes came, of text, thinking and calls.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn has_output(&self) -> bool {
        !(self.text.is_empty() && self.thinking.is_empty() && self.calls.is_empty())
    }

    /// Fails where the turn has more than any answer of a model.
    pub(crate) fn check(&self) -> Result<(), ProviderError> {
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

    pub(crate) fn has_text(&self) -> bool {
        !self.text.is_empty()
    }

    /// Closes the turn. One that has no [`End`] broke off: none of its calls may run, and
    /// nothing of it goes back to the provider in its own form.
    pub(crate) fn finish(self) -> Turn {
        let (stop, raw_stop, usage, native) = match self.end {
            Some(end) => (Some(end.stop), end.raw_stop, end.usage, end.native),
            None => (None, None, Usage::default(), None),
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
            raw_stop,
            usage,
        }
    }

    fn call(&mut self, index: usize) -> Option<&mut Call> {
        self.calls.iter_mut().rev().find(|call| call.index == index)
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

    /// Adds calls until that is refused; returns how many were taken, and the refusal.
    fn fill(fragment: &str) -> (usize, ProviderError) {
        let mut turn = Accumulator::default();
        for index in 0.. {
            let id = ToolId::new(format!("t{index}"));
            turn.begin_call(index, id, "f".to_owned(), None);
            turn.add_input(index, fragment);
            turn.end_call(index, None, CallInput::Object(Map::new()));
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
