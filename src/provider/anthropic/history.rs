//! x
use serde_json::{Map, Value};
/// Whether a block is thinking, readable or not.
pub(super) fn is_thinking(block: &Map<String, Value>) -> bool {
    matches!(
        block.get("type").and_then(Value::as_str),
        Some("thinking" | "redacted_thinking")
    )
}
