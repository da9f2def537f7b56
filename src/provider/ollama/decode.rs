//! Lines of `/api/chat` in, chunks out.
//!
//! A line carries any of text, thinking and whole tool calls; the line with `done` also says why
//! and how many tokens. `/api/chat` without streaming sends one such object (`docs/providers.md`,
//! "Ollama: stream"). Pure.

use serde_json::{Map, Value, json};

use crate::message::{Notice, Severity};
use crate::provider::decode::{Answer, OpenCall, Wire, as_object, incomplete, protocol};
use crate::provider::json::{Json, array, field, text};
use crate::provider::notices::PROMPT_TRUNCATED;
use crate::provider::request::set;
use crate::provider::{CallInput, Chunk, ErrorKind, ProviderError, Stop, arguments};

/// Prompts estimated below this many tokens cannot have been cut: no server gives less context.
const SMALLEST_CONTEXT: u64 = 2048;

/// The name of the wire format in a [`crate::message::NativeReply`].
pub(in crate::provider) const WIRE: &str = "ollama-chat";

#[derive(Default)]
pub(in crate::provider) struct OllamaWire {
    /// Size of the prompt that was sent, in tokens.
    estimate: u64,
    // The assistant's message as it has to go back.
    content: String,
    thinking: String,
    calls: Vec<Value>,
}

impl Wire for OllamaWire {
    fn name(&self) -> &'static str {
        WIRE
    }

    fn is_ndjson(&self) -> bool {
        true
    }

    fn cut_frame(&self) -> ErrorKind {
        ErrorKind::IncompleteStream
    }

    fn frame(&mut self, line: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        if !line.is_object() {
            return Err(protocol("ollama sent JSON that is no object"));
        }
        if !field(line, "error").is_null() {
            return Err(ProviderError::from_payload(&line.into(), None));
        }
        answer.begin(text(line, "model"));
        self.message(field(line, "message"), answer)?;
        let usage = &mut answer.usage;
        usage.input = field(line, "prompt_eval_count").as_u64().or(usage.input);
        usage.output = field(line, "eval_count").as_u64().or(usage.output);
        if field(line, "done").as_bool() == Some(true) {
            return self.end(field(line, "done_reason").as_str(), answer);
        }
        Ok(())
    }

    fn whole(&mut self, body: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        self.frame(body, answer)?;
        if answer.done {
            return Ok(());
        }
        self.finish(answer)
    }

    fn finish(&mut self, _answer: &mut Answer) -> Result<(), ProviderError> {
        Err(incomplete("ollama's answer broke off before its last line"))
    }
}

impl OllamaWire {
    pub(super) fn new(estimate: u64) -> Self {
        Self {
            estimate,
            ..Self::default()
        }
    }

    fn message(&mut self, message: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        // The other two are the words of servers that imitate Ollama.
        let thinking = ["thinking", "reasoning", "reasoning_content"]
            .map(|field| text(message, field))
            .into_iter()
            .find(|thinking| !thinking.is_empty());
        if let Some(thinking) = thinking {
            self.thinking.push_str(thinking);
            answer.thinking(thinking);
        }
        self.content.push_str(text(message, "content"));
        answer.text(text(message, "content"));
        array(message, "tool_calls")
            .iter()
            .try_for_each(|call| self.call(call, answer))
    }

    /// A call comes whole. `function.index` is not looked at: some servers send 0 for all.
    fn call(&mut self, call: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        // Some leave the wrapper out.
        let function = match field(call, "function") {
            function @ Json::Object(_) => function,
            Json::Null if !field(call, "name").is_null() => call,
            _ => return Ok(()),
        };
        let (fragment, input) = match field(function, "arguments") {
            Json::Null => ("{}".to_owned(), CallInput::Object(Map::new())),
            // Only servers that imitate Ollama send text here.
            Json::Str(text) if text.trim().is_empty() => {
                ("{}".to_owned(), CallInput::Object(Map::new()))
            }
            Json::Str(text) => (text.to_string(), arguments::parse(text, false)),
            other => (
                other.to_string(),
                arguments::parse(&other.to_string(), false),
            ),
        };
        let mut open = OpenCall::new(text(call, "id"), text(function, "name"));
        open.announce(answer)?;
        open.push(&fragment, answer);
        open.close(input.clone(), answer);
        // As it came, unknown fields included. Its arguments must be an object in a request, whatever
        // they were in the answer.
        let mut kept = Value::from(function);
        if let Some(function) = kept.as_object_mut() {
            function.insert("arguments".to_owned(), Value::Object(as_object(input)));
        }
        let mut entry = call.as_object().map(Map::from).unwrap_or_default();
        if std::ptr::eq(function, call) {
            entry.clear();
        }
        entry.insert("function".to_owned(), kept);
        self.calls.push(Value::Object(entry));
        Ok(())
    }

    fn end(&mut self, reason: Option<&str>, answer: &mut Answer) -> Result<(), ProviderError> {
        let is_silent = !answer.has_text && self.thinking.is_empty() && !answer.has_calls();
        let stop = match reason {
            // The server lost its own runner. A server too old to give reasons leaves the key out.
            Some("") => {
                return Err(incomplete(
                    "ollama lost the connection to its model runner before the answer was complete",
                ));
            }
            // What `load` and `unload` end is no answer, nor is an end alone.
            Some("load" | "unload") if is_silent => return Err(said_nothing(reason)),
            None if is_silent && answer.usage.output.is_none() => return Err(said_nothing(reason)),
            Some("length") => Stop::MaxTokens,
            _ if answer.has_calls() => Stop::ToolUse,
            _ => Stop::EndTurn,
        };
        let truncated = self.truncated(answer);
        answer.chunks.extend(truncated.map(Chunk::Notice));
        let items = self.native_message().map(|message| json!([message]));
        answer.end(stop, reason, items);
        Ok(())
    }

    /// Tells that the server read far less than was sent: it cuts a prompt that does not fit from
    /// the front, with status 200, where it does not know `truncate: false` (ollama's `server/prompt.go`, fb30760, 2026-08-21).
    fn truncated(&self, answer: &Answer) -> Option<Notice> {
        let read = answer.usage.input?;
        let cut = self.estimate >= SMALLEST_CONTEXT
            && read.saturating_mul(10) < self.estimate.saturating_mul(6);
        cut.then(|| Notice {
            severity: Severity::Warning,
            code: PROMPT_TRUNCATED.to_owned(),
            message: format!(
                "ollama read only {read} tokens of a prompt of about {}: the start of the conversation \
                 and the tools may be missing; raise num_ctx of provider {:?} or start a new conversation",
                self.estimate,
                answer.provider
            ),
        })
    }

    /// The reply as one message, where it has more than text.
    fn native_message(&mut self) -> Option<Value> {
        if self.thinking.is_empty() && self.calls.is_empty() {
            return None;
        }
        let mut message = json!({"role": "assistant", "content": self.content});
        if !self.thinking.is_empty() {
            set(&mut message, "thinking", json!(self.thinking));
        }
        if !self.calls.is_empty() {
            set(
                &mut message,
                "tool_calls",
                Value::Array(std::mem::take(&mut self.calls)),
            );
        }
        Some(message)
    }
}

fn said_nothing(reason: Option<&str>) -> ProviderError {
    let reason = reason.map_or("without a reason".to_owned(), |it| format!("by {it:?}"));
    incomplete(format!(
        "ollama ended its answer {reason} before it said anything"
    ))
}

#[cfg(test)]
mod tests;
