//! Reads the answers of Chat Completions and everything compatible, streamed or whole.
//!
//! Nothing is taken for granted: every field is optional, an `error` is looked for before anything
//! else, and what is not understood is passed over (`providers.md` 3.3, 2026-11-20). Tool calls are
//! put together in [`super::calls`].

use serde_json::{Value, json};

use super::calls::{Calls, text};
use super::message::Kept;
use super::usage;
use crate::message::{NativeReply, Notice, Usage};
use crate::provider::decode::Decoder;
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
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.take_delta(delta, chunks)?;
        }
        // Some servers send "" until the end, some repeat the reason.
        let reason = text(choice, "finish_reason");
        if !reason.is_empty() {
            self.stop = Some(reason.to_owned());
        }
        match reason {
            "error" => Err(self.fail(
                ProviderError::new(
                    ErrorKind::Server,
                    "the provider ended the answer with an error",
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
        let entries = delta.get("tool_calls").and_then(Value::as_array);
        // The form before tools, without ids: one call at most.
        let legacy = delta.get("function_call").filter(|call| call.is_object());
        let fed = match (entries, legacy) {
            (Some(entries), _) if !entries.is_empty() => self.feed(entries, chunks),
            (_, Some(call)) => self.feed(std::slice::from_ref(call), chunks),
            _ => Some(0),
        };
        let Some(bytes) = fed else {
            let error =
                ProviderError::new(ErrorKind::Protocol, "the answer has too many tool calls");
            return Err(self.fail(error, chunks));
        };
        self.call_bytes += bytes;
        if self.call_bytes + self.kept.bytes() > MAX_KEPT_BYTES {
            let error = ProviderError::new(
                ErrorKind::Protocol,
                format!("the answer is larger than {MAX_KEPT_BYTES} bytes"),
            );
            return Err(self.fail(error, chunks));
        }
        Ok(())
    }

    fn feed(&mut self, entries: &[Value], chunks: &mut Vec<Chunk>) -> Option<usize> {
        self.begin(chunks);
        self.calls.feed(entries, self.deltas, chunks)
    }

    /// Takes content as a string or, from Mistral, as typed parts.
    fn take_content(&mut self, content: &Value, chunks: &mut Vec<Chunk>) {
        if let Value::String(fragment) = content {
            self.kept.take_text(fragment);
            self.push_text(fragment, chunks);
        }
        for part in content.as_array().into_iter().flatten() {
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
            chunks.push(Chunk::Text(fragment.to_owned()));
        }
    }

    fn push_thinking(&mut self, fragment: &str, chunks: &mut Vec<Chunk>) {
        if !fragment.is_empty() {
            self.begin(chunks);
            chunks.push(Chunk::Thinking(fragment.to_owned()));
        }
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
            Some("length" | "max_tokens" | "model_length") => Self::Cut(Stop::MaxTokens),
            Some("content_filter" | "safety" | "recitation") => Self::Cut(Stop::ContentFilter),
            Some("stop_sequence") => Self::Ended(Stop::StopSequence),
            _ => Self::Ended(Stop::EndTurn),
        }
    }
}

/// Finds the error in a chunk or body that is one, in the form [`ProviderError::from_payload`] reads.
fn error_in(value: &Value) -> Option<ProviderError> {
    let flat = || {
        let says_so = value.get("object").or_else(|| value.get("type")) == Some(&json!("error"));
        let has_message = value.get("message").is_some() || value.get("detail").is_some();
        (value.get("choices").is_none() && (says_so || has_message)).then_some(())
    };
    match value.get("error") {
        Some(Value::Null | Value::Bool(false)) | None => flat()?,
        Some(Value::String(message)) if message.is_empty() => flat()?,
        Some(Value::Object(fields)) if fields.is_empty() => flat()?,
        Some(_) => {}
    }
    Some(ProviderError::from_payload(value, None))
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
            self.end(chunks);
            return Ok(());
        }
        match serde_json::from_str::<Value>(data) {
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
        let value: Value = serde_json::from_str(body).map_err(|error| {
            ProviderError::new(
                ErrorKind::Protocol,
                format!("the answer is no JSON: {error}"),
            )
        })?;
        self.take(&value, chunks)?;
        let answered = value.get("choices").and_then(Value::as_array);
        if answered.is_none_or(Vec::is_empty) {
            let error = ProviderError::new(ErrorKind::Protocol, "the answer has no choices");
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
