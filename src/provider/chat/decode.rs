//! Reads the answers of Chat Completions and everything compatible, streamed or whole.
//!
//! Nothing is taken for granted: every field is optional, an `error` is looked for before anything
//! else, and what is not understood is passed over (`docs/providers.md`, "Chat Completions: stream").
//! Tool calls are put together in [`super::calls`].

use serde_json::{Value, json};

use super::brief::MoreText;
use super::calls::{Calls, text};
use super::message::Kept;
use super::usage;
use crate::message::{NativeReply, Notice, Usage};
use crate::provider::decode::Decoder;
use crate::provider::json::read_piece;
use crate::provider::schema::ToolNames;
use crate::provider::{Chunk, End, ErrorKind, ProviderError, Stop};

/// The name of the wire format in [`NativeReply`]: one assistant message in `items`.
pub(in crate::provider) const WIRE: &str = "openai-chat";

/// Most bytes of input, reasoning and parts kept for one answer; several times any real one.
const MAX_KEPT_BYTES: usize = 32 * 1024 * 1024;

/// The parser of one Chat Completions answer.
pub(crate) struct ChatDecoder {
    provider: String,
    model: String,
    notices: Vec<Notice>,
    started: bool,
    done: bool,
    calls: Calls,
    deltas: u64,
    /// Whether text or a call came.
    answered: bool,
    call_bytes: usize,
    stop: Option<String>,
    refused: bool,
    usage: Usage,
    kept: Kept,
}

impl ChatDecoder {
    /// A parser for an answer of `model` from the provider instance `provider`.
    ///
    /// `names` leads to the tools' own names; `notices` are passed on as the answer begins.
    pub(crate) fn new(provider: &str, model: &str, names: ToolNames, notices: Vec<Notice>) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            notices,
            started: false,
            done: false,
            calls: Calls::new(names),
            deltas: 0,
            answered: false,
            call_bytes: 0,
            stop: None,
            refused: false,
            usage: Usage::default(),
            kept: Kept::default(),
        }
    }

    /// Takes one chunk or one whole answer.
    fn take(&mut self, value: &Value, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        if let Some(error) = error_in(value) {
            return Err(self.fail(error, chunks));
        }
        self.take_usage(value);
        self.start(text(value, "model"), chunks);
        let choices = value.get("choices").and_then(Value::as_array);
        for choice in choices.into_iter().flatten() {
            // Only the first of several choices is the answer.
            if choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0 {
                self.take_choice(choice, chunks)?;
            }
        }
        Ok(())
    }

    fn take_usage(&mut self, value: &Value) {
        let choices = value.get("choices").and_then(Value::as_array);
        let places = [value.get("x_groq"), choices.and_then(|c| c.first())];
        for place in places.into_iter().flatten().chain([value]) {
            if let Some(figures) = place.get("usage") {
                usage::update(&mut self.usage, usage::read(figures));
            }
        }
    }

    /// Says that the answer began, once the model is named; see [`Self::begin`].
    fn start(&mut self, model: &str, chunks: &mut Vec<Chunk>) {
        if !self.started && !model.is_empty() {
            self.started = true;
            chunks.push(Chunk::Start {
                model: Some(model.to_owned()),
            });
            chunks.extend(self.notices.drain(..).map(Chunk::Notice));
        }
    }

    /// Says that the answer began, at the latest when there is something of it.
    fn begin(&mut self, chunks: &mut Vec<Chunk>) {
        if !self.started {
            self.started = true;
            chunks.push(Chunk::Start { model: None });
            chunks.extend(self.notices.drain(..).map(Chunk::Notice));
        }
    }

    fn take_choice(
        &mut self,
        choice: &Value,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        if let Some(error) = choice.get("error").and_then(|_| error_in(choice)) {
            return Err(self.fail(error, chunks));
        }
        let delta = ["delta", "message"]
            .into_iter()
            .find_map(|key| choice.get(key).filter(|delta| delta.is_object()));
        if let Some(delta) = delta {
            self.take_delta(delta, chunks)?;
        }
        // Some servers send "" until the end, some repeat the reason.
        let reason = text(choice, "finish_reason");
        if !reason.is_empty() {
            self.stop = Some(reason.to_owned());
        }
        match reason.to_ascii_lowercase().as_str() {
            // `error`: OpenRouter, Mistral. `network_error`: Z.ai. `abort`: vLLM and SGLang gave up the request.
            // Gemini drops a call that it cannot read and says so here alone.
            "error" | "network_error" | "abort" | "malformed_function_call" => Err(self.fail(
                ProviderError::new(
                    ErrorKind::Server,
                    format!("the provider ended the answer with an error ({reason})"),
                ),
                chunks,
            )),
            // DeepSeek, documented as transient.
            "insufficient_system_resource" => Err(self.fail(
                ProviderError::new(
                    ErrorKind::Overloaded,
                    "the provider ran out of resources (insufficient_system_resource)",
                ),
                chunks,
            )),
            _ => Ok(()),
        }
    }

    fn take_delta(&mut self, delta: &Value, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        let thinking = self.kept.take_reasoning(delta);
        self.push_thinking(&thinking, chunks);
        self.kept.take_extra(delta);
        self.take_content(delta.get("content").unwrap_or(&Value::Null), chunks);
        let refusal = text(delta, "refusal");
        if !refusal.is_empty() {
            self.refused = true;
            self.push_text(refusal, chunks);
        }
        self.deltas += 1;
        let entries = match delta.get("tool_calls") {
            Some(Value::Array(entries)) => Some(entries.as_slice()),
            // One call, not in a list.
            Some(call @ Value::Object(_)) => Some(std::slice::from_ref(call)),
            _ => None,
        };
        // The form before tools, without ids: one call at most.
        let legacy = delta.get("function_call").filter(|call| call.is_object());
        let fed = match (entries, legacy) {
            (Some(entries), _) if !entries.is_empty() => self.feed(entries, chunks),
            (_, Some(call)) => self.feed(std::slice::from_ref(call), chunks),
            _ => Some(0),
        };
        let Some(bytes) = fed else {
            return Err(self.fail(ProviderError::too_many_calls(), chunks));
        };
        self.call_bytes += bytes;
        self.check_kept(chunks)
    }

    /// Takes a chunk that is only more text.
    fn take_more_text(
        &mut self,
        more: &MoreText<'_>,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        self.start(&more.model, chunks);
        self.deltas += 1;
        self.kept.take_text(&more.text);
        self.push_text(&more.text, chunks);
        self.check_kept(chunks)
    }

    fn check_kept(&mut self, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        if self.call_bytes + self.kept.bytes() > MAX_KEPT_BYTES {
            return Err(self.fail(ProviderError::too_large(MAX_KEPT_BYTES), chunks));
        }
        Ok(())
    }

    fn feed(&mut self, entries: &[Value], chunks: &mut Vec<Chunk>) -> Option<usize> {
        self.begin(chunks);
        self.answered |= !entries.is_empty();
        self.calls.feed(entries, self.deltas, chunks)
    }

    /// Takes content as a string or, from Mistral, as typed parts.
    fn take_content(&mut self, content: &Value, chunks: &mut Vec<Chunk>) {
        if let Value::String(fragment) = content {
            self.kept.take_text(fragment);
            self.push_text(fragment, chunks);
        }
        let parts = match content {
            Value::Array(parts) => parts.as_slice(),
            Value::Object(_) => std::slice::from_ref(content),
            _ => &[],
        };
        for part in parts {
            self.kept.take_part(part);
            self.push_text(text(part, "text"), chunks);
            match part.get("thinking") {
                Some(Value::String(fragment)) => self.push_thinking(fragment, chunks),
                Some(Value::Array(pieces)) => {
                    for piece in pieces {
                        self.push_thinking(text(piece, "text"), chunks);
                    }
                }
                _ => {}
            }
        }
    }

    fn push_text(&mut self, fragment: &str, chunks: &mut Vec<Chunk>) {
        if !fragment.is_empty() {
            self.begin(chunks);
            self.answered = true;
            chunks.push(Chunk::Text(fragment.to_owned()));
        }
    }

    fn push_thinking(&mut self, fragment: &str, chunks: &mut Vec<Chunk>) {
        if !fragment.is_empty() {
            self.begin(chunks);
            chunks.push(Chunk::Thinking(fragment.to_owned()));
        }
    }

    /// Whether `[DONE]` comes where it says nothing: after text some servers leave the reason out, but
    /// nothing at all is no answer, and a call may be half of what was to be called unless the server has
    /// summed up what it sent (OpenRouter, recording `openai/tool-variant-b.sse`).
    fn lacks_reason(&self) -> bool {
        let summed_up = self.usage.output.is_some();
        self.stop.is_none() && (!self.answered || (!self.calls.is_empty() && !summed_up))
    }

    /// Closes the calls that are open, so that none is left hanging, and hands the error on.
    fn fail(&mut self, error: ProviderError, chunks: &mut Vec<Chunk>) -> ProviderError {
        self.calls.close(true, chunks);
        self.done = true;
        error
    }

    fn end(&mut self, chunks: &mut Vec<Chunk>) {
        if self.done {
            return;
        }
        self.done = true;
        self.begin(chunks);
        let reason = self.stop.take();
        let told = Told::read(reason.as_deref());
        let calls = self.calls.close(matches!(told, Told::Cut(_)), chunks);
        let stop = match told {
            Told::Cut(Stop::ContentFilter) if self.refused => Stop::Refusal,
            Told::Cut(stop) => stop,
            Told::Ended(_) if !calls.is_empty() => Stop::ToolUse,
            Told::Ended(_) if self.refused => Stop::Refusal,
            Told::Ended(stop) => stop,
        };
        chunks.push(Chunk::End(End {
            stop,
            raw_stop: reason,
            usage: self.usage,
            native: self.native(calls),
        }));
    }

    fn native(&mut self, calls: Vec<Value>) -> Option<NativeReply> {
        let message = std::mem::take(&mut self.kept).into_message(calls)?;
        Some(NativeReply {
            wire: WIRE.to_owned(),
            provider: self.provider.clone(),
            model: self.model.clone(),
            items: json!([message]),
        })
    }
}

/// What a `finish_reason` says.
enum Told {
    /// The model was done.
    Ended(Stop),
    /// Something stopped it: what is open is not whole.
    Cut(Stop),
}

impl Told {
    /// Reads a `finish_reason`. An unknown one ends the turn; the word itself is passed on.
    fn read(reason: Option<&str>) -> Self {
        match reason.map(str::to_ascii_lowercase).as_deref() {
            // `model_length`: Mistral, the context is full.
            Some(
                "length"
                | "max_tokens"
                | "max_output_tokens"
                | "token_limit"
                | "model_length"
                | "model_context_window_exceeded",
            ) => Self::Cut(Stop::MaxTokens),
            // Gemini's words, and Z.ai's `sensitive`.
            Some(
                "content_filter" | "content_filtered" | "safety" | "recitation" | "blocklist"
                | "prohibited_content" | "spii" | "sensitive",
            ) => Self::Cut(Stop::ContentFilter),
            Some("refusal") => Self::Cut(Stop::Refusal),
            Some("stop_sequence") => Self::Ended(Stop::StopSequence),
            _ => Self::Ended(Stop::EndTurn),
        }
    }
}

/// Finds the error in a chunk or body that is one, in the form [`ProviderError::from_payload`] reads.
fn error_in(value: &Value) -> Option<ProviderError> {
    let flat = || {
        let says_so = value.get("object").or_else(|| value.get("type")) == Some(&json!("error"));
        let message = ["message", "detail", "msg", "error_msg", "errors"];
        let has_message = message
            .into_iter()
            .any(|key| value.get(key).is_some_and(is_said));
        let failed = value
            .pointer("/base_resp/status_code")
            .is_some_and(|code| code.as_i64() != Some(0));
        let has_choices = value.get("choices").is_some_and(is_said);
        (!has_choices && (says_so || has_message || failed)).then_some(())
    };
    match value.get("error") {
        Some(error) if is_said(error) => {}
        _ => flat()?,
    }
    Some(ProviderError::from_payload(value, None))
}

/// Whether a value says anything: no null, no false, no 0, nothing empty.
fn is_said(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) => true,
    }
}

impl Decoder for ChatDecoder {
    fn frame(
        &mut self,
        event: &str,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data.starts_with("[DONE]") {
            if self.lacks_reason() {
                let error = ProviderError::new(
                    ErrorKind::IncompleteStream,
                    "the provider ended its answer without a reason (`finish_reason`) and before it was whole",
                );
                return Err(self.fail(error, chunks));
            }
            self.end(chunks);
            return Ok(());
        }
        if event != "error"
            && let Some(more) = MoreText::read(data)
        {
            return self.take_more_text(&more, chunks);
        }
        match read_piece::<Value>(data) {
            Ok(value) if event == "error" => {
                let error = ProviderError::from_payload(&value, None);
                Err(self.fail(error, chunks))
            }
            Ok(value) => self.take(&value, chunks),
            Err(_) if event == "error" => {
                let error = ProviderError::from_payload(&Value::from(data), None);
                Err(self.fail(error, chunks))
            }
            Err(error) => {
                let error = ProviderError::new(
                    ErrorKind::Protocol,
                    format!("a chunk of the answer is no JSON: {error}"),
                );
                Err(self.fail(error, chunks))
            }
        }
    }

    fn whole(&mut self, body: &str, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        let value: Value = read_piece(body).map_err(|error| {
            ProviderError::new(
                ErrorKind::Protocol,
                format!("the answer is no JSON: {error}"),
            )
        })?;
        self.take(&value, chunks)?;
        let answered = value.get("choices").and_then(Value::as_array);
        if answered.is_none_or(Vec::is_empty) || (self.stop.is_none() && !self.answered) {
            let error = ProviderError::new(ErrorKind::Protocol, "the answer has nothing in it");
            return Err(self.fail(error, chunks));
        }
        self.end(chunks);
        Ok(())
    }

    fn finish(&mut self, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        if self.done {
            return Ok(());
        }
        if self.stop.is_some() {
            // Many servers close right after the last chunk and never send `[DONE]`.
            self.end(chunks);
            return Ok(());
        }
        let error = ProviderError::new(
            ErrorKind::IncompleteStream,
            "the answer broke off before its end",
        );
        Err(self.fail(error, chunks))
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests;
