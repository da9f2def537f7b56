//! A schema for readers that know a handful of keywords only; the rest is told in words.

use serde_json::{Map, Value, json};

use super::Wire;
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

/// Brings a normal schema, whose inner ones are narrow already, into the form of `wire`.
pub(super) fn narrow(schema: &mut Map<String, Value>, wire: Wire) {
    merge_parts(schema);
    rename(schema);
    if wire == Wire::Gemini {
        for_gemini(schema);
    }
    let kept = |keyword: &str| {
        OLLAMA.contains(&keyword) || (wire == Wire::Gemini && GEMINI.contains(&keyword))
    };
    let told: Vec<_> = schema
        .iter()
        .filter(|(keyword, _)| !kept(keyword))
        .filter_map(|(keyword, value)| in_words(keyword, value))
        .collect();
    schema.retain(|keyword, _| kept(keyword));
    if !told.is_empty() {
        add_to_description(schema, &format!("({})", told.join("; ")));
    }
}

/// Puts the parts of `allOf` into the schema itself; what it says itself goes first.
fn merge_parts(schema: &mut Map<String, Value>) {
    let Some(Value::Array(parts)) = schema.shift_remove("allOf") else {
        return;
    };
    for part in parts {
        let Value::Object(part) = part else { continue };
        for (keyword, value) in part {
            match (schema.get_mut(&keyword), value) {
                (None, value) => {
                    schema.insert(keyword, value);
                }
                (Some(Value::Object(own)), Value::Object(more)) if keyword == "properties" => {
                    for (name, field) in more {
                        own.entry(name).or_insert(field);
                    }
                }
                (Some(Value::Array(own)), Value::Array(more)) if keyword == "required" => {
                    let new: Vec<_> = more.into_iter().filter(|it| !own.contains(it)).collect();
                    own.extend(new);
                }
                _ => {}
            }
        }
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
            let each = kinds.iter().map(|kind| {
                if kind == "array" {
                    json!({"type": kind, "items": {"type": "string"}})
                } else {
                    json!({"type": kind})
                }
            });
            let each = Value::Array(each.collect());
            schema.entry("anyOf").or_insert(each);
        }
    }
    let all_text = |values: &Vec<Value>| values.iter().all(Value::is_string);
    match schema.get("enum") {
        Some(Value::Array(values)) if all_text(values) => {
            schema.insert("type".to_owned(), Value::from("string"));
        }
        Some(_) => {
            if let Some(values) = schema.shift_remove("enum") {
                add_to_description(schema, &format!("(one of {values})"));
            }
        }
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
