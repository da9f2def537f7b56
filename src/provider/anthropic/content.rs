//! Single blocks of a request's content, none of which the API refuses.

use serde_json::{Value, json};

use crate::message::{Part, ToolResult};
use crate::provider::history::without_nulls;

/// Image types the API takes (vendor's vision page, 2026-11-20).
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Makes a block of a part; nothing of blank text, which the API refuses everywhere. `unseen` says why
/// images are not shown, where they are not.
pub(super) fn block(part: &Part, unseen: Option<&str>) -> Option<Value> {
    let (media_type, data) = match part {
        Part::Text { text: blank } if blank.trim().is_empty() => return None,
        Part::Text { text: words } => return Some(text(words)),
        Part::Image { media_type, data } => (media_type.as_str(), data),
    };
    if let Some(why) = unseen {
        return Some(text(&format!("[an image was here; {why}]")));
    }
    let media_type = match media_type {
        "image/jpg" => "image/jpeg",
        other => other,
    };
    if !IMAGE_TYPES.contains(&media_type) {
        let kinds = IMAGE_TYPES.join(", ");
        return Some(text(&format!(
            "[an image of type {media_type} was here; only {kinds} can be seen]"
        )));
    }
    let source = json!({"type": "base64", "media_type": media_type, "data": data});
    Some(json!({"type": "image", "source": source}))
}

/// Makes the block of a tool's result. One that is an error may neither be empty nor have images.
pub(super) fn result(result: &ToolResult, wire_id: &str, unseen: Option<&str>) -> Value {
    let unseen = unseen.or(result.is_error.then_some("failed calls show none"));
    let parts = result.content.iter();
    let mut content: Vec<_> = parts.filter_map(|part| block(part, unseen)).collect();
    if result.is_error && content.is_empty() {
        content.push(text("the call failed and said nothing"));
    }
    without_nulls(json!({
        "type": "tool_result",
        "tool_use_id": wire_id,
        "content": (!content.is_empty()).then_some(content),
        "is_error": result.is_error.then_some(true),
    }))
}

/// Stands in for a result that the history lacks: without it the vendor refuses the conversation.
pub(super) fn lost(wire_id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": wire_id,
        "content": [text("the result of this call was lost")], "is_error": true})
}
