use serde_json::json;

use super::*;
use crate::message::{DangerLevel, InputId, ToolId};
use crate::protocol::command::{Configure, Remember, ToolApprove};
use crate::protocol::input::{InputAction, ToolInput};
use crate::protocol::trust::TrustApprove;

fn now() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

fn frame(kind: &str, payload: &serde_json::Value) -> String {
    json!({"type": kind, "seq": 1, "timestamp": "2026-11-20T12:00:00.000Z", "payload": payload})
        .to_string()
}

fn confirm(tool_id: &str) -> String {
    frame(
        "chat:tool-confirm",
        &json!({"conversationId": "default", "messageId": "m1", "toolId": tool_id, "toolName": "bash",
            "input": {"command": "ls"}, "danger": {"level": DangerLevel::Safe, "reasons": []},
            "reason": "asked", "expiresAt": "2026-11-20T12:00:30Z"}),
    )
}

fn delta(content: &str) -> String {
    frame(
        "chat:text-delta",
        &json!({"conversationId": "default", "messageId": "m1", "turn": 0, "index": 0, "content": content}),
    )
}

fn approve(tool_id: &str) -> ToolApprove {
    ToolApprove {
        unattended: false,
        tool_id: ToolId::new(tool_id),
        host: None,
        approved: true,
        input: None,
        remember: Remember::Once,
        folder: None,
        reason: None,
    }
}

fn notice_of(typed: Typed) -> String {
    match typed {
        Typed::Notice(notice) => notice.message,
        other => format!("{other:?}"),
    }
}

/// Returns whether more may be spent, and whether it is to end after a last answer.
fn about_money(typed: Typed) -> (bool, bool) {
    let Typed::Request(command) = typed else {
        panic!("{typed:?}");
    };
    match *command {
        Command::ChatBudgetApprove(answer) => (answer.approved, answer.finish),
        other => panic!("{other:?}"),
    }
}

#[test]
fn deltas_become_lines() {
    let mut text = Text::default();
    assert_eq!(text.show(&delta("one "), now()), None);
    assert_eq!(
        text.show(&delta("line\ntwo"), now()).as_deref(),
        Some("one line")
    );
    let end = frame(
        "chat:stream-end",
        &json!({"conversationId": "default", "messageId": "m1", "stopReason": "end_turn", "partial": false,
            "turns": 1, "toolCalls": 0, "usage": {}, "durationMs": 5}),
    );
    let rest = text.show(&end, now()).unwrap();
    assert!(rest.starts_with("two\n── done"), "{rest}");
    assert_eq!(text.show("no frame at all", now()), None);
    let long = "x".repeat(LINE_CHARS + 1);
    assert_eq!(text.show(&delta(&long), now()), Some(long));
}

#[test]
fn a_question_is_shown_whole_and_answered_by_a_line() {
    let mut text = Text::default();
    let shown = text.show(&confirm("t3"), now()).unwrap();
    for part in [
        "? t3 wants to run bash",
        "command: ls",
        "e {JSON} edit",
        "30 s to answer",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let cases = [
        ("y", approve("t3")),
        ("YES", approve("t3")),
        ("y t3", approve("t3")),
        (
            "a",
            ToolApprove {
                remember: Remember::Conversation,
                ..approve("t3")
            },
        ),
        (
            "n",
            ToolApprove {
                approved: false,
                ..approve("t3")
            },
        ),
        (
            "n t3 not today",
            ToolApprove {
                approved: false,
                reason: Some("not today".to_owned()),
                ..approve("t3")
            },
        ),
        (
            r#"e {"command":"ls -a"}"#,
            ToolApprove {
                input: json!({"command": "ls -a"}).as_object().cloned(),
                ..approve("t3")
            },
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(
            text.typed(line),
            request(Command::ChatToolApprove(expected)),
            "{line}"
        );
    }
    assert!(notice_of(text.typed("e {broken")).contains("JSON"));
    assert!(notice_of(text.typed("e")).contains("JSON"));
    assert!(
        matches!(text.typed("you may"), Typed::Request(it) if matches!(*it, Command::ChatSend(_)))
    );
}

#[test]
fn a_question_about_files_is_answered_by_a_word_or_by_its_id() {
    let mut text = Text::default();
    let asked = frame(
        "chat:trust-confirm",
        &json!({"conversationId": "default", "messageId": "m1", "requestId": "f1", "remember": "session",
            "files": [{"path": "AGENTS.md", "kind": "instructions", "sha256": "ab", "bytes": 3, "text": "one"}]}),
    );
    let shown = text.show(&asked, now()).unwrap();
    assert!(shown.ends_with("by its id: y f1, n f1"), "{shown}");
    for (line, approved) in [("y", true), ("y f1", true), ("n", false), ("no f1", false)] {
        let answer = TrustApprove {
            request_id: TrustId::new("f1"),
            approved,
        };
        let expected = request(Command::ChatTrustApprove(answer));
        assert_eq!(text.typed(line), expected, "{line}");
    }
    assert!(
        matches!(text.typed("y f64"), Typed::Request(_)),
        "a message"
    );
    text.show(&confirm("t3"), now());
    let which = "f1 and t3 are open; say which: y f1";
    assert_eq!(notice_of(text.typed("y")), which);
    let call = request(Command::ChatToolApprove(approve("t3")));
    assert_eq!(text.typed("y t3"), call);
    text.show(&asked.replace("f1", "f2"), now());
    let which = "f1 and f2 and t3 are open; say which: n f1";
    assert_eq!(notice_of(text.typed("n")), which);
    let settled = json!({"conversationId": "default", "messageId": "m1", "requestId": "f1", "outcome": "refused", "by": "user"});
    text.show(&frame("chat:trust-resolved", &settled), now());
    for late in ["y f1", "N f1 not that"] {
        assert_eq!(notice_of(text.typed(late)), "f1 is not open any more");
    }
}

#[test]
fn a_yes_that_may_be_for_something_else_spends_nothing() {
    let mut text = Text::default();
    let asked = frame(
        "chat:budget-confirm",
        &json!({"conversationId": "default", "messageId": "m1", "requestId": "c1", "scope": "session", "turn": 1,
            "spentUsd": 1, "limitUsd": 1, "nextUsd": 0.1, "choices": [{"extendUsd": 1}, {"finish": true}]}),
    );
    text.show(&asked, now()).unwrap();
    for (line, expected) in [("y", (true, false)), ("n c1", (false, false))] {
        assert_eq!(about_money(text.typed(line)), expected, "{line}");
    }
    text.show(&confirm("t3"), now());
    for word in ["y", "n"] {
        let which = format!("t3 is open, too; say which: {word} t3, or {word} c1 about the money");
        assert_eq!(notice_of(text.typed(word)), which);
    }
    let call = request(Command::ChatToolApprove(approve("t3")));
    assert_eq!(text.typed("y t3"), call);
    for (line, expected) in [
        ("y c1", (true, false)),
        ("n c1", (false, false)),
        ("y 2", (true, false)),
        ("f", (false, true)),
    ] {
        assert_eq!(about_money(text.typed(line)), expected, "{line}");
    }
}

#[test]
fn a_late_answer_about_money_is_no_message() {
    let mut text = Text::default();
    let about = json!({"conversationId": "default", "messageId": "m1", "requestId": "c1", "scope": "session", "turn": 1,
        "spentUsd": 1, "limitUsd": 1, "nextUsd": 0.1, "choices": [], "outcome": "stopped", "by": "user"});
    text.show(&frame("chat:budget-confirm", &about), now());
    text.show(&frame("chat:budget-resolved", &about), now());
    assert_eq!(notice_of(text.typed("y c1")), "c1 is not open any more");
}

#[test]
fn several_questions_want_to_be_named_and_none_is_said() {
    let mut text = Text::default();
    for late in ["y", "n", "n not that", "e", "e {\"command\": \"ls\"}"] {
        assert_eq!(notice_of(text.typed(late)), "nothing is asked", "{late}");
    }
    text.show(&confirm("t3"), now());
    text.show(&confirm("t4"), now());
    assert_eq!(
        notice_of(text.typed("y")),
        "t3 and t4 are open; say which: y t3"
    );
    assert_eq!(
        text.typed("y t4"),
        request(Command::ChatToolApprove(approve("t4")))
    );
    let resolved = frame(
        "chat:tool-resolved",
        &json!({"conversationId": "default", "messageId": "m1", "toolId": "t3", "outcome": "approved", "by": "user"}),
    );
    text.show(&resolved, now());
    assert_eq!(
        text.typed("y"),
        request(Command::ChatToolApprove(approve("t4")))
    );
}

/// A line may be on its way that is for another question: that of the call, or one for another host that has lapsed.
#[test]
fn a_question_for_a_host_is_answered_by_the_host_alone() {
    let for_host = |kind: &str, host: &str, rest: &serde_json::Value| {
        let mut payload =
            json!({"conversationId": "default", "messageId": "m1", "toolId": "t3", "host": host});
        let (payload_fields, rest) = (payload.as_object_mut().unwrap(), rest.as_object().unwrap());
        payload_fields.extend(rest.clone());
        frame(kind, &payload)
    };
    let ask = |host: &str| {
        let rest = json!({"toolName": "bash", "input": {"command": "ls"},
            "danger": {"level": DangerLevel::Warning, "reasons": []}, "reason": "asked",
            "remember": {"approval": ["conversation"], "denial": ["conversation"]}});
        for_host("chat:tool-confirm", host, &rest)
    };
    let mut text = Text::default();
    let shown = text.show(&ask("good.test"), now()).unwrap();
    let how = "y good.test yes, n good.test no [reason], a good.test always";
    assert!(shown.contains(how) && !shown.contains("edit"), "{shown}");
    for line in ["y", "a", "n", "y t3", "a t3"] {
        let notice = notice_of(text.typed(line));
        assert!(notice.contains("good.test"), "{line}: {notice}");
    }
    let of_host = |host: &str| ToolApprove {
        host: Some(host.to_owned()),
        ..approve("t3")
    };
    let expected = request(Command::ChatToolApprove(of_host("good.test")));
    assert_eq!(text.typed("y good.test"), expected);
    let lapsed = json!({"outcome": "expired", "by": "timeout"});
    text.show(&for_host("chat:tool-resolved", "good.test", &lapsed), now());
    text.show(&ask("evil.test"), now());
    assert_eq!(
        notice_of(text.typed("y good.test")),
        "say which: y evil.test"
    );
    let expected = request(Command::ChatToolApprove(of_host("evil.test")));
    assert_eq!(text.typed("y evil.test"), expected);
}

#[test]
fn commands_are_requests() {
    let text = Text::default();
    assert_eq!(text.typed("  "), Typed::Nothing);
    assert_eq!(text.typed("/quit"), Typed::Quit);
    assert!(notice_of(text.typed("/help")).contains("/cancel"));
    assert!(notice_of(text.typed("/trust bold")).contains("supervised"));
    assert!(notice_of(text.typed("/modle x")).contains("no command"));
    let command = |line: &str| match text.typed(line) {
        Typed::Request(command) => serde_json::to_value(*command).unwrap(),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(command("/cancel")["type"], "chat:cancel");
    assert_eq!(command("/model big")["payload"]["model"], "big");
    assert_eq!(
        command("/trust autonomous")["payload"]["trustLevel"],
        "autonomous"
    );
    assert_eq!(
        command("no idea, and you?")["payload"]["content"],
        "no idea, and you?"
    );
}

#[test]
fn a_gap_takes_questions_back_and_the_greeting_leaves_paths_alone() {
    let mut text = Text::default();
    text.show(&confirm("t3"), now());
    let gap = frame(
        "session:error",
        &json!({"code": "replay_gap", "message": "events were lost"}),
    );
    text.show(&gap, now());
    assert_eq!(notice_of(text.typed("y")), "nothing is asked");
    text.show(&confirm("t4"), now());
    assert_eq!(
        text.typed("y"),
        request(Command::ChatToolApprove(approve("t4")))
    );
    let ready = frame(
        "session:ready",
        &json!({"protocolVersion": 1, "daemonVersion": "1.0.0", "sessionId": "s", "resumed": false,
            "resumeGraceMs": 1, "trustLevel": "guided", "project": {"name": "p", "root": "/home/Guided Tour",
            "central": "/c"}, "sandbox": {"mode": "full", "paths": "kernel", "commands": [], "network": "off"},
            "providers": [], "tools": [], "layers": [], "workflows": []}),
    );
    let shown = text.show(&ready, now()).unwrap();
    assert!(
        shown.contains("in /home/Guided Tour (sandbox: full, trust: guided)"),
        "{shown}"
    );
}

fn asks(id: &str) -> String {
    frame(
        "chat:tool-input-request",
        &json!({"conversationId": "default", "messageId": "m1", "toolId": "t1", "requestId": id,
            "server": "crm", "message": "your name?", "mode": "form", "requestedSchema": {
                "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}),
    )
}

fn gives(id: &str, action: InputAction, content: Option<&serde_json::Value>) -> Typed {
    request(Command::ChatToolInput(ToolInput {
        request_id: InputId::new(id),
        action,
        content: content.and_then(serde_json::Value::as_object).cloned(),
    }))
}

#[test]
fn what_servers_ask_is_answered_by_lines() {
    let mut text = Text::default();
    assert_eq!(
        notice_of(text.typed("/decline")),
        "no server asks for anything"
    );
    let shown = text.show(&asks("i1"), now()).unwrap();
    assert_eq!(
        shown,
        "? the MCP server crm asks (i1)\n  your name?\n  name: {\"type\":\"string\"}\n/answer i1 {JSON}, /decline i1"
    );
    let ada = json!({"name": "Ada"});
    let accepts = |id: &str| gives(id, InputAction::Accept, Some(&ada));
    assert_eq!(text.typed(r#"/answer {"name": "Ada"}"#), accepts("i1"));
    assert_eq!(
        text.typed("/decline"),
        gives("i1", InputAction::Decline, None)
    );
    assert!(notice_of(text.typed("/answer {name}")).contains("as JSON"));
    text.show(&asks("i2"), now());
    assert!(notice_of(text.typed("/decline")).contains("say which"));
    assert_eq!(text.typed(r#"/answer i2 {"name": "Ada"}"#), accepts("i2"));
    let settled = json!({"conversationId": "default", "messageId": "m1", "toolId": "t1",
        "requestId": "i1", "outcome": "expired", "by": "timeout"});
    let settled = frame("chat:tool-input-resolved", &settled);
    assert_eq!(
        text.show(&settled, now()).as_deref(),
        Some("i1: nobody answered in time")
    );
    assert_eq!(
        text.typed("/decline"),
        gives("i2", InputAction::Decline, None)
    );
    assert_eq!(
        text.typed("/input on"),
        request(Command::SessionConfigure(Configure {
            input_requests: Some(true),
            ..Configure::default()
        }))
    );
    assert!(notice_of(text.typed("/input")).contains("on or off"));
}

#[test]
fn whether_the_model_answers_a_server_is_answered_by_y_and_n() {
    let asks = |id: &str| {
        frame(
            "chat:tool-input-request",
            &json!({"conversationId": "default", "messageId": "m1", "toolId": "t1", "requestId": id,
                "server": "crm", "message": "write a poem", "mode": "form", "purpose": "sampling"}),
        )
    };
    let gives = |id: &str, action| gives(id, action, None);
    let mut text = Text::default();
    let shown = text.show(&asks("i1"), now()).unwrap();
    assert_eq!(
        shown,
        "? the MCP server crm asks the model\n  write a poem\ny ask the model, n no; by its id: y i1, n i1"
    );
    assert_eq!(text.typed("y"), gives("i1", InputAction::Accept));
    assert_eq!(text.typed("n i1"), gives("i1", InputAction::Decline));
    assert_eq!(text.typed("/decline i1"), gives("i1", InputAction::Decline));
    // A yes to a call is none to the server.
    text.show(&confirm("t1"), now());
    assert_eq!(
        text.typed("y"),
        request(Command::ChatToolApprove(approve("t1")))
    );
    assert_eq!(text.typed("y i1"), gives("i1", InputAction::Accept));
    let mut text = Text::default();
    text.show(&asks("i1"), now());
    text.show(&asks("i2"), now());
    assert_eq!(
        notice_of(text.typed("y")),
        "several are open; say which: y i1"
    );
    assert_eq!(text.typed("y i2"), gives("i2", InputAction::Accept));
}
