//! Tools that were written before: the same ones go with each request, and to bring their schemas into the form of the wire, and
//! them into text, took more time than all else that a request is made from.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Dialect, SchemaProblem, normalise};
use crate::message::ToolSpec;
use crate::provider::request::raw;

/// Most tools that are remembered, each for each wire format: those of a dozen servers.
const MAX_KNOWN: usize = 1024;

static KNOWN: LazyLock<Mutex<HashMap<Key, Written>>> = LazyLock::new(Mutex::default);

/// The address of a tool's schema, which nothing else has as long as a reference to it is kept, a weak one included.
type Key = (usize, Dialect);

/// A tool as a wire format has it.
struct Written {
    schema: Weak<Value>,
    name: String,
    description: String,
    text: Arc<RawValue>,
    problem: Option<SchemaProblem>,
}

/// Returns a tool with its schema in `dialect`, written down once, and why that schema is none of its own.
pub(super) fn written(
    tool: &ToolSpec,
    dialect: Dialect,
    describe: impl FnOnce(Value) -> Value,
) -> (Arc<RawValue>, Option<SchemaProblem>) {
    let key = (Arc::as_ptr(&tool.input_schema).addr(), dialect);
    if let Some(known) = KNOWN.lock().get(&key)
        && (&known.name, &known.description) == (&tool.name, &tool.description)
    {
        return (Arc::clone(&known.text), known.problem.clone());
    }
    let (schema, problem) = match normalise(&tool.input_schema, dialect) {
        Ok(schema) => (schema, None),
        Err(problem) => (json!({"type": "object", "properties": {}}), Some(problem)),
    };
    let text = raw(&describe(schema));
    let mut known = KNOWN.lock();
    if known.len() >= MAX_KNOWN {
        known.retain(|_, written| written.schema.strong_count() > 0);
    }
    if known.len() < MAX_KNOWN {
        let written = Written {
            schema: Arc::downgrade(&tool.input_schema),
            name: tool.name.clone(),
            description: tool.description.clone(),
            text: Arc::clone(&text),
            problem: problem.clone(),
        };
        known.insert(key, written);
    }
    (text, problem)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::testing::tools;

    /// Returns a tool of this schema, written as the schema alone.
    fn schema_of(tool: &ToolSpec, dialect: Dialect) -> (Arc<RawValue>, Option<SchemaProblem>) {
        written(tool, dialect, |schema| schema)
    }

    fn with_schema(schema: Value) -> ToolSpec {
        ToolSpec {
            input_schema: Arc::new(schema),
            ..tools().remove(0)
        }
    }

    #[test]
    fn a_tool_is_written_once_for_each_wire_and_never_taken_for_another() {
        let known = with_schema(
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}),
        );
        for dialect in [Dialect::Anthropic, Dialect::Gemini] {
            let (first, _) = schema_of(&known, dialect);
            let normal = normalise(&known.input_schema, dialect).unwrap();
            assert_eq!(first.get(), normal.to_string());
            assert!(Arc::ptr_eq(&first, &schema_of(&known, dialect).0));
        }
        // The same schema under another name, and with other words.
        for other in [
            ToolSpec {
                name: "other".to_owned(),
                ..known.clone()
            },
            ToolSpec {
                description: "other".to_owned(),
                ..known
            },
        ] {
            let name = json!([other.name, other.description]);
            let (text, _) = written(&other, Dialect::Anthropic, |_| name.clone());
            assert_eq!(text.get(), name.to_string());
        }
        for number in 0..3 * MAX_KNOWN {
            let tool =
                with_schema(json!({"type": "object", "properties": {format!("p{number}"): {}}}));
            assert_eq!(
                schema_of(&tool, Dialect::Chat).0.get(),
                normalise(&tool.input_schema, Dialect::Chat)
                    .unwrap()
                    .to_string()
            );
        }
        let none = with_schema(json!({"type": "string"}));
        for _ in 0..2 {
            let (text, problem) = schema_of(&none, Dialect::Chat);
            assert_eq!(text.get(), r#"{"type":"object","properties":{}}"#);
            assert_eq!(problem, Some(SchemaProblem::NotAnObject));
        }
    }
}
