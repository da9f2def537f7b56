//! The assistant message of one answer as far as it has to go back, put together as it comes.

use serde_json::{Map, Value, json};

use super::calls::text;
use super::details::Details;

/// Fields that reasoning comes in, the last two at gateways (Copilot and others, 2026-11-20). Where
/// several are sent they hold the same text.
pub(super) const REASONING_FIELDS: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
];

/// Fields of the message itself that have to go back (Gemini).
const EXTRA_FIELDS: [&str; 2] = ["extra_content", "thought_signature"];

/// What has to go back of an answer besides its plain text and its calls.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The field the reasoning came in, and its text so far.
    reasoning: Option<(&'static str, String)>,
    details: Details,
    /// Content that came as typed parts (Mistral), to go back in that form.
    parts: Details,
    /// Whether text came as a string before any typed part: the parts alone are then not all of it.
    plain: bool,
    extra: Map<String, Value>,
    bytes: usize,
}

impl Kept {
    /// Bytes kept so far, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the reasoning of a delta and returns its text.
    pub(super) fn take_reasoning(&mut self, delta: &Value) -> String {
        let details = delta.get("reasoning_details").and_then(Value::as_array);
        let mut from_details = String::new();
        for detail in details.into_iter().flatten() {
            self.bytes += self.details.push(detail);
            from_details.push_str(text(detail, "text"));
            from_details.push_str(text(detail, "summary"));
        }
        let field = REASONING_FIELDS
            .into_iter()
            .find(|field| !text(delta, field).is_empty());
        let Some(field) = field else {
            return from_details;
        };
        let fragment = text(delta, field);
        self.bytes += fragment.len();
        let (_, whole) = self.reasoning.get_or_insert_with(|| (field, String::new()));
        whole.push_str(fragment);
        fragment.to_owned()
    }

    /// Takes text that came as a string.
    pub(super) fn take_text(&mut self, fragment: &str) {
        if fragment.is_empty() {
            return;
        }
        if self.parts.is_empty() {
            self.plain = true;
        } else {
            // A server may go over to plain strings in the middle.
            let part = json!({"type": "text", "text": fragment});
            self.bytes += self.parts.push(&part);
        }
    }

    /// Takes a typed part of the content.
    pub(super) fn take_part(&mut self, part: &Value) {
        if !self.plain {
            self.bytes += self.parts.push(part);
        }
    }

    /// Takes the fields of a delta that belong to the message itself.
    pub(super) fn take_extra(&mut self, delta: &Value) {
        for key in EXTRA_FIELDS {
            if let Some(value) = delta.get(key).filter(|value| !value.is_null()) {
                self.extra.insert(key.to_owned(), value.clone());
            }
        }
    }

    /// Returns the message with its calls; `None` where plain text says it all.
    pub(super) fn into_message(self, calls: Vec<Value>) -> Option<Value> {
        let mut message = Map::new();
        if let Some(parts) = self.parts.into_array() {
            message.insert("content".to_owned(), parts);
        }
        if let Some((field, reasoning)) = self.reasoning {
            message.insert(field.to_owned(), Value::String(reasoning));
        }
        if let Some(details) = self.details.into_array() {
            message.insert("reasoning_details".to_owned(), details);
        }
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        message.extend(self.extra);
        (!message.is_empty()).then_some(Value::Object(message))
    }
}
