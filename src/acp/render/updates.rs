//! The pieces that updates are made of.

use serde_json::{Value, json};

use crate::message::{Part, ToolId};

pub(in crate::acp) fn put_content(update: &mut Value, content: &[Value]) {
    if let Some(fields) = update.as_object_mut().filter(|_| !content.is_empty()) {
        fields.insert("content".to_owned(), json!(content));
    }
}

pub(in crate::acp) fn terminal_content(id: &ToolId) -> Value {
    json!({"type": "terminal", "terminalId": id})
}

pub(in crate::acp) fn chunk(kind: &str, text: &str, message_id: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": message_id})
}

pub(in crate::acp) fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

pub(in crate::acp) fn picture(part: &Part) -> Option<Value> {
    let Part::Image { media_type, data } = part else {
        return None;
    };
    let image = json!({"type": "image", "mimeType": media_type, "data": data});
    Some(json!({"type": "content", "content": image}))
}

/// Returns output for a client's terminal, in which a line goes on where the last one ended.
pub(in crate::acp) fn terminal_output(id: &ToolId, key: &str, output: &str) -> Value {
    let data = output.replace("\r\n", "\n").replace('\n', "\r\n");
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id,
        "_meta": {key: {"terminal_id": id, "data": data}}})
}

/// Returns the end of a call of which nothing more is shown.
pub(super) fn ended(id: &str, is_yes: bool) -> Value {
    let status = if is_yes { "completed" } else { "failed" };
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status})
}
