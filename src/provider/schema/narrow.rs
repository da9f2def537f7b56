//! A schema for readers that know a handful of keywords only; the rest is put into words.

use serde_json::{Map, Value, json};

use super::Dialect;
use super::flatten::{join, parts};
use super::node::{add_to_description, alternatives};

/// Keywords of a field that Ollama's typed structs keep (`docs/providers.md`, "Tool schemas").
const OLLAMA: [&str; 7] = [
    "type",
    "description",
    "enum",
    "items",
    "properties",
    "required",
    "anyOf",
];

/// Keywords of Google's schema objects beyond those of Ollama.
const GEMINI: [&str; 5] = ["nullable", "minimum", "maximum", "minItems", "maxItems"];

/// Brings a normal schema, whose inner ones are narrow already, into the form of `dialect`.
pub(super) fn narrow(schema: &mut Map<String, Value>, dialect: Dialect) {
    for part in parts(schema, "allOf") {
        if let Value::Object(part) = part {
            join(schema, part);
        }
    }
    rename(schema);
    if dialect == Dialect::Gemini {
        for_gemini(schema);
    }
    let kept = |keyword: &str| {
        OLLAMA.contains(&keyword) || (dialect == Dialect::Gemini && GEMINI.contains(&keyword))
    };
    let words: Vec<_> = schema
        .iter()
        .filter(|(keyword, _)| !kept(keyword))
        .filter_map(|(keyword, value)| in_words(keyword, value))
        .collect();
    schema.retain(|keyword, _| kept(keyword));
    if !words.is_empty() {
        add_to_description(schema, &format!("({})", words.join("; ")));
    }
}

/// Says the same in keywords that are known.
fn rename(schema: &mut Map<String, Value>) {
    if let Some(one_of) = schema.shift_remove("oneOf") {
        schema.entry("anyOf").or_insert(one_of);
    }
    if let Some(value) = schema.shift_remove("const") {
        schema.entry("enum").or_insert_with(|| json!([value]));
    }
    if let Some(Value::Array(of_each)) = schema.shift_remove("prefixItems") {
        schema.insert("items".to_owned(), alternatives(of_each));
    }
}

fn for_gemini(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(mut kinds)) = schema.get("type").cloned() {
        let nullable = kinds.iter().any(|kind| kind == "null");
        kinds.retain(|kind| kind != "null");
        schema.shift_remove("type");
        if nullable {
            schema.insert("nullable".to_owned(), Value::Bool(true));
        }
        if let [only] = kinds.as_slice() {
            schema.insert("type".to_owned(), only.clone());
        } else {
            let each = kinds.iter().map(|kind| match kind.as_str() {
                Some("array") => json!({"type": kind, "items": {"type": "string"}}),
                _ => json!({"type": kind}),
            });
            let each = Value::Array(each.collect());
            schema.entry("anyOf").or_insert(each);
        }
    }
    match schema.shift_remove("enum") {
        Some(Value::Array(values)) if values.iter().all(Value::is_string) => {
            schema.insert("enum".to_owned(), Value::Array(values));
            schema.insert("type".to_owned(), Value::from("string"));
        }
        Some(values) => add_to_description(schema, &format!("(one of {values})")),
        None => {}
    }
    if schema.get("items") == Some(&json!({})) {
        schema.insert("items".to_owned(), json!({"type": "string"}));
    }
}

/// Tells a constraint in words, or nothing where it guides no model.
fn in_words(keyword: &str, value: &Value) -> Option<String> {
    let name = match keyword {
        "default" | "format" | "pattern" | "minimum" | "maximum" | "examples" => keyword,
        "exclusiveMinimum" => "more than",
        "exclusiveMaximum" => "less than",
        "multipleOf" => "multiple of",
        "minLength" => "at least this many characters",
        "maxLength" => "at most this many characters",
        "minItems" => "at least this many items",
        "maxItems" => "at most this many items",
        "uniqueItems" if value == &Value::Bool(true) => return Some("items differ".to_owned()),
        _ => return None,
    };
    let value = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    Some(format!("{name}: {value}"))
}
