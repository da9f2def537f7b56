//! The assistant message of one answer as far as it has to go back, put together as it comes.
//!
//! Typed pieces that a server streams and wants back are joined: `reasoning_details` (OpenRouter) and content
//! parts (Mistral).

use serde_json::{Map, Value};

use crate::provider::decode::Answer;
use crate::provider::json::{Json, append, array, field, text};

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
    message: Map<String, Value>,
    /// The field that reasoning came in first: all of it goes back there.
    reasoning: Option<&'static str>,
    /// Whether text came as a string before any typed part: the parts alone are then not all of it.
    plain: bool,
}

impl Kept {
    /// Takes all of a delta but its content and its calls, and passes the reasoning on.
    pub(super) fn take(&mut self, delta: &Json<'_>, answer: &mut Answer) {
        let details = array(delta, "reasoning_details");
        self.push("reasoning_details", details);
        let key = REASONING_FIELDS
            .into_iter()
            .find(|key| !text(delta, key).is_empty());
        if let Some(key) = key {
            let fragment = text(delta, key);
            let first = *self.reasoning.get_or_insert(key);
            append(&mut self.message, first, fragment);
            answer.thinking(fragment);
        } else {
            for detail in details {
                answer.thinking(text(detail, "text"));
                answer.thinking(text(detail, "summary"));
            }
        }
        for key in EXTRA_FIELDS {
            let value = field(delta, key);
            if !value.is_null() {
                self.message.insert(key.to_owned(), value.into());
            }
        }
    }

    pub(super) fn take_text(&mut self, fragment: &str) {
        if fragment.is_empty() {
            return;
        }
        if self.message.contains_key("content") {
            // A server may go over to plain strings in the middle.
            let part = [("type", Json::from("text")), ("text", Json::from(fragment))];
            let part = Json::Object(part.into_iter().collect());
            self.push("content", &[part]);
        } else {
            self.plain = true;
        }
    }

    pub(super) fn take_parts(&mut self, parts: &[Json<'_>]) {
        if !self.plain {
            self.push("content", parts);
        }
    }

    fn push(&mut self, key: &str, pieces: &[Json<'_>]) {
        for piece in pieces.iter().filter(|piece| piece.is_object()) {
            let whole = self
                .message
                .entry(key)
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(whole) = whole {
                join_pieces(whole, vec![piece.into()]);
            }
        }
    }

    /// Returns the message with its calls; `None` where plain text says it all.
    pub(super) fn into_message(mut self, calls: Vec<Value>) -> Option<Value> {
        if !calls.is_empty() {
            self.message
                .insert("tool_calls".to_owned(), Value::Array(calls));
        }
        (!self.message.is_empty()).then_some(Value::Object(self.message))
    }
}

/// Whether a piece is more of the one before: of the same sort and place, of a sort that comes in
/// fragments, and not after its signature. Encrypted pieces are each whole.
fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let agree = |key| match (last.get(key), piece.get(key)) {
        (Some(a), Some(b)) => a == b || a.is_null() || b.is_null(),
        (None, _) | (_, None) => true,
    };
    let in_fragments = matches!(
        piece.get("type").and_then(Value::as_str),
        Some("reasoning.text" | "reasoning.summary" | "text" | "thinking")
    );
    let signed = last.get("signature").is_some_and(Value::is_string);
    let same_place = last.contains_key("index") && last.get("index") == piece.get("index");
    in_fragments
        && last.get("type") == piece.get("type")
        && agree("index")
        && agree("id")
        && (same_place || !signed)
}

/// Appends the text of a fragment; its other fields, a signature above all, replace.
fn join(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (key, value) in piece {
        match (last.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::Array(whole)), Value::Array(more)) => join_pieces(whole, more),
            (Some(Value::String(_)), Value::String(more))
                if matches!(key.as_str(), "text" | "summary" | "thinking") =>
            {
                append(last, &key, &more);
            }
            (_, value) => {
                last.insert(key, value);
            }
        }
    }
}

/// Joins the pieces of an array; those within a `thinking` part are in one of their own.
fn join_pieces(whole: &mut Vec<Value>, more: Vec<Value>) {
    for piece in more {
        match (whole.last_mut(), piece) {
            (Some(Value::Object(last)), Value::Object(piece)) if continues(last, &piece) => {
                join(last, piece);
            }
            (_, piece) => whole.push(piece),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn collected(pieces: &[Value]) -> Value {
        let mut kept = Kept::default();
        for piece in pieces {
            kept.push("pieces", &[piece.into()]);
        }
        kept.message.remove("pieces").unwrap_or_default()
    }

    #[test]
    fn fragments_are_joined_and_the_signature_kept() {
        let pieces = [
            json!({"type": "reasoning.text", "index": 0, "text": "a", "signature": null}),
            json!({"type": "reasoning.text", "index": 0, "text": "b"}),
            json!({"type": "reasoning.text", "index": 0, "signature": "s"}),
            json!({"type": "reasoning.encrypted", "index": 1, "data": "x"}),
            json!({"type": "reasoning.encrypted", "index": 1, "data": "y"}),
            json!({"type": "reasoning.text", "index": 2, "text": "c"}),
        ];
        assert_eq!(
            collected(&pieces),
            json!([
                {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
                {"type": "reasoning.encrypted", "index": 1, "data": "x"},
                {"type": "reasoning.encrypted", "index": 1, "data": "y"},
                {"type": "reasoning.text", "index": 2, "text": "c"},
            ])
        );
    }

    #[test]
    fn mistral_parts_are_joined_inside() {
        let thinking =
            |text: &str| json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
        assert_eq!(
            collected(&[
                thinking("a"),
                thinking("b"),
                json!({"type": "text", "text": "c"}),
                json!("no object"),
            ]),
            json!([thinking("ab"), {"type": "text", "text": "c"}])
        );
    }

    #[test]
    fn a_signed_piece_without_index_is_whole() {
        let signed = json!({"type": "reasoning.text", "text": "a", "signature": "s"});
        assert_eq!(
            collected(&[signed.clone(), signed.clone()]),
            json!([signed, signed])
        );
    }
}
