//! OpenAI Responses, mostly at those who copy it.

use super::{Variant, sse};

const DELTA: &str =
    r#"{"type":"response.output_text.delta","output_index":0,"item_id":"m1","delta":"Hi"}"#;
const MESSAGE: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}}"#;
const ADDED: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","role":"assistant","content":[]}}"#;
const END: &str = r#"{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":5,"output_tokens":6}}}"#;
const HELLO: &str = r#""Hi", EndTurn, in 5 out 6"#;
const CALL: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{\"x\":1}"}}"#;
const ONE: &str = r#"call a f {"x":1}, ToolUse, in 5 out 6"#;

pub(super) fn variants() -> Vec<Variant> {
    vec![
        ("deltas and items", sse(&[r#"{"type":"response.created","response":{"model":"m"}}"#, ADDED, DELTA, MESSAGE, END]), HELLO),
        ("no created", sse(&[ADDED, DELTA, MESSAGE, END]), HELLO),
        ("deltas alone", sse(&[DELTA, END]), HELLO),
        ("deltas without a place", sse(&[r#"{"type":"response.output_text.delta","delta":"Hi"}"#, END]), HELLO),
        ("items alone", sse(&[MESSAGE, END]), HELLO),
        ("the output at the end alone", sse(&[r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":5,"output_tokens":6}}}"#]), HELLO),
        ("everything three times", sse(&[ADDED, DELTA, r#"{"type":"response.output_text.done","output_index":0,"text":"Hi"}"#, MESSAGE, r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"m1","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":5,"output_tokens":6}}}"#]), HELLO),
        ("other ids at the end", sse(&[ADDED, DELTA, MESSAGE, r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"other","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":5,"output_tokens":6}}}"#]), HELLO),
        ("the names of events alone", format!("event: response.output_text.delta\ndata: {DELTA}\n\nevent: response.completed\ndata: {END}\n\ndata: [DONE]\n\n"), HELLO),
        ("ids without a space", format!("id:1\nevent:x\ndata:{DELTA}\n\nid:2\ndata:{END}\n\n"), HELLO),
        ("an end of another name", sse(&[DELTA, r#"{"type":"response.done","response":{"status":"completed","usage":{"input_tokens":5,"output_tokens":6}}}"#]), HELLO),
        ("usage beside the response", sse(&[DELTA, r#"{"type":"response.completed","usage":{"input_tokens":5,"output_tokens":6}}"#]), HELLO),
        ("usage under the other names", sse(&[DELTA, r#"{"type":"response.completed","response":{"usage":{"prompt_tokens":5,"completion_tokens":6}}}"#]), HELLO),
        ("nulls", sse(&[r#"{"type":"response.created","response":null}"#, r#"{"type":"response.output_item.added","output_index":null,"item":null}"#, DELTA, r#"{"type":"response.output_text.delta","delta":null}"#, r#"{"type":"response.completed","response":{"status":null,"error":null,"incomplete_details":null,"output":null,"usage":{"input_tokens":5,"output_tokens":6,"input_tokens_details":null}}}"#]), HELLO),
        ("unknown events and items", sse(&[r#"{"type":"response.mood","x":1}"#, r#"{"type":"response.output_item.added","output_index":5,"item":{"type":"poem"}}"#, r#"{"type":"keepalive"}"#, DELTA, END]), HELLO),
        ("reasoning text", sse(&[r#"{"type":"response.reasoning_text.delta","delta":"hm"}"#, DELTA, END]), r#"thought "hm", "Hi", EndTurn, in 5 out 6"#),
        ("reasoning under an older name", sse(&[r#"{"type":"response.reasoning.delta","delta":"hm"}"#, DELTA, END]), r#"thought "hm", "Hi", EndTurn, in 5 out 6"#),
        ("reasoning in an item alone", sse(&[r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","content":[{"type":"reasoning_text","text":"hm"}]}}"#, r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#, END]), r#"thought "hm", "Hi", EndTurn, in 5 out 6"#),
        ("a call as an item alone", sse(&[CALL, END]), ONE),
        ("a call in pieces", sse(&[r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":""}}"#, r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\""}"#, r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":":1}"}"#, CALL, END]), ONE),
        ("pieces with ids alone", sse(&[r#"{"type":"response.output_item.added","item":{"type":"function_call","id":"fc","call_id":"a","name":"f"}}"#, r#"{"type":"response.function_call_arguments.delta","item_id":"fc","delta":"{\"x\":1}"}"#, r#"{"type":"response.output_item.done","item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":"{\"x\":1}"}}"#, END]), ONE),
        ("a call that is never done", sse(&[r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"a","name":"f","arguments":""}}"#, r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"x\":1}"}"#, END]), ONE),
        ("a call without call_id", sse(&[r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"a","name":"f","arguments":"{\"x\":1}"}}"#, END]), ONE),
        ("an object for input", sse(&[r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":{"x":1}}}"#, END]), ONE),
        ("no input", sse(&[r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f"}}"#, END]), "call a f {}, ToolUse, in 5 out 6"),
        ("two calls with one index", sse(&[CALL, r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"b","name":"g","arguments":"{\"y\":2}"}}"#, END]), r#"call a f {"x":1}, call b g {"y":2}, ToolUse, in 5 out 6"#),
        ("a limit in a call", sse(&[r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}"#, r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"x\""}"#, r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#]), "call a f cut, MaxTokens"),
        ("incomplete without a word", sse(&[DELTA, r#"{"type":"response.incomplete","response":{}}"#]), r#""Hi", MaxTokens"#),
        ("a filter", sse(&[DELTA, r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}"#]), r#""Hi", ContentFilter"#),
        ("a refusal", sse(&[r#"{"type":"response.refusal.delta","delta":"No."}"#, END]), r#""No.", Refusal, in 5 out 6"#),
        ("no end", sse(&[ADDED, DELTA, MESSAGE, "[DONE]"]), r#""Hi", error IncompleteStream: the answer broke off before response.completed"#),
        ("a nested error", sse(&[r#"{"type":"error","error":{"type":"server_error","code":"server_is_overloaded","message":"busy"}}"#]), "error Overloaded: busy"),
        ("a flat error", sse(&[r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null}"#]), "error RateLimit: slow down"),
        ("an error of another name", sse(&[r#"{"type":"response.error","error":{"code":"server_error","message":"sorry"}}"#]), "error Server: sorry"),
        ("a failure without a word", sse(&[r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#]), "error Server: the provider reported response.failed without a message"),
        ("half a pair", sse(&[r#"{"type":"response.output_text.delta","delta":"a\ud83d"}"#, END]), "\"a\u{fffd}\", EndTurn, in 5 out 6"),
        ("a whole answer", r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":5,"output_tokens":6}}"#.to_owned(), HELLO),
    ]
}
