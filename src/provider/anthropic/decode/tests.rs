use serde_json::json;

use super::*;
use crate::provider::decode::{Decoder, MAX_BYTES};
use crate::provider::{CallInput, Chunk, End, ErrorKind};

fn decoder() -> Decoder {
    let wire = Box::new(MessageWire::new("abc".to_owned()));
    Decoder::new(wire, "anthropic", "claude-test", Vec::new())
}

/// Feeds frames, then the end of the bytes; returns the chunks and the error, if one came.
fn run(frames: &[Value]) -> (Vec<Chunk>, Option<ProviderError>) {
    let mut decoder = decoder();
    let mut chunks = Vec::new();
    for frame in frames {
        if let Err(error) = decoder.frame("", &frame.to_string(), &mut chunks) {
            return (chunks, Some(error));
        }
    }
    let error = decoder.finish(&mut chunks).err();
    (chunks, error)
}

fn whole(body: &Value) -> (Vec<Chunk>, Option<ProviderError>) {
    let mut chunks = Vec::new();
    let error = decoder().whole(&body.to_string(), &mut chunks).err();
    (chunks, error)
}

fn start(index: u64, block: impl Into<Value>) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block.into()})
}

fn call(index: u64) -> Value {
    start(
        index,
        json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": "bash", "input": {}}),
    )
}

fn input(index: u64, fragment: &str) -> Value {
    json!({"type": "content_block_delta", "index": index,
        "delta": {"type": "input_json_delta", "partial_json": fragment}})
}

fn delta(index: u64, delta: impl Into<Value>) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta.into()})
}

fn close(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn stop(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
}

fn end() -> Value {
    json!({"type": "message_stop"})
}

fn overloaded() -> Value {
    json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
}

fn inputs(chunks: &[Chunk]) -> Vec<CallInput> {
    chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::ToolCallEnd { input, .. } => Some(input.clone()),
            _ => None,
        })
        .collect()
}

fn ending(chunks: &[Chunk]) -> &End {
    match chunks.last() {
        Some(Chunk::End(end)) => end,
        other => panic!("the last chunk is {other:?}"),
    }
}

fn object(value: Value) -> CallInput {
    match value {
        Value::Object(input) => CallInput::Object(input),
        _ => panic!("{value} is no object"),
    }
}

fn truncated(raw: &str) -> CallInput {
    CallInput::Truncated {
        raw: raw.to_owned(),
    }
}

#[test]
fn what_a_call_comes_to_depends_on_how_the_reply_ended() {
    let half = r#"{"command": "l"#;
    let full = r#"{"command": "ls"}"#;
    let whole = || object(json!({"command": "ls"}));
    let nothing = || object(json!({}));
    // Frames after the call's start, and what the call came to.
    let cases = [
        (
            vec![input(0, full), close(0), stop("tool_use"), end()],
            whole(),
        ),
        (vec![close(0), stop("tool_use"), end()], nothing()),
        (vec![input(0, full), stop("tool_use"), end()], whole()),
        // Cut by the token limit, with and without the block's end.
        (
            vec![input(0, half), stop("max_tokens"), end()],
            truncated(half),
        ),
        (
            vec![input(0, half), close(0), stop("max_tokens"), end()],
            truncated(half),
        ),
        (vec![close(0), stop("max_tokens"), end()], truncated("")),
        (
            vec![close(0), stop("model_context_window_exceeded"), end()],
            truncated(""),
        ),
        (
            vec![input(0, full), close(0), stop("max_tokens"), end()],
            whole(),
        ),
        // The limit struck later.
        (
            vec![
                close(0),
                start(1, json!({"type": "text", "text": ""})),
                stop("max_tokens"),
                end(),
            ],
            nothing(),
        ),
        // Lost connection and error.
        (vec![input(0, half)], truncated(half)),
        (vec![input(0, full)], whole()),
        (vec![], truncated("")),
        (vec![close(0)], nothing()),
        (vec![input(0, half), overloaded()], truncated(half)),
        (
            vec![input(0, half), json!({"type": 1, "error": "boom"})],
            truncated(half),
        ),
    ];
    for (tail, expected) in cases {
        let frames = [vec![call(0)], tail].concat();
        let (chunks, _) = run(&frames);
        assert_eq!(inputs(&chunks), [expected], "{frames:?}");
    }
}

#[test]
fn broken_json_of_a_closed_call_is_invalid() {
    let (chunks, _) = run(&[call(0), input(0, "{]"), close(0), stop("tool_use"), end()]);
    assert!(matches!(&inputs(&chunks)[..], [CallInput::Invalid { raw, .. }] if raw == "{]"));
    let native = ending(&chunks).native.clone();
    assert_eq!(native, None, "a call without input is plain");
}

#[test]
fn why_it_stopped_is_decided_by_content() {
    let cases = [
        ("end_turn", false, Stop::EndTurn),
        ("end_turn", true, Stop::ToolUse),
        ("tool_use", false, Stop::EndTurn),
        ("max_tokens", true, Stop::MaxTokens),
        ("model_context_window_exceeded", false, Stop::MaxTokens),
        ("stop_sequence", false, Stop::StopSequence),
        ("refusal", true, Stop::Refusal),
        ("pause_turn", false, Stop::Pause),
        ("pause_turn", true, Stop::ToolUse),
        ("something_new", false, Stop::EndTurn),
    ];
    for (reason, with_call, expected) in cases {
        let mut frames = vec![json!({"type": "message_start", "message": {}})];
        frames.extend(with_call.then(|| call(0)));
        frames.extend(with_call.then(|| close(0)));
        frames.push(stop(reason));
        frames.push(end());
        let (chunks, error) = run(&frames);
        assert_eq!(error, None);
        assert_eq!(ending(&chunks).stop, expected, "{reason:?} {with_call}");
        assert_eq!(ending(&chunks).raw_stop.as_deref(), Some(reason));
    }
}

#[test]
fn blocks_go_back_as_they_came() {
    let blocks = [
        json!({"type": "thinking", "thinking": "hm", "signature": "sig=="}),
        json!({"type": "redacted_thinking", "data": "opaque"}),
        json!({"type": "text", "citations": [{"type": "char_location", "n": 1}], "text": "as said"}),
        json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}),
        json!({"type": "hologram", "frames": [1, 2], "content": "abc"}),
        json!({"type": "tool_use", "id": "toolu_7", "name": "bash", "input": {"b": 1, "a": 2},
            "caller": {"type": "direct"}}),
    ];
    let frames = [
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig=="})),
        close(0),
        start(1, blocks[1].clone()),
        close(1),
        start(2, json!({"type": "text", "citations": null, "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "as "})),
        json!({"type": "ping"}),
        delta(
            2,
            json!({"type": "citations_delta", "citation": {"type": "char_location", "n": 1}}),
        ),
        delta(2, json!({"type": "unheard_of_delta", "text": "no"})),
        delta(2, json!({"type": "text_delta", "text": "said"})),
        close(2),
        json!({"type": "unheard_of_event", "index": 2}),
        start(
            3,
            json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}),
        ),
        input(3, ""),
        input(3, "{\"query\""),
        input(3, ": \"x\"}"),
        close(3),
        start(4, blocks[4].clone()),
        close(4),
        start(
            5,
            json!({"type": "hologram", "frames": null, "content": "a"}),
        ),
        delta(
            5,
            json!({"type": "hologram_delta", "content": "bc", "frames": [1, 2]}),
        ),
        close(5),
        start(
            6,
            json!({"type": "tool_use", "id": "toolu_7", "name": "bash", "input": {},
            "caller": {"type": "direct"}}),
        ),
        input(6, "{\"b\": 1, \"a\": 2}"),
        close(6),
        stop("tool_use"),
        end(),
    ];
    let streamed = run(&frames).0;
    let at_once =
        whole(&json!({"type": "message", "content": blocks, "stop_reason": "tool_use"})).0;
    for chunks in [streamed, at_once] {
        let native = ending(&chunks).native.clone().unwrap();
        let items = native.items.as_array().unwrap();
        let expected = [
            &blocks[..],
            &[json!({"type": PREFIX_ITEM, "sha256": "abc"})],
        ]
        .concat();
        assert_eq!(
            serde_json::to_string(items).unwrap(),
            serde_json::to_string(&expected).unwrap()
        );
        assert_eq!(
            (native.wire.as_str(), native.model.as_str()),
            (WIRE, "claude-test")
        );
        assert_eq!(inputs(&chunks), [object(json!({"b": 1, "a": 2}))]);
    }
}

#[test]
fn what_did_not_arrive_whole_does_not_go_back() {
    let (chunks, _) = run(&[
        start(
            0,
            json!({"type": "server_tool_use", "id": "srv_1", "name": "x", "input": {}}),
        ),
        input(0, "{\"q"),
        start(
            1,
            json!({"type": "thinking", "thinking": "hm", "signature": ""}),
        ),
        stop("max_tokens"),
        end(),
    ]);
    assert_eq!(ending(&chunks).native, None);
}

#[test]
fn an_answer_without_its_beginnings_is_read() {
    let (chunks, error) = run(&[
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(1, json!({"type": "text_delta", "text": "hi"})),
        stop("end_turn"),
        end(),
    ]);
    assert_eq!(error, None);
    assert_eq!(
        chunks[..3],
        [
            Chunk::Start { model: None },
            Chunk::Thinking("hm".to_owned()),
            Chunk::Text("hi".to_owned()),
        ]
    );
    assert_eq!(ending(&chunks).usage.input, None);
}

#[test]
fn the_answer_is_over_with_its_end_marker_only() {
    let (chunks, error) = run(&[
        start(0, json!({"type": "text", "text": "hi"})),
        close(0),
        stop("end_turn"),
    ]);
    assert_eq!(error.unwrap().kind, ErrorKind::IncompleteStream);
    assert!(!chunks.iter().any(|chunk| matches!(chunk, Chunk::End(_))));
    let (chunks, error) = run(&[
        stop("end_turn"),
        end(),
        start(0, json!({"type": "text", "text": "late"})),
        end(),
    ]);
    assert_eq!((chunks.len(), error), (2, None));
}

#[test]
fn what_is_no_event_is_a_protocol_error() {
    for data in ["<html>", "[1]", "{\"type\": \"ping\"", "17"] {
        let error = decoder().frame("ping", data, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{data}");
    }
    for data in ["", " ", "[DONE]"] {
        decoder().frame("", data, &mut Vec::new()).unwrap();
    }
    for body in ["{}", "[]", "", "{\"content\": 3}"] {
        let error = decoder().whole(body, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol, "{body}");
    }
}

#[test]
fn errors_are_found_whatever_they_are_wrapped_in() {
    let cases = [
        ("error", overloaded().to_string()),
        ("", overloaded().to_string()),
        (
            "",
            json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}).to_string(),
        ),
        ("message_delta", overloaded().to_string()),
    ];
    for (event, data) in cases {
        let error = decoder().frame(event, &data, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Overloaded, "{data}");
        let error = decoder().whole(&data, &mut Vec::new()).unwrap_err();
        assert_eq!(error.message, "Overloaded");
    }
    let error = decoder()
        .frame("error", "upstream went away", &mut Vec::new())
        .unwrap_err();
    assert_eq!(error.message, "upstream went away");
}

#[test]
fn an_answer_cannot_grow_without_end() {
    let mut decoder = decoder();
    let text = "x".repeat(1024 * 1024);
    let frame = delta(0, json!({"type": "text_delta", "text": text})).to_string();
    decoder.bytes = MAX_BYTES - (4 << 20);
    let failure = (0..4).find_map(|_| decoder.frame("", &frame, &mut Vec::new()).err());
    assert_eq!(failure.unwrap().kind, ErrorKind::Protocol);
    // Nor by blocks of which none says anything.
    let empty = (0..5000).flat_map(|index| [start(index, json!({})), close(index)]);
    let (_, failure) = run(&empty.collect::<Vec<_>>());
    assert_eq!(failure.unwrap().kind, ErrorKind::Protocol);
}

#[test]
fn a_whole_answer_cut_in_a_call_does_not_run_it() {
    let body = json!({"content": [
        {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "b", "name": "bash", "input": {"command": "r"}},
    ], "stop_reason": "max_tokens"});
    let (chunks, error) = whole(&body);
    assert_eq!(error, None);
    let inputs = inputs(&chunks);
    assert_eq!(inputs[0], object(json!({"command": "ls"})));
    assert!(matches!(inputs[1], CallInput::Truncated { .. }));
}

#[test]
fn a_whole_answer_in_the_midst_of_a_stream_ends_no_call_but_its_own() {
    let (chunks, _) = run(&[
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "bash"}}),
        json!({"type": "message_start", "message": {"content": [{"type": "tool_use", "id": "b", "name": "bash"}]}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}}),
    ]);
    let found: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::ToolCallStart { index, .. } => Some(("start", *index)),
            Chunk::ToolCallDelta { index, .. } => Some(("delta", *index)),
            Chunk::ToolCallEnd { index, .. } => Some(("end", *index)),
            _ => None,
        })
        .collect();
    let expected = [
        ("start", 0),
        ("start", 1),
        ("end", 1),
        ("delta", 0),
        ("end", 0),
    ];
    assert_eq!(found, expected);
}

proptest::proptest! {
    #[test]
    fn whatever_comes_each_call_ends_once_and_nothing_follows_the_end(frames in any_frames()) {
        let (chunks, error) = run(&frames);
        let mut open = std::collections::BTreeSet::new();
        let mut seen = 0;
        for chunk in &chunks {
            match chunk {
                Chunk::ToolCallStart { index, .. } => {
                    assert_eq!(*index, seen);
                    seen += 1;
                    open.insert(*index);
                }
                Chunk::ToolCallDelta { index, fragment } => {
                    assert!(open.contains(index) && !fragment.is_empty());
                }
                Chunk::ToolCallEnd { index, .. } => assert!(open.remove(index)),
                Chunk::Text(text) | Chunk::Thinking(text) => assert!(!text.is_empty()),
                Chunk::Start { .. } | Chunk::Notice(_) | Chunk::End(_) => {}
            }
        }
        assert!(open.is_empty(), "{chunks:?}");
        let ends = chunks.iter().filter(|chunk| matches!(chunk, Chunk::End(_))).count();
        assert_eq!(ends, usize::from(error.is_none()));
        assert!(ends == 0 || matches!(chunks.last(), Some(Chunk::End(_))));
        assert!(chunks.is_empty() || matches!(chunks[0], Chunk::Start { .. }));
    }
}

/// Frames of every sort in any order, well formed or nearly.
fn any_frames() -> impl proptest::strategy::Strategy<Value = Vec<Value>> {
    use proptest::prelude::*;
    let sorts = || {
        prop::sample::select(vec![
            "text",
            "thinking",
            "redacted_thinking",
            "tool_use",
            "server_tool_use",
            "new",
        ])
    };
    let deltas = prop::sample::select(vec![
        json!({"type": "text_delta", "text": "x"}),
        json!({"type": "text_delta"}),
        json!({"type": "thinking_delta", "thinking": "hm"}),
        json!({"type": "signature_delta", "signature": "s"}),
        json!({"type": "citations_delta", "citation": {}}),
        json!({"type": "input_json_delta", "partial_json": "{"}),
        json!({"type": "input_json_delta", "partial_json": "\"a\":1}"}),
        json!({"type": "new_delta", "input": "x"}),
        json!(null),
    ]);
    let block = sorts().prop_map(|sort| json!({"type": sort, "input": {}}));
    let other = prop::sample::select(vec![
        json!({"type": "message_start", "message": {"content": [{"type": "tool_use"}]}}),
        json!({"type": "ping"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "message_delta"}),
        json!({"type": "message_stop"}),
        json!({"type": "error"}),
        json!({}),
        json!([]),
    ]);
    let frame = prop_oneof![
        4 => (0..3_u64, block).prop_map(|(index, block)| start(index, block)),
        6 => (0..3_u64, deltas).prop_map(|(index, it)| delta(index, it)),
        3 => (0..3_u64).prop_map(close),
        1 => other,
    ];
    prop::collection::vec(frame, 0..20)
}
