//! What a server's form says of fields that an accepting answer leaves out. Pure.
//!
//! `default` of each sort of field: SEP-1034, which is part of MCP's elicitation since 2025-11-25
//! (modelcontextprotocol.io/specification/2025-11-25/client/elicitation, 2026-11-22).

use serde_json::{Map, Value};

use super::check;

/// Adds the default of each field that the answer leaves out.
///
/// What the user gave stays as it is, `null` and an empty text too. A default that its own field does not
/// allow is left out, for nobody could mend it.
pub(super) fn filled(
    schema: &Map<String, Value>,
    mut content: Map<String, Value>,
) -> Map<String, Value> {
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let field = field.as_object();
        let default = field.and_then(|field| Some((field, field.get("default")?)));
        if let Some((field, default)) = default
            && !content.contains_key(name)
            && check::one(field, default).is_ok()
        {
            content.insert(name.clone(), default.clone());
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_left_out_have_their_default() {
        // The form of the protocol's own test of this.
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "off"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["a"]},
            "note": {"type": "string"},
            "broken": {"type": "integer", "minimum": 5, "default": 1},
        }});
        let all = json!({"name": "John Doe", "age": 30, "score": 95.5, "status": "active",
            "verified": true, "tags": ["a"]});
        let mut some = all.clone();
        some["name"] = json!("");
        some["verified"] = json!(false);
        let cases = [
            (json!({}), all),
            (json!({"name": "", "verified": false}), some),
        ];
        let schema = schema.as_object().unwrap();
        for (given, expected) in cases {
            let given = given.as_object().unwrap().clone();
            assert_eq!(Value::Object(filled(schema, given)), expected);
        }
        let none = json!({"type": "object"});
        assert!(filled(none.as_object().unwrap(), Map::new()).is_empty());
    }
}
