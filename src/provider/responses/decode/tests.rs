use serde_json::{Value, json};

use super::*;
use crate::provider::compaction;
use crate::provider::decode::{Decoder, MAX_BYTES};
use crate::provider::{CallInput, Chunk, End};

fn decoder() -> Decoder {
    Decoder::new(Box::<ResponsesWire>::default(), "p", "m", Vec::new())
}

fn read(events: &[Value]) -> (Vec<Chunk>, Result<(), ProviderError>) {
    let mut decoder = decoder();
    let mut chunks = Vec::new();
    for event in events {
        if let Err(error) = decoder.frame("", &event.to_string(), &mut chunks) {
            return (chunks, Err(error));
        }
    }
    let outcome = decoder.finish(&mut chunks);
    (chunks, outcome)
}

fn end(chunks: &[Chunk]) -> &End {
    match chunks.last() {
        Some(Chunk::End(end)) => end,
        other => panic!("{other:?} is no end"),
    }
}

/// A call as it ended: its index, its id, its input.
type Ended<'a> = (usize, Option<&'a str>, Value);

fn inputs(chunks: &[Chunk]) -> Vec<Ended<'_>> {
    let ended = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::ToolCallEnd {
            index,
            provider_call_id,
            input,
        } => {
            let value = match input {
                CallInput::Object(object) => Value::Object(object.clone()),
                CallInput::Truncated { raw } => json!(["truncated", raw]),
                CallInput::Invalid { raw, .. } => json!(["invalid", raw]),
            };
            Some((*index, provider_call_id.as_deref(), value))
        }
        _ => None,
    });
    ended.collect()
}

fn created() -> Value {
    json!({"type": "response.created", "response": {"model": "gpt", "status": "in_progress", "output": []}})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"model": "gpt", "status": "completed", "output": [],
        "usage": {"input_tokens": 5, "output_tokens": 2}}})
}

fn function_call(id: &str, arguments: &str, status: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "f",
        "arguments": arguments, "status": status})
}

fn added(place: u64, item: Value) -> Value {
    about("response.output_item.added", place, item)
}

fn done(place: u64, item: Value) -> Value {
    about("response.output_item.done", place, item)
}

fn about(kind: &str, place: u64, item: Value) -> Value {
    let mut event = json!({"type": kind, "output_index": place});
    event["item"] = item;
    event
}

fn arguments(place: u64, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": place, "delta": delta})
}

#[test]
fn of_arguments_sent_twice_the_last_run_and_are_kept() {
    let item = r#"{"type":"function_call","id":"fc_a","call_id":"a","name":"f","arguments":"{\"x\":1}","arguments":"{\"x\":2}","status":"completed"}"#;
    let done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    let mut decoder = decoder();
    let mut chunks = Vec::new();
    decoder.frame("", &done, &mut chunks).unwrap();
    let sent = format!("{chunks:?}");
    assert!(sent.contains("2") && !sent.contains("1"), "{sent}");
}

#[test]
fn calls_that_overlap_are_kept_apart_and_in_order() {
    let (chunks, outcome) = read(&[
        created(),
        added(
            0,
            json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "early"}),
        ),
        done(
            0,
            json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "late"}),
        ),
        added(1, function_call("a", "", "in_progress")),
        added(2, function_call("b", "", "in_progress")),
        arguments(2, "{\"y\""),
        arguments(1, "{\"x\":1}"),
        arguments(2, ":2}"),
        done(2, function_call("b", "{\"y\":2}", "completed")),
        done(1, function_call("a", "{\"x\":1}", "completed")),
        completed(),
        json!("[DONE]"),
    ]);
    assert_eq!(outcome, Ok(()));
    assert_eq!(
        inputs(&chunks),
        [
            (1, Some("b"), json!({"y": 2})),
            (0, Some("a"), json!({"x": 1}))
        ]
    );
    let end = end(&chunks);
    assert_eq!(end.stop, Stop::ToolUse);
    assert_eq!(end.usage.input, Some(5));
    assert_eq!(
        end.native.as_ref().unwrap().items,
        json!([
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "late"},
            function_call("a", "{\"x\":1}", "completed"),
            function_call("b", "{\"y\":2}", "completed"),
        ])
    );
}

#[test]
fn servers_that_leave_out_half_of_the_events() {
    let message = json!({"type": "message", "id": "msg", "role": "assistant", "phase": "final_answer",
        "content": [{"type": "output_text", "text": "Hi", "annotations": []}]});
    let call = function_call("a", "{\"x\":1}", "completed");
    let everything = json!({"type": "response.completed", "response": {"output": [message, call]}});
    let without_places = |event: Value| {
        let mut event = event;
        event.as_object_mut().unwrap().remove("output_index");
        event
    };
    let cases = [
        ("nothing but the end", vec![everything.clone()]),
        (
            "items that only end",
            vec![done(0, message.clone()), done(1, call.clone()), completed()],
        ),
        (
            "no places",
            vec![
                without_places(added(0, json!({"type": "message", "id": "msg"}))),
                json!({"type": "response.output_text.delta", "item_id": "msg", "delta": "Hi"}),
                without_places(added(1, function_call("a", "", "in_progress"))),
                without_places(done(0, message.clone())),
                json!({"type": "response.function_call_arguments.delta", "item_id": "fc_a", "delta": "{\"x\":1}"}),
                without_places(done(1, call.clone())),
                everything.clone(),
            ],
        ),
        (
            "no places and no ids",
            vec![
                json!({"type": "response.output_text.delta", "delta": "Hi"}),
                everything.clone(),
            ],
        ),
        (
            "items that never end by themselves",
            vec![
                added(0, json!({"type": "message", "id": "msg"})),
                json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}),
                added(1, function_call("a", "", "in_progress")),
                arguments(1, "{\"x\":1}"),
                json!({"type": "response.function_call_arguments.done", "output_index": 1, "arguments": "{\"x\":1}"}),
                everything,
            ],
        ),
    ];
    for (case, events) in cases {
        let (chunks, outcome) = read(&events);
        assert_eq!(outcome, Ok(()), "{case}");
        assert_eq!(inputs(&chunks), [(0, Some("a"), json!({"x": 1}))], "{case}");
        let text: String = chunks
            .iter()
            .filter_map(|chunk| match chunk {
                Chunk::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "Hi", "{case}");
        let items = &end(&chunks).native.as_ref().unwrap().items;
        assert_eq!(items, &json!([message, call]), "{case}");
    }
}

#[test]
fn free_text_is_passed_on_once_it_is_whole_however_late_its_name() {
    let call = json!({"type": "custom_tool_call", "id": "i", "call_id": "c"});
    let mut named = call.clone();
    named["name"] = json!("f");
    let delta =
        json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "raw"});
    let (chunks, outcome) = read(&[added(0, call), delta, done(0, named), completed()]);
    assert_eq!(outcome, Ok(()));
    let fragments = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::ToolCallDelta { fragment, .. } => Some(fragment.as_str()),
        _ => None,
    });
    assert_eq!(fragments.collect::<String>(), "{\"input\":\"raw\"}");
    assert_eq!(inputs(&chunks), [(0, Some("c"), json!({"input": "raw"}))]);
}

#[test]
fn an_answer_cut_by_the_limit() {
    let incomplete = json!({"type": "response.incomplete", "response": {"status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"}}});
    let (chunks, outcome) = read(&[
        created(),
        done(0, function_call("a", "{\"x\":1}", "completed")),
        added(1, function_call("b", "", "in_progress")),
        arguments(1, "{\"y\":2}"),
        done(1, function_call("b", "{\"y\":2}", "incomplete")),
        added(2, function_call("c", "", "in_progress")),
        arguments(2, "{\"z\""),
        incomplete,
    ]);
    assert_eq!(outcome, Ok(()));
    let expected = [
        (0, Some("a"), json!({"x": 1})),
        (1, Some("b"), json!(["truncated", "{\"y\":2}"])),
        (2, Some("c"), json!(["truncated", "{\"z\""])),
    ];
    assert_eq!(inputs(&chunks), expected);
    let end = end(&chunks);
    assert_eq!(end.stop, Stop::MaxTokens);
    assert_eq!(
        end.raw_stop.as_deref(),
        Some("incomplete:max_output_tokens")
    );
    // What cannot be run goes back without its input, what never ended not at all.
    assert_eq!(
        end.native.as_ref().unwrap().items,
        json!([
            function_call("a", "{\"x\":1}", "completed"),
            function_call("b", "{}", "completed")
        ])
    );
}

#[test]
fn failures_of_every_form() {
    let rate = json!({"code": "rate_limit_exceeded", "message": "Rate limit reached. Please try again in 1.3s."});
    let cases = [
        (
            json!({"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "m"}}),
            ErrorKind::Server,
        ),
        (
            json!({"type": "error", "code": "server_error", "message": "m", "param": null}),
            ErrorKind::Server,
        ),
        (
            json!({"type": "error", "code": "insufficient_quota", "message": "m"}),
            ErrorKind::Quota,
        ),
        (
            json!({"type": "response.failed", "response": {"status": "failed", "error": rate}}),
            ErrorKind::RateLimit,
        ),
        (
            json!({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "m"}}}),
            ErrorKind::ContextLength,
        ),
        (
            json!({"type": "response.failed", "response": {"error": {"code": "invalid_prompt", "message": "m"}}}),
            ErrorKind::InvalidRequest,
        ),
        (
            json!({"type": "response.failed", "response": {"error": null}}),
            ErrorKind::Server,
        ),
        (
            json!({"error": {"code": 503, "message": "m"}}),
            ErrorKind::Overloaded,
        ),
    ];
    for (event, kind) in cases {
        let (chunks, outcome) = read(&[
            created(),
            added(0, function_call("a", "", "in_progress")),
            arguments(0, "{"),
            event.clone(),
            completed(),
        ]);
        let error = outcome.unwrap_err();
        assert_eq!(error.kind, kind, "{event}: {error:?}");
        assert_eq!(inputs(&chunks), [(0, Some("a"), json!(["truncated", "{"]))]);
        if kind == ErrorKind::RateLimit {
            assert_eq!(
                error.retry_after,
                Some(std::time::Duration::from_millis(1300))
            );
        }
    }
}

#[test]
fn a_lost_connection_is_no_end() {
    let (chunks, outcome) = read(&[created(), json!("[DONE]")]);
    assert_eq!(outcome.unwrap_err().kind, ErrorKind::IncompleteStream);
    assert_eq!(chunks.len(), 1);
}

#[test]
fn unknown_things_are_passed_over() {
    let search = json!({"type": "web_search_call", "id": "ws", "status": "completed"});
    let (chunks, outcome) = read(&[
        json!({"type": "response.created"}),
        json!({"type": "keepalive", "sequence_number": 3}),
        json!({"type": 4}),
        json!([]),
        added(0, search.clone()),
        json!({"type": "response.web_search_call.searching", "output_index": 0}),
        done(0, search.clone()),
        json!({"type": "response.output_item.done", "output_index": 1, "item": null}),
        json!({"type": "response.content_part.added", "part": {"type": "reasoning_text", "text": ""}}),
        json!({"type": "response.reasoning_text.delta", "delta": "x", "obfuscation": "zz"}),
        completed(),
    ]);
    assert_eq!(outcome, Ok(()));
    assert_eq!(chunks.len(), 3);
    assert_eq!(end(&chunks).stop, Stop::EndTurn);
    assert_eq!(end(&chunks).native.as_ref().unwrap().items, json!([search]));
}

#[test]
fn whole_bodies() {
    let whole = |body: Value| {
        let mut decoder = decoder();
        let mut chunks = Vec::new();
        let outcome = decoder.whole(&body.to_string(), &mut chunks);
        (chunks, outcome.map_err(|error| error.kind))
    };
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let (chunks, outcome) =
        whole(json!({"model": "gpt", "status": "completed", "error": null, "output": [refusal]}));
    assert_eq!(outcome, Ok(()));
    assert_eq!(chunks[1], Chunk::Text("No.".to_owned()));
    assert_eq!(end(&chunks).stop, Stop::Refusal);
    let failing = [
        (
            json!({"output": [], "status": "in_progress"}),
            ErrorKind::Protocol,
        ),
        (
            json!({"output": [], "status": "failed", "error": {"code": "server_error", "message": "m"}}),
            ErrorKind::Server,
        ),
        (
            json!({"error": {"type": "invalid_request_error", "message": "m"}}),
            ErrorKind::InvalidRequest,
        ),
    ];
    for (body, kind) in failing {
        assert_eq!(whole(body).1, Err(kind));
    }
}

#[test]
fn what_is_kept_of_an_answer_is_bounded() {
    let megabyte = "x".repeat(1 << 20);
    let piece = arguments(0, &megabyte).to_string();
    let mut decoder = decoder();
    let begin = added(0, function_call("a", "", "in_progress")).to_string();
    decoder.frame("", &begin, &mut Vec::new()).unwrap();
    decoder.bytes = MAX_BYTES - (4 << 20);
    let mut taken = 0;
    let error = loop {
        if let Err(error) = decoder.frame("", &piece, &mut Vec::new()) {
            break error;
        }
        taken += 1;
        assert!(taken < 4, "more than MAX_BYTES were read");
    };
    assert_eq!(error.kind, ErrorKind::Protocol);
}

#[test]
fn a_compaction_is_kept_as_it_came() {
    let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA/w==", "created_by": "me"});
    let begun = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": ""});
    let working = json!({"type": "response.compaction.compacting", "item_id": "cmp_1", "output_index": 0,
        "sequence_number": 3});
    let all_at_the_end = json!({"type": "response.completed", "response": {"status": "completed", "output": [item]}});
    let reasoning = json!({"type": "reasoning", "id": "rs", "summary": []});
    for (events, is_made) in [
        (
            vec![
                created(),
                added(0, begun.clone()),
                working,
                done(0, item.clone()),
                completed(),
            ],
            true,
        ),
        (vec![created(), all_at_the_end], true),
        (
            vec![
                created(),
                done(0, reasoning),
                done(1, item.clone()),
                completed(),
            ],
            true,
        ),
        // It never ended.
        (vec![created(), added(0, begun), completed()], false),
        (
            vec![
                created(),
                done(0, item.clone()),
                done(1, item.clone()),
                completed(),
            ],
            false,
        ),
        (
            vec![
                created(),
                done(0, item.clone()),
                done(1, function_call("a", "{}", "completed")),
                completed(),
            ],
            false,
        ),
        (vec![created(), completed()], false),
    ] {
        let (chunks, outcome) = read(&events);
        assert_eq!(outcome, Ok(()));
        let made = compaction::read(end(&chunks).clone()).ok();
        let items = made.map(|made| (made.reply.items.to_string(), made.text));
        assert_eq!(
            items,
            is_made.then(|| (format!("[{item}]"), None)),
            "{events:?}"
        );
    }
}
