//! The contract as an AsyncAPI 3.0 document, made from the JSON schema and so from the Rust types. Pure.
//!
//! AsyncAPI describes an application by what it does itself: the daemon *receives* requests and
//! *sends* events. Keys of its components may not hold a colon, so `chat:send` is `chat.send` there;
//! a message's `name` is the `type` on the wire. Specification read on 2026-11-20:
//! <https://www.asyncapi.com/docs/reference/specification/v3.0.0>.

use serde_json::{Map, Value, json};

use super::SUBPROTOCOL;

/// Where payloads stand in the JSON schema, and where in this document.
const DEFINITIONS: (&str, &str) = ("#/$defs/", "#/components/schemas/");

/// The one channel.
const CHANNEL: &str = "#/channels/socket";

/// What answers a request that is wrong.
const ERROR: &str = "session:error";

/// Returns the document for the schema of [`super::schema::schema`].
pub fn asyncapi(schema: &Value) -> Value {
    let mut document = Document::default();
    document.direction(schema, "ClientFrame", Side::Client);
    document.direction(schema, "ServerFrame", Side::Server);
    let schemas = schema.get("$defs").and_then(Value::as_object).cloned();
    let mut schemas = Value::Object(schemas.unwrap_or_default());
    if let Some(schemas) = schemas.as_object_mut() {
        schemas.retain(|name, _| !matches!(name.as_str(), "ClientFrame" | "ServerFrame"));
    }
    moved(&mut schemas);
    let operations = document.operations();
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Outrigger protocol",
            "version": "1.0.0",
            "description": "Every text frame of the WebSocket, in either direction. The meaning is explained in docs/protocol.md.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "defaultContentType": "application/json",
        "servers": {
            "local": {
                "host": "127.0.0.1:4517",
                "protocol": "ws",
                "description": "The daemon's usual place; its ready line says where it really listens.",
                "security": [{ "$ref": "#/components/securitySchemes/bearer" }],
            },
        },
        "channels": {
            "socket": {
                "address": "/ws",
                "description": format!("Browsers, which cannot set headers, offer the subprotocols `{SUBPROTOCOL}, bearer.TOKEN`."),
                "servers": [{ "$ref": "#/servers/local" }],
                "messages": document.references,
                "bindings": { "ws": {
                    "method": "GET",
                    "query": {
                        "type": "object",
                        "properties": {
                            "session": { "type": "string", "description": "The session to go on with." },
                            "after": { "type": "integer", "minimum": 0, "description": "The highest `seq` that the client has." },
                            "token": { "type": "string", "description": "The token, only where the request has no `Origin`." },
                        },
                    },
                } },
            },
        },
        "operations": operations,
        "components": {
            "messages": document.messages,
            "schemas": schemas,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// The parts that are gathered frame by frame.
#[derive(Default)]
struct Document {
    messages: Map<String, Value>,
    references: Map<String, Value>,
    kinds: Vec<(String, Value, Side)>,
}

impl Document {
    fn direction(&mut self, schema: &Value, frames: &str, side: Side) {
        let frames = schema
            .pointer(&format!("/$defs/{frames}/oneOf"))
            .and_then(Value::as_array);
        for frame in frames.into_iter().flatten() {
            let Some(kind) = frame.get("title").and_then(Value::as_str) else {
                continue;
            };
            let mut payload = frame.clone();
            moved(&mut payload);
            if let Some(payload) = payload.as_object_mut() {
                payload.retain(|key, _| matches!(key.as_str(), "type" | "properties" | "required"));
            }
            let summary = frame.get("description").cloned().unwrap_or_default();
            let message = json!({ "name": kind, "summary": summary, "payload": payload });
            self.messages.insert(key(kind), message);
            self.references.insert(
                key(kind),
                json!({ "$ref": format!("#/components/messages/{}", key(kind)) }),
            );
            self.kinds.push((kind.to_owned(), summary, side));
        }
    }

    /// One operation for each request with its answers, and one for each event that answers nothing.
    fn operations(&self) -> Map<String, Value> {
        let is_answer = |kind: &str| {
            let asked = kind.strip_suffix("-result");
            asked.is_some_and(|asked| self.kinds.iter().any(|(it, ..)| it == asked))
        };
        let mut operations = Map::new();
        for (kind, summary, side) in &self.kinds {
            let mut operation = json!({
                "action": match side { Side::Client => "receive", Side::Server => "send" },
                "channel": { "$ref": CHANNEL },
                "summary": summary,
                "messages": [message(kind)],
            });
            match side {
                Side::Server if is_answer(kind) => continue,
                Side::Server => {}
                Side::Client => {
                    let answer = format!("{kind}-result");
                    let known = self.kinds.iter().any(|(it, ..)| *it == answer);
                    let answers = known.then_some(answer);
                    let answers = answers.iter().map(String::as_str).chain([ERROR]);
                    let reply = json!({
                        "channel": { "$ref": CHANNEL },
                        "messages": answers.map(message).collect::<Vec<_>>(),
                    });
                    if let Some(operation) = operation.as_object_mut() {
                        operation.insert("reply".to_owned(), reply);
                    }
                }
            }
            operations.insert(key(kind), operation);
        }
        operations
    }
}

fn message(kind: &str) -> Value {
    json!({ "$ref": format!("{CHANNEL}/messages/{}", key(kind)) })
}

fn key(kind: &str) -> String {
    kind.replace(':', ".")
}

/// Makes references point into this document.
fn moved(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(target) if name == "$ref" => {
                        *target = target.replacen(DEFINITIONS.0, DEFINITIONS.1, 1);
                    }
                    field => moved(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(moved),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
