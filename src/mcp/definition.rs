//! What a server says of its tools, made into what the model reads and what an approval stands for. Pure.

use data_encoding::HEXLOWER;
use rmcp::model::Tool;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{names, wire};
use crate::message::{DangerLevel, ToolCategory, ToolSpec};
use crate::telemetry::Redactor;
use crate::terminal_text;

/// The longest description passed on, in characters; what is longer is cut.
const MAX_DESCRIPTION: usize = 4_096;

/// The largest schema passed on, in bytes: it is sent with every turn.
const MAX_SCHEMA: usize = 64 * 1024;

/// Deepest nesting of a schema passed on: no provider takes more, and what walks it need not be protected.
const MAX_SCHEMA_DEPTH: usize = 64;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition {
    pub(super) spec: ToolSpec,
    /// Its name as the server knows it.
    pub(super) remote: String,
    /// Of the server's start and the tool's own definition: what an approval is bound to.
    pub(super) digest: String,
}

/// Makes a definition of what a server sent.
///
/// `identity` says how the server is started or reached. What the server's annotations say of danger
/// counts for nothing; `safe` is the operator's word.
pub(super) fn define(
    server: &str,
    identity: &str,
    tool: &Tool,
    safe: &[String],
    redactor: &Redactor,
) -> Result<Definition, String> {
    if redactor.redact_counted(&tool.name).1 > 0 {
        return Err("its name has a secret in it".to_owned());
    }
    if let Some(why) = wire::unfit(&tool.input_schema) {
        return Err(super::connection::bounded(why));
    }
    let mut schema = schema(&tool.input_schema);
    if is_deeper(&schema, MAX_SCHEMA_DEPTH) {
        return Err(format!(
            "its schema is nested more than {MAX_SCHEMA_DEPTH} deep"
        ));
    }
    // A server may repeat what it was started with.
    redactor.redact_value(&mut schema);
    let written = schema.to_string();
    if written.len() > MAX_SCHEMA {
        return Err(format!(
            "its schema has {} bytes, more than {MAX_SCHEMA}",
            written.len()
        ));
    }
    let description = redactor.redact(tool.description.as_deref().unwrap_or_default());
    let description = description.as_ref();
    // In whatever order its keys came, it is the same.
    let mut sorted = schema.clone();
    sorted.sort_all_objects();
    let mut digest = Sha256::new();
    for piece in [identity, &tool.name, description, &sorted.to_string()] {
        digest.update((piece.len() as u64).to_le_bytes());
        digest.update(piece.as_bytes());
    }
    let is_safe = safe.iter().any(|name| *name == tool.name);
    Ok(Definition {
        spec: ToolSpec {
            name: names::tool_name(server, &tool.name),
            description: described(server, description),
            input_schema: schema.into(),
            category: ToolCategory::Mcp,
            danger_level: if is_safe {
                DangerLevel::Safe
            } else {
                DangerLevel::Dangerous
            },
            origin: format!("mcp:{server}"),
        },
        remote: tool.name.to_string(),
        digest: HEXLOWER.encode(&digest.finalize()),
    })
}

/// The server's words, said to be its own.
fn described(server: &str, description: &str) -> String {
    let mut text = format!("(From the MCP server {server:?}.) ");
    text.extend(
        terminal_text::shown(description)
            .chars()
            .take(MAX_DESCRIPTION),
    );
    text
}

/// The schema of an object, which every provider demands; some servers leave that out.
fn schema(sent: &Map<String, Value>) -> Value {
    let mut schema = sent.clone();
    schema
        .entry("type")
        .or_insert_with(|| Value::from("object"));
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    Value::Object(schema)
}

fn is_deeper(value: &Value, most: usize) -> bool {
    let inner = |value: &Value| most == 0 || is_deeper(value, most - 1);
    match value {
        Value::Object(object) => object.values().any(inner),
        Value::Array(items) => items.iter().any(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(value: Value) -> Tool {
        serde_json::from_value(value).unwrap()
    }

    fn digest(identity: &str, value: Value) -> String {
        define("s", identity, &tool(value), &[], &Redactor::default())
            .unwrap()
            .digest
    }

    #[test]
    fn only_the_operator_says_what_is_safe() {
        let says_so = tool(json!({
            "name": "wipe", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true, "destructiveHint": false},
        }));
        let dangerous = define("s", "", &says_so, &[], &Redactor::default()).unwrap();
        assert_eq!(dangerous.spec.danger_level, DangerLevel::Dangerous);
        let safe = define(
            "s",
            "",
            &says_so,
            &["wipe".to_owned()],
            &Redactor::default(),
        )
        .unwrap();
        assert_eq!(safe.spec.danger_level, DangerLevel::Safe);
        assert_eq!(safe.spec.origin, "mcp:s");
    }

    #[test]
    fn an_approval_is_bound_to_all_that_was_seen_and_to_no_order() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}});
        let one = json!({"name": "t", "description": "d", "inputSchema": schema});
        let same = json!({"name": "t", "description": "d", "inputSchema":
            {"properties": {"b": {}, "a": {"type": "string"}}, "type": "object"}});
        assert_eq!(digest("cmd", one.clone()), digest("cmd", same));
        for changed in [
            json!({"name": "t", "description": "e", "inputSchema": schema}),
            json!({"name": "u", "description": "d", "inputSchema": schema}),
            json!({"name": "t", "description": "d", "inputSchema": {"type": "object"}}),
        ] {
            assert_ne!(digest("cmd", one.clone()), digest("cmd", changed));
        }
        assert_ne!(digest("cmd", one.clone()), digest("other", one));
    }

    #[test]
    fn what_cannot_be_offered_is_said() {
        let huge = json!({"name": "t", "inputSchema": {"description": "x".repeat(MAX_SCHEMA)}});
        let error = define("s", "", &tool(huge), &[], &Redactor::default()).unwrap_err();
        assert!(error.contains("more than 65536"), "{error}");
        let deep = (0..80).fold(json!({}), |inner, _| json!({"p": inner}));
        let error = define(
            "s",
            "",
            &tool(json!({"name": "t", "inputSchema": deep})),
            &[],
            &Redactor::default(),
        );
        assert!(error.unwrap_err().contains("more than 64 deep"));
        let bare = define(
            "s",
            "",
            &tool(json!({"name": "t", "inputSchema": {}})),
            &[],
            &Redactor::default(),
        )
        .unwrap();
        assert_eq!(
            *bare.spec.input_schema,
            json!({"type": "object", "properties": {}})
        );
        let loud = json!({"name": "t", "description": format!("\u{1b}[31m{}", "y".repeat(9_000)),
            "inputSchema": {}});
        let description = define("s", "", &tool(loud), &[], &Redactor::default())
            .unwrap()
            .spec
            .description;
        assert!(description.starts_with("(From the MCP server \"s\".) yyy"));
        assert!(description.len() < MAX_DESCRIPTION + 50);
    }
    #[test]
    fn what_the_server_was_started_with_is_not_said_to_the_model() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let talks = json!({"name": "t", "description": "Use\thunter2-hunter2 as key.",
            "inputSchema": {"properties": {"key": {"default": "hunter2-hunter2"}}}});
        let spec = define("s", "", &tool(talks), &[], &redactor).unwrap().spec;
        assert!(
            spec.description.ends_with("Use\t[redacted] as key."),
            "{}",
            spec.description
        );
        assert_eq!(
            spec.input_schema["properties"]["key"]["default"],
            "[redacted]"
        );
        let named = json!({"name": "hunter2-hunter2", "inputSchema": {}});
        assert!(define("s", "", &tool(named), &[], &redactor).is_err());
    }
}
