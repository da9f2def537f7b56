use serde_json::{Value, json};

use super::*;

mod turns;

/// An event of the default conversation from its type and payload.
fn event(kind: &str, mut payload: Value) -> Event {
    let fields = payload.as_object_mut().unwrap();
    for (name, id) in [("conversationId", "default"), ("messageId", "m1")] {
        fields.entry(name).or_insert_with(|| json!(id));
    }
    serde_json::from_value(json!({ "type": kind, "payload": payload })).unwrap()
}

fn text(content: &str) -> Event {
    let payload = json!({"turn": 0, "index": 0, "content": content});
    event("chat:text-delta", payload)
}

fn thinking(content: &str) -> Event {
    let payload = json!({"turn": 0, "index": 0, "content": content});
    event("chat:thinking-delta", payload)
}

fn start(id: &str, input: &Value) -> Event {
    let payload = json!({"turn": 0, "toolId": id, "toolName": "bash", "input": input});
    event("chat:tool-start", payload)
}

fn output(id: &str, chunk: &str) -> Event {
    let payload = json!({"toolId": id, "chunk": chunk, "stream": "stdout"});
    event("chat:tool-delta", payload)
}

fn usage() -> Event {
    event("chat:usage", json!({"turn": 0, "context": {"used": 1}}))
}

fn discarded() -> Event {
    event(
        "chat:turn-discarded",
        json!({"turn": 0, "reason": "it broke"}),
    )
}

fn end() -> Event {
    event(
        "chat:stream-end",
        json!({"stopReason": "end_turn", "partial": false, "turns": 1, "toolCalls": 0,
            "usage": {}, "durationMs": 1500}),
    )
}

/// What the events put on the screen: the answer, and everything in order.
fn shown(hold: bool, events: &[Event]) -> (String, String) {
    let mut screen = Screen::new(hold);
    let (mut answer, mut all) = (String::new(), String::new());
    for piece in events.iter().flat_map(|event| screen.show(event)) {
        match piece {
            Piece::Answer(text) => {
                answer.push_str(&text);
                all.push_str(&text);
            }
            Piece::Aside(_, text) => all.push_str(&text),
        }
    }
    (answer, all)
}

#[track_caller]
fn check(events: &[Event], expected: &str) {
    assert_eq!(shown(false, events).1, expected);
}

#[test]
fn text_and_thinking_stand_on_lines_of_their_own() {
    check(
        &[
            thinking("Hm"),
            thinking("m."),
            text("Hel"),
            text("lo"),
            end(),
        ],
        "thinking: Hmm.\nHello\n── done · 1 turn · 1.5 s\n",
    );
    check(
        &[text("Line.\n"), thinking("More?"), end()],
        "Line.\nthinking: More?\n── done · 1 turn · 1.5 s\n",
    );
}

#[test]
fn a_call_is_a_line_with_its_output_below() {
    let result = event(
        "chat:tool-result",
        json!({"toolId": "t1", "toolName": "bash", "status": "error", "result": "no\nsuch file",
            "durationMs": 35, "metadata": {"exitCode": 2}}),
    );
    check(
        &[
            text("I look."),
            start("t1", &json!({"command": "ls\n -l"})),
            output("t1", "a\u{1b}[31mb\n"),
            output("t1", "c"),
            output("t1", "d\n"),
            result,
        ],
        "I look.\n▸ t1 bash  ls -l\n  ┌ t1\n  │ ab\n  │ cd\n✗ t1 bash  35 ms  exit code 2  no such file\n",
    );
}

#[test]
fn long_output_is_folded_and_shown_when_asked_for() {
    let lines: String = (1..=25).map(|number| format!("line {number}\n")).collect();
    let (first, rest) = lines.split_at(lines.find("line 22").unwrap());
    let result = event(
        "chat:tool-result",
        json!({"toolId": "t1", "toolName": "bash", "status": "success", "result": "r",
            "durationMs": 35, "metadata": {"exitCode": 0}}),
    );
    let events = [output("t1", first), output("t1", rest), result];
    let mut screen = Screen::new(false).folded();
    let text = |pieces: Vec<Piece>| -> String {
        let texts = pieces.into_iter().map(|piece| match piece {
            Piece::Answer(text) | Piece::Aside(_, text) => text,
        });
        texts.collect()
    };
    let seen = text(events.iter().flat_map(|event| screen.show(event)).collect());
    let expected: String = (1..=20)
        .map(|number| format!("  │ line {number}\n"))
        .collect();
    assert_eq!(
        seen,
        format!(
            "  ┌ t1\n{expected}  │ … more than 20 lines\n✓ t1 bash  35 ms  exit code 0  5 lines folded, /output t1 shows them\n"
        )
    );
    let whole: String = (1..=25)
        .map(|number| format!("  │ line {number}\n"))
        .collect();
    for which in ["", "1", "t1"] {
        assert_eq!(text(screen.unfold(which)), format!("  ┌ t1\n{whole}"));
    }
    assert!(text(screen.unfold("7")).contains("no output of a call 7"));
    // Where nobody sits before it, all of it is shown.
    let (_, all) = shown(false, &events);
    assert!(all.contains("line 25") && !all.contains("folded"), "{all}");
}

#[test]
fn a_picture_is_a_line_that_says_how_large_it_is() {
    let picture = |bytes: usize| json!({"type": "image", "mediaType": "image/png", "data": "AAAA".repeat(bytes / 3)});
    let result = event(
        "chat:tool-result",
        json!({"toolId": "t1", "toolName": "file_read", "status": "success", "result": "[image image/png]",
            "content": [{"type": "text", "text": "a"}, picture(999), picture(11_001), picture(1_500_000)],
            "durationMs": 35}),
    );
    check(
        &[result],
        "✓ t1 file_read  35 ms\n[picture image/png, 999 bytes]\n[picture image/png, 12 KB]\n[picture image/png, 1.5 MB]\n",
    );
}

#[test]
fn what_a_command_changed_is_named_in_short() {
    let file = |path: &str| json!({"path": path, "change": "created"});
    for (changed, shown) in [
        (json!({"files": [file("a"), file("b\n")]}), "  changed a, b"),
        (
            json!({"files": [file("a"), file("b"), file("c"), file("d")], "more": 2}),
            "  changed a, b, c and 3 more",
        ),
        (json!({"files": [], "incomplete": true}), ""),
    ] {
        let result = event(
            "chat:tool-result",
            json!({"toolId": "t1", "toolName": "bash", "status": "success", "result": "",
                "durationMs": 35, "metadata": {"exitCode": 0, "changed": changed}}),
        );
        let expected = format!("✓ t1 bash  35 ms  exit code 0{shown}\n");
        check(&[result], &expected);
    }
}

#[test]
fn what_is_no_fault_has_a_mark_of_its_own() {
    for metadata in [
        json!({"resultCount": 0}),
        json!({"denied": true}),
        json!({"cancelled": true}),
    ] {
        let result = event(
            "chat:tool-result",
            json!({"toolId": "t1", "toolName": "file_search", "status": "error", "result": "nothing matches",
                "durationMs": 35, "metadata": metadata}),
        );
        check(&[result], "– t1 file_search  35 ms  nothing matches\n");
    }
}

#[test]
fn outputs_of_two_calls_are_told_apart() {
    check(
        &[output("t1", "a"), output("t2", "b\n"), output("t1", "c\n")],
        "  ┌ t1\n  │ a\n  ┌ t2\n  │ b\n  ┌ t1\n  │ c\n",
    );
}

#[test]
fn inputs_are_short() {
    let cases = [
        (json!({}), "▸ t1 bash\n".to_owned()),
        (json!({"path": "a"}), "▸ t1 bash  a\n".to_owned()),
        (json!({"n": 1}), "▸ t1 bash  {\"n\":1}\n".to_owned()),
        (
            json!({"path": "a", "limit": 2}),
            "▸ t1 bash  {\"path\":\"a\",\"limit\":2}\n".to_owned(),
        ),
        (
            json!({"command": "x".repeat(SHORT + 1)}),
            format!("▸ t1 bash  {}…\n", "x".repeat(SHORT)),
        ),
    ];
    for (input, expected) in cases {
        check(&[start("t1", &input)], &expected);
    }
}

#[test]
fn a_compaction_that_was_refused_is_told_once() {
    let answer = |state: &str| event("chat:compact-result", json!({ "state": state }));
    check(
        &[answer("nothing_to_do")],
        "there is nothing to make shorter\n",
    );
    // The notice before it has said so.
    check(&[answer("refused")], "");
}

#[test]
fn what_goes_wrong_is_said_with_what_to_do() {
    let error = event(
        "chat:error",
        json!({"code": "provider_auth", "message": "the key was refused", "hint": "set another",
            "retryable": false}),
    );
    check(
        &[text("Hal"), error],
        "Hal\nerror: the key was refused\n  set another\n",
    );
    let refused = event(
        "session:error",
        json!({"code": "invalid_payload", "message": "no\u{1b}"}),
    );
    check(&[refused], "error: no\\u{1b}\n");
    let notice = event(
        "session:notice",
        json!({"severity": "warning", "code": "x", "message": "slow"}),
    );
    check(&[notice], "warning: slow\n");
}

#[test]
fn waiting_is_said_and_other_states_are_not() {
    let state = |payload| event("chat:state", payload);
    let cases = [
        (
            json!({"state": "retrying", "attempt": 2, "delayMs": 1500, "reason": "busy"}),
            "attempt 2 in 1.5 s: busy\n",
        ),
        (
            json!({"state": "tool-queued", "toolId": "t2", "reason": "waits for t1 bash, which may change files"}),
            "t2 waits for t1 bash, which may change files\n",
        ),
        (json!({"state": "thinking"}), ""),
        (json!({"state": "idle"}), ""),
    ];
    for (payload, expected) in cases {
        check(&[state(payload)], expected);
    }
}

#[test]
fn questions_that_the_user_did_not_settle_are_said() {
    let resolved = |outcome: &str, by: &str| {
        let payload = json!({"toolId": "t1", "outcome": outcome, "by": by});
        event("chat:tool-resolved", payload)
    };
    let cases = [
        (resolved("approved", "user"), ""),
        (resolved("denied", "user"), ""),
        (
            resolved("expired", "timeout"),
            "t1: nobody answered in time; it is not run\n",
        ),
        (
            resolved("cancelled", "cancel"),
            "t1: the question is void\n",
        ),
    ];
    for (event, expected) in cases {
        check(&[event], expected);
    }
}

#[test]
fn the_end_sums_up() {
    let payload = json!({"stopReason": "max_tokens", "partial": true, "turns": 2, "toolCalls": 1,
        "usage": {"inputTokens": 1234567, "outputTokens": 999, "cacheReadTokens": 1000},
        "costUsd": 0.01234, "durationMs": 999});
    check(
        &[event("chat:stream-end", payload)],
        "── cut at the limit of output tokens · the text is cut · 2 turns · 1 call · 1,234,567 tokens in (1,000 cached) · 999 out · $0.0123 · 999 ms\n",
    );
}

#[test]
fn a_task_is_a_call_with_lines_of_its_own() {
    let facts = json!({"task": {"taskId": "t1", "profile": "explore", "model": "m", "turns": 2, "toolCalls": 1,
        "stopReason": "end_turn", "usage": {}, "spentUsd": 0.0213}});
    let within = |kind, payload: Value| {
        let mut event = payload;
        event["conversationId"] = json!("task:t1");
        serde_json::from_value::<Event>(json!({"type": kind, "payload": event})).unwrap()
    };
    let end = json!({"messageId": "m2", "stopReason": "end_turn", "partial": false, "turns": 2, "toolCalls": 1,
        "usage": {}, "durationMs": 1});
    let begins = event(
        "chat:tool-start",
        json!({"turn": 0, "toolId": "t1", "toolName": "task",
            "input": {"description": "find\nit", "prompt": "Look.", "profile": "explore"}}),
    );
    check(
        &[
            begins,
            event(
                "chat:tool-delta",
                json!({"toolId": "t1", "chunk": "turn 1: file_read a\n", "stream": "progress"}),
            ),
            within("chat:stream-end", end),
            event(
                "chat:tool-result",
                json!({"toolId": "t1", "toolName": "task", "status": "success",
                "result": "found", "durationMs": 1200, "metadata": facts}),
            ),
        ],
        "▸ t1 task  find it\n  ┌ t1\n  │ turn 1: file_read a\n✓ t1 task  1.2 s  2 turns, 1 call, $0.0213\n",
    );
}

#[test]
fn answers_about_the_daemon_are_lines() {
    let history = event(
        "chat:history-result",
        json!({"messages": [
            {"role": "user", "content": [{"type": "text", "text": "look\nhere"},
                {"type": "image", "mediaType": "image/png", "data": ""}]},
            {"role": "assistant", "content": "", "toolCalls": [{"id": "t1", "name": "bash", "input": {"command": "ls"}}]},
            {"role": "tool", "content": "a", "toolCallId": "t1", "toolName": "bash"},
        ]}),
    );
    check(
        &[history],
        "you: look here [picture image/png, 0 bytes]\n▸ t1 bash {\"command\":\"ls\"}\nbash: a\n",
    );
    let models = json!({"models": [
        {"id": "m", "provider": "p", "displayName": "M", "supportsTools": false, "contextWindow": 8192}]});
    check(
        &[event("model:list-result", models)],
        "p  m  8,192 tokens  no tools\n",
    );
    let providers = json!({"providers": [
        {"id": "p", "kind": "ollama", "baseUrl": "http://h", "configured": true, "default": true},
        {"id": "q", "kind": "openai", "baseUrl": "https://h", "configured": false, "default": false}]});
    check(
        &[event("provider:list-result", providers)],
        "* p  ollama  http://h\n  q  openai  https://h  not configured\n",
    );
    let rule = json!({"ruleId": "r1", "toolName": "bash", "matches": "bash: npm publish", "approved": false, "scope": "session",
        "reason": "not\ntoday", "sessionId": "s", "givenAt": "2026-11-24T00:00:00Z", "inForce": true});
    let wide = json!({"ruleId": "r2", "matches": "writing /a", "approved": true, "scope": "always", "sessionId": "s",
        "givenAt": "2026-11-24T00:00:00Z", "inForce": false});
    check(
        &[event(
            "approval:list-result",
            json!({"rules": [rule, wide]}),
        )],
        "r1  denied  session  bash: npm publish  (not today)\nr2  approved, not in force  always  writing /a\n",
    );
    check(
        &[event("approval:list-result", json!({"rules": []}))],
        "no answer is remembered\n",
    );
    check(
        &[event(
            "approval:revoke-result",
            json!({"ruleIds": ["r1", "r2"]}),
        )],
        "forgotten: r1, r2\n",
    );
    let configured = json!({"trustLevel": "guided", "provider": "p", "model": "", "workflow": "w", "layers": []});
    check(
        &[event("session:configure-result", configured)],
        "p, its own model, guided, workflow w\n",
    );
    let configured = json!({"trustLevel": "guided", "provider": "p", "model": "", "providerModel": "m", "workflow": "", "layers": []});
    check(
        &[event("session:configure-result", configured)],
        "p, m, guided\n",
    );
}

#[test]
fn where_to_sign_in_is_said_with_its_host() {
    let asked = |more: Value| -> Event {
        let mut payload = json!({"server": "docs", "url": "https://login.example/a?b=c", "host": "login.example",
            "scopes": ["read"], "expiresAt": "2026-11-27T12:00:00.000Z"});
        let more = more.as_object().unwrap().clone();
        payload.as_object_mut().unwrap().extend(more);
        serde_json::from_value(json!({"type": "mcp:auth-required", "payload": payload})).unwrap()
    };
    let (answer, all) = shown(false, &[asked(json!({}))]);
    assert_eq!(answer, "");
    let first = "the MCP server docs asks you to sign in at login.example:\n  rights: read\n  https://login.example/a?b=c\n";
    assert!(all.starts_with(first), "{all}");
    assert!(all.contains("type /sign-in docs and its address"), "{all}");
    let more = json!({"more": true, "wasAt": "old.example"});
    let (_, all) = shown(false, &[asked(more)]);
    for words in ["wants more rights", "it was old.example before"] {
        assert!(all.contains(words), "{all}");
    }
    // What a server names itself is no control of the terminal.
    let (_, all) = shown(false, &[asked(json!({"server": "a\u{1b}[2Jb"}))]);
    assert!(!all.contains('\u{1b}'), "{all:?}");
}

#[test]
fn where_the_window_goes_is_a_line_for_each_part() {
    let used = event(
        "chat:context-result",
        json!({"provider": "p", "model": "m", "used": 12_345, "window": 200_000, "compactAt": 160_000, "parts": [
            {"kind": "system", "tokens": 1_000},
            {"kind": "tools", "name": "mcp:docs\u{1b}", "tokens": 11_345, "count": 7},
        ]}),
    );
    let (_, all) = shown(false, &[used]);
    let lines: Vec<_> = all.lines().map(str::trim).collect();
    assert_eq!(
        lines[0],
        "about 12,345 tokens of 200,000 (6 %), compacted from 160,000 on"
    );
    assert_eq!(lines[1], "1,000  system");
    assert!(lines[2].starts_with("11,345  tools mcp:docs") && lines[2].ends_with("(7)"));
    assert!(!all.contains('\u{1b}'));
}

#[test]
fn skills_say_what_they_are_for_and_whether_one_is_asked() {
    let skill = |name: &str, trusted| {
        json!({"name": name, "description": "for this", "folder": format!(".agents/{name}"), "sha256": "0",
            "bytes": 1, "source": "project", "trusted": trusted})
    };
    let listed = event(
        "skill:list-result",
        json!({"skills": [skill("one", true), skill("two", false)], "problems": ["three has no name"]}),
    );
    let (_, all) = shown(false, &[listed]);
    assert_eq!(
        all,
        "one  .agents/one  for this\ntwo  .agents/two  for this  (the model is told of it only after a yes of yours)\nthree has no name\n"
    );
}

#[test]
fn files_that_speak_for_the_user_are_named_once_and_when_they_change() {
    let start = |digest: &str| {
        event(
            "chat:stream-start",
            json!({"provider": "p", "model": "m", "instructions": [{"path": "AGENTS.md", "sha256": digest,
                "bytes": 1, "source": "project", "trusted": true}]}),
        )
    };
    let none = event("chat:stream-start", json!({"provider": "p", "model": "m"}));
    let (one, other) = (start("0123456789"), start("abcdefabcd"));
    let (_, all) = shown(false, &[none.clone(), one.clone(), one, other, none]);
    assert_eq!(
        all,
        "the model is told, as your words: AGENTS.md (01234567)\nthe model is told, as your words: AGENTS.md (abcdefab)\nno file speaks for you any more\n"
    );
}
