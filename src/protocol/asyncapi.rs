//! The contract as an AsyncAPI 3.0 document, made from the JSON schema and so from the Rust types. Pure.
//!
//! AsyncAPI describes an application by what it does itself: the daemon *receives* requests and
//! *sends* events. Keys of its components may not hold a colon, so `chat:send` is `chat.send` there;
//! a message's `name` is the `type` on the wire. Specification read on 2026-11-20:
//! <https://www.asyncapi.com/docs/reference/specification/v3.0.0>.

use serde_json::{Map, Value, json};

use super::SUBPROTOCOL;

/// References to payloads in the JSON schema, and in this document.
const REFERENCES: (&str, &str) = (
    r##""$ref":"#/$defs/"##,
    r##""$ref":"#/components/schemas/"##,
);

/// The one channel.
const CHANNEL: &str = "#/channels/socket";

/// What answers a request that is wrong.
const ERROR: &str = "session:error";

/// Returns the document for the schema of [`super::schema::schema`].
pub fn asyncapi(schema: &Value) -> Value {
    let schemas = schema.get("$defs").map(Value::to_string);
    let schemas = schemas
        .unwrap_or_default()
        .replace(REFERENCES.0, REFERENCES.1);
    let mut schemas: Value = serde_json::from_str(&schemas).unwrap_or_default();
    let mut take = |direction: &str| -> Vec<Frame> {
        let frames = schemas
            .as_object_mut()
            .and_then(|it| it.shift_remove(direction));
        let frames = frames.as_ref().and_then(|it| it.get("oneOf")?.as_array());
        frames.into_iter().flatten().filter_map(frame).collect()
    };
    let (requests, events) = (take("ClientFrame"), take("ServerFrame"));
    let all = || requests.iter().chain(&events);
    let references: Map<String, Value> = all()
        .map(|(kind, _)| {
            let target = format!("#/components/messages/{}", key(kind));
            (key(kind), json!({ "$ref": target }))
        })
        .collect();
    let operations = operations(&requests, &events);
    let messages: Map<String, Value> = all()
        .map(|(kind, message)| (key(kind), message.clone()))
        .collect();
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
                "messages": references,
                "bindings": { "ws": {
                    "method": "GET",
                    "query": {
                        "type": "object",
                        "properties": {
                            "session": { "type": "string", "description": "The session to go on with." },
                            "after": { "type": "integer", "minimum": 0, "description": "The highest `seq` that the client has." },
                            "role": { "enum": ["driver", "approver", "observer"], "description": "What the socket is for, beside others on its session." },
                            "takeOver": { "const": "1", "description": "Drives also where another socket does." },
                            "client": { "type": "string", "minLength": 16, "maxLength": 128, "description": "A secret name of the client: its new socket takes the place of its old one." },
                            "token": { "type": "string", "description": "The token, only where the request has no `Origin`." },
                        },
                    },
                } },
            },
        },
        "operations": operations,
        "components": {
            "messages": messages,
            "schemas": schemas,
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

/// The type of a frame, and its message.
type Frame = (String, Value);

fn frame(schema: &Value) -> Option<Frame> {
    let kind = schema.get("title")?.as_str()?;
    let mut payload = schema.as_object()?.clone();
    payload.retain(|key, _| matches!(key.as_str(), "type" | "properties" | "required"));
    let summary = schema.get("description");
    let message = json!({ "name": kind, "summary": summary, "payload": payload });
    Some((kind.to_owned(), message))
}

/// Makes one operation of each request with its answers, and one of each event that answers nothing.
fn operations(requests: &[Frame], events: &[Frame]) -> Map<String, Value> {
    let operation = |action, (kind, frame): &Frame| {
        json!({
            "action": action,
            "channel": { "$ref": CHANNEL },
            "summary": frame.get("summary"),
            "messages": [message(kind)],
        })
    };
    let mut answers = Vec::new();
    let mut operations = Map::new();
    for request in requests {
        let answer = format!("{}-result", request.0);
        let answer = events
            .iter()
            .map(|(kind, _)| kind)
            .find(|kind| **kind == answer);
        answers.extend(answer);
        let replies = answer.map(String::as_str).into_iter().chain([ERROR]);
        let mut receive = operation("receive", request);
        let reply = json!({
            "channel": { "$ref": CHANNEL },
            "messages": replies.map(message).collect::<Vec<_>>(),
        });
        if let Some(receive) = receive.as_object_mut() {
            receive.insert("reply".to_owned(), reply);
        }
        operations.insert(key(&request.0), receive);
    }
    for event in events.iter().filter(|(kind, _)| !answers.contains(&kind)) {
        operations.insert(key(&event.0), operation("send", event));
    }
    operations
}

fn message(kind: &str) -> Value {
    json!({ "$ref": format!("{CHANNEL}/messages/{}", key(kind)) })
}

fn key(kind: &str) -> String {
    kind.replace(':', ".")
}

#[cfg(test)]
mod tests;
