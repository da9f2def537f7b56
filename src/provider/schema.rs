//! Tools as a wire format accepts them: the schema of their input, and their names.
//!
//! Schemas come from MCP servers too, and one that a vendor refuses makes it refuse the whole
//! request. So each is brought into the form its wire format is known to take, and one that cannot
//! be is replaced. What is lost that way is the model's guidance only: inputs are checked against the
//! tool's own schema.

mod flatten;
mod memo;
mod names;
mod narrow;
mod node;
mod refs;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) use names::wire_name;

use crate::message::{Notice, Severity, ToolSpec};
use crate::provider::request::{set, without_nulls};

/// Most schemas nested in one tool's, those that `$ref` brings in again included. The largest known of
/// real servers have some hundreds.
const MAX_NODES: usize = 4096;

/// Deepest nesting kept; what lies deeper may be anything.
const MAX_DEPTH: usize = 24;

/// Who is to read a schema; `docs/providers.md`, "Tool schemas", says what each takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    /// Anthropic Messages: JSON Schema 2020-12, nothing but an object at the top.
    Anthropic,
    /// OpenAI Chat Completions and what is compatible.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Ollama: a handful of keywords, the others are dropped in silence.
    Ollama,
    /// Google's compatible endpoint: the OpenAPI subset.
    Gemini,
}

impl Dialect {
    /// Whether it knows a few keywords only and no `$ref`.
    fn is_narrow(self) -> bool {
        matches!(self, Self::Ollama | Self::Gemini)
    }
}

/// Why a schema cannot be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SchemaProblem {
    /// It describes something that is no object.
    #[error("its input is not described as an object")]
    NotAnObject,
    /// It is too large to be sent with each request.
    #[error("it has more than {MAX_NODES} nested schemas")]
    TooLarge,
}

/// Returns the input schema of a tool in the form `dialect` takes, always of type `object` and with
/// `properties`.
///
/// # Errors
///
/// [`SchemaProblem`] where it describes no object or is too large.
pub(crate) fn normalise(schema: &Value, dialect: Dialect) -> Result<Value, SchemaProblem> {
    let flat = flatten::top(schema)?;
    let mut walk = node::Walk::new(schema, dialect);
    let mut normal = walk.top(&flat)?;
    if !dialect.is_narrow() {
        refs::drop_dangling(&mut normal);
    }
    Ok(normal)
}

/// Returns a tool as `dialect` has it: with its own schema, normalised, or with one that takes any object where that cannot be
/// used, which is added to `notices`.
pub(crate) fn of_tool(
    tool: &ToolSpec,
    dialect: Dialect,
    notices: &mut Vec<Notice>,
) -> Arc<RawValue> {
    let (text, problem) = memo::written(tool, dialect);
    notices.extend(problem.map(|problem| Notice {
        severity: Severity::Warning,
        code: "tool_schema_replaced".to_owned(),
        message: format!(
            "the schema of tool \"{}\" ({}) cannot be sent: {problem}; the model is not told what input it takes",
            tool.name, tool.origin
        ),
    }));
    text
}

/// Describes a tool with this schema. Never strict: schemas of any origin do not keep to the strict subset.
fn describe(tool: &ToolSpec, dialect: Dialect, schema: Value) -> Value {
    let (name, description) = (wire_name(&tool.name), &tool.description);
    match dialect {
        Dialect::Anthropic => {
            let description = Some(description).filter(|text| !text.trim().is_empty());
            let mut described = json!({"name": name, "description": description});
            set(&mut described, "input_schema", schema);
            without_nulls(described)
        }
        Dialect::Responses => {
            let mut described = json!({
                "type": "function",
                "name": name,
                "description": description,
                "parameters": null,
                "strict": false,
            });
            set(&mut described, "parameters", schema);
            described
        }
        Dialect::Chat | Dialect::Ollama | Dialect::Gemini => {
            let mut function = json!({"name": name, "description": description});
            set(&mut function, "parameters", schema);
            let mut described = json!({"type": "function"});
            set(&mut described, "function", function);
            described
        }
    }
}

/// Returns what a `$ref` within the same document points to.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(pointer).filter(|target| target.is_object())
}
