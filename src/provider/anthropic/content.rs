//! Single blocks of a request's content, none of which the API refuses.

use serde_json::{Value, json};

use crate::message::{Part, ToolResult};

/// Image types the API takes (vendor's vision page, 2026-11-20).
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Makes a text block.
pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Whether images are told as such, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Images {
    /// As they are.
    Seen,
    /// The model sees none.
    Unseen,
    /// They belong to a failed call, whose result may have none.
    OfFailure,
}

/// Tells a part, or nothing for blank text, which the API refuses everywhere.
pub(super) fn block(part: &Part, images: Images) -> Option<Value> {
    match part {
        Part::Text { text: blank } if blank.trim().is_empty() => None,
        Part::Text { text: words } => Some(text(words)),
        Part::Image { media_type, data } => Some(image(media_type, data, images)),
    }
}

fn image(media_type: &str, data: &str, images: Images) -> Value {
    match images {
        Images::Seen => {}
        Images::Unseen => return text("[an image was here; this model sees none]"),
        Images::OfFailure => return text("[an image was here; failed calls show none]"),
    }
    let media_type = match media_type {
        "image/jpg" => "image/jpeg",
        other => other,
    };
    if !IMAGE_TYPES.contains(&media_type) {
        let kinds = IMAGE_TYPES.join(", ");
        return text(&format!(
            "[an image of type {media_type} was here; only {kinds} can be seen]"
        ));
    }
    json!({"type": "image",
        "source": {"type": "base64", "media_type": media_type, "data": data}})
}

/// Tells a tool's result. One that is an error may neither be empty nor have images.
pub(super) fn result(result: &ToolResult, wire_id: &str, images: Images) -> Value {
    let images = if result.is_error && images == Images::Seen {
        Images::OfFailure
    } else {
        images
    };
    let parts = result.content.iter();
    let mut content: Vec<_> = parts.filter_map(|part| block(part, images)).collect();
    if result.is_error && content.is_empty() {
        content.push(text("the call failed and said nothing"));
    }
    let mut told = json!({"type": "tool_result", "tool_use_id": wire_id});
    if let Some(told) = told.as_object_mut() {
        if !content.is_empty() {
            told.insert("content".to_owned(), Value::Array(content));
        }
        if result.is_error {
            told.insert("is_error".to_owned(), Value::Bool(true));
        }
    }
    told
}

/// Stands in for a result that the history lacks: without it the vendor refuses the conversation.
pub(super) fn lost(wire_id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": wire_id,
        "content": [text("the result of this call was lost")], "is_error": true})
}
