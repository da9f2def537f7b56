//! What becomes of a conversation's messages.

use super::*;

#[test]
fn a_reply_of_another_model_is_sent_without_thinking() {
    for native in [
        native(
            "claude-sonnet-5",
            json!([{"type": "thinking", "thinking": "hm", "signature": "x"}]),
        ),
        Some(NativeReply {
            wire: "openai-responses".to_owned(),
            provider: "anthropic".to_owned(),
            model: MODEL.to_owned(),
            items: json!([]),
        }),
        Some(NativeReply {
            wire: WIRE.to_owned(),
            provider: "another".to_owned(),
            model: MODEL.to_owned(),
            items: json!([{"type": "text", "text": "no"}]),
        }),
        // Not what the daemon gave out.
        native(MODEL, json!("garbage")),
        native(MODEL, json!([3, {"type": "text", "text": "no"}])),
        native(
            MODEL,
            json!([{"type": "tool_use", "id": "toolu_x", "name": "x", "input": {}},
            {"type": "tool_use", "id": "toolu_y", "name": "x", "input": {}}]),
        ),
        None,
    ] {
        let case = Case::new(vec![
            user("Hello"),
            Message::Reply(Reply {
                text: "Hi.".to_owned(),
                thinking: "hm".to_owned(),
                calls: vec![call("t1", Some("call|odd"), "bash")],
                native,
            }),
            result("t1", vec![Part::text("one")], false),
        ]);
        let body = case.body();
        assert_eq!(
            body["messages"][1],
            json!({"role": "assistant", "content": [
                {"type": "text", "text": "Hi."},
                {"type": "tool_use", "id": "call_t1", "name": "bash", "input": {"x": "t1"}},
            ]})
        );
    }
}

#[test]
fn thinking_goes_back_only_behind_the_prefix_it_was_made_from() {
    let first = Case::new(vec![user("Look around")]);
    let prefix = first.prepare().prefix;
    let whole = "assistant: thinking redacted_thinking text tool_use tool_use";
    let stripped = "assistant: text tool_use tool_use";
    let history = |prefix: &str| {
        let mut messages = vec![user("Look around"), thoughtful(MODEL, prefix)];
        messages.extend(results());
        Case::new(messages)
    };
    assert_eq!(history(&prefix).shape()[1], whole);
    assert_eq!(history("another").shape()[1], stripped);

    let mut reordered = history(&prefix);
    reordered.tools.reverse();
    assert_eq!(
        reordered.shape()[1],
        whole,
        "the vendor compares tools as a set"
    );
    let mut more_tools = history(&prefix);
    more_tools.tools.push(tool("new"));
    assert_eq!(more_tools.shape()[1], stripped);

    let mut older = history("another");
    older.model = "claude-opus-5";
    let mut message = thoughtful("claude-opus-5", "another");
    std::mem::swap(&mut older.messages[1], &mut message);
    assert_eq!(older.shape()[1], whole, "older models are not that strict");
    older.amends.no_thinking = true;
    assert_eq!(older.shape()[1], stripped, "the vendor refused it");
}

#[test]
fn the_prefix_of_a_later_turn_holds_what_was_stripped_before() {
    let mut messages = vec![user("Look around"), thoughtful(MODEL, "another")];
    messages.extend(results());
    let second = Case::new(messages.clone());
    let prefix = second.prepare().prefix;
    messages.push(Message::Reply(Reply {
        text: "Done.".to_owned(),
        native: native(
            MODEL,
            json!([
                {"type": "thinking", "thinking": "", "signature": "czI="},
                {"type": "text", "text": "Done."},
                {"type": PREFIX_ITEM, "sha256": prefix},
            ]),
        ),
        ..Reply::default()
    }));
    messages.push(user("Thanks"));
    assert_eq!(
        Case::new(messages).shape(),
        [
            "user: text",
            "assistant: text tool_use tool_use",
            "user: tool_result tool_result",
            "assistant: thinking text",
            "user: text",
        ]
    );
}

#[test]
fn a_history_is_put_right() {
    let silent = || Message::Reply(Reply::default());
    let said = |text: &str| {
        Message::Reply(Reply {
            text: text.to_owned(),
            ..Reply::default()
        })
    };
    let asked = || {
        Message::Reply(Reply {
            calls: vec![call("t1", None, "bash"), call("t2", None, "bash")],
            ..Reply::default()
        })
    };
    let answer = |id: &str| result(id, vec![Part::text("x")], false);
    let cases: Vec<(Vec<Message>, &[&str])> = vec![
        (vec![], &["user: text"]),
        (vec![user(" ")], &["user: text"]),
        (vec![user("a"), silent(), user("b")], &["user: text text"]),
        (
            vec![said("a"), user("b")],
            &["user: text", "assistant: text", "user: text"],
        ),
        (
            vec![user("a"), said("b")],
            &["user: text", "assistant: text", "user: text"],
        ),
        // Results out of order, twice, of nobody, and none at all.
        (
            vec![
                user("a"),
                asked(),
                answer("t2"),
                answer("t1"),
                answer("t1"),
                answer("t9"),
            ],
            &[
                "user: text",
                "assistant: tool_use tool_use",
                "user: tool_result tool_result",
            ],
        ),
        (
            vec![user("a"), asked(), answer("t2"), user("b")],
            &[
                "user: text",
                "assistant: tool_use tool_use",
                "user: tool_result tool_result text",
            ],
        ),
        (
            vec![user("a"), asked()],
            &[
                "user: text",
                "assistant: tool_use tool_use",
                "user: tool_result tool_result",
            ],
        ),
    ];
    for (messages, expected) in cases {
        assert_eq!(Case::new(messages).shape(), expected);
    }
}

#[test]
fn a_paused_reply_is_sent_back_as_the_last_message() {
    let case = Case::new(vec![
        user("Search"),
        Message::Reply(Reply {
            text: "Searching. ".to_owned(),
            native: native(
                MODEL,
                json!([
                    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
                    {"type": "text", "text": "Searching. "},
                ]),
            ),
            ..Reply::default()
        }),
    ]);
    let body = case.body();
    assert_eq!(
        case.shape(),
        ["user: text", "assistant: server_tool_use text"]
    );
    assert_eq!(body["messages"][1]["content"][1]["text"], "Searching.");
}

#[test]
fn ids_used_before_are_not_used_again() {
    let asked = |id: &str| {
        Message::Reply(Reply {
            calls: vec![call(id, Some("toolu_same"), "bash")],
            native: native(
                MODEL,
                json!([
                    {"type": "thinking", "thinking": "", "signature": "x"},
                    {"type": "tool_use", "id": "toolu_same", "name": "bash", "input": {}},
                ]),
            ),
            ..Reply::default()
        })
    };
    let answer = |id: &str| result(id, vec![Part::text("x")], false);
    let case = Case::new(vec![
        user("a"),
        asked("t1"),
        answer("t1"),
        asked("t2"),
        answer("t2"),
    ]);
    assert_eq!(case.body()["messages"][3]["content"][1]["id"], "call_t2");
}
