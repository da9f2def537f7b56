//! References that lead nowhere.

use std::collections::HashMap;

use serde_json::Value;

use super::resolve;

/// Most references followed from one to the next.
const MAX_CHAIN: usize = 16;

/// Turns references that do not end at a schema of the same document into "anything".
///
/// Depth is bounded by the walk that made `schema`.
pub(super) fn drop_dangling(schema: &mut Value) {
    let mut known = HashMap::new();
    collect(schema, &mut known);
    for (reference, ends) in &mut known {
        *ends = ends_somewhere(schema, reference);
    }
    if known.values().any(|ends| !ends) {
        clear(schema, &known);
    }
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

fn collect(value: &Value, known: &mut HashMap<String, bool>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                known.insert(reference.clone(), false);
            }
            fields.values().for_each(|value| collect(value, known));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, known)),
        _ => {}
    }
}

fn clear(value: &mut Value, known: &HashMap<String, bool>) {
    match value {
        Value::Object(fields) => {
            let dangles = matches!(fields.get("$ref"), Some(Value::String(reference))
                if known.get(reference) == Some(&false));
            if dangles {
                fields.shift_remove("$ref");
            }
            fields.values_mut().for_each(|value| clear(value, known));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| clear(value, known)),
        _ => {}
    }
}
