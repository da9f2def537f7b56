//! References that lead nowhere.

use serde_json::Value;

use super::resolve;

/// Most references followed from one to the next.
const MAX_CHAIN: usize = 16;

/// Turns references that do not end at a schema of the same document into "anything".
///
/// Depth is bounded by the walk that made `schema`.
pub(super) fn drop_dangling(schema: &mut Value) {
    let root = schema.clone();
    clear(schema, &root);
}

fn ends_somewhere(root: &Value, reference: &str) -> bool {
    let mut reference = reference;
    for _ in 0..MAX_CHAIN {
        let Some(target) = resolve(root, reference) else {
            return false;
        };
        match target.get("$ref").and_then(Value::as_str) {
            Some(next) => reference = next,
            None => return true,
        }
    }
    false
}

fn clear(value: &mut Value, root: &Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref")
                && !ends_somewhere(root, reference)
            {
                fields.shift_remove("$ref");
            }
            fields.values_mut().for_each(|value| clear(value, root));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| clear(value, root)),
        _ => {}
    }
}
