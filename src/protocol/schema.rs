//! The JSON schema of the contract: one document whose root accepts every frame of either direction.
//!
//! Generated from [`Command`] and [`Event`]. It is a little wider than what the daemon reads: a field's camelCase
//! spelling is the one in the schema, and the other one is accepted too, there unchecked where it is optional.

use schemars::JsonSchema;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

use super::envelope::{RequestId, WITHOUT_FIELDS};
use super::{Command, Event};

/// Returns the schema: JSON Schema 2020-12, a definition for each payload.
pub fn schema() -> Value {
    let (client, mut definitions) = frames::<Command>(SchemaSettings::draft2020_12(), client_frame);
    // What the daemon writes leaves out what has no value; only clients may say `null`.
    let writing = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(never_null));
    let (server, payloads) = frames::<Event>(writing, server_frame);
    for payload in definitions.values_mut() {
        either_spelling(payload);
    }
    // What both directions have is described as clients may write it, which allows more.
    for (name, payload) in payloads {
        definitions.entry(name).or_insert(payload);
    }
    definitions.insert("RequestId".to_owned(), request_id());
    definitions.insert("ClientFrame".to_owned(), client);
    definitions.insert("ServerFrame".to_owned(), server);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Outrigger protocol, version 1",
        "description": "Every text frame of the WebSocket, in either direction.",
        "oneOf": [
            { "$ref": "#/$defs/ClientFrame" },
            { "$ref": "#/$defs/ServerFrame" },
        ],
        "$defs": definitions,
    })
}

/// Returns the schema of one direction's frames, and the definitions of their payloads.
fn frames<T: JsonSchema>(
    settings: SchemaSettings,
    fields: fn(&str, &Value) -> Value,
) -> (Value, Map<String, Value>) {
    let mut generator = settings.into_generator();
    generator.subschema_for::<T>();
    let mut definitions = generator.take_definitions(true);
    let tagged = definitions.remove(T::schema_name().as_ref());
    // As serde's adjacent tagging describes them.
    let variants = tagged.iter().filter_map(|it| it.get("oneOf")?.as_array());
    let frames = variants.flatten().filter_map(|variant| {
        let kind = variant.pointer("/properties/type/const")?.as_str()?;
        let payload = variant.pointer("/properties/payload")?;
        let description = variant.get("description");
        let mut frame = json!({ "title": kind, "description": description, "type": "object" });
        let fields = fields(kind, payload);
        frame.as_object_mut()?.extend(fields.as_object()?.clone());
        Some(frame)
    });
    let frames: Vec<Value> = frames.collect();
    (json!({ "oneOf": frames }), definitions)
}

/// A request; without a `payload` its other fields are the payload.
fn client_frame(kind: &str, payload: &Value) -> Value {
    let ignored = json!({ "description": "Anything; nothing of it is read." });
    let payload = match WITHOUT_FIELDS.contains(&kind) {
        true => &ignored,
        false => payload,
    };
    json!({
        "properties": {
            "type": { "const": kind },
            "id": { "$ref": "#/$defs/RequestId" },
            "payload": payload,
        },
        "required": ["type"],
        "if": { "required": ["payload"] },
        "else": payload,
    })
}

/// An event or an answer. The `session:ready` of a resumed socket has no number, nor whatever a socket with a role alone
/// is told: that may be any event.
fn server_frame(kind: &str, payload: &Value) -> Value {
    json!({
        "properties": {
            "type": { "const": kind },
            "seq": { "type": "integer", "minimum": 1 },
            "replyTo": { "$ref": "#/$defs/RequestId" },
            "taskId": { "description": "The task that it is of: the id of the call that began it.", "type": "string" },
            "timestamp": { "type": "string", "format": "date-time" },
            "payload": payload,
        },
        "required": ["type", "timestamp", "payload"],
    })
}

/// Lets a client spell the fields that it must give in snake_case too.
fn either_spelling(payload: &mut Value) {
    let names = payload.get("required").and_then(Value::as_array);
    let names: Vec<String> = names
        .into_iter()
        .flatten()
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect();
    let (two, one): (Vec<_>, Vec<_>) = names
        .into_iter()
        .partition(|name| name.contains(|c: char| c.is_ascii_uppercase()));
    let choices = two.iter().map(|name| {
        let field = payload.pointer(&format!("/properties/{name}"));
        let snake = snake_case(name);
        json!({ "anyOf": [
            { "required": [name] },
            { "properties": { &snake: field }, "required": [&snake] },
        ] })
    });
    let choices: Vec<Value> = choices.collect();
    if let (false, Some(payload)) = (choices.is_empty(), payload.as_object_mut()) {
        payload.insert("required".to_owned(), json!(one));
        payload.insert("allOf".to_owned(), Value::Array(choices));
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

fn request_id() -> Value {
    json!({
        "description": "A client's own id of a request, given back in its answer.",
        "type": ["string", "number"],
        "maxLength": RequestId::MAX_CHARS,
    })
}

/// Takes `null` out of what a value may be.
fn never_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    }
}

#[cfg(test)]
mod tests;
