//! An answer that a program reads: checked against a schema, and asked for again where it does not fit.
//!
//! The model is told of the schema in words. Where its provider can hold it to the form, it is held: in every turn where
//! that goes beside tools, else in turns without them.

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
}

impl Form {
    /// Returns the form of an answer that fits this schema.
    pub(crate) fn new(schema: ObjectSchema) -> Self {
        let instruction = format!(
            "Your last message is read by a program. It has to be one JSON object that fits this JSON schema, with nothing before or after it:\n{}",
            schema.value()
        );
        Self {
            schema,
            instruction,
        }
    }

    /// Returns what the model is told of it.
    pub(crate) fn instruction(&self) -> &str {
        &self.instruction
    }

    pub(super) fn schema(&self) -> &Value {
        self.schema.value()
    }

    /// Reads an answer; an error is for the model.
    fn read(&self, text: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(bare(text))
            .map_err(|error| format!("it is not one JSON value: {error}"))?;
        self.schema.check(&value)?;
        Ok(value)
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
        let problem = match form.read(text) {
            Ok(output) => {
                self.emit(Event::ChatOutput(Box::new(AnswerOutput {
                    conversation_id: self.setup.conversation_id.clone(),
                    message_id: self.setup.message_id.clone(),
                    output,
                })));
                return Err(Leave::Stop(StopReason::EndTurn));
            }
            Err(problem) => problem,
        };
        if self.progress.corrections >= MAX_CORRECTIONS {
            let message = format!(
                "the answer does not fit the schema, after {MAX_CORRECTIONS} corrections: {problem}"
            );
            let error = failure::invalid_output(self.setup, message);
            return Err(Leave::Failed(StopReason::Error, Box::new(error)));
        }
        self.progress.corrections += 1;
        let correction = format!(
            "That is not what the program can read: {problem}. Answer again, with one JSON object that fits the schema and nothing else."
        );
        self.transcript
            .record(Message::User(vec![Part::text(correction)]));
        Ok(())
    }

    /// Whether the next turn is there to bring an answer into its form.
    pub(super) fn is_correcting(&self) -> bool {
        self.progress.corrections > 0
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
                (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
