//! The assistant message of one answer as far as it has to go back, put together as it comes.

use serde_json::{Map, Value};

use super::details::Details;
use crate::provider::decode::Answer;
use crate::provider::json::{Json, array, text};

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
}

impl Kept {
    /// Takes the reasoning of a delta and passes it on.
    pub(super) fn take_reasoning(&mut self, delta: &Json<'_>, answer: &mut Answer) {
        let field = REASONING_FIELDS
            .into_iter()
            .find(|field| !text(delta, field).is_empty());
        for detail in array(delta, "reasoning_details") {
            self.details.push(detail, answer);
            if field.is_none() {
                answer.thinking(text(detail, "text"));
                answer.thinking(text(detail, "summary"));
            }
        }
        if let Some(field) = field {
            let fragment = text(delta, field);
            let (_, whole) = self.reasoning.get_or_insert_with(|| (field, String::new()));
            whole.push_str(fragment);
            answer.thinking(fragment);
        }
    }

    /// Takes text that came as a string.
    pub(super) fn take_text(&mut self, fragment: &str, answer: &mut Answer) {
        if fragment.is_empty() {
            return;
        }
        if self.parts.is_empty() {
            self.plain = true;
        } else {
            // A server may go over to plain strings in the middle.
            let part = [("type", Json::from("text")), ("text", Json::from(fragment))];
            let part = Json::Object(part.into_iter().collect());
            self.parts.push(&part, answer);
        }
    }

    /// Takes a typed part of the content.
    pub(super) fn take_part(&mut self, part: &Json<'_>, answer: &mut Answer) {
        if !self.plain {
            self.parts.push(part, answer);
        }
    }

    /// Takes the fields of a delta that belong to the message itself.
    pub(super) fn take_extra(&mut self, delta: &Json<'_>) {
        for key in EXTRA_FIELDS {
            let value = delta.get(key);
            if !value.is_null() {
                self.extra.insert(key.to_owned(), value.into());
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
