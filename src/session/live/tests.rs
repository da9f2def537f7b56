//! What a resync adds to a history: nothing said twice, nothing of the running turn left out.

use serde_json::{Value, json};

use super::*;

fn event(kind: &str, mut payload: Value) -> Event {
    payload["conversationId"] = json!("a");
    if payload.get("messageId").is_none() {
        payload["messageId"] = json!("m1");
    }
    serde_json::from_value(json!({"type": kind, "payload": payload})).unwrap()
}

fn start() -> Event {
    event("chat:stream-start", json!({"provider": "p", "model": "m"}))
}

fn text(turn: u32, index: u64, content: &str) -> Event {
    event(
        "chat:text-delta",
        json!({"turn": turn, "index": index, "content": content}),
    )
}

fn state(name: &str) -> Event {
    event("chat:state", json!({"state": name}))
}

fn end() -> Event {
    event(
        "chat:stream-end",
        json!({"stopReason": "end_turn", "partial": false, "turns": 1, "toolCalls": 0, "usage": {}, "durationMs": 1}),
    )
}

/// Returns the types of events, each with what it says.
fn summary(events: &[Event]) -> Vec<String> {
    let mut live = Live::default();
    for event in events {
        live.fold(event);
    }
    let snapshot = live.snapshot(&ConversationId::new("a"));
    let mut lines: Vec<String> = snapshot
        .events
        .iter()
        .map(|event| {
            let value = serde_json::to_value(event).unwrap();
            let payload = &value["payload"];
            let said =
                ["content", "chunk", "toolId"].map(|field| payload[field].as_str().unwrap_or(""));
            let kind = value["type"].as_str().unwrap().trim_start_matches("chat:");
            format!("{kind} {}", said.concat()).trim_end().to_owned()
        })
        .collect();
    lines.extend(
        snapshot
            .state
            .map(|state| format!("state {:?}", state.state)),
    );
    lines
}

#[test]
fn a_resync_says_what_the_history_does_not() {
    let usage = event("chat:usage", json!({"turn": 0, "context": {"used": 1}}));
    let input = |chunk: &str| {
        event(
            "chat:tool-input-delta",
            json!({"turn": 0, "toolId": "t1", "toolName": "bash", "chunk": chunk}),
        )
    };
    let begins = event(
        "chat:tool-start",
        json!({"turn": 0, "toolId": "t1", "toolName": "bash", "input": {}}),
    );
    let result = event(
        "chat:tool-result",
        json!({"toolId": "t1", "toolName": "bash", "status": "success", "result": "", "durationMs": 1}),
    );
    let remembered = event(
        "chat:message",
        json!({"message": {"role": "tool", "content": "", "toolCallId": "t1", "toolName": "bash"}}),
    );
    let discarded = event("chat:turn-discarded", json!({"turn": 0, "reason": "broke"}));
    let cases: [(&str, Vec<Event>, &[&str]); 8] = [
        ("nothing", vec![], &[]),
        (
            "a turn that speaks",
            vec![
                start(),
                state("responding"),
                text(0, 0, "on"),
                text(0, 1, "e"),
            ],
            &["stream-start", "text-delta one", "state Responding"],
        ),
        (
            "a turn that is remembered",
            vec![start(), text(0, 0, "one"), usage.clone()],
            &["stream-start"],
        ),
        (
            "the turn after it",
            vec![start(), text(0, 0, "one"), usage.clone(), text(1, 1, "two")],
            &["stream-start", "text-delta two"],
        ),
        (
            "a turn that is void",
            vec![
                start(),
                text(0, 0, "one"),
                input("{"),
                discarded,
                text(0, 1, "1"),
            ],
            &["stream-start", "text-delta 1"],
        ),
        (
            "a call from its plan to its result",
            vec![start(), input("{"), input("}"), usage, begins, result],
            &["stream-start", "tool-start t1", "tool-result t1"],
        ),
        (
            "a call that is remembered",
            vec![start(), input("{}"), remembered],
            &["stream-start"],
        ),
        ("an end", vec![start(), text(0, 0, "one"), end()], &[]),
    ];
    for (what, events, expected) in cases {
        assert_eq!(summary(&events), expected, "{what}");
    }
    assert_eq!(
        summary(&[start(), input("{"), input("}")]),
        ["stream-start", "tool-input-delta {}t1"]
    );
}

#[test]
fn what_waits_is_not_what_the_conversation_does() {
    let waits = event("chat:state", json!({"messageId": "m2", "state": "queued"}));
    assert_eq!(
        summary(&[start(), state("thinking"), waits]),
        ["stream-start", "state Thinking"]
    );
}

#[test]
fn of_a_very_long_text_the_end_is_kept_and_that_is_said() {
    let mut live = Live::default();
    live.fold(&start());
    for index in 0..40 {
        live.fold(&text(0, index, &"ä".repeat(KEPT_BYTES / 32)));
    }
    live.fold(&text(0, 40, "end"));
    let snapshot = live.snapshot(&ConversationId::new("a"));
    assert!(snapshot.cut);
    let Some(Event::ChatTextDelta(delta)) = snapshot.events.last() else {
        panic!("{:?}", snapshot.events.len());
    };
    assert!(delta.content.ends_with("äend") && delta.content.len() <= KEPT_BYTES);
}
