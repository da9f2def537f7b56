//! Anthropic Messages, mostly at those who copy it.

use super::{Variant, sse};

const START: &str = r#"{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}"#;
const TEXT: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const HI: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
const CLOSE: &str = r#"{"type":"content_block_stop","index":0}"#;
const STOP: &str =
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":6}}"#;
const END: &str = r#"{"type":"message_stop"}"#;
const HELLO: &str = r#""Hi", EndTurn, in 5 out 6"#;

/// A call that begins so, and what follows.
fn call(block: &str, deltas: &[&str]) -> String {
    let start = format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
    let deltas: Vec<String> = deltas
        .iter()
        .map(|delta| format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#))
        .collect();
    let mut frames = vec![START, &start];
    frames.extend(deltas.iter().map(String::as_str));
    frames.extend([
        CLOSE,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        END,
    ]);
    sse(&frames)
}

pub(super) fn variants() -> Vec<Variant> {
    const ONE: &str = r#"call a f {"x":1}, ToolUse, in 5 out 1"#;
    vec![
        ("no names of events", sse(&[START, TEXT, HI, CLOSE, STOP, END]), HELLO),
        ("wrong names of events", format!("event: message\ndata: {START}\n\nevent: x\ndata: {TEXT}\n\nevent: ping\ndata: {HI}\n\ndata: {CLOSE}\n\ndata: {STOP}\n\nevent: done\ndata: {END}\n\n"), HELLO),
        ("names alone say the type", "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":5}}}\n\nevent: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\nevent: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":6}}\n\nevent: message_stop\ndata: {}\n\n".to_owned(), HELLO),
        ("pings with and without data", format!("event: ping\n\ndata: {START}\n\nevent: ping\ndata: {{\"type\":\"ping\"}}\n\n: x\n\ndata: {TEXT}\n\ndata: {HI}\n\ndata: {CLOSE}\n\ndata: {STOP}\n\ndata: {END}\n\n"), HELLO),
        ("a marker of another format", sse(&[START, TEXT, HI, CLOSE, STOP, END, "[DONE]"]), HELLO),
        ("a second data prefix", sse(&[START, TEXT, HI, CLOSE, STOP, END]).replace("data: ", "data: data: "), HELLO),
        ("no indexes", sse(&[START, TEXT, HI, CLOSE, STOP, END]).replace(r#""index":0,"#, ""), HELLO),
        ("no start of the message", sse(&[TEXT, HI, CLOSE, r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5,"output_tokens":6}}"#, END]), HELLO),
        ("no start of the block", sse(&[START, HI, CLOSE, STOP, END]), HELLO),
        ("no end of the block", sse(&[START, TEXT, HI, STOP, END]), HELLO),
        ("text in the start", sse(&[START, r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}"#, CLOSE, STOP, END]), HELLO),
        ("null text", sse(&[START, TEXT, r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":null}}"#, HI, CLOSE, STOP, END]), HELLO),
        ("null usage, delta and block", sse(&[START, r#"{"type":"content_block_start","index":7,"content_block":null}"#, TEXT, HI, r#"{"type":"content_block_delta","index":0,"delta":null}"#, CLOSE, r#"{"type":"message_delta","delta":null,"usage":null}"#, STOP, END]), HELLO),
        ("usage at the end alone", sse(&[r#"{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}"#, TEXT, HI, CLOSE, r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5,"output_tokens":6,"cache_read_input_tokens":3}}"#, END]), r#""Hi", EndTurn, in 8 out 6 cached 3"#),
        ("zeros at the end", sse(&[START, TEXT, HI, CLOSE, r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":6}}"#, END]), HELLO),
        ("two message deltas", sse(&[START, TEXT, HI, CLOSE, r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":2}}"#, STOP, END]), HELLO),
        ("no stop reason", sse(&[START, TEXT, HI, CLOSE, r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":6}}"#, END]), r#""Hi", error IncompleteStream: the provider ended its answer (`message_stop`) without a reason (`stop_reason`)"#),
        ("a stop reason nobody knows", sse(&[START, TEXT, HI, CLOSE, r#"{"type":"message_delta","delta":{"stop_reason":"tired"},"usage":{"output_tokens":6}}"#, END]), HELLO),
        ("thinking without signature", sse(&[START, r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#, r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#, CLOSE, STOP, END]), r#"thought "hm", EndTurn, in 5 out 6"#),
        ("thinking in the start", sse(&[START, r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm","signature":"s"}}"#, CLOSE, STOP, END]), r#"thought "hm", EndTurn, in 5 out 6"#),
        ("thinking without its start", sse(&[START, r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#, CLOSE, STOP, END]), r#"thought "hm", EndTurn, in 5 out 6"#),
        ("unknown events, blocks and deltas", sse(&[START, r#"{"type":"weather","x":1}"#, r#"{"type":"content_block_start","index":0,"content_block":{"type":"poem","lines":[]}}"#, r#"{"type":"content_block_delta","index":0,"delta":{"type":"rhyme_delta","lines":"a"}}"#, CLOSE, r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Hi"}}"#, r#"{"type":"content_block_stop","index":1}"#, STOP, END]), HELLO),
        ("input in pieces", call(r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#, &[r#"{"type":"input_json_delta","partial_json":""}"#, r#"{"type":"input_json_delta","partial_json":"{\"x\""}"#, r#"{"type":"input_json_delta","partial_json":":1}"}"#]), ONE),
        ("input in the start", call(r#"{"type":"tool_use","id":"a","name":"f","input":{"x":1}}"#, &[]), ONE),
        ("input in the start and an empty piece", call(r#"{"type":"tool_use","id":"a","name":"f","input":{"x":1}}"#, &[r#"{"type":"input_json_delta","partial_json":""}"#]), ONE),
        ("no input", call(r#"{"type":"tool_use","id":"a","name":"f"}"#, &[]), "call a f {}, ToolUse, in 5 out 1"),
        ("null input", call(r#"{"type":"tool_use","id":"a","name":"f","input":null}"#, &[]), "call a f {}, ToolUse, in 5 out 1"),
        ("text for input", call(r#"{"type":"tool_use","id":"a","name":"f","input":""}"#, &[r#"{"type":"input_json_delta","partial_json":"{\"x\":1}"}"#]), ONE),
        ("no id", call(r#"{"type":"tool_use","name":"f","input":{"x":1}}"#, &[]), r#"call - f {"x":1}, ToolUse, in 5 out 1"#),
        ("a call and end_turn", call(r#"{"type":"tool_use","id":"a","name":"f","input":{"x":1}}"#, &[]).replace("tool_use\"},\"us", "").replace(r#""stop_reason":"tool_use""#, r#""stop_reason":"end_turn""#), ONE),
        ("tool_use without a call", sse(&[START, TEXT, HI, CLOSE, r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":6}}"#, END]), HELLO),
        ("no end marker", sse(&[START, TEXT, HI, CLOSE, STOP]), r#""Hi", error IncompleteStream: the answer ended before its end marker `message_stop`"#),
        ("an error without its wrapper", sse(&[START, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#]), "error Overloaded: Overloaded"),
        ("an error as text", "event: error\ndata: upstream closed\n\n".to_owned(), "error Unknown: upstream closed"),
        ("an error of OpenAI's form", sse(&[r#"{"error":{"message":"slow down","type":"rate_limit_exceeded","code":"rate_limit_exceeded"}}"#]), "error RateLimit: slow down"),
        ("half a pair", sse(&[START, TEXT, r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#, CLOSE, STOP, END]), "\"a\u{fffd}\", EndTurn, in 5 out 6"),
        ("a whole answer", r#"{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":6}}"#.to_owned(), HELLO),
        ("a whole answer without its type", r#"{"content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":5,"output_tokens":6}}"#.to_owned(), HELLO),
    ]
}
