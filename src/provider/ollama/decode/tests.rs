use serde_json::json;

use super::*;
use crate::message::{NativeReply, Usage};
use crate::provider::decode::{Decoder, MAX_BYTES};
use crate::provider::{End, MAX_CALLS};

fn decoder(estimate: u64) -> Decoder {
    let wire = Box::new(OllamaWire::new(estimate));
    Decoder::new(wire, "local", "qwen3", Vec::new())
}

/// Feeds lines and the end of the bytes; returns the chunks and what went wrong.
fn stream(lines: &[Value]) -> (Vec<Chunk>, Option<ProviderError>) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    stream_text(&mut decoder(0), &lines)
}

fn stream_text(decoder: &mut Decoder, lines: &[&str]) -> (Vec<Chunk>, Option<ProviderError>) {
    let mut chunks = Vec::new();
    let outcome = lines
        .iter()
        .try_for_each(|line| decoder.frame("", line, &mut chunks))
        .and_then(|()| decoder.finish(&mut chunks));
    (chunks, outcome.err())
}

fn end(chunks: &[Chunk]) -> &End {
    match chunks.last() {
        Some(Chunk::End(end)) => end,
        other => panic!("no end but {other:?}"),
    }
}

fn object(value: Value) -> CallInput {
    match value {
        Value::Object(object) => CallInput::Object(object),
        other => panic!("{other} is no object"),
    }
}

#[test]
fn a_line_may_carry_thinking_text_and_calls_at_once() {
    let (chunks, error) = stream(&[
        json!({"model": "qwen3:4b", "message": {"role": "assistant", "content": "b", "thinking": "a",
            "tool_calls": [{"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}}]}}),
        json!({"message": {"content": "", "tool_calls": [{"function": {"index": 0, "name": "g", "arguments": {}}}]},
            "done": true, "done_reason": "stop", "prompt_eval_count": 7, "eval_count": 3}),
    ]);
    assert_eq!(error, None);
    let expected = vec![
        Chunk::Start {
            model: Some("qwen3:4b".to_owned()),
        },
        Chunk::Thinking("a".to_owned()),
        Chunk::Text("b".to_owned()),
        Chunk::ToolCallStart {
            index: 0,
            provider_call_id: Some("call_1".to_owned()),
            name: "f".to_owned(),
        },
        Chunk::ToolCallDelta {
            index: 0,
            fragment: r#"{"x":1}"#.to_owned(),
        },
        Chunk::ToolCallEnd {
            index: 0,
            provider_call_id: Some("call_1".to_owned()),
            input: object(json!({"x": 1})),
        },
        Chunk::ToolCallStart {
            index: 1,
            provider_call_id: None,
            name: "g".to_owned(),
        },
        Chunk::ToolCallDelta {
            index: 1,
            fragment: "{}".to_owned(),
        },
        Chunk::ToolCallEnd {
            index: 1,
            provider_call_id: None,
            input: object(json!({})),
        },
        Chunk::End(End {
            stop: Stop::ToolUse,
            raw_stop: Some("stop".to_owned()),
            usage: Usage {
                input: Some(7),
                output: Some(3),
                ..Usage::default()
            },
            native: Some(NativeReply {
                wire: WIRE.to_owned(),
                provider: "local".to_owned(),
                model: "qwen3".to_owned(),
                items: json!([{"role": "assistant", "content": "b", "thinking": "a", "tool_calls": [
                    {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}},
                    {"function": {"index": 0, "name": "g", "arguments": {}}},
                ]}]),
            }),
        }),
    ];
    assert_eq!(chunks, expected);
}

#[test]
fn the_stop_reason_is_the_servers_unless_there_are_calls() {
    let call = json!([{"function": {"name": "f", "arguments": {}}}]);
    let cases = [
        (json!(null), Some("stop"), Ok(Stop::EndTurn)),
        (call.clone(), Some("stop"), Ok(Stop::ToolUse)),
        (json!(null), Some("length"), Ok(Stop::MaxTokens)),
        (call.clone(), Some("length"), Ok(Stop::MaxTokens)),
        (json!(null), Some("load"), Ok(Stop::EndTurn)),
        (json!(null), Some("unload"), Ok(Stop::EndTurn)),
        (json!(null), Some("something new"), Ok(Stop::EndTurn)),
        (json!(null), None, Ok(Stop::EndTurn)),
        (json!(null), Some(""), Err(ErrorKind::IncompleteStream)),
        (call, Some(""), Err(ErrorKind::IncompleteStream)),
    ];
    for (calls, reason, expected) in cases {
        let mut line = json!({"message": {"content": "a", "tool_calls": calls}, "done": true});
        if let Some(reason) = reason {
            line["done_reason"] = json!(reason);
        }
        let (chunks, error) = stream(&[line.clone()]);
        match expected {
            Ok(stop) => {
                assert_eq!(error, None, "{line}");
                assert_eq!(end(&chunks).stop, stop, "{line}");
                assert_eq!(end(&chunks).raw_stop.as_deref(), reason, "{line}");
            }
            Err(kind) => {
                assert_eq!(error.map(|error| error.kind), Some(kind), "{line}");
                assert!(!matches!(chunks.last(), Some(Chunk::End(_))), "{line}");
            }
        }
    }
}

fn invalid(raw: &str) -> CallInput {
    CallInput::Invalid {
        raw: raw.to_owned(),
        reason: "the input is no JSON object".to_owned(),
    }
}

#[test]
fn arguments_of_every_shape_come_to_an_input() {
    let cases = [
        (json!({"a": [1, null]}), object(json!({"a": [1, null]}))),
        (json!(null), object(json!({}))),
        (json!(""), object(json!({}))),
        (json!(" "), object(json!({}))),
        (json!(r#"{"a":1}"#), object(json!({"a": 1}))),
        (json!("[1]"), invalid("[1]")),
        (json!([1]), invalid("[1]")),
        (json!(3), invalid("3")),
    ];
    for (arguments, expected) in cases {
        let line = json!({"message": {"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]},
            "done": true, "done_reason": "stop"});
        let (chunks, error) = stream(&[line]);
        assert_eq!(error, None);
        let input = chunks.iter().find_map(|chunk| match chunk {
            Chunk::ToolCallEnd { input, .. } => Some(input),
            _ => None,
        });
        assert_eq!(input, Some(&expected), "{arguments}");
        let native = end(&chunks).native.clone().expect("a call is kept");
        let sent_back = &native.items[0]["tool_calls"][0]["function"]["arguments"];
        assert!(sent_back.is_object(), "{arguments}");
    }
}

#[test]
fn a_call_without_arguments_or_function_does_no_harm() {
    let (chunks, error) = stream(&[json!({"message": {"tool_calls": [
        {"function": {"name": "f"}}, {"id": "x"}, 7, {"function": {}},
    ]}, "done": true})]);
    assert_eq!(error, None);
    let names: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::ToolCallStart { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["f", ""]);
}

#[test]
fn fields_of_the_wrong_type_and_lines_after_the_end_are_ignored() {
    let (chunks, error) = stream(&[
        json!({"model": 4, "message": "text", "done": "no", "prompt_eval_count": -1, "error": null}),
        json!({"message": {"content": 1, "thinking": [], "tool_calls": {}}, "done": null, "new": {}}),
        json!({"message": {"content": "a"}, "done": true, "done_reason": 9}),
        json!({"message": {"content": "b"}, "done": true}),
        json!("after the end"),
    ]);
    assert_eq!(error, None);
    let expected = vec![
        Chunk::Start { model: None },
        Chunk::Text("a".to_owned()),
        Chunk::End(End {
            stop: Stop::EndTurn,
            raw_stop: None,
            usage: Usage::default(),
            native: None,
        }),
    ];
    assert_eq!(chunks, expected);
}

#[test]
fn what_is_broken_is_told_apart_from_what_is_cut() {
    let good = r#"{"message":{"content":"é\u00e9"},"done":false}"#;
    let cases = [
        ("", ErrorKind::IncompleteStream),
        ("{", ErrorKind::IncompleteStream),
        (good, ErrorKind::IncompleteStream),
        ("<html>", ErrorKind::Protocol),
        (r#"{"a":1} x"#, ErrorKind::Protocol),
        ("[]", ErrorKind::Protocol),
        ("null", ErrorKind::Protocol),
        (r#"{"error":"boom"}"#, ErrorKind::Unknown),
        (
            r#"{"error parsing tool call":"x"}"#,
            ErrorKind::IncompleteStream,
        ),
    ];
    for (line, expected) in cases {
        let (_, error) = stream_text(&mut decoder(0), &[line]);
        assert_eq!(error.map(|error| error.kind), Some(expected), "{line}");
        let whole = decoder(0).whole(line, &mut Vec::new());
        assert_eq!(whole.map_err(|error| error.kind), Err(expected), "{line}");
    }
    for (cut, _) in good.char_indices().skip(1) {
        let (start, _) = good.split_at(cut);
        let (_, error) = stream_text(&mut decoder(0), &[start]);
        let kind = error.map(|error| error.kind);
        assert_eq!(kind, Some(ErrorKind::IncompleteStream), "cut at {cut}");
    }
}

#[test]
fn a_prompt_that_was_cut_is_reported_once_before_the_end() {
    // (estimate, prompt_eval_count, whether there is a notice)
    let cases = [
        (10_000, Some(2050), true),
        (10_000, Some(5999), true),
        (10_000, Some(6000), false),
        (10_000, None, false),
        (2047, Some(1), false),
        (2048, Some(1), true),
        (0, Some(0), false),
    ];
    for (estimate, read, is_noticed) in cases {
        let mut line = json!({"message": {"content": "a"}, "done": true});
        if let Some(read) = read {
            line["prompt_eval_count"] = json!(read);
        }
        let (chunks, _) = stream_text(&mut decoder(estimate), &[&line.to_string()]);
        let codes: Vec<&str> = chunks
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::Notice(notice) => Some(notice.code.as_str()),
                _ => None,
            })
            .collect();
        let expected: &[&str] = if is_noticed {
            &["prompt_truncated"]
        } else {
            &[]
        };
        assert_eq!(codes, expected, "{estimate} {read:?}");
        assert!(matches!(chunks.last(), Some(Chunk::End(_))));
    }
}

#[test]
fn what_is_kept_of_an_answer_is_bounded() {
    let line = json!({"message": {"thinking": "x".repeat(1 << 20)}}).to_string();
    let mut decoder = decoder(0);
    decoder.bytes = MAX_BYTES - (4 << 20);
    let (_, error) = stream_text(&mut decoder, &[line.as_str(); 4]);
    assert_eq!(error.unwrap().kind, ErrorKind::Protocol);
}

#[test]
fn a_server_that_repeats_a_call_for_ever_is_given_up() {
    let line = json!({"message": {"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}, "done": false});
    let lines = vec![line; MAX_CALLS + 1];
    let (chunks, error) = stream(&lines);
    let starts = chunks
        .iter()
        .filter(|it| matches!(it, Chunk::ToolCallStart { .. }));
    assert_eq!(starts.count(), MAX_CALLS);
    assert!(error.unwrap().message.contains("more than 512 tool calls"));
    // In one line as well.
    let calls = vec![json!({"function": {"name": "f"}}); MAX_CALLS + 1];
    let (_, error) = stream(&[json!({"message": {"tool_calls": calls}, "done": true})]);
    assert!(error.is_some());
}
