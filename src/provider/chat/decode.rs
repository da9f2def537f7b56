//! Reads the answers of Chat Completions and everything compatible, streamed or whole.
//!
//! Nothing is taken for granted: every field is optional, an `error` is looked for before anything
//! else, and what is not understood is passed over (`docs/providers.md`, "Chat Completions: stream").
//! Tool calls are put together in [`super::calls`].

use serde_json::{Value, json};

use super::calls::Calls;
use super::message::Kept;
use crate::provider::decode::{Answer, Wire, incomplete, protocol};
use crate::provider::json::{Json, array, field, text};
use crate::provider::{ErrorKind, ProviderError, Stop, usage};

/// The name of the wire format in [`crate::message::NativeReply`]: one assistant message in `items`.
pub(in crate::provider) const WIRE: &str = "openai-chat";

#[derive(Default)]
pub(crate) struct ChatWire {
    calls: Calls,
    stop: Option<String>,
    refused: bool,
    kept: Kept,
}

impl Wire for ChatWire {
    fn name(&self) -> &'static str {
        WIRE
    }

    fn frame(&mut self, chunk: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        if let Some(error) = error_in(chunk) {
            return Err(error);
        }
        let choices = array(chunk, "choices");
        let figures = [
            field(chunk, "x_groq"),
            choices.first().unwrap_or(&Json::Null),
            chunk,
        ];
        for place in figures {
            usage::update(&mut answer.usage, field(place, "usage"));
        }
        let model = text(chunk, "model");
        if !model.is_empty() {
            answer.begin(model);
        }
        // Only the first of several choices is the answer.
        let is_first = |choice: &&Json<'_>| field(choice, "index").as_u64().unwrap_or(0) == 0;
        choices
            .iter()
            .filter(is_first)
            .try_for_each(|choice| self.choice(choice, answer))
    }

    fn whole(&mut self, body: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        self.frame(body, answer)?;
        let answered = self.answered(answer) || self.stop.is_some();
        if array(body, "choices").is_empty() || !answered {
            return Err(protocol("the answer has nothing in it"));
        }
        self.end(answer);
        Ok(())
    }

    fn marker(&mut self, answer: &mut Answer) -> Result<(), ProviderError> {
        if self.lacks_reason(answer) {
            return Err(incomplete(
                "the provider ended its answer without a reason (`finish_reason`) and before it was whole",
            ));
        }
        self.end(answer);
        Ok(())
    }

    fn finish(&mut self, answer: &mut Answer) -> Result<(), ProviderError> {
        if self.stop.is_none() {
            return Err(incomplete("the answer broke off before its end"));
        }
        // Many servers close right after the last chunk and never send `[DONE]`.
        self.end(answer);
        Ok(())
    }

    fn close_calls(&mut self, answer: &mut Answer) {
        self.calls.close(true, answer);
    }
}

impl ChatWire {
    fn choice(&mut self, choice: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        if !field(choice, "error").is_null()
            && let Some(error) = error_in(choice)
        {
            return Err(error);
        }
        let delta = ["delta", "message"].map(|key| field(choice, key));
        if let Some(delta) = delta.into_iter().find(|delta| delta.is_object()) {
            self.delta(delta, answer)?;
        }
        // Some servers send "" until the end, some repeat the reason.
        let reason = text(choice, "finish_reason");
        if reason.is_empty() {
            return Ok(());
        }
        self.stop = Some(reason.to_owned());
        match reason.to_ascii_lowercase().as_str() {
            // `error`: OpenRouter, Mistral. `network_error`: Z.ai. `abort`: vLLM and SGLang gave up the request.
            // Gemini drops a call that it cannot read and says so here alone.
            "error" | "network_error" | "abort" | "malformed_function_call" => {
                Err(ProviderError::new(
                    ErrorKind::Server,
                    format!("the provider ended the answer with an error ({reason})"),
                ))
            }
            // DeepSeek, documented as transient.
            "insufficient_system_resource" => Err(ProviderError::new(
                ErrorKind::Overloaded,
                "the provider ran out of resources (insufficient_system_resource)",
            )),
            _ => Ok(()),
        }
    }

    fn delta(&mut self, delta: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        self.kept.take(delta, answer);
        self.content(field(delta, "content"), answer);
        let refusal = text(delta, "refusal");
        self.refused |= !refusal.is_empty();
        answer.text(refusal);
        let calls = match field(delta, "tool_calls") {
            Json::Array(calls) => calls,
            // One call, not in a list.
            call @ Json::Object(_) => std::slice::from_ref(call),
            _ => &[],
        };
        // The form before tools, without ids: one call at most.
        let legacy = field(delta, "function_call");
        match calls {
            [] if legacy.is_object() => self.calls.feed(std::slice::from_ref(legacy), answer),
            calls => self.calls.feed(calls, answer),
        }
    }

    /// Takes content as a string or, from Mistral, as typed parts.
    fn content(&mut self, content: &Json<'_>, answer: &mut Answer) {
        let parts = match content {
            Json::Str(fragment) => {
                self.kept.take_text(fragment);
                answer.text(fragment);
                return;
            }
            Json::Array(parts) => parts.as_slice(),
            Json::Object(_) => std::slice::from_ref(content),
            _ => &[],
        };
        self.kept.take_parts(parts);
        for part in parts {
            answer.text(text(part, "text"));
            match field(part, "thinking") {
                Json::Str(fragment) => answer.thinking(fragment),
                Json::Array(pieces) => {
                    for piece in pieces {
                        answer.thinking(text(piece, "text"));
                    }
                }
                _ => {}
            }
        }
    }

    fn answered(&self, answer: &Answer) -> bool {
        answer.has_text || !self.calls.is_empty()
    }

    /// Whether `[DONE]` comes where it says nothing: after text some servers leave the reason out, but
    /// nothing at all is no answer, and a call may be half of what was to be called unless the server has
    /// summed up what it sent (OpenRouter, recording `openai/tool-variant-b.sse`).
    fn lacks_reason(&self, answer: &Answer) -> bool {
        let summed_up = answer.usage.output.is_some();
        let has_half_calls = !self.calls.is_empty() && !summed_up;
        self.stop.is_none() && (!self.answered(answer) || has_half_calls)
    }

    fn end(&mut self, answer: &mut Answer) {
        let (stop, cut) = stop_of(self.stop.as_deref());
        let calls = self.calls.close(cut, answer);
        let stop = match stop {
            Stop::ContentFilter if self.refused => Stop::Refusal,
            stop if cut => stop,
            _ if !calls.is_empty() => Stop::ToolUse,
            _ if self.refused => Stop::Refusal,
            stop => stop,
        };
        let message = std::mem::take(&mut self.kept).into_message(calls);
        let items = message.map(|message| json!([message]));
        answer.end(stop, self.stop.as_deref(), items);
    }
}

/// Reads a `finish_reason`, and whether it stopped the model, so that what is open is not whole. An
/// unknown one ends the turn; the word itself is passed on.
fn stop_of(reason: Option<&str>) -> (Stop, bool) {
    match reason.map(str::to_ascii_lowercase).as_deref() {
        // `model_length`: Mistral, the context is full.
        Some(
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "token_limit"
            | "model_length"
            | "model_context_window_exceeded",
        ) => (Stop::MaxTokens, true),
        // Gemini's words, and Z.ai's `sensitive`.
        Some(
            "content_filter" | "content_filtered" | "safety" | "recitation" | "blocklist"
            | "prohibited_content" | "spii" | "sensitive",
        ) => (Stop::ContentFilter, true),
        Some("refusal") => (Stop::Refusal, true),
        Some("stop_sequence") => (Stop::StopSequence, false),
        _ => (Stop::EndTurn, false),
    }
}

/// Finds the error in a chunk or body that is one, in the form [`ProviderError::from_payload`] reads.
fn error_in(value: &Json<'_>) -> Option<ProviderError> {
    let is_flat = || {
        let says_so = ["object", "type"]
            .map(|key| text(value, key))
            .contains(&"error");
        let messages = ["message", "detail", "msg", "error_msg", "errors"];
        let has_message = messages.iter().any(|key| is_said(field(value, key)));
        let status = field(field(value, "base_resp"), "status_code");
        let failed = !status.is_null() && status.as_i64() != Some(0);
        !is_said(field(value, "choices")) && (says_so || has_message || failed)
    };
    (is_said(field(value, "error")) || is_flat())
        .then(|| ProviderError::from_payload(&Value::from(value), None))
}

/// Whether a value says anything: no null, no false, no 0, nothing empty.
fn is_said(value: &Json<'_>) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(value) => *value,
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::Str(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(fields) => !fields.is_empty(),
    }
}

#[cfg(test)]
mod tests;
