use agent_client_protocol_schema::v1::SessionUpdate;
use serde_json::{Value, json};

use super::*;
use crate::message::CUT_DIFF;

fn renderer(client: Value) -> Renderer {
    let client: Capabilities = serde_json::from_value(client).unwrap();
    Renderer::new(PathBuf::from("/p"), &client)
}

fn event(kind: &str, payload: &Value) -> Event {
    let mut whole = json!({"conversationId": "default", "messageId": "m1"});
    whole
        .as_object_mut()
        .unwrap()
        .extend(payload.as_object().unwrap().clone());
    serde_json::from_value(json!({"type": kind, "payload": whole})).unwrap()
}

/// Returns the updates of an event, each of which the protocol's own types take.
fn updates(renderer: &mut Renderer, kind: &str, payload: &Value) -> Vec<Value> {
    checked(renderer.event(&event(kind, payload), None))
}

fn checked(updates: Vec<Value>) -> Vec<Value> {
    for update in &updates {
        let read = serde_json::from_value::<SessionUpdate>(update.clone());
        assert!(read.is_ok(), "{update}: {read:?}");
    }
    updates
}

fn all() -> Value {
    json!({"session": {"notices": {}, "compaction": {}}, "_meta": {"terminal_output": true}})
}

#[test]
fn text_of_another_turn_is_another_message() {
    let mut renderer = renderer(json!({}));
    let delta = |turn| json!({"turn": turn, "index": 0, "content": "hi"});
    let first = updates(&mut renderer, "chat:text-delta", &delta(0));
    assert_eq!(first, [chunk("agent_message_chunk", "hi", "m1.0")]);
    let thought = updates(&mut renderer, "chat:thinking-delta", &delta(1));
    assert_eq!(thought, [chunk("agent_thought_chunk", "hi", "m1.1t")]);
    updates(
        &mut renderer,
        "chat:turn-discarded",
        &json!({"turn": 1, "reason": "x"}),
    );
    let again = updates(&mut renderer, "chat:text-delta", &delta(1));
    assert_eq!(again[0]["messageId"], "m1.1-1");
}

#[test]
fn a_command_is_shown_in_the_clients_terminal() {
    let mut renderer = renderer(all());
    let planned = json!({"turn": 0, "toolId": "t1", "toolName": "bash", "chunk": "{"});
    let first = updates(&mut renderer, "chat:tool-input-delta", &planned);
    assert_eq!(first[0]["status"], "pending");
    assert_eq!(
        first[0]["_meta"]["terminal_info"],
        json!({"terminal_id": "t1", "cwd": "/p"})
    );
    assert_eq!(
        updates(&mut renderer, "chat:tool-input-delta", &planned),
        Vec::<Value>::new()
    );
    let start = json!({"turn": 0, "toolId": "t1", "toolName": "bash", "input": {"command": "ls"}});
    let started = updates(&mut renderer, "chat:tool-start", &start);
    assert_eq!(
        (&started[0]["status"], &started[0]["title"]),
        (&json!("in_progress"), &json!("ls"))
    );
    let output = json!({"toolId": "t1", "chunk": "a\nb\r\n", "stream": "stdout"});
    let shown = updates(&mut renderer, "chat:tool-delta", &output);
    assert_eq!(shown[0]["_meta"]["terminal_output"]["data"], "a\r\nb\r\n");
    let result = json!({"toolId": "t1", "toolName": "bash", "status": "success", "result": "a\nb", "durationMs": 1,
        "metadata": {"exitCode": 0}});
    let settled = updates(&mut renderer, "chat:tool-result", &result);
    assert_eq!(settled[0]["status"], "completed");
    assert_eq!(settled[0]["_meta"]["terminal_exit"]["exit_code"], 0);
}

/// Folds updates of a call as clients do: fields that are there replace those that were.
fn fold(call: &mut Value, updates: impl IntoIterator<Item = Value>) {
    for update in updates {
        let fields = update.as_object().unwrap().clone();
        let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
        call.as_object_mut().unwrap().extend(fields);
    }
}

#[test]
fn a_command_that_was_asked_for_is_still_shown_in_its_terminal() {
    let mut renderer = renderer(all());
    let call = json!({"toolId": "t1", "toolName": "bash", "input": {"command": "ls"}, "reason": "r", "turn": 0,
        "danger": {"level": "safe", "reasons": []}});
    let terminal = terminal_content(&ToolId::new("t1"));
    let mut shown = json!({});
    fold(
        &mut shown,
        updates(&mut renderer, "chat:tool-confirm", &call),
    );
    assert_eq!(shown["content"], json!([terminal]));
    let whole = json!({"type": "chat:tool-confirm", "payload": {"conversationId": "default", "messageId": "m1",
        "toolId": "t1", "toolName": "bash", "input": {"command": "ls"}, "reason": "r",
        "danger": {"level": "safe", "reasons": []}}});
    let Event::ChatToolConfirm(confirm) = serde_json::from_value(whole).unwrap() else {
        panic!("another event");
    };
    let asked = question::of_call("s", &confirm, renderer.shown(&confirm.tool_id));
    fold(&mut shown, [asked["toolCall"].clone()]);
    assert_eq!(shown["content"][0], terminal);
    assert_eq!(shown["content"][1]["type"], "content");
    fold(&mut shown, updates(&mut renderer, "chat:tool-start", &call));
    assert_eq!(shown["content"], json!([terminal]));
    let result = json!({"toolId": "t1", "toolName": "bash", "status": "success", "result": "a", "durationMs": 1,
        "metadata": {"exitCode": 0}});
    fold(
        &mut shown,
        updates(&mut renderer, "chat:tool-result", &result),
    );
    assert_eq!(shown["content"], json!([terminal]));
    assert_eq!(shown["status"], "completed");
}

#[test]
fn a_host_and_money_are_calls_of_their_own_that_end() {
    let mut renderer = renderer(all());
    let start =
        json!({"turn": 0, "toolId": "t1", "toolName": "bash", "input": {"command": "npm i"}});
    updates(&mut renderer, "chat:tool-start", &start);
    let host = json!({"toolId": "t1", "toolName": "bash", "input": {"command": "npm i"}, "reason": "r", "host": "h",
        "danger": {"level": "safe", "reasons": []}});
    let resolved =
        |outcome: &str| json!({"toolId": "t1", "host": "h", "outcome": outcome, "by": "user"});
    let cap = json!({"requestId": "b1", "scope": "session", "spentUsd": 1.0, "limitUsd": 1.0, "nextUsd": 0.1, "turn": 0,
        "choices": []});
    let raised = |outcome: &str| json!({"requestId": "b1", "outcome": outcome, "by": "user"});
    for (asks, ask, ends, end, id, status) in [
        (
            "chat:tool-confirm",
            &host,
            "chat:tool-resolved",
            resolved("approved"),
            "t1/host/h",
            "completed",
        ),
        (
            "chat:tool-confirm",
            &host,
            "chat:tool-resolved",
            resolved("denied"),
            "t1/host/h",
            "failed",
        ),
        (
            "chat:budget-confirm",
            &cap,
            "chat:budget-resolved",
            raised("extended"),
            "budget-b1",
            "completed",
        ),
        (
            "chat:budget-confirm",
            &cap,
            "chat:budget-resolved",
            raised("stopped"),
            "budget-b1",
            "failed",
        ),
    ] {
        let asked = updates(&mut renderer, asks, ask);
        assert_eq!(
            (asked.len(), &asked[0]["sessionUpdate"]),
            (1, &json!("tool_call"))
        );
        assert_eq!(asked[0]["toolCallId"], id);
        let ended = updates(&mut renderer, ends, &end);
        let expected =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status});
        assert_eq!(ended, [expected]);
        assert!(updates(&mut renderer, ends, &end).is_empty());
    }
}

#[test]
fn without_a_terminal_the_end_of_the_output_is_text() {
    let mut renderer = renderer(json!({}));
    let start = json!({"turn": 0, "toolId": "t1", "toolName": "bash", "input": {"command": "yes"}});
    assert_eq!(
        updates(&mut renderer, "chat:tool-start", &start)[0]["sessionUpdate"],
        "tool_call"
    );
    for _ in 0..3 {
        let output =
            json!({"toolId": "t1", "chunk": "ü".repeat(SHOWN_OUTPUT / 4), "stream": "stdout"});
        assert!(updates(&mut renderer, "chat:tool-delta", &output).is_empty());
    }
    assert!(renderer.is_dirty());
    let shown = checked(renderer.flush());
    let text = shown[0]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.len() <= SHOWN_OUTPUT + 20, "{}", text.len());
    assert!(!renderer.is_dirty() && renderer.flush().is_empty());
    // The rest of the turn is closed with it.
    let end = json!({"stopReason": "cancelled", "partial": false, "turns": 1, "toolCalls": 1, "usage": {}, "durationMs": 1});
    assert_eq!(
        updates(&mut renderer, "chat:stream-end", &end)[0]["status"],
        "failed"
    );
}

#[test]
fn a_picture_of_a_result_is_shown_beside_its_text() {
    let mut renderer = renderer(json!({}));
    let result = json!({"toolId": "t1", "toolName": "file_read", "status": "success", "result": "[image image/png]",
        "content": [{"type": "image", "mediaType": "image/png", "data": "AA=="}], "durationMs": 1});
    let settled = updates(&mut renderer, "chat:tool-result", &result);
    let image = json!({"type": "content", "content": {"type": "image", "mimeType": "image/png", "data": "AA=="}});
    assert_eq!(
        settled[1]["content"],
        json!([text_content("[image image/png]"), image])
    );
}

#[test]
fn a_changed_file_is_a_difference() {
    let mut renderer = renderer(json!({}));
    let input = json!({"path": "a.rs", "content": "new\n"});
    let preview = "--- a.rs\n+++ a.rs\n@@ -1 +1 @@\n-old\n+new\n";
    let confirm = json!({"toolId": "t1", "toolName": "file_write", "input": input, "reason": "r",
        "danger": {"level": "dangerous", "reasons": []}, "preview": preview});
    let asked = updates(&mut renderer, "chat:tool-confirm", &confirm);
    let diff = json!({"type": "diff", "path": "/p/a.rs", "oldText": "old\n", "newText": "new\n"});
    // What is to be written is known, and what is there follows from the difference.
    assert_eq!(asked[0]["content"], json!([diff]));
    assert_eq!(asked[0]["locations"], json!([{"path": "/p/a.rs"}]));
    let result = |status: &str| {
        json!({"toolId": "t1", "toolName": "file_write", "status": status,
        "result": "r", "durationMs": 1, "metadata": {"diff": preview}})
    };
    let settled = updates(&mut renderer, "chat:tool-result", &result("success"));
    assert_eq!(settled[0]["content"], json!([diff]));
    let refused = updates(&mut renderer, "chat:tool-result", &result("error"));
    // It was not announced: a client may come late.
    assert_eq!(refused[0]["sessionUpdate"], "tool_call");
    assert_eq!(refused[1]["content"], json!([text_content("r")]));
}

#[test]
fn a_file_is_read_after_a_call_only_where_that_shows_more() {
    let preview = |more: &str| format!("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n{more}");
    let cut = preview(&format!("{CUT_DIFF}after 9 bytes; 1 lines become 1]\n"));
    let (edit, write) = (
        json!({"path": "a", "oldText": "old", "newText": "new"}),
        json!({"path": "a", "content": "new\n"}),
    );
    for (tool, input, is_asked, diff, status, expected) in [
        ("file_edit", &edit, true, preview(""), "success", Some("a")),
        ("file_edit", &edit, true, preview(""), "error", None),
        ("file_edit", &edit, true, cut.clone(), "success", None),
        ("file_edit", &edit, false, cut, "success", Some("a")),
        ("file_write", &write, false, preview(""), "success", None),
    ] {
        let mut renderer = renderer(json!({}));
        let (kind, more) = match is_asked {
            true => (
                "chat:tool-confirm",
                json!({"reason": "r", "preview": diff, "danger": {"level": "safe", "reasons": []}}),
            ),
            false => ("chat:tool-start", json!({"turn": 0})),
        };
        let mut call = json!({"toolId": "t1", "toolName": tool, "input": input});
        let fields = call.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        updates(&mut renderer, kind, &call);
        let result = json!({"toolId": "t1", "toolName": tool, "status": status, "result": "r",
            "durationMs": 1, "metadata": {"diff": diff}});
        let result = event("chat:tool-result", &result);
        assert_eq!(renderer.changes(&result), expected, "{tool} {status}");
    }
}

#[test]
fn usage_adds_up_and_is_there_where_the_window_is_known() {
    let mut renderer = renderer(json!({}));
    let usage = |context: Value| json!({"turn": 0, "context": context});
    assert!(updates(&mut renderer, "chat:usage", &usage(json!({"used": 5}))).is_empty());
    let shown = updates(
        &mut renderer,
        "chat:usage",
        &usage(json!({"used": 5, "window": 10})),
    );
    assert_eq!(
        shown,
        [json!({"sessionUpdate": "usage_update", "used": 5, "size": 10})]
    );
    for expected in [0.5, 1.0] {
        let end = json!({"stopReason": "end_turn", "partial": false, "turns": 1, "toolCalls": 0, "usage": {},
            "spentUsd": 0.5, "durationMs": 1});
        let shown = updates(&mut renderer, "chat:stream-end", &end);
        assert_eq!(
            shown[0]["cost"],
            json!({"amount": expected, "currency": "USD"})
        );
    }
}

#[test]
fn notices_and_compactions_are_for_who_announced_them() {
    let notice = json!({"severity": "warning", "code": "c", "message": "look"});
    let compaction = json!({"compactionId": "k1", "phase": "done", "kind": "summary", "trigger": "auto",
        "beforeTokens": 9, "afterTokens": 1, "messagesReplaced": 1, "messagesKept": 1, "durationMs": 1, "summary": "s"});
    let retry = json!({"state": "retrying", "reason": "busy"});
    for (client, expected) in [(json!({}), 0), (all(), 1)] {
        let mut renderer = renderer(client);
        for (kind, payload) in [
            ("session:notice", &notice),
            ("chat:compaction", &compaction),
            ("chat:state", &retry),
        ] {
            assert_eq!(
                updates(&mut renderer, kind, payload).len(),
                expected,
                "{kind}"
            );
        }
    }
}

#[test]
fn every_client_shows_where_to_sign_in() {
    let asked = json!({"server": "docs", "url": "https://login.example/a", "host": "login.example",
        "scopes": [], "wasAt": "old.example", "expiresAt": "2026-11-27T12:00:00.000Z"});
    let shown = updates(&mut renderer(json!({})), "mcp:auth-required", &asked);
    assert_eq!(shown[0]["sessionUpdate"], "agent_message_chunk");
    let text = shown[0]["content"]["text"].as_str().unwrap();
    for words in [
        "`docs`",
        "**login.example**",
        "old.example",
        "<https://login.example/a>",
    ] {
        assert!(text.contains(words), "{text}");
    }
}
