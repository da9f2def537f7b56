//! Single blocks of a request's content, none of which the API refuses.

use serde_json::{Value, json};

use crate::message::{Document, PDF, Part, ToolResult};
use crate::provider::request::{self, WriteDocument, without_nulls};

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(media_type: &str, data: &str) -> Value {
    let source = json!({"type": "base64", "media_type": media_type, "data": data});
    json!({"type": "image", "source": source})
}

fn document(document: &Document) -> Option<Value> {
    let source = match document.pdf() {
        Some(data) => json!({"type": "base64", "media_type": PDF, "data": data}),
        // Any text is plain text here.
        None if !document.text().trim().is_empty() => {
            json!({"type": "text", "media_type": "text/plain", "data": document.text()})
        }
        None => return None,
    };
    Some(json!({"type": "document", "source": source, "title": document.name()}))
}

/// Makes the blocks of parts; `omitted` stands for each image, where they are not shown, and documents go as text where
/// they are not taken.
pub(super) fn blocks(parts: &[Part], omitted: Option<&str>, takes_documents: bool) -> Vec<Value> {
    let document = takes_documents.then_some(document as WriteDocument);
    request::parts(parts, omitted, text, image, document)
}

/// Makes the block of a tool's result. One that is an error may neither be empty nor have images.
pub(super) fn result(result: &ToolResult, wire_id: &str, omitted: Option<&str>) -> Value {
    let failed = "[an image was here; failed calls show none]";
    let omitted = omitted.or(result.is_error.then_some(failed));
    let mut content = blocks(&result.content, omitted, false);
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
