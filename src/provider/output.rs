//! An answer in a form that a schema gives: by the wire's own field where it has one, else by a tool that the model has to
//! call, whose input is shown as the text of the answer. Whether it fits is checked by who asked for it.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::quirks::Quirks;
use super::{Chunk, ChunkStream, Request, Stop, ToolChoice};

/// The name of the form, and of the tool that stands in its place.
pub(super) const NAME: &str = "answer";

/// What that tool says of itself.
pub(super) const DESCRIPTION: &str =
    "Gives the answer. Call this once, with the answer as its input.";

/// Returns the form as OpenAI's wires have it. It is not strict: schemas of any origin do not keep to the strict subset.
pub(super) fn json_schema(schema: &Value) -> Value {
    json!({"name": NAME, "schema": schema, "strict": false})
}

/// Returns the form as the field `response_format` of Chat Completions has it.
pub(super) fn response_format(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": json_schema(schema)})
}

/// Returns the schema of the tool by which the model has to give its answer: where the server takes no schema for the answer
/// itself. It would keep the model from its other tools, so that where it may call any the words of the request have to do.
pub(super) fn by_tool<'a>(request: &Request<'a>, quirks: &Quirks) -> Option<&'a Value> {
    let may_call = request.tool_choice == ToolChoice::Auto && !request.tools.is_empty();
    let is_by_tool = !quirks.output && quirks.tools && !may_call;
    request.output.filter(|_| is_by_tool)
}

/// Returns an answer by the tool as one in words: the input of its call is the text.
pub(super) fn from_call(chunks: ChunkStream) -> ChunkStream {
    let mut answers = BTreeSet::new();
    let words = chunks.filter_map(move |chunk| {
        let chunk = match chunk {
            Ok(Chunk::ToolCallStart { index, name, .. }) if name == NAME => {
                answers.insert(index);
                None
            }
            Ok(Chunk::ToolCallDelta { index, fragment }) if answers.contains(&index) => {
                Some(Ok(Chunk::Text(fragment)))
            }
            Ok(Chunk::ToolCallEnd { index, .. }) if answers.contains(&index) => None,
            Ok(Chunk::End(mut end)) if !answers.is_empty() => {
                if end.stop == Stop::ToolUse {
                    end.stop = Stop::EndTurn;
                }
                // In the provider's own form it is a call, which nothing would answer.
                end.native = None;
                Some(Ok(Chunk::End(end)))
            }
            chunk => Some(chunk),
        };
        std::future::ready(chunk)
    });
    words.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Usage;
    use crate::provider::{CallInput, End};

    #[tokio::test]
    async fn a_call_of_the_form_is_text_and_others_stay_calls() {
        let start = |index, name: &str| Chunk::ToolCallStart {
            index,
            provider_call_id: Some("c".to_owned()),
            name: name.to_owned(),
        };
        let delta = |index, fragment: &str| Chunk::ToolCallDelta {
            index,
            fragment: fragment.to_owned(),
        };
        let over = |index| Chunk::ToolCallEnd {
            index,
            provider_call_id: None,
            input: CallInput::Object(serde_json::Map::new()),
        };
        let end = |stop| {
            Chunk::End(End {
                stop,
                raw_stop: None,
                usage: Usage::default(),
                native: None,
            })
        };
        let chunks = [
            start(0, NAME),
            delta(0, "{\"a\":"),
            start(1, "bash"),
            delta(1, "{}"),
            delta(0, "1}"),
            over(0),
            over(1),
            end(Stop::ToolUse),
        ];
        let chunks = futures::stream::iter(chunks.map(Ok)).boxed();
        let words: Vec<_> = from_call(chunks).map(Result::unwrap).collect().await;
        assert_eq!(
            words,
            [
                Chunk::Text("{\"a\":".to_owned()),
                start(1, "bash"),
                delta(1, "{}"),
                Chunk::Text("1}".to_owned()),
                over(1),
                end(Stop::EndTurn),
            ]
        );
    }
}
