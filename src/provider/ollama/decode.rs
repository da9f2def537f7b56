//! Lines of `/api/chat` in, chunks out.
//!
//! A line carries any of text, thinking and whole tool calls; the line with `done` also says why
//! and how many tokens. `/api/chat` without streaming sends one such object (`docs/providers.md`,
//! "Ollama: stream"). Pure.

use serde_json::{Map, Value, json as object};

use super::WIRE;
use crate::message::{NativeReply, Notice, Severity, Usage};
use crate::provider::arguments;
use crate::provider::decode::Decoder;
use crate::provider::json;
use crate::provider::told::PROMPT_TRUNCATED;
use crate::provider::{CallInput, Chunk, End, ErrorKind, MAX_CALLS, ProviderError, Stop};

/// Most bytes of text, thinking and calls kept to be sent back unchanged. A longer reply is sent
/// back from the neutral form, so that a server that never stops cannot fill the memory twice.
const NATIVE_CAP: usize = 8 * 1024 * 1024;

/// Prompts estimated below this many tokens cannot have been cut: no server gives less context.
const SMALLEST_CONTEXT: u64 = 2048;

/// Decodes one response of `/api/chat`.
#[derive(Debug)]
pub(super) struct ChatDecoder {
    provider: String,
    model: String,
    notices: Vec<Notice>,
    /// What the request should have come to, in tokens.
    estimate: u64,
    started: bool,
    done: bool,
    calls: usize,
    /// Whether thinking, text or a call came.
    said: bool,
    usage: Usage,
    reply: Native,
}

/// The assistant's message as it has to go back.
#[derive(Debug, Default)]
struct Native {
    content: String,
    thinking: String,
    calls: Vec<Value>,
    bytes: usize,
}

impl ChatDecoder {
    /// Decodes the answer of `model` at the instance `provider`. `notices` follow the start;
    /// `estimate` is the size of the prompt that was sent, in tokens.
    pub(super) fn new(provider: &str, model: &str, notices: Vec<Notice>, estimate: u64) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            notices,
            estimate,
            started: false,
            done: false,
            calls: 0,
            said: false,
            usage: Usage::default(),
            reply: Native::default(),
        }
    }

    fn object(&mut self, value: &Value, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        let Some(object) = value.as_object() else {
            return Err(ProviderError::new(
                ErrorKind::Protocol,
                "ollama sent JSON that is no object",
            ));
        };
        if object.get("error").is_some_and(|error| !error.is_null()) {
            return Err(ProviderError::from_payload(value, None));
        }
        if !self.started {
            self.started = true;
            chunks.push(Chunk::Start {
                model: text(object.get("model")).map(str::to_owned),
            });
            chunks.extend(self.notices.drain(..).map(Chunk::Notice));
        }
        if let Some(message) = object.get("message") {
            self.message(message, chunks)?;
        }
        self.usage.input = count(object, "prompt_eval_count").or(self.usage.input);
        self.usage.output = count(object, "eval_count").or(self.usage.output);
        if object.get("done").and_then(Value::as_bool) == Some(true) {
            return self.end(object.get("done_reason").and_then(Value::as_str), chunks);
        }
        Ok(())
    }

    fn message(&mut self, message: &Value, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        // The other two are the words of servers that imitate Ollama.
        let thinking = ["thinking", "reasoning", "reasoning_content"]
            .into_iter()
            .find_map(|field| text(message.get(field)));
        if let Some(thinking) = thinking {
            self.said = true;
            self.reply.add_thinking(thinking);
            chunks.push(Chunk::Thinking(thinking.to_owned()));
        }
        if let Some(content) = text(message.get("content")) {
            self.said = true;
            self.reply.add_content(content);
            chunks.push(Chunk::Text(content.to_owned()));
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            if self.calls >= MAX_CALLS {
                return Err(ProviderError::too_many_calls());
            }
            self.call(call, chunks);
        }
        Ok(())
    }

    /// A call comes whole. `function.index` is not looked at: some servers send 0 for all.
    fn call(&mut self, call: &Value, chunks: &mut Vec<Chunk>) {
        // Some leave the wrapper out.
        let function = match call.get("function") {
            Some(function @ Value::Object(_)) => function,
            None if call.get("name").is_some() => call,
            _ => return,
        };
        let index = self.calls;
        self.calls += 1;
        self.said = true;
        let provider_call_id = text(call.get("id")).map(str::to_owned);
        let (fragment, input) = input(function.get("arguments"));
        self.reply.add_call(call, &input);
        chunks.push(Chunk::ToolCallStart {
            index,
            provider_call_id: provider_call_id.clone(),
            name: text(function.get("name")).unwrap_or_default().to_owned(),
        });
        chunks.push(Chunk::ToolCallDelta { index, fragment });
        chunks.push(Chunk::ToolCallEnd {
            index,
            provider_call_id,
            input,
        });
    }

    fn end(&mut self, reason: Option<&str>, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        let stop = match reason {
            // The server lost its own runner. A server too old to give reasons leaves the key out.
            Some("") => {
                return Err(ProviderError::new(
                    ErrorKind::IncompleteStream,
                    "ollama lost the connection to its model runner before the answer was complete",
                ));
            }
            // What `load` and `unload` end is no answer, nor is an end alone.
            Some("load" | "unload") if !self.said => return Err(said_nothing(reason)),
            None if !self.said && self.usage.output.is_none() => return Err(said_nothing(reason)),
            Some("length") => Stop::MaxTokens,
            _ if self.calls > 0 => Stop::ToolUse,
            _ => Stop::EndTurn,
        };
        self.done = true;
        chunks.extend(self.truncated().map(Chunk::Notice));
        let reply = std::mem::take(&mut self.reply);
        chunks.push(Chunk::End(End {
            stop,
            raw_stop: reason.map(str::to_owned),
            usage: self.usage,
            native: reply.finish(&self.provider, &self.model),
        }));
        Ok(())
    }

    /// Tells that the server read far less than was sent: it cuts a prompt that does not fit from
    /// the front, with status 200, where it does not know `truncate: false` (ollama's `server/prompt.go`, fb30760, 2026-08-21).
    fn truncated(&self) -> Option<Notice> {
        let read = self.usage.input?;
        let cut = self.estimate >= SMALLEST_CONTEXT
            && read.saturating_mul(10) < self.estimate.saturating_mul(6);
        cut.then(|| Notice {
            severity: Severity::Warning,
            code: PROMPT_TRUNCATED.to_owned(),
            message: format!(
                "ollama read only {read} tokens of a prompt of about {}: the start of the conversation \
                 and the tools may be missing; raise num_ctx of provider {:?} or start a new conversation",
                self.estimate, self.provider
            ),
        })
    }
}

impl Decoder for ChatDecoder {
    fn frame(
        &mut self,
        _event: &str,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        if self.done || data.trim().is_empty() {
            return Ok(());
        }
        let value: Value = json::read_piece(data).map_err(|error| broken(&error))?;
        self.object(&value, chunks)
    }

    fn whole(&mut self, body: &str, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        // Some proxies call a stream of lines `application/json`: any number of objects will do.
        for value in serde_json::Deserializer::from_str(&json::pieces(body)).into_iter::<Value>() {
            if self.done {
                return Ok(());
            }
            self.object(&value.map_err(|error| broken(&error))?, chunks)?;
        }
        self.finish(chunks)
    }

    fn finish(&mut self, _chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        if self.done {
            return Ok(());
        }
        Err(ProviderError::new(
            ErrorKind::IncompleteStream,
            "ollama's answer broke off before its last line",
        ))
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl Native {
    fn add_content(&mut self, text: &str) {
        if self.fits(text.len()) {
            self.content.push_str(text);
        }
    }

    fn add_thinking(&mut self, text: &str) {
        if self.fits(text.len()) {
            self.thinking.push_str(text);
        }
    }

    /// Keeps the call as it came, unknown fields included. Its arguments must be an object in a
    /// request, whatever they were in the answer.
    fn add_call(&mut self, call: &Value, input: &CallInput) {
        if !self.fits(call.to_string().len()) {
            return;
        }
        let mut call = call.clone();
        if let (None, Value::Object(bare)) = (call.get("function"), &call) {
            call = object!({ "function": bare });
        }
        if let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) {
            let object = match input {
                CallInput::Object(object) => object.clone(),
                CallInput::Invalid { .. } | CallInput::Truncated { .. } => Map::new(),
            };
            function.insert("arguments".to_owned(), Value::Object(object));
        }
        self.calls.push(call);
    }

    fn fits(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= NATIVE_CAP
    }

    /// The reply as one message, where it has more than text and was kept whole.
    fn finish(self, provider: &str, model: &str) -> Option<NativeReply> {
        if self.bytes > NATIVE_CAP || (self.thinking.is_empty() && self.calls.is_empty()) {
            return None;
        }
        let mut message = object!({ "role": "assistant", "content": self.content });
        if let Some(message) = message.as_object_mut() {
            if !self.thinking.is_empty() {
                message.insert("thinking".to_owned(), Value::String(self.thinking));
            }
            if !self.calls.is_empty() {
                message.insert("tool_calls".to_owned(), Value::Array(self.calls));
            }
        }
        Some(NativeReply {
            wire: WIRE.to_owned(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            items: Value::Array(vec![message]),
        })
    }
}

/// Returns a call's input, and the JSON text it came as.
fn input(value: Option<&Value>) -> (String, CallInput) {
    match value {
        Some(Value::Object(object)) => (
            Value::Object(object.clone()).to_string(),
            CallInput::Object(object.clone()),
        ),
        // Only servers that imitate Ollama send text here.
        Some(Value::String(text)) if !text.trim().is_empty() => {
            (text.clone(), arguments::parse(text))
        }
        None | Some(Value::Null | Value::String(_)) => {
            ("{}".to_owned(), CallInput::Object(Map::new()))
        }
        Some(other) => {
            let text = other.to_string();
            let input = arguments::parse(&text);
            (text, input)
        }
    }
}

fn said_nothing(reason: Option<&str>) -> ProviderError {
    let reason = reason.map_or("without a reason".to_owned(), |it| format!("by {it:?}"));
    ProviderError::new(
        ErrorKind::IncompleteStream,
        format!("ollama ended its answer {reason} before it said anything"),
    )
}

fn text(value: Option<&Value>) -> Option<&str> {
    value
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

fn count(object: &Map<String, Value>, key: &str) -> Option<u64> {
    object.get(key).and_then(Value::as_u64)
}

/// A line that stops in the middle is a lost connection; any other broken line a broken server.
fn broken(error: &serde_json::Error) -> ProviderError {
    if error.is_eof() {
        ProviderError::new(
            ErrorKind::IncompleteStream,
            "ollama's answer broke off inside a line",
        )
    } else {
        ProviderError::new(
            ErrorKind::Protocol,
            format!("ollama sent a line that is not JSON: {error}"),
        )
    }
}

#[cfg(test)]
mod tests;
