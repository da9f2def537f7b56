//! Reads the answers of OpenAI Responses, streamed or whole.
//!
//! `response.output_item.done` is what counts and what goes back; the deltas before it are for the
//! eye. Dispatches on the JSON `type`, never on the event's name (`docs/providers.md`,
//! "Responses: stream").

use serde_json::Value;

use super::items::Items;
use crate::message::Usage;
use crate::provider::decode::{Answer, Wire, incomplete, protocol};
use crate::provider::json::{Json, array, field, text};
use crate::provider::{ErrorKind, ProviderError, Stop, usage};

/// The name of the wire format in [`crate::message::NativeReply`]: the output items of one response in `items`.
pub(in crate::provider) const WIRE: &str = "openai-responses";

/// Tokens at which an answer is cut, for servers that do not say that it was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) output: Option<u64>,
    /// Of input and output together.
    pub(crate) window: Option<u64>,
}

impl Limits {
    fn are_reached(self, usage: &Usage) -> bool {
        let reached = |limit: Option<u64>, count: Option<u64>| {
            let both = limit.zip(count);
            both.is_some_and(|(limit, count)| count >= limit)
        };
        let all = usage.input.zip(usage.output);
        let all = all.map(|(input, output)| input.saturating_add(output));
        reached(self.output, usage.output) || reached(self.window, all)
    }
}

#[derive(Default)]
pub(crate) struct ResponsesWire {
    limits: Limits,
    items: Items,
    /// Whether text was passed on that belongs to no item known by then.
    stray: bool,
    refused: bool,
}

impl ResponsesWire {
    /// Reads an answer that counts as cut, too, where it is as long as one of these.
    pub(crate) fn within(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }
}

impl Wire for ResponsesWire {
    fn name(&self) -> &'static str {
        WIRE
    }

    fn frame(&mut self, event: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        let response = field(event, "response");
        let kind = text(event, "type");
        if matches!(kind, "error" | "response.error") || is_error(field(event, "error")) {
            return Err(failure(event));
        }
        match kind {
            "response.created" | "response.queued" | "response.in_progress" => {
                answer.begin(text(response, "model"));
                Ok(())
            }
            "response.output_item.added" => {
                answer.begin("");
                let place = field(event, "output_index").as_u64();
                self.items
                    .add(place, field(event, "item"), answer)
                    .map(drop)
            }
            "response.output_item.done" => {
                let place = field(event, "output_index").as_u64();
                self.end_item(place, field(event, "item"), answer)
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => self.end(event, response, answer),
            kind => {
                self.delta(kind, event, answer);
                Ok(())
            }
        }
    }

    fn whole(&mut self, body: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        if is_error(field(body, "error")) || field(body, "output").is_null() {
            return Err(ProviderError::from_payload(&body.into(), None));
        }
        if matches!(text(body, "status"), "in_progress" | "queued") {
            return Err(protocol("the response was sent before it was complete"));
        }
        answer.begin(text(body, "model"));
        self.end(&Json::Null, body, answer)
    }

    fn finish(&mut self, _answer: &mut Answer) -> Result<(), ProviderError> {
        Err(incomplete("the answer broke off before response.completed"))
    }

    fn close_calls(&mut self, answer: &mut Answer) {
        self.items.close(true, answer);
    }
}

impl ResponsesWire {
    fn delta(&mut self, kind: &str, event: &Json<'_>, answer: &mut Answer) {
        let delta = text(event, "delta");
        match kind {
            "response.output_text.delta" | "response.refusal.delta" if !delta.is_empty() => {
                self.refused |= kind == "response.refusal.delta";
                self.note_streamed(event);
                answer.text(delta);
            }
            // The last two are names of earlier versions, which gateways kept.
            "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary.delta"
            | "response.reasoning.delta"
                if !delta.is_empty() =>
            {
                self.note_streamed(event);
                answer.thinking(delta);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                if let Some(call) = self.items.open_call(event) {
                    call.append(delta, answer);
                }
            }
            "response.function_call_arguments.done" => {
                self.complete(event, "arguments", answer);
            }
            "response.custom_tool_call_input.done" => self.complete(event, "input", answer),
            _ => {}
        }
    }

    /// Takes a call's whole input, as far as it did not come in pieces.
    fn complete(&mut self, event: &Json<'_>, field: &'static str, answer: &mut Answer) {
        if let Some(call) = self.items.open_call(event) {
            call.set(text(event, field), answer);
            call.whole = true;
        }
    }

    /// Notes that an item's text is passed on piece by piece.
    fn note_streamed(&mut self, event: &Json<'_>) {
        match self.items.of(event) {
            Some(item) => item.streamed = true,
            None => self.stray = true,
        }
    }

    fn end_item(
        &mut self,
        place: Option<u64>,
        item: &Json<'_>,
        answer: &mut Answer,
    ) -> Result<(), ProviderError> {
        if !item.is_object() {
            return Ok(());
        }
        answer.begin("");
        let is_new = self.items.end(place, item, answer)?;
        if is_new && !self.stray {
            self.pass_on(item, answer);
        }
        Ok(())
    }

    fn pass_on(&mut self, item: &Json<'_>, answer: &mut Answer) {
        let kind = text(item, "type");
        for part in ["summary", "content"]
            .iter()
            .flat_map(|field| array(item, field))
        {
            let refusal = text(part, "refusal");
            match kind {
                "reasoning" => answer.thinking(text(part, "text")),
                "message" if !refusal.is_empty() => {
                    self.refused = true;
                    answer.text(refusal);
                }
                "message" => answer.text(text(part, "text")),
                _ => {}
            }
        }
    }

    /// Takes the response as it ended, by the event's type or, without one, by its status.
    fn end(
        &mut self,
        event: &Json<'_>,
        response: &Json<'_>,
        answer: &mut Answer,
    ) -> Result<(), ProviderError> {
        usage::update(&mut answer.usage, field(event, "usage"));
        usage::update(&mut answer.usage, field(response, "usage"));
        let status = match text(event, "type").strip_prefix("response.") {
            Some(status) if status != "done" => status,
            _ => text(response, "status"),
        };
        if is_error(field(response, "error")) || matches!(status, "failed" | "cancelled") {
            return Err(failure(if event.is_null() { response } else { event }));
        }
        // Everything but what came as an event of its own; servers that stream no items send them here.
        for (place, item) in (0..).zip(array(response, "output")) {
            self.end_item(Some(place), item, answer)?;
        }
        if !field(response, "output").is_array() && self.items.is_empty() && !self.stray {
            return Err(incomplete(
                "the provider ended its answer without any output",
            ));
        }
        answer.begin(text(response, "model"));
        let details = field(response, "incomplete_details");
        let reason = field(details, "reason")
            .as_str()
            .unwrap_or("max_output_tokens");
        let cut = match (status, reason) {
            ("incomplete", "content_filter") => Some(Stop::ContentFilter),
            // Documented as stopping points of the server, between items.
            ("incomplete", "max_messages" | "steered") => None,
            ("incomplete", _) => Some(Stop::MaxTokens),
            _ if self.limits.are_reached(&answer.usage) => Some(Stop::MaxTokens),
            _ => None,
        };
        self.items.close(cut.is_some(), answer);
        let stop = match cut {
            Some(stop) => stop,
            None if answer.has_calls() => Stop::ToolUse,
            None if self.refused => Stop::Refusal,
            None => Stop::EndTurn,
        };
        let raw_stop = match status {
            "incomplete" => format!("incomplete:{reason}"),
            "" => "completed".to_owned(),
            status => status.to_owned(),
        };
        let items = self.items.take();
        let items = (!items.is_empty()).then_some(Value::Array(items));
        answer.end(stop, Some(&raw_stop), items);
        Ok(())
    }
}

fn is_error(value: &Json<'_>) -> bool {
    match value {
        Json::Object(fields) => !fields.is_empty(),
        Json::Str(message) => !message.is_empty(),
        _ => false,
    }
}

/// Reads an event, or a response, that says that it failed. Errors are documented flat and sent nested.
fn failure(event: &Json<'_>) -> ProviderError {
    let mut error = ProviderError::from_payload(&event.into(), None);
    if error.kind == ErrorKind::Unknown && text(event, "type") == "response.failed" {
        error.kind = ErrorKind::Server;
    }
    error
}

#[cfg(test)]
mod tests;
