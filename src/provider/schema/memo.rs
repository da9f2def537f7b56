//! Tools that were written before: the same ones go with each request, and to bring their schemas into the form of the wire, and
//! them into text, took more time than all else that a request is made from.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Dialect, SchemaProblem, describe, normalise};
use crate::message::ToolSpec;
use crate::provider::request::raw;

/// Most tools that are remembered, each for each wire format: those of a dozen servers, some KB each.
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

/// Returns a tool as `dialect` has it, written down once, and why its schema is none of its own.
pub(super) fn written(tool: &ToolSpec, dialect: Dialect) -> (Arc<RawValue>, Option<SchemaProblem>) {
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
    let text = raw(&describe(tool, dialect, schema));
    let mut known = KNOWN.lock();
    if known.len() >= MAX_KNOWN {
        known.retain(|_, written| written.schema.strong_count() > 0);
    }
    if known.len() < MAX_KNOWN || known.contains_key(&key) {
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
            let (first, _) = written(&known, dialect);
            let normal = normalise(&known.input_schema, dialect).unwrap();
            let described = describe(&known, dialect, normal);
            assert_eq!(first.get(), described.to_string());
            assert!(Arc::ptr_eq(&first, &written(&known, dialect).0));
        }
        // The same schema under another name, and with other words.
        for other in [
            ToolSpec {
                name: "other".to_owned(),
                ..known.clone()
            },
            ToolSpec {
                description: "another".to_owned(),
                ..known
            },
        ] {
            let (text, _) = written(&other, Dialect::Anthropic);
            assert!(text.get().contains("other"), "{text}");
            assert!(Arc::ptr_eq(&text, &written(&other, Dialect::Anthropic).0));
        }
        for number in 0..3 * MAX_KNOWN {
            let tool =
                with_schema(json!({"type": "object", "properties": {format!("p{number}"): {}}}));
            let normal = normalise(&tool.input_schema, Dialect::Chat).unwrap();
            let described = describe(&tool, Dialect::Chat, normal);
            let (text, _) = written(&tool, Dialect::Chat);
            assert_eq!(text.get(), described.to_string());
        }
        assert!(KNOWN.lock().len() <= MAX_KNOWN);
        let none = with_schema(json!({"type": "string"}));
        for _ in 0..2 {
            let (text, problem) = written(&none, Dialect::Chat);
            assert!(text.get().contains(r#"{"type":"object","properties":{}}"#));
            assert_eq!(problem, Some(SchemaProblem::NotAnObject));
        }
    }
}
