//! Answers that end and are none: nothing in them, or no word on whether they are whole. None may pass
//! for an answer, and none of their calls may run.
//!
//! Recordings demand two exceptions of Chat Completions without `finish_reason`: text and `[DONE]`, and a
//! whole call with the figures of the whole answer behind it (`openai/tool-variant-b.sse`, OpenRouter).

use super::{Variant, lines, sse};

const NO_REASON: &str = "error IncompleteStream: the provider ended its answer without a reason (`finish_reason`) and before it was whole";
const NO_STOP: &str = "error IncompleteStream: the provider ended its answer (`message_stop`) without a reason (`stop_reason`)";
const NOTHING: &str = "error Protocol: the answer has nothing in it";
const NO_OUTPUT: &str = "error IncompleteStream: the provider ended its answer without any output";

const FIGURES: &str = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;

/// A call of Chat Completions with this input.
fn call(input: &str) -> String {
    format!(
        r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":{input:?}}}}}]}}}}]}}"#
    )
}

pub(super) fn chat() -> Vec<Variant> {
    let whole = call(r#"{"x":1}"#);
    let half = call(r#"{"x":"#);
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
    let text = r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#;
    vec![
        ("only the end marker", sse(&["[DONE]"]), NO_REASON),
        (
            "a role and the end marker",
            sse(&[
                r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
                "[DONE]",
            ]),
            NO_REASON,
        ),
        (
            "figures and the end marker",
            sse(&[r#"{"choices":[],"usage":{"prompt_tokens":1}}"#, "[DONE]"]),
            NO_REASON,
        ),
        (
            "thinking and the end marker",
            sse(&[r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#, "[DONE]"]),
            "thought \"hm\", error IncompleteStream: the provider ended its answer without a reason (`finish_reason`) and before it was whole",
        ),
        (
            "text and the end marker",
            sse(&[text, "[DONE]"]),
            r#""Hi", EndTurn"#,
        ),
        (
            "a call and the end marker",
            sse(&[&whole, "[DONE]"]),
            "call a f {\"x\":1}, error IncompleteStream: the provider ended its answer without a reason (`finish_reason`) and before it was whole",
        ),
        (
            "a call, figures and the end marker",
            sse(&[&whole, FIGURES, "[DONE]"]),
            r#"call a f {"x":1}, ToolUse, in 1 out 2"#,
        ),
        (
            "half a call, figures and the end marker",
            sse(&[&half, FIGURES, "[DONE]"]),
            "call a f cut, ToolUse, in 1 out 2",
        ),
        (
            "half a call and the end marker",
            sse(&[&half, "[DONE]"]),
            "call a f cut, error IncompleteStream: the provider ended its answer without a reason (`finish_reason`) and before it was whole",
        ),
        (
            "half a call that is said to be whole",
            sse(&[&half, finish, "[DONE]"]),
            "call a f cut, ToolUse",
        ),
        (
            "an empty choice, whole",
            r#"{"choices":[{}]}"#.to_owned(),
            NOTHING,
        ),
        ("no choice, whole", r#"{"choices":[]}"#.to_owned(), NOTHING),
        (
            "an empty message, whole",
            r#"{"choices":[{"message":{"content":""}}]}"#.to_owned(),
            NOTHING,
        ),
    ]
}

pub(super) fn anthropic() -> Vec<Variant> {
    let start = r#"{"type":"message_start","message":{"id":"m","content":[]}}"#;
    let call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#;
    let input = r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}"#;
    let close = r#"{"type":"content_block_stop","index":0}"#;
    let stop = r#"{"type":"message_stop"}"#;
    vec![
        ("nothing in between", sse(&[start, stop]), NO_STOP),
        ("an end alone", sse(&[stop]), NO_STOP),
        (
            "a call without a reason",
            sse(&[start, call, input, close, stop]),
            "call a f {\"x\":1}, error IncompleteStream: the provider ended its answer (`message_stop`) without a reason (`stop_reason`)",
        ),
        (
            "a reason that is null",
            sse(&[
                start,
                r#"{"type":"message_delta","delta":{"stop_reason":null}}"#,
                stop,
            ]),
            NO_STOP,
        ),
    ]
}

pub(super) fn responses() -> Vec<Variant> {
    vec![
        (
            "an empty response",
            sse(&[r#"{"type":"response.completed","response":{}}"#]),
            NO_OUTPUT,
        ),
        (
            "no response",
            sse(&[r#"{"type":"response.completed"}"#]),
            NO_OUTPUT,
        ),
        (
            "created and done",
            sse(&[
                r#"{"type":"response.created","response":{"id":"r"}}"#,
                r#"{"type":"response.done","response":{"id":"r"}}"#,
            ]),
            NO_OUTPUT,
        ),
        (
            "text, and no output at the end",
            sse(&[
                r#"{"type":"response.output_text.delta","delta":"Hi"}"#,
                r#"{"type":"response.completed","response":{}}"#,
            ]),
            r#""Hi", EndTurn"#,
        ),
    ]
}

pub(super) fn ollama() -> Vec<Variant> {
    vec![
        (
            "an end alone",
            lines(&[r#"{"done":true}"#]),
            "error IncompleteStream: ollama ended its answer without a reason before it said anything",
        ),
        (
            "a model that was loaded",
            lines(&[
                r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}"#,
            ]),
            "error IncompleteStream: ollama ended its answer by \"load\" before it said anything",
        ),
        (
            "text and no reason",
            lines(&[r#"{"message":{"content":"Hi"},"done":true}"#]),
            r#""Hi", EndTurn"#,
        ),
    ]
}
