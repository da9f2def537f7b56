use serde_json::{Value, json};

use super::*;
use crate::message::{Notice, Severity};
use crate::provider::decode::{Decoder, MAX_BYTES};
use crate::provider::{CallInput, Chunk, End};

/// What an answer came to.
struct Answer {
    chunks: Vec<Chunk>,
    outcome: Result<(), ProviderError>,
}

impl Answer {
    fn joined(&self, of: impl Fn(&Chunk) -> Option<&str>) -> String {
        self.chunks.iter().filter_map(of).collect()
    }

    fn text(&self) -> String {
        self.joined(|chunk| match chunk {
            Chunk::Text(text) => Some(text),
            _ => None,
        })
    }

    fn thinking(&self) -> String {
        self.joined(|chunk| match chunk {
            Chunk::Thinking(text) => Some(text),
            _ => None,
        })
    }

    fn inputs(&self) -> Vec<&CallInput> {
        let inputs = self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::ToolCallEnd { input, .. } => Some(input),
            _ => None,
        });
        inputs.collect()
    }

    fn end(&self) -> &End {
        match self.chunks.last() {
            Some(Chunk::End(end)) => end,
            other => panic!("{other:?} is no end"),
        }
    }
}

fn decoder() -> Decoder {
    noting(Vec::new())
}

fn noting(notices: Vec<Notice>) -> Decoder {
    Decoder::new(Box::<ChatWire>::default(), "p", "m", notices)
}

fn read(frames: &[Value]) -> Answer {
    let texts: Vec<String> = frames
        .iter()
        .map(|frame| {
            frame
                .as_str()
                .map_or_else(|| frame.to_string(), str::to_owned)
        })
        .collect();
    let frames: Vec<(&str, &str)> = texts.iter().map(|text| ("", text.as_str())).collect();
    read_named(&frames)
}

fn read_named(frames: &[(&str, &str)]) -> Answer {
    let mut decoder = decoder();
    let mut chunks = Vec::new();
    for (event, data) in frames {
        if let Err(error) = decoder.frame(event, data, &mut chunks) {
            let outcome = Err(error);
            return Answer { chunks, outcome };
        }
    }
    let outcome = decoder.finish(&mut chunks);
    Answer { chunks, outcome }
}

fn delta(delta: Value) -> Value {
    let mut chunk = json!({"choices": [{"index": 0, "finish_reason": null}]});
    chunk["choices"][0]["delta"] = delta;
    chunk
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call(arguments: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}]})
}

#[test]
fn chunks_that_servers_are_known_to_send() {
    let text = delta(json!({"content": "Hi"}));
    let cases = [
        (
            "no choices",
            vec![
                json!({"choices": []}),
                json!({}),
                json!({"choices": null}),
                text.clone(),
            ],
        ),
        (
            "usage of all sorts",
            vec![
                json!({"choices": [], "usage": {}}),
                json!({"choices": [{"delta": {"content": "Hi"}}], "usage": null}),
            ],
        ),
        (
            "an empty reason in every chunk",
            vec![
                json!({"choices": [{"delta": {"content": "H"}, "finish_reason": ""}]}),
                json!({"choices": [{"delta": {"content": "i"}, "finish_reason": ""}]}),
            ],
        ),
        (
            "unknown values",
            vec![
                json!({"service_tier": "on_demand", "object": 3, "choices": [
                {"delta": {"content": "Hi", "role": 7, "tool_calls": null, "new": {}}}]}),
            ],
        ),
        (
            "text in the chunk that ends",
            vec![
                delta(json!({"content": "H"})),
                json!({"choices": [{"delta": {"content": "i"}, "finish_reason": "stop"}]}),
            ],
        ),
        (
            "another choice beside",
            vec![
                json!({"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "Hi"}}]}),
            ],
        ),
        (
            "a message instead of a delta",
            vec![json!({"choices": [{"message": {"content": "Hi"}}]})],
        ),
        (
            "no error after all",
            vec![
                json!({"error": null, "choices": [{"delta": {"content": "Hi"}}]}),
                json!({"error": {}}),
                json!({"error": ""}),
            ],
        ),
        (
            "data after the end",
            vec![
                text,
                json!("[DONE] [DONE]"),
                delta(json!({"content": "no"})),
            ],
        ),
    ];
    for (case, mut frames) in cases {
        frames.push(json!("[DONE]"));
        let read = read(&frames);
        assert_eq!(read.outcome, Ok(()), "{case}");
        assert_eq!(read.text(), "Hi", "{case}");
        assert_eq!(read.end().stop, Stop::EndTurn, "{case}");
    }
}

#[test]
fn an_end_without_a_marker() {
    let closed = read(&[delta(json!({"content": "Hi"})), finish("stop")]);
    assert_eq!(closed.outcome, Ok(()));
    assert_eq!(closed.end().raw_stop.as_deref(), Some("stop"));
    let lost = read(&[
        delta(json!({"content": "Hi"})),
        delta(call("{\"a\":1}")),
        delta(call("")),
    ]);
    assert_eq!(lost.outcome.unwrap_err().kind, ErrorKind::IncompleteStream);
    assert_eq!(
        read(&[]).outcome.unwrap_err().kind,
        ErrorKind::IncompleteStream
    );
}

#[test]
fn stops_are_decided_by_what_came() {
    let text = || delta(json!({"content": "x"}));
    let whole = || delta(call("{\"a\":1}"));
    let cases = [
        (vec![whole(), finish("stop")], Stop::ToolUse),
        (vec![text(), finish("tool_calls")], Stop::EndTurn),
        (vec![text(), finish("length")], Stop::MaxTokens),
        (vec![whole(), finish("length")], Stop::MaxTokens),
        (vec![text(), finish("MODEL_LENGTH")], Stop::MaxTokens),
        (vec![text(), finish("content_filter")], Stop::ContentFilter),
        (
            vec![delta(json!({"refusal": "No."})), finish("content_filter")],
            Stop::Refusal,
        ),
        (
            vec![delta(json!({"refusal": "No."})), finish("stop")],
            Stop::Refusal,
        ),
        (vec![text(), finish("stop_sequence")], Stop::StopSequence),
        (vec![text(), finish("something new")], Stop::EndTurn),
    ];
    for (frames, stop) in cases {
        let read = read(&frames);
        assert_eq!(read.outcome, Ok(()));
        assert_eq!(read.end().stop, stop, "{frames:?}");
    }
}

#[test]
fn a_call_cut_by_the_limit_never_becomes_an_input() {
    for arguments in ["", "{\"path\": \"a", "{\"path\""] {
        let read = read(&[delta(call(arguments)), finish("length")]);
        let raw = arguments.to_owned();
        assert_eq!(read.inputs(), [&CallInput::Truncated { raw }]);
    }
    // The server says that all is well.
    let read = read(&[delta(call("{\"path\": \"a")), finish("tool_calls")]);
    assert!(matches!(read.inputs()[..], [CallInput::Truncated { .. }]));
    let native = read.end().native.as_ref().unwrap();
    assert_eq!(
        native.items[0]["tool_calls"][0]["function"]["arguments"],
        "{}"
    );
}

#[test]
fn errors_inside_of_an_answer() {
    let text = delta(json!({"content": "Hi"})).to_string();
    let cases = [
        (
            "",
            r#"{"error":{"message":"overloaded","type":"overloaded_error"}}"#,
            ErrorKind::Overloaded,
        ),
        (
            "",
            r#"{"error":{"code":429,"message":"slow down"},"choices":[{"finish_reason":"error","delta":{}}]}"#,
            ErrorKind::RateLimit,
        ),
        (
            "",
            r#"{"choices":[{"index":0,"delta":{},"error":{"code":502,"message":"upstream"}}]}"#,
            ErrorKind::Server,
        ),
        (
            "",
            r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
            ErrorKind::Server,
        ),
        (
            "",
            r#"{"choices":[{"finish_reason":"insufficient_system_resource"}]}"#,
            ErrorKind::Overloaded,
        ),
        (
            "",
            r#"{"object":"error","message":"bad","type":"invalid_request_error","code":400}"#,
            ErrorKind::InvalidRequest,
        ),
        (
            "error",
            r#"{"code":400,"details":"bad"}"#,
            ErrorKind::InvalidRequest,
        ),
        ("error", "overloaded", ErrorKind::Overloaded),
        ("", "{\"choices\": [", ErrorKind::Protocol),
    ];
    for (event, data, kind) in cases {
        let open = delta(call("{\"a\"")).to_string();
        let read = read_named(&[("", &text), ("", &open), (event, data), ("", "[DONE]")]);
        assert_eq!(read.text(), "Hi", "what came before is kept");
        assert!(matches!(read.inputs()[..], [CallInput::Truncated { .. }]));
        let error = read.outcome.unwrap_err();
        assert_eq!(error.kind, kind, "{data}: {error:?}");
        assert!(!error.message.is_empty());
    }
}

#[test]
fn the_error_of_groq_keeps_its_code() {
    let data = r#"{"error":{"message":"did not match schema","type":"invalid_request_error","code":"tool_use_failed","status_code":400}}"#;
    let error = read_named(&[("error", data)]).outcome.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("tool_use_failed"));
}

#[test]
fn thinking_is_passed_on_once_and_kept_as_it_came() {
    let cases = [
        (
            json!({"reasoning_content": "x"}),
            json!({"reasoning_content": "x"}),
        ),
        (json!({"reasoning": "x"}), json!({"reasoning": "x"})),
        (
            json!({"reasoning": "x", "reasoning_content": "x"}),
            json!({"reasoning_content": "x"}),
        ),
        (
            json!({"reasoning_details": [{"type": "reasoning.text", "text": "x", "signature": "s"}]}),
            json!({"reasoning_details": [{"type": "reasoning.text", "text": "x", "signature": "s"}]}),
        ),
        (
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "x"}]}]}),
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "x"}]}]}),
        ),
    ];
    for (sent, kept) in cases {
        let read = read(&[delta(sent), finish("stop")]);
        assert_eq!(read.thinking(), "x");
        let native = read.end().native.clone().unwrap();
        assert_eq!((native.wire.as_str(), native.model.as_str()), (WIRE, "m"));
        assert_eq!(native.items, json!([kept]));
    }
    let plain = read(&[
        delta(json!({"content": "<think>x</think>Hi"})),
        finish("stop"),
    ]);
    assert_eq!(plain.text(), "<think>x</think>Hi");
    assert_eq!(plain.end().native, None);
}

#[test]
fn reasoning_goes_back_in_the_field_it_began_in() {
    let read = read(&[
        delta(json!({"reasoning_content": "a"})),
        delta(json!({"reasoning": "b"})),
        finish("stop"),
    ]);
    assert_eq!(read.thinking(), "ab");
    let items = &read.end().native.as_ref().unwrap().items;
    assert_eq!(items, &json!([{"reasoning_content": "ab"}]));
}

#[test]
fn of_a_field_sent_twice_the_last_counts() {
    let frame = r#"{"choices":[],"choices":[{"delta":{"content":"a","content":"b"}}]}"#;
    assert_eq!(read_named(&[("", frame)]).text(), "b");
}

#[test]
fn parts_and_plain_text_of_one_answer() {
    let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": "x"}]});
    let after = read(&[
        delta(json!({"content": ""})),
        delta(json!({"content": [thinking]})),
        delta(json!({"content": "H"})),
        delta(json!({"content": "i"})),
        finish("stop"),
    ]);
    assert_eq!(after.text(), "Hi");
    let items = &after.end().native.as_ref().unwrap().items;
    assert_eq!(
        items[0]["content"],
        json!([thinking, {"type": "text", "text": "Hi"}])
    );
    // Text that came first is in no part, so the parts are not all of the answer.
    let before = read(&[
        delta(json!({"content": "Hi"})),
        delta(json!({"content": [thinking]})),
        finish("stop"),
    ]);
    assert_eq!(before.end().native, None);
}

#[test]
fn the_start_names_the_model_and_tells_notices() {
    let notice = Notice {
        severity: Severity::Info,
        code: "c".to_owned(),
        message: "m".to_owned(),
    };
    let mut decoder = noting(vec![notice.clone()]);
    let mut chunks = Vec::new();
    for frame in [
        json!({"model": "", "choices": [], "prompt_filter_results": []}),
        json!({"model": "gpt", "choices": []}),
        json!({"model": "gpt", "choices": [{"delta": {"content": "Hi"}}]}),
    ] {
        decoder.frame("", &frame.to_string(), &mut chunks).unwrap();
    }
    let expected = [
        Chunk::Start {
            model: Some("gpt".to_owned()),
        },
        Chunk::Notice(notice),
        Chunk::Text("Hi".to_owned()),
    ];
    assert_eq!(chunks, expected);
}

#[test]
fn whole_bodies() {
    let check = |body: &str| {
        let mut chunks = Vec::new();
        let outcome = decoder().whole(body, &mut chunks);
        Answer { chunks, outcome }
    };
    let answer = check(
        r#"{"model":"m","choices":[{"message":{"content":"Hi","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}"#,
    );
    assert_eq!(answer.outcome, Ok(()));
    assert_eq!(answer.end().stop, Stop::ToolUse);
    assert_eq!(answer.end().usage.input, Some(3));
    for (body, kind) in [
        ("{}", ErrorKind::Protocol),
        ("{\"choices\":[]}", ErrorKind::Protocol),
        ("nonsense", ErrorKind::Protocol),
        (
            r#"{"error":{"message":"no such model","type":"not_found_error"}}"#,
            ErrorKind::NotFound,
        ),
        (r#"{"detail":"Not authenticated"}"#, ErrorKind::Unknown),
    ] {
        let read = check(body);
        let error = read.outcome.unwrap_err();
        assert_eq!(error.kind, kind, "{body}");
        assert!(read.chunks.is_empty());
    }
}

#[test]
fn what_is_kept_of_an_answer_is_bounded() {
    let megabyte = "x".repeat(1 << 20);
    let frames = [
        delta(json!({"reasoning": megabyte})),
        delta(call(&megabyte)),
        delta(json!({"content": [{"type": "text", "text": megabyte}]})),
    ];
    for frame in frames {
        let frame = frame.to_string();
        let mut decoder = decoder();
        decoder.bytes = MAX_BYTES - (4 << 20);
        let mut taken = 0;
        let error = loop {
            if let Err(error) = decoder.frame("", &frame, &mut Vec::new()) {
                break error;
            }
            taken += 1;
            assert!(taken < 4, "more than MAX_BYTES were read");
        };
        assert_eq!(error.kind, ErrorKind::Protocol);
    }
}
