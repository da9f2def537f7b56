//! The contract as TypeScript types, made from the JSON schema and so from the Rust types. Pure.
//!
//! A named payload becomes an interface or a type, its doc comments become JSDoc, and the frames of
//! each direction a union that is told apart by `type`. What is checked in for clients is
//! `clients/typescript/src/protocol.ts`; a test keeps it current. It knows the part of JSON Schema
//! that schemars writes for these types and makes `unknown` of anything else.

use serde_json::{Map, Value};

use super::{PROTOCOL_VERSION, SUBPROTOCOL};

/// The definitions of frames, which are written as maps from their type to their payload.
const FRAMES: [(&str, &str, &str); 2] = [
    (
        "ClientFrame",
        "Commands",
        "What a client may say: the payload of each type of request.",
    ),
    (
        "ServerFrame",
        "Events",
        "What a client is told: the payload of each type of event or answer.",
    ),
];

const HEAD: &str = "\
// Made by `outrigger schema` from the daemon's own types; do not edit.
//
// A client ignores types, fields and values that it does not know: the daemon may add all three
// within version 1. Only `session:ready` of a resumed socket has no `seq`.
";

const TAIL: &str = r#"
/** A request of one type, or of any. */
export type ClientFrame<K extends keyof Commands = keyof Commands> = {
  [T in K]: { type: T; id?: RequestId; payload: Commands[T] };
}[K];

/** An event or an answer of one type, or of any: told apart by `type`. */
export type ServerFrame<K extends keyof Events = keyof Events> = {
  [T in K]: {
    type: T;
    /** Counts from 1 in each session, without gaps. */
    seq?: number;
    /** The `id` of the request that this answers. */
    replyTo?: RequestId;
    /** RFC 3339, UTC, milliseconds. */
    timestamp: string;
    payload: Events[T];
  };
}[K];
"#;

/// Returns the TypeScript module for the schema of [`super::schema::schema`].
pub fn typescript(schema: &Value) -> String {
    let mut out = HEAD.to_owned();
    out.push_str(&format!(
        "\n/** The version of the contract. */\nexport const PROTOCOL_VERSION = {PROTOCOL_VERSION};\n\
         \n/** The WebSocket subprotocol. */\nexport const SUBPROTOCOL = \"{SUBPROTOCOL}\";\n"
    ));
    let empty = Map::new();
    let definitions = schema
        .get("$defs")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    for (name, map, description) in FRAMES {
        if let Some(frames) = definitions.get(name) {
            out.push_str(&frame_map(map, description, frames));
        }
    }
    out.push_str(TAIL);
    for (name, definition) in definitions {
        if FRAMES.iter().all(|(frames, ..)| frames != name) {
            out.push_str(&declaration(name, definition));
        }
    }
    out
}

/// The frames of a direction as a map from type to payload.
fn frame_map(name: &str, description: &str, frames: &Value) -> String {
    let mut out = format!("\n/** {description} */\nexport interface {name} {{\n");
    for frame in choices(frames) {
        let (Some(kind), Some(payload)) = (
            frame.get("title").and_then(Value::as_str),
            frame.pointer("/properties/payload"),
        ) else {
            continue;
        };
        out.push_str(&comment(frame, "  "));
        out.push_str(&format!("  {}: {};\n", quoted(kind), expression(payload)));
    }
    out.push_str("}\n");
    out
}

/// A named type.
fn declaration(name: &str, definition: &Value) -> String {
    let comment_of_type = comment(definition, "");
    if let Some(properties) = definition.get("properties").and_then(Value::as_object) {
        let mut out = format!("\n{comment_of_type}export interface {name} {{\n");
        out.push_str(&fields(properties, definition, "  "));
        out.push_str("}\n");
        return out;
    }
    let variants = choices(definition);
    let described = variants
        .iter()
        .any(|variant| variant.get("description").is_some());
    if variants.is_empty() || !described {
        let expression = expression(definition);
        return format!("\n{comment_of_type}export type {name} = {expression};\n");
    }
    let mut out = format!("\n{comment_of_type}export type {name} =\n");
    for variant in variants {
        out.push_str(&comment(variant, "  "));
        out.push_str(&format!("  | {}\n", expression(variant)));
    }
    // The last variant ends the statement.
    out.truncate(out.trim_end().len());
    out.push_str(";\n");
    out
}

fn fields(properties: &Map<String, Value>, object: &Value, margin: &str) -> String {
    let names = |object: &'_ Value| -> Vec<String> {
        let names = object.get("required").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    };
    let mut required = names(object);
    // Of a field with two spellings the first is the one that is written.
    for choice in list(object, "allOf") {
        required.extend(
            list(choice, "anyOf")
                .first()
                .map(|it| names(it))
                .unwrap_or_default(),
        );
    }
    let mut out = String::new();
    for (name, schema) in properties {
        let mark = match required.contains(name) {
            true => "",
            false => "?",
        };
        out.push_str(&comment(schema, margin));
        out.push_str(&format!(
            "{margin}{}{mark}: {};\n",
            key(name),
            expression(schema)
        ));
    }
    out
}

/// A schema as a type expression.
fn expression(schema: &Value) -> String {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return name.rsplit('/').next().unwrap_or(name).to_owned();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return union(values.iter().map(Value::to_string));
    }
    let variants = choices(schema);
    if !variants.is_empty() {
        return union(variants.iter().map(|variant| expression(variant)));
    }
    match schema.get("type") {
        Some(Value::String(name)) => of_type(name, schema),
        Some(Value::Array(names)) => union(
            names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| of_type(name, schema)),
        ),
        _ => "unknown".to_owned(),
    }
}

fn of_type(name: &str, schema: &Value) -> String {
    match name {
        "string" | "boolean" | "null" => name.to_owned(),
        "number" | "integer" => "number".to_owned(),
        "array" => match schema.get("items") {
            Some(items) => format!("{}[]", grouped(&expression(items))),
            None => "unknown[]".to_owned(),
        },
        "object" => object(schema),
        _ => "unknown".to_owned(),
    }
}

/// An object without a name: its fields in one line, or a record.
fn object(schema: &Value) -> String {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let fields = fields(properties, schema, "");
        let one_line: Vec<&str> = fields
            .lines()
            .filter(|line| !line.starts_with("/**"))
            .collect();
        return format!("{{ {} }}", one_line.join(" "));
    }
    match schema.get("additionalProperties") {
        Some(values) if values.is_object() => format!("Record<string, {}>", expression(values)),
        _ => "Record<string, unknown>".to_owned(),
    }
}

/// The alternatives of a schema; none where it has none.
fn choices(schema: &Value) -> Vec<&Value> {
    let mut words = ["oneOf", "anyOf"].into_iter();
    let found = words.find(|word| schema.get(word).is_some());
    found.map(|word| list(schema, word)).unwrap_or_default()
}

/// The items of a list in a schema; none where it has none.
fn list<'a>(schema: &'a Value, word: &str) -> Vec<&'a Value> {
    let items = schema.get(word).and_then(Value::as_array);
    items.into_iter().flatten().collect()
}

fn union(types: impl Iterator<Item = String>) -> String {
    let mut different: Vec<String> = Vec::new();
    for name in types {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    different.join(" | ")
}

/// Puts an expression in parentheses where it would bind less than what follows it.
fn grouped(expression: &str) -> String {
    match expression.contains(" | ") && !expression.starts_with('{') {
        true => format!("({expression})"),
        false => expression.to_owned(),
    }
}

/// The doc comment of a schema, on one line or several.
fn comment(schema: &Value, margin: &str) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    // What would end the comment is written so that it does not.
    let text = text.unwrap_or_default().trim().replace("*/", "*\\/");
    match text.lines().count() {
        0 => String::new(),
        1 => format!("{margin}/** {text} */\n"),
        _ => {
            let mut out = format!("{margin}/**\n");
            for line in text.lines() {
                out.push_str(format!("{margin} * {line}").trim_end());
                out.push('\n');
            }
            out.push_str(&format!("{margin} */\n"));
            out
        }
    }
}

fn key(name: &str) -> String {
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    match plain && !name.is_empty() {
        true => name.to_owned(),
        false => quoted(name),
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
