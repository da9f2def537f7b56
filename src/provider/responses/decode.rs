//! Reads the answers of OpenAI Responses, streamed or whole.
//!
//! `response.output_item.done` is what counts and what goes back; the deltas before it are for the
//! eye. Dispatches on the JSON `type`, never on the event's name (`docs/providers.md`,
//! "Responses: stream").

use serde_json::Value;

use super::items::{Items, text};
use crate::message::{NativeReply, Notice, Usage};
use crate::provider::chat::usage;
use crate::provider::decode::Decoder;
use crate::provider::json::read_piece;
use crate::provider::schema::ToolNames;
use crate::provider::{Chunk, End, ErrorKind, ProviderError, Stop};

/// The name of the wire format in [`NativeReply`]: the output items of one response in `items`.
pub(in crate::provider) const WIRE: &str = "openai-responses";

/// Most bytes of items and call input kept for one answer, the input counted twice, and the items
/// once more where the end repeats them; several times any real one.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// The parser of one Responses answer.
pub(crate) struct ResponsesDecoder {
    provider: String,
    model: String,
    notices: Vec<Notice>,
    started: bool,
    done: bool,
    items: Items,
    kept: usize,
    /// Whether text was passed on that belongs to no item known by then.
    stray: bool,
    refused: bool,
    usage: Usage,
}

impl ResponsesDecoder {
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
            items: Items::new(names),
            kept: 0,
            stray: false,
            refused: false,
            usage: Usage::default(),
        }
    }

    fn take(&mut self, event: &Value, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        let response = event.get("response").unwrap_or(&Value::Null);
        match text(event, "type") {
            "error" | "response.error" => Err(failure(event)),
            _ if is_error(event.get("error")) => Err(failure(event)),
            "response.created" | "response.queued" | "response.in_progress" => {
                self.start(response, chunks);
                Ok(())
            }
            "response.output_item.added" => self.add_item(event, chunks),
            "response.output_item.done" => {
                let place = event.get("output_index").and_then(Value::as_u64);
                self.end_item(place, event.get("item").unwrap_or(&Value::Null), chunks)
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => self.end(event, response, chunks),
            kind => self.take_delta(kind, event, chunks),
        }
    }

    fn take_delta(
        &mut self,
        kind: &str,
        event: &Value,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        let delta = text(event, "delta");
        match kind {
            "response.output_text.delta" | "response.refusal.delta" if !delta.is_empty() => {
                self.refused |= kind == "response.refusal.delta";
                self.told(event, chunks);
                chunks.push(Chunk::Text(delta.to_owned()));
            }
            // The last two are names of earlier versions, which gateways kept.
            "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary.delta"
            | "response.reasoning.delta"
                if !delta.is_empty() =>
            {
                self.told(event, chunks);
                chunks.push(Chunk::Thinking(delta.to_owned()));
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                if let Some(item) = self.items.of(event) {
                    self.kept += item.append(delta, chunks);
                }
            }
            "response.function_call_arguments.done" => self.complete(event, "arguments", chunks),
            "response.custom_tool_call_input.done" => self.complete(event, "input", chunks),
            _ => {}
        }
        self.check_size()
    }

    fn check_size(&self) -> Result<(), ProviderError> {
        if self.kept > MAX_KEPT_BYTES {
            return Err(ProviderError::too_large(MAX_KEPT_BYTES));
        }
        Ok(())
    }

    fn complete(&mut self, event: &Value, field: &str, chunks: &mut Vec<Chunk>) {
        if let Some(item) = self.items.of(event) {
            item.complete(text(event, field), chunks);
        }
    }

    /// Notes that an item's text is passed on piece by piece.
    fn told(&mut self, event: &Value, chunks: &mut Vec<Chunk>) {
        self.start(&Value::Null, chunks);
        match self.items.of(event) {
            Some(item) => item.told = true,
            None => self.stray = true,
        }
    }

    fn start(&mut self, response: &Value, chunks: &mut Vec<Chunk>) {
        if !self.started {
            self.started = true;
            let model = Some(text(response, "model")).filter(|model| !model.is_empty());
            chunks.push(Chunk::Start {
                model: model.map(str::to_owned),
            });
            chunks.extend(self.notices.drain(..).map(Chunk::Notice));
        }
    }

    fn add_item(&mut self, event: &Value, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        self.start(&Value::Null, chunks);
        let place = event.get("output_index").and_then(Value::as_u64);
        let item = event.get("item").unwrap_or(&Value::Null);
        match self.items.add(place, item, chunks) {
            Some(_) => Ok(()),
            None => Err(too_many()),
        }
    }

    fn end_item(
        &mut self,
        place: Option<u64>,
        item: &Value,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        if !item.is_object() {
            return Ok(());
        }
        self.start(&Value::Null, chunks);
        self.kept += item.to_string().len();
        self.check_size()?;
        let is_untold = self.items.end(place, item, chunks).ok_or_else(too_many)?;
        if is_untold && !self.stray {
            self.tell(item, chunks);
        }
        Ok(())
    }

    /// Passes on what an item says that was not streamed.
    fn tell(&mut self, item: &Value, chunks: &mut Vec<Chunk>) {
        let parts = ["summary", "content"]
            .into_iter()
            .filter_map(|field| item.get(field)?.as_array())
            .flatten();
        for part in parts {
            let said = text(part, "text");
            let refusal = text(part, "refusal");
            match text(item, "type") {
                "reasoning" if !said.is_empty() => chunks.push(Chunk::Thinking(said.to_owned())),
                "message" if !refusal.is_empty() => {
                    self.refused = true;
                    chunks.push(Chunk::Text(refusal.to_owned()));
                }
                "message" if !said.is_empty() => chunks.push(Chunk::Text(said.to_owned())),
                _ => {}
            }
        }
    }

    /// Takes the response as it ended, by the event's type or, without one, by its status.
    fn end(
        &mut self,
        event: &Value,
        response: &Value,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        for figures in [event.get("usage"), response.get("usage")]
            .into_iter()
            .flatten()
        {
            usage::update(&mut self.usage, usage::read(figures));
        }
        let status = match text(event, "type").strip_prefix("response.") {
            Some(status) if status != "done" => status,
            _ => text(response, "status"),
        };
        if is_error(response.get("error")) || matches!(status, "failed" | "cancelled") {
            return Err(failure(if event.is_null() { response } else { event }));
        }
        // Everything but what came as an event of its own; servers that stream no items send them here.
        let output = response.get("output").and_then(Value::as_array);
        for (place, item) in (0..).zip(output.into_iter().flatten()) {
            self.end_item(Some(place), item, chunks)?;
        }
        if output.is_none() && self.items.is_empty() && !self.stray {
            return Err(ProviderError::new(
                ErrorKind::IncompleteStream,
                "the provider ended its answer without any output",
            ));
        }
        self.start(response, chunks);
        let reason = match response.pointer("/incomplete_details/reason") {
            Some(Value::String(reason)) => reason.as_str(),
            _ => "max_output_tokens",
        };
        let cut = match (status, reason) {
            ("incomplete", "content_filter") => Some(Stop::ContentFilter),
            // Documented as stopping points of the server, between items.
            ("incomplete", "max_messages" | "steered") => None,
            ("incomplete", _) => Some(Stop::MaxTokens),
            _ => None,
        };
        self.items.close(cut.is_some(), chunks);
        let stop = match cut {
            Some(stop) => stop,
            None if self.items.have_calls() => Stop::ToolUse,
            None if self.refused => Stop::Refusal,
            None => Stop::EndTurn,
        };
        self.done = true;
        let raw_stop = match status {
            "incomplete" => format!("incomplete:{reason}"),
            "" => "completed".to_owned(),
            status => status.to_owned(),
        };
        chunks.push(Chunk::End(End {
            stop,
            raw_stop: Some(raw_stop),
            usage: self.usage,
            native: self.native(),
        }));
        Ok(())
    }

    fn native(&mut self) -> Option<NativeReply> {
        let items = self.items.take();
        (!items.is_empty()).then(|| NativeReply {
            wire: WIRE.to_owned(),
            provider: self.provider.clone(),
            model: self.model.clone(),
            items: Value::Array(items),
        })
    }

    /// Closes the calls that are open where a step failed, so that none is left hanging.
    fn settle(
        &mut self,
        outcome: Result<(), ProviderError>,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        if outcome.is_err() {
            self.items.close(true, chunks);
            self.done = true;
        }
        outcome
    }
}

fn too_many() -> ProviderError {
    ProviderError::new(ErrorKind::Protocol, "the answer has too many output items")
}

fn is_error(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(Value::String(message)) => !message.is_empty(),
        _ => false,
    }
}

/// Reads an event, or a response, that says that it failed. Errors are documented flat and sent nested.
fn failure(event: &Value) -> ProviderError {
    let error = ProviderError::from_payload(event, None);
    if error.kind == ErrorKind::Unknown && text(event, "type") == "response.failed" {
        return ProviderError {
            kind: ErrorKind::Server,
            ..error
        };
    }
    error
}

impl Decoder for ResponsesDecoder {
    fn frame(
        &mut self,
        event: &str,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        let data = data.trim();
        if self.done || data.is_empty() || data.starts_with("[DONE]") {
            return Ok(());
        }
        let outcome = match read_piece::<Value>(data) {
            Ok(value) if event == "error" && text(&value, "type") != "error" => {
                Err(ProviderError::from_payload(&value, None))
            }
            Ok(value) => self.take(&value, chunks),
            Err(_) if event == "error" => {
                Err(ProviderError::from_payload(&Value::from(data), None))
            }
            Err(error) => Err(ProviderError::new(
                ErrorKind::Protocol,
                format!("an event of the answer is no JSON: {error}"),
            )),
        };
        self.settle(outcome, chunks)
    }

    fn whole(&mut self, body: &str, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        let outcome = match read_piece::<Value>(body) {
            Ok(value) if is_error(value.get("error")) || value.get("output").is_none() => {
                Err(ProviderError::from_payload(&value, None))
            }
            Ok(value) => match text(&value, "status") {
                "in_progress" | "queued" => Err(ProviderError::new(
                    ErrorKind::Protocol,
                    "the response was sent before it was complete",
                )),
                _ => {
                    self.start(&value, chunks);
                    self.end(&Value::Null, &value, chunks)
                }
            },
            Err(error) => Err(ProviderError::new(
                ErrorKind::Protocol,
                format!("the answer is no JSON: {error}"),
            )),
        };
        self.settle(outcome, chunks)
    }

    fn finish(&mut self, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        if self.done {
            return Ok(());
        }
        let outcome = Err(ProviderError::new(
            ErrorKind::IncompleteStream,
            "the answer broke off before response.completed",
        ));
        self.settle(outcome, chunks)
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests;
