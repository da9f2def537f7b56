//! Ollama, and servers that imitate it.

use super::{Variant, lines, sse};

const HI: &str = r#"{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}"#;
const END: &str = r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":6}"#;
const HELLO: &str = r#""Hi", EndTurn, in 5 out 6"#;
const ONE: &str = r#"call a f {"x":1}, ToolUse, in 5 out 6"#;

/// An answer with these calls in one line.
fn calls(calls: &str) -> String {
    let line = format!(
        r#"{{"message":{{"role":"assistant","content":"","tool_calls":{calls}}},"done":false}}"#
    );
    lines(&[&line, END])
}

pub(super) fn variants() -> Vec<Variant> {
    vec![
        ("lines", lines(&[HI, END]), HELLO),
        ("carriage returns and empty lines", format!("{HI}\r\n\r\n{END}\r\n"), HELLO),
        ("no end of the last line", format!("{HI}\n{END}"), HELLO),
        ("events instead of lines", sse(&[HI, END]), HELLO),
        ("text in the last line", lines(&[r#"{"message":{"content":"Hi"},"done":true,"prompt_eval_count":5,"eval_count":6}"#]), HELLO),
        ("no role, null fields", lines(&[r#"{"message":{"content":"Hi","thinking":null,"tool_calls":null,"images":null}}"#, END]), HELLO),
        ("no message in a line", lines(&[r#"{"model":"m","created_at":"x","done":false}"#, HI, END]), HELLO),
        ("thinking", lines(&[r#"{"message":{"content":"","thinking":"hm"},"done":false}"#, HI, END]), r#"thought "hm", "Hi", EndTurn, in 5 out 6"#),
        ("thinking under another name", lines(&[r#"{"message":{"content":"","reasoning":"hm"},"done":false}"#, HI, END]), r#"thought "hm", "Hi", EndTurn, in 5 out 6"#),
        ("a call", calls(r#"[{"id":"a","function":{"index":0,"name":"f","arguments":{"x":1}}}]"#), ONE),
        ("input as text", calls(r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]"#), ONE),
        ("no wrapper around a call", calls(r#"[{"id":"a","name":"f","arguments":{"x":1}}]"#), ONE),
        ("no id", calls(r#"[{"function":{"name":"f","arguments":{"x":1}}}]"#), r#"call - f {"x":1}, ToolUse, in 5 out 6"#),
        ("no input", calls(r#"[{"id":"a","function":{"name":"f"}}]"#), "call a f {}, ToolUse, in 5 out 6"),
        ("null input", calls(r#"[{"id":"a","function":{"name":"f","arguments":null}}]"#), "call a f {}, ToolUse, in 5 out 6"),
        ("input that is a list", calls(r#"[{"id":"a","function":{"name":"f","arguments":[1]}}]"#), "call a f invalid, ToolUse, in 5 out 6"),
        ("two calls at index 0 in two lines", lines(&[r#"{"message":{"tool_calls":[{"function":{"index":0,"name":"f","arguments":{"x":1}}}]}}"#, r#"{"message":{"tool_calls":[{"function":{"index":0,"name":"g","arguments":{"y":2}}}]}}"#, END]), r#"call - f {"x":1}, call - g {"y":2}, ToolUse, in 5 out 6"#),
        ("a limit", lines(&[HI, r#"{"done":true,"done_reason":"length","prompt_eval_count":5,"eval_count":6}"#]), r#""Hi", MaxTokens, in 5 out 6"#),
        ("a runner that went away", lines(&[HI, r#"{"done":true,"done_reason":""}"#]), r#""Hi", error IncompleteStream: ollama lost the connection to its model runner before the answer was complete"#),
        ("an error line", lines(&[HI, r#"{"error":"model runner has unexpectedly stopped"}"#]), r#""Hi", error Unknown: model runner has unexpectedly stopped"#),
        ("an error object", lines(&[r#"{"error":{"message":"server busy","code":503}}"#]), "error Overloaded: server busy"),
        ("no end", lines(&[HI]), r#""Hi", error IncompleteStream: ollama's answer broke off before its last line"#),
        ("half a pair", lines(&[r#"{"message":{"content":"a\ud83d"}}"#, END]), "\"a\u{fffd}\", EndTurn, in 5 out 6"),
        ("a whole answer over several lines", "{\n \"message\": {\"content\": \"Hi\"},\n \"done\": true,\n \"prompt_eval_count\": 5, \"eval_count\": 6\n}\n".to_owned(), HELLO),
    ]
}
