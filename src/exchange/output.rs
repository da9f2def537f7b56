//! An answer that a program reads: checked against a schema, and asked for again where it does not fit.
//!
//! The model is told of the schema in words. Where its provider can hold it to the form, it is held: in every turn where
//! that goes beside tools, else in turns without them. One that answers with words is corrected with its tools at hand, for
//! it may not have looked yet; one that answers with JSON, or for the second time, has to answer from what it knows.

use serde_json::Value;

use super::{Exchange, Leave, failure};
use crate::json_schema::ObjectSchema;
use crate::message::{Message, Part};
use crate::protocol::event::{AnswerOutput, Event, StopReason};

/// How often an answer that does not fit is asked for again.
const MAX_CORRECTIONS: u32 = 2;

/// What an answer has to be.
#[derive(Debug)]
pub(crate) struct Form {
    schema: ObjectSchema,
    instruction: String,
    is_held: bool,
}

/// Why an answer does not fit.
struct Misfit {
    /// For the model.
    problem: String,
    is_json: bool,
}

impl Form {
    /// Returns the form of an answer that fits this schema.
    pub(crate) fn new(schema: ObjectSchema) -> Self {
        let instruction = format!(
            "Your last message is read by a program. It has to be one JSON object that fits this JSON schema, with nothing before or after it:\n{}",
            schema.value()
        );
        Self {
            is_held: names_fields(schema.value()),
            schema,
            instruction,
        }
    }

    /// Returns what the model is told of it.
    pub(crate) fn instruction(&self) -> &str {
        &self.instruction
    }

    /// Returns the schema that a provider can hold the model to; `None` where words and the check have to do.
    pub(super) fn held(&self) -> Option<&Value> {
        self.is_held.then(|| self.schema.value())
    }

    /// Reads an answer.
    fn read(&self, text: &str) -> Result<Value, Misfit> {
        let misfit = |problem, is_json| Misfit { problem, is_json };
        let value: Value = serde_json::from_str(bare(text))
            .map_err(|error| misfit(format!("it is not one JSON value: {error}"), false))?;
        match self.schema.check(&value) {
            Ok(()) => Ok(value),
            Err(problem) => Err(misfit(problem, true)),
        }
    }
}

/// Returns whether each object of a schema names its fields. One that does not may have any, and providers that hold a
/// model to a schema let it have none.
fn names_fields(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let is_object = match fields.get("type") {
                Some(Value::Array(types)) => types.iter().any(|it| it == "object"),
                named => named.is_some_and(|it| it == "object"),
            };
            let names = fields.get("properties").and_then(Value::as_object);
            let names = names.is_some_and(|it| !it.is_empty());
            (!is_object || names) && fields.values().all(names_fields)
        }
        Value::Array(items) => items.iter().all(names_fields),
        _ => true,
    }
}

/// Returns what is inside of a fence of Markdown, which many models put around JSON; else the text itself.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let Some(inside) = text
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```"))
    else {
        return text;
    };
    let inside = inside.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
    inside.trim()
}

impl Exchange<'_> {
    /// Checks an answer that may be the last, where it has to have a form. Where it returns no reason to leave, the model
    /// is asked again.
    pub(super) fn check_answer(&mut self, text: &str) -> Result<(), Leave> {
        let Some(form) = &self.setup.output else {
            return Err(Leave::Stop(StopReason::EndTurn));
        };
        let Misfit { problem, is_json } = match form.read(text) {
            Ok(output) => {
                self.emit(Event::ChatOutput(Box::new(AnswerOutput {
                    conversation_id: self.setup.conversation_id.clone(),
                    message_id: self.setup.message_id.clone(),
                    output,
                })));
                return Err(Leave::Stop(StopReason::EndTurn));
            }
            Err(misfit) => misfit,
        };
        if self.progress.corrections >= MAX_CORRECTIONS {
            let message = format!(
                "the answer does not fit the schema, after {MAX_CORRECTIONS} corrections: {problem}"
            );
            let error = failure::invalid_output(self.setup, message);
            return Err(Leave::Failed(StopReason::Error, Box::new(error)));
        }
        self.progress.corrections += 1;
        self.progress.corrects_form = is_json || self.progress.corrections >= MAX_CORRECTIONS;
        let correction = format!(
            "That is not what the program can read: {problem}. Answer again, with one JSON object that fits the schema and nothing else."
        );
        self.transcript
            .record(Message::User(vec![Part::text(correction)]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_read_where_it_fits_also_inside_of_a_fence() {
        let schema = json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let Value::Object(schema) = schema else {
            unreachable!();
        };
        let form = Form::new(ObjectSchema::new(schema).unwrap());
        for (text, expected) in [
            (r#"{"n": 1}"#, Ok(json!({"n": 1}))),
            ("```json\n{\"n\": 1}\n```", Ok(json!({"n": 1}))),
            (" ```\n{\"n\": 1}```\n", Ok(json!({"n": 1}))),
            (r#"{"n": "1"}"#, Err("`n`")),
            ("{}", Err("required")),
            ("[1]", Err("object")),
            ("Here it is: {\"n\": 1}", Err("not one JSON value")),
            ("", Err("not one JSON value")),
        ] {
            match (form.read(text), expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{text}"),
                (Err(misfit), Err(expected)) => {
                    assert!(misfit.problem.contains(expected), "{}", misfit.problem);
                    assert_eq!(misfit.is_json, !expected.contains("JSON"), "{text}");
                }
                (Ok(value), Err(_)) => panic!("{text}: {value}"),
                (Err(misfit), Ok(_)) => panic!("{text}: {}", misfit.problem),
            }
        }
    }

    #[test]
    fn a_provider_is_not_asked_to_hold_a_model_to_objects_of_any_fields() {
        let free = json!({"type": "object"});
        let named = json!({"type": "object", "properties": {"type": {"type": "string"}}});
        for (schema, is_held) in [
            (json!({"type": "object", "properties": {"a": named}}), true),
            (json!({"properties": {"a": {"type": "integer"}}}), true),
            (named.clone(), true),
            (free.clone(), false),
            (json!({"properties": {"a": free}}), false),
            (
                json!({"properties": {"a": {"type": "array", "items": free}}}),
                false,
            ),
            (
                json!({"properties": {"a": {"anyOf": [named, free]}}}),
                false,
            ),
            (
                json!({"properties": {"a": {"type": ["object", "null"]}}}),
                false,
            ),
        ] {
            let Value::Object(schema) = schema else {
                unreachable!();
            };
            let form = Form::new(ObjectSchema::new(schema).unwrap());
            assert_eq!(form.held().is_some(), is_held, "{}", form.instruction());
        }
    }
}
