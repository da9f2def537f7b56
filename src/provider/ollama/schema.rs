//! Tool schemas for Ollama, which reads a few words of JSON schema and drops the rest in silence.
//!
//! What it drops goes into the description, where the model at least reads it (providers.md 1.4,
//! 2026-11-20). References are resolved before, in `provider::schema`. Pure.

use serde_json::{Map, Value, json};

/// What the server keeps of a property.
const KEPT: [&str; 7] = [
    "type",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "anyOf",
];

/// What it drops although it restricts the input, in the order it is told.
const TOLD: [&str; 16] = [
    "format",
    "pattern",
    "default",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "not",
];

/// Rewrites a schema into words that Ollama keeps.
pub(super) fn reduced(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else {
        return schema.clone();
    };
    let mut kept = Map::new();
    for key in KEPT {
        if let Some(value) = schema.get(key) {
            kept.insert(key.to_owned(), inner(key, value));
        }
    }
    if let Some(value) = schema.get("const") {
        kept.entry("enum").or_insert_with(|| json!([value]));
    }
    if let Some(choices) = schema.get("oneOf") {
        kept.entry("anyOf")
            .or_insert_with(|| inner("anyOf", choices));
    }
    let told: Vec<String> = TOLD
        .iter()
        .filter_map(|key| Some(format!("{key}: {}", schema.get(*key)?)))
        .collect();
    if !told.is_empty() {
        let told = format!("({})", told.join(", "));
        let text = match kept.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description} {told}"),
            None => told,
        };
        kept.insert("description".to_owned(), Value::String(text));
    }
    Value::Object(kept)
}

/// Rewrites the schemas below a keyword.
fn inner(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("properties", Value::Object(properties)) => properties
            .iter()
            .map(|(name, schema)| (name.clone(), reduced(schema)))
            .collect(),
        ("items", schema) => reduced(schema),
        ("anyOf", Value::Array(choices)) => choices.iter().map(reduced).collect(),
        (_, other) => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ollama_drops_is_told_in_the_description() {
        let cases = [
            (
                json!({"type": "object", "additionalProperties": false, "title": "Input", "properties": {}}),
                json!({"type": "object", "properties": {}}),
            ),
            (
                json!({"type": "integer", "format": "uint32", "minimum": 0, "default": 5, "description": "How many."}),
                json!({"type": "integer",
                    "description": "How many. (format: \"uint32\", default: 5, minimum: 0)"}),
            ),
            (
                json!({"type": "string", "pattern": "^a"}),
                json!({"type": "string", "description": "(pattern: \"^a\")"}),
            ),
            (json!({"const": "a"}), json!({"enum": ["a"]})),
            (json!({"const": "a", "enum": ["b"]}), json!({"enum": ["b"]})),
            (
                json!({"oneOf": [{"const": 1}, {"type": "string", "minLength": 2}]}),
                json!({"anyOf": [{"enum": [1]}, {"type": "string", "description": "(minLength: 2)"}]}),
            ),
            (
                json!({"type": ["string", "null"]}),
                json!({"type": ["string", "null"]}),
            ),
            (json!(true), json!(true)),
        ];
        for (schema, expected) in cases {
            assert_eq!(reduced(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn properties_items_and_choices_are_rewritten_at_every_depth() {
        let schema = json!({"type": "object", "required": ["list"], "properties": {
            "list": {"type": "array", "maxItems": 3, "items": {"anyOf": [
                {"type": "object", "properties": {"deep": {"type": "number", "maximum": 1}}},
            ]}},
            "default": {"type": "string"},
        }});
        let expected = json!({"type": "object", "required": ["list"], "properties": {
            "list": {"type": "array", "description": "(maxItems: 3)", "items": {"anyOf": [
                {"type": "object", "properties": {"deep": {"type": "number", "description": "(maximum: 1)"}}},
            ]}},
            "default": {"type": "string"},
        }});
        assert_eq!(reduced(&schema), expected);
    }
}
