//! Chat Completions.

use super::{Variant, lines, sse};

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const CALLS: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;
const HI: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#;

/// A chunk with this delta.
fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#)
}

/// An answer of deltas and its end.
fn answer(deltas: &[&str], end: &str) -> String {
    let mut frames: Vec<String> = deltas.iter().map(|one| delta(one)).collect();
    frames.push(end.to_owned());
    frames.push("[DONE]".to_owned());
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    sse(&frames)
}

pub(super) fn variants() -> Vec<Variant> {
    let plain = |end: &str| sse(&[HI, end]);
    vec![
        ("a second data prefix", format!("data: data: {HI}\n\ndata: data: {STOP}\n\ndata: [DONE]\n\n"), r#""Hi", EndTurn"#),
        ("no space, carriage returns", format!("data:{HI}\r\n\r\ndata:{STOP}\r\n\r\n"), r#""Hi", EndTurn"#),
        ("comments and other fields", format!(": PROCESSING\n\nid: 1\nretry: 5\ndata: {HI}\n\n: x\ndata: {STOP}\n\n"), r#""Hi", EndTurn"#),
        ("a name of no meaning", format!("event: chunk\ndata: {HI}\n\nevent: chunk\ndata: {STOP}\n\n"), r#""Hi", EndTurn"#),
        ("a byte order mark", format!("\u{feff}data: {HI}\n\ndata: {STOP}\n\n"), r#""Hi", EndTurn"#),
        ("the last event without its end", format!("data: {HI}\n\ndata: {STOP}"), r#""Hi", EndTurn"#),
        ("lines under the name of a stream", lines(&[HI, STOP]), r#""Hi", EndTurn"#),
        ("a null delta beside a message", sse(&[r#"{"choices":[{"delta":null,"message":{"content":"Hi"},"finish_reason":"stop"}]}"#]), r#""Hi", EndTurn"#),
        ("content as one part", answer(&[r#"{"content":{"type":"text","text":"Hi"}}"#], STOP), r#""Hi", EndTurn"#),
        ("content as parts", answer(&[r#"{"content":[{"type":"text","text":"H"},{"type":"text","text":"i"}]}"#], STOP), r#""Hi", EndTurn"#),
        ("nulls everywhere", sse(&[
            r#"{"id":null,"object":null,"model":null,"usage":null,"error":null,"choices":[{"index":null,"logprobs":null,"finish_reason":null,"delta":{"role":null,"content":"Hi","tool_calls":null,"function_call":null,"refusal":null,"reasoning":null,"reasoning_content":null,"reasoning_details":null}}]}"#,
            STOP]), r#""Hi", EndTurn"#),
        ("choices left out, empty and null", sse(&["{}", r#"{"choices":null}"#, r#"{"choices":[]}"#, r#"{"choices":[null]}"#, HI, STOP]), r#""Hi", EndTurn"#),
        ("errors that are none", sse(&[
            r#"{"error":null,"choices":[{"delta":{"content":"H"}}]}"#, r#"{"error":{},"choices":[{"delta":{"content":"i"}}]}"#,
            r#"{"error":"","choices":[]}"#, r#"{"error":[],"choices":[]}"#, r#"{"error":0,"choices":[]}"#, r#"{"error":false,"choices":[]}"#, STOP]),
            r#""Hi", EndTurn"#),
        ("the reason with text and usage at once", sse(&[r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":6}}"#]), r#""Hi", EndTurn, in 5 out 6"#),
        ("usage in a choice", sse(&[r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop","usage":{"prompt_tokens":5,"completion_tokens":6,"cached_tokens":3}}]}"#]), r#""Hi", EndTurn, in 5 out 6 cached 3"#),
        ("usage in each chunk, growing", sse(&[r#"{"choices":[{"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#, r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":6,"total_tokens":11}}"#]), r#""Hi", EndTurn, in 5 out 6"#),
        ("usage after the end marker's place, in text", sse(&[HI, STOP, r#"{"usage":{"prompt_tokens":"5","completion_tokens":"6"}}"#, "[DONE]"]), r#""Hi", EndTurn, in 5 out 6"#),
        ("usage of a gateway before Claude", sse(&[HI, STOP, r#"{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":6,"cache_read_input_tokens":30,"cache_creation_input_tokens":10}}"#]), r#""Hi", EndTurn, in 50 out 6 cached 30 written 10"#),
        ("usage of DeepSeek", sse(&[HI, STOP, r#"{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":6,"prompt_cache_hit_tokens":30,"prompt_cache_miss_tokens":20,"completion_tokens_details":{"reasoning_tokens":2}}}"#]), r#""Hi", EndTurn, in 50 out 6 cached 30 reasoning 2"#),
        ("usage of Groq", sse(&[HI, r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":5,"completion_tokens":6}}}"#]), r#""Hi", EndTurn, in 5 out 6"#),
        ("usage that says nothing", sse(&[r#"{"choices":[{"delta":{"content":"Hi"}}],"usage":{}}"#, r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":null,"prompt_tokens_details":null}}"#]), r#""Hi", EndTurn"#),
        ("usage that is negative or no number", sse(&[HI, STOP, r#"{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":"many"}}"#]), r#""Hi", EndTurn"#),
        ("reasoning_content", answer(&[r#"{"reasoning_content":"hm"}"#, r#"{"content":"Hi"}"#], STOP), r#"thought "hm", "Hi", EndTurn"#),
        ("reasoning", answer(&[r#"{"reasoning":"hm"}"#, r#"{"content":"Hi"}"#], STOP), r#"thought "hm", "Hi", EndTurn"#),
        ("reasoning_text of Copilot", answer(&[r#"{"reasoning_text":"hm"}"#, r#"{"reasoning_opaque":"x"}"#, r#"{"content":"Hi"}"#], STOP), r#"thought "hm", "Hi", EndTurn"#),
        ("thinking as a field", answer(&[r#"{"thinking":"hm"}"#, r#"{"content":"Hi"}"#], STOP), r#"thought "hm", "Hi", EndTurn"#),
        ("both names with the same text", answer(&[r#"{"reasoning":"hm","reasoning_content":"hm"}"#, r#"{"content":"Hi"}"#], STOP), r#"thought "hm", "Hi", EndTurn"#),
        ("details beside the text", answer(&[r#"{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]}"#, r#"{"content":"Hi"}"#], STOP), r#"thought "hm", "Hi", EndTurn"#),
        ("details alone", answer(&[r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"hm"},{"type":"reasoning.encrypted","data":"x"}]}"#, r#"{"content":"Hi"}"#], STOP), r#"thought "hm", "Hi", EndTurn"#),
        ("details that are no list", answer(&[r#"{"reasoning_details":{},"content":"Hi"}"#], STOP), r#""Hi", EndTurn"#),
        ("thinking parts of Mistral", answer(&[r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#, r#"{"content":"Hi"}"#], STOP), r#"thought "hm", "Hi", EndTurn"#),
        ("a refusal", answer(&[r#"{"refusal":"No."}"#], STOP), r#""No.", Refusal"#),
        ("a reason in capitals", plain(r#"{"choices":[{"delta":{},"finish_reason":"MAX_TOKENS"}]}"#), r#""Hi", MaxTokens"#),
        ("a reason nobody knows", plain(r#"{"choices":[{"delta":{},"finish_reason":"eos_token"}]}"#), r#""Hi", EndTurn"#),
        ("a full context at Z.ai", plain(r#"{"choices":[{"delta":{},"finish_reason":"model_context_window_exceeded"}]}"#), r#""Hi", MaxTokens"#),
        ("a filter of Z.ai", plain(r#"{"choices":[{"delta":{},"finish_reason":"sensitive"}]}"#), r#""Hi", ContentFilter"#),
        ("a filter of Gemini", plain(r#"{"choices":[{"delta":{},"finish_reason":"PROHIBITED_CONTENT"}]}"#), r#""Hi", ContentFilter"#),
        ("a network error as a reason", plain(r#"{"choices":[{"delta":{},"finish_reason":"network_error"}]}"#), r#""Hi", error Server: the provider ended the answer with an error (network_error)"#),
        ("a request that vLLM gave up", plain(r#"{"choices":[{"delta":{},"finish_reason":"abort"}]}"#), r#""Hi", error Server: the provider ended the answer with an error (abort)"#),
        ("a call that Gemini dropped", sse(&[r#"{"choices":[{"delta":{},"finish_reason":"MALFORMED_FUNCTION_CALL"}]}"#]), "error Server: the provider ended the answer with an error (MALFORMED_FUNCTION_CALL)"),
        ("no reason and no marker", sse(&[HI]), r#""Hi", error IncompleteStream: the answer broke off before its end"#),
        ("a marker and no reason", sse(&[HI, "[DONE]"]), r#""Hi", EndTurn"#),
        ("a second choice", sse(&[r#"{"choices":[{"index":0,"delta":{"content":"Hi"}},{"index":1,"delta":{"content":"Ho"}}]}"#, r#"{"choices":[{"index":1,"delta":{"content":"ho"},"finish_reason":"length"}]}"#, STOP]), r#""Hi", EndTurn"#),
        ("an error as text", sse(&[HI, r#"{"error":"Overloaded"}"#]), r#""Hi", error Overloaded: Overloaded"#),
        ("an error with a number", sse(&[r#"{"error":{"code":429,"message":"slow down"}}"#]), "error RateLimit: slow down"),
        ("an error with a number in text", sse(&[r#"{"error":{"code":"503","message":"later"}}"#]), "error Overloaded: later"),
        ("an error in a list", sse(&[r#"{"errors":[{"code":5007,"message":"No such model"}],"success":false}"#]), "error Unknown: No such model"),
        ("an error of FastAPI", sse(&[r#"{"detail":[{"loc":["body","model"],"msg":"field required"}]}"#]), "error Unknown: body.model: field required"),
        ("an error of MiniMax", sse(&[r#"{"base_resp":{"status_code":1004,"status_msg":"login fail"}}"#]), "error Unknown: login fail"),
        ("no error of MiniMax", sse(&[r#"{"choices":[{"delta":{"content":"Hi"}}],"base_resp":{"status_code":0,"status_msg":""}}"#, STOP]), r#""Hi", EndTurn"#),
        ("an error of Baidu", sse(&[r#"{"error_code":18,"error_msg":"Open api qps request limit reached"}"#]), "error Unknown: Open api qps request limit reached"),
        ("a named error that is no JSON", "event: error\ndata: upstream closed\n\n".to_owned(), "error Unknown: upstream closed"),
        ("an error in a choice", sse(&[r#"{"choices":[{"delta":{},"error":{"code":502,"message":"upstream"},"finish_reason":"error"}]}"#]), "error Server: upstream"),
        ("an error line without its field", format!("data: {HI}\n\nerror: {{\"message\":\"Overloaded\"}}\n\n"), r#""Hi", error Overloaded: Overloaded"#),
        ("half a pair", answer(&[r#"{"content":"a\ud83d"}"#, r#"{"content":"\ude00b"}"#], STOP), "\"a\u{1f600}b\", EndTurn"),
        ("a whole answer", r#"{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":6}}"#.to_owned(), r#""Hi", EndTurn, in 5 out 6"#),
    ]
}

/// Fragments of calls.
pub(super) fn calls() -> Vec<Variant> {
    const ONE: &str = r#"call a f {"x":1}, ToolUse"#;
    const TWO: &str = r#"call a f {"x":1}, call b g {"y":2}, ToolUse"#;
    let one = |deltas: &[&str]| answer(deltas, CALLS);
    vec![
        (
            "whole in one chunk",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            ]),
            ONE,
        ),
        (
            "not in a list",
            one(&[
                r#"{"tool_calls":{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}}"#,
            ]),
            ONE,
        ),
        (
            "an object for input",
            one(&[r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]}"#]),
            ONE,
        ),
        (
            "no type, no index",
            one(&[
                r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":":1}"}}]}"#,
            ]),
            ONE,
        ),
        (
            "id and name in each fragment",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}"#,
            ]),
            ONE,
        ),
        (
            "empty and null continuations",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"","type":null,"function":{"name":null,"arguments":"{\"x\""}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":null,"function":{"name":"","arguments":":1}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":null}}]}"#,
            ]),
            ONE,
        ),
        (
            "the id late",
            one(&[
                r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\""}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":":1}"}}]}"#,
            ]),
            ONE,
        ),
        (
            "the name late",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            ]),
            ONE,
        ),
        (
            "no id at all",
            one(&[
                r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            ]),
            r#"call - f {"x":1}, ToolUse"#,
        ),
        (
            "an id that is a number",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":7,"function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            ]),
            r#"call - f {"x":1}, ToolUse"#,
        ),
        (
            "no arguments",
            one(&[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}"#]),
            "call a f {}, ToolUse",
        ),
        (
            "null arguments",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":null}}]}"#,
            ]),
            "call a f {}, ToolUse",
        ),
        (
            "empty arguments",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}"#,
            ]),
            "call a f {}, ToolUse",
        ),
        (
            "text before, empty lists between",
            one(&[
                r#"{"content":"","tool_calls":[]}"#,
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
                r#"{"content":null,"tool_calls":[]}"#,
            ]),
            ONE,
        ),
        (
            "a stop that is no tool_calls",
            answer(
                &[
                    r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
                ],
                STOP,
            ),
            ONE,
        ),
        (
            "control characters in the input",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"1\n\t2\"}"}}]}"#,
            ]),
            r#"call a f {"x":"1\n\t2"}, ToolUse"#,
        ),
        (
            "input that is no object",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"[1]"}}]}"#,
            ]),
            "call a f invalid, ToolUse",
        ),
        (
            "input cut by the limit",
            answer(
                &[
                    r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
                ],
                r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
            ),
            "call a f cut, MaxTokens",
        ),
        (
            "the old form",
            one(&[
                r#"{"function_call":{"name":"f","arguments":"{\"x\""}}"#,
                r#"{"function_call":{"arguments":":1}"}}"#,
            ]),
            r#"call - f {"x":1}, ToolUse"#,
        ),
        (
            "two in one chunk",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}]}"#,
            ]),
            TWO,
        ),
        (
            "two in one chunk, all at index 0",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}]}"#,
            ]),
            TWO,
        ),
        (
            "two, all at index 0",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}]}"#,
            ]),
            TWO,
        ),
        (
            "two at index 0 in pieces",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"y\":2}"}}]}"#,
            ]),
            TWO,
        ),
        (
            "the second begins at index 0 and goes on at 1",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"y\""}}]}"#,
                r#"{"tool_calls":[{"index":1,"function":{"arguments":":2}"}}]}"#,
            ]),
            TWO,
        ),
        (
            "two without indexes, in pieces",
            one(&[
                r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":":1}"}}]}"#,
                r#"{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{\"y\""}}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":":2}"}}]}"#,
            ]),
            TWO,
        ),
        (
            "two interleaved",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}"#,
                r#"{"tool_calls":[{"index":1,"function":{"arguments":":2}"}}]}"#,
            ]),
            TWO,
        ),
        (
            "two with one id, in pieces",
            one(&[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"x\":2}"}}]}"#,
            ]),
            r#"call a f {"x":1}, call a f {"x":2}, ToolUse"#,
        ),
        (
            "two with neither id nor index",
            one(&[
                r#"{"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"function":{"name":"g","arguments":"{\"y\":2}"}}]}"#,
            ]),
            r#"call - f {"x":1}, call - g {"y":2}, ToolUse"#,
        ),
        (
            "twice the same call",
            one(&[
                r#"{"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":2}"}}]}"#,
            ]),
            r#"call - f {"x":1}, call - f {"x":2}, ToolUse"#,
        ),
        (
            "indexes from 1",
            one(&[
                r#"{"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":2,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}]}"#,
            ]),
            TWO,
        ),
        (
            "indexes as text",
            one(&[
                r#"{"tool_calls":[{"index":"0","id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
                r#"{"tool_calls":[{"index":"1","id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}]}"#,
            ]),
            TWO,
        ),
    ]
}
