//! Collects typed pieces that a server streams and wants back: `reasoning_details` (OpenRouter) and
//! content parts (Mistral).

use serde_json::{Map, Value};

use crate::provider::decode::Answer;
use crate::provider::json::Json;

/// Pieces in the order in which they came, fragments of one piece joined.
#[derive(Debug, Default)]
pub(super) struct Details {
    pieces: Vec<Value>,
}

impl Details {
    /// Takes a piece, or more of the last one.
    pub(super) fn push(&mut self, piece: &Json<'_>, answer: &mut Answer) {
        if piece.is_object() {
            answer.keep(piece.to_string().len());
            join_pieces(&mut self.pieces, vec![piece.into()]);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the pieces as an array; `None` where there are none.
    pub(super) fn into_array(self) -> Option<Value> {
        (!self.pieces.is_empty()).then_some(Value::Array(self.pieces))
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
            (Some(Value::String(whole)), Value::String(more))
                if matches!(key.as_str(), "text" | "summary" | "thinking") =>
            {
                whole.push_str(&more);
            }
            (Some(Value::Array(whole)), Value::Array(more)) => join_pieces(whole, more),
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
        let mut details = Details::default();
        for piece in pieces {
            details.push(&piece.into(), &mut Answer::default());
        }
        details.into_array().unwrap_or_default()
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
