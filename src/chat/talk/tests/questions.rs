//! Questions whether a call may run: answered, edited, lapsed, kept open.

use super::*;

#[test]
fn verdicts_are_sent_as_typed() {
    let approve = r#"c2 chat:tool-approve approved=true remember="once""#;
    let cases: [(Option<&str>, &[&str]); 5] = [
        (Some("y"), &[approve]),
        (
            Some("a"),
            &[r#"c2 chat:tool-approve approved=true remember="conversation""#],
        ),
        (
            Some("n use git"),
            &[r#"c2 chat:tool-approve approved=false remember="once" reason="use git""#],
        ),
        (
            None,
            &[r#"c2 chat:tool-approve approved=false remember="once" unattended=true"#],
        ),
        (Some("sure"), &["read y yes fresh"]),
    ];
    for (line, expected) in cases {
        let mut story = Story::one_question();
        story.did.clear();
        story.event(&question("t1"), None);
        story.check(&["read y yes fresh"]);
        story.line(line);
        story.check(expected);
    }
}

#[test]
fn an_approval_that_is_not_remembered_says_so() {
    let settled = |line: &str, trust: &str, remember: Option<&str>| {
        let mut story = Story::asked();
        let configured = json!({"trustLevel": trust, "provider": "p", "model": "m", "workflow": "", "layers": []});
        story.event(&event("session:configure-result", &configured), None);
        story.line(Some(line));
        let mut payload = json!({"conversationId": "default", "messageId": "m1", "toolId": "t1",
            "outcome": "approved", "by": "user"});
        if let Some(remember) = remember {
            payload["remember"] = json!(remember);
        }
        let resolved = event("chat:tool-resolved", &payload);
        let shown = story.talk.event(&resolved, None, NOW).into_iter();
        let text = shown.filter_map(|action| match action {
            Action::Show(Piece::Aside(_, text)) => Some(text),
            _ => None,
        });
        text.collect::<String>()
    };
    for (line, trust, remember, expected) in [
        ("y", "guided", None, ""),
        ("a", "guided", Some("conversation"), ""),
        (
            "a",
            "guided",
            None,
            "t1: approved this once only: what it does may be decided by files, not by what was shown; \
             it will be asked for again, unless `allow` of a workflow permits it\n",
        ),
        (
            "a",
            "supervised",
            None,
            "t1: approved this once only: at trust level supervised every call is asked for\n",
        ),
    ] {
        assert_eq!(settled(line, trust, remember), expected, "{line} {trust}");
    }
}

#[test]
fn questions_are_asked_one_after_the_other() {
    let mut story = Story::one_question();
    story.did.clear();
    story.event(&question("t1"), None);
    story.event(&question("t2"), None);
    story.check(&["read y yes fresh"]);
    story.line(Some("y"));
    story.check(&[
        r#"c2 chat:tool-approve approved=true remember="once""#,
        "read y yes fresh",
    ]);
    story.event(&resolved("t1", "approved", "user"), None);
    story.check(&[]);
    story.line(Some("n"));
    story.check(&[r#"c3 chat:tool-approve approved=false remember="once""#]);
}

/// All questions of a call have its id.
#[test]
fn questions_for_hosts_of_one_call_are_different_ones() {
    let of_host = |event: Event, name: &str| match event {
        Event::ChatToolConfirm(mut it) => {
            it.host = Some(name.to_owned());
            Event::ChatToolConfirm(it)
        }
        Event::ChatToolResolved(mut it) => {
            it.host = Some(name.to_owned());
            Event::ChatToolResolved(it)
        }
        other => other,
    };
    let mut story = Story::one_question();
    story.event(&question("t1"), None);
    story.line(Some("y"));
    story.event(&of_host(question("t1"), "good.test"), None);
    // The call's own comes late, and leaves the other open.
    story.event(&resolved("t1", "approved", "user"), None);
    story.did.clear();
    story.event(&of_host(question("t1"), "evil.test"), None);
    story.event(
        &of_host(resolved("t1", "expired", "timeout"), "good.test"),
        None,
    );
    story.did.clear();
    story.line(Some("n"));
    story.check(&[r#"c3 chat:tool-approve approved=false host="evil.test" remember="once""#]);
}

#[test]
fn a_line_for_a_question_that_lapsed_is_no_message() {
    let mut story = Story::conversation();
    story.line(Some("hello"));
    story.event(&sent(), Some(1));
    story.event(&question("t1"), None);
    story.did.clear();
    story.event(&resolved("t1", "expired", "timeout"), None);
    story.line(Some("y"));
    story.line(None);
    story.check(&["forget"]);
    story.event(&end("end_turn"), None);
    story.check(&["read >"]);
}

#[test]
fn a_line_whose_question_lapsed_is_no_message_after_the_exchange_either() {
    let lapsed = || {
        let mut story = Story::asked();
        story.event(&resolved("t1", "expired", "timeout"), None);
        story.event(&end("end_turn"), None);
        story.check(&["forget", "read >"]);
        story
    };
    for (line, seconds, is_dropped) in [
        ("y", 1, true),
        // The rest of what was begun before.
        ("t today, please", 9, true),
        ("", 9, false),
        // Somebody who comes back later.
        ("y", 600, true),
        ("n not today", 600, true),
        ("what happened?", 600, false),
    ] {
        let mut story = lapsed();
        story.line_at(Some(line), seconds);
        match (is_dropped, line) {
            (true, _) | (_, "") => story.check(&["read >"]),
            (false, _) => story.check(&[r#"c2 chat:send content="what happened?""#]),
        }
        if is_dropped {
            story.line_at(Some("y"), seconds);
            story.check(&[r#"c2 chat:send content="y""#]);
        }
    }
}

#[test]
fn a_call_that_nobody_could_be_asked_about_is_reported_by_the_end() {
    let result = |facts: &Value| {
        event(
            "chat:tool-result",
            &json!({"conversationId": "default", "messageId": "m1", "toolId": "t1", "toolName": "bash",
                "status": "error", "result": "r", "durationMs": 1, "metadata": facts}),
        )
    };
    let denied = json!({"denied": true});
    for (line, facts, attended, expected) in [
        (
            None,
            &json!({"denied": true, "unattended": true}),
            false,
            "quit refused",
        ),
        // By a rule or a hook: nobody had to be asked.
        (None, &denied, false, "quit true"),
        (None, &json!({"expired": true}), false, "quit refused"),
        (Some("n"), &denied, false, "quit true"),
        (Some("y"), &json!({"exitCode": 1}), false, "quit true"),
        (None, &denied, true, "quit true"),
        // The command ran, without these.
        (
            Some("y"),
            &json!({"exitCode": 0, "unansweredHosts": ["a.invalid"]}),
            false,
            "quit refused",
        ),
        (
            Some("y"),
            &json!({"exitCode": 0, "unansweredHosts": ["a.invalid"]}),
            true,
            "quit true",
        ),
    ] {
        let mut story = Story::begin(Options {
            prompt: Some("hi".to_owned()),
            attended,
            ..Options::default()
        });
        story.event(&sent(), Some(1));
        story.event(&question("t1"), None);
        story.line(line);
        story.event(&result(facts), None);
        story.did.clear();
        story.event(&end("end_turn"), None);
        story.check(&[expected]);
    }
}

#[test]
fn an_input_can_be_given_with_the_answer() {
    let mut story = Story::asked();
    story.line(Some(r#"e {"command":"ls -l"}"#));
    story.check(&[
        r#"c2 chat:tool-approve approved=true input={"command":"ls -l"} remember="once""#,
    ]);
    let mut story = Story::asked();
    story.line(Some("e {"));
    story.check(&["read y yes fresh"]);
}

#[test]
fn an_edited_input_is_checked_here_and_by_the_daemon() {
    let mut story = Story::one_question();
    story.event(&question("t1"), None);
    story.did.clear();
    story.line(Some("e"));
    story.check(&[r#"edit {"command":"ls"}"#]);
    let actions = story.talk.edited(Ok("[1]".to_owned()), NOW);
    story.note(&actions);
    story.check(&["read y yes fresh"]);
    story.line(Some("e"));
    let actions = story.talk.edited(Ok(r#"{"command":1}"#.to_owned()), NOW);
    story.note(&actions);
    story.check(&[
        r#"edit {"command":"ls"}"#,
        r#"c2 chat:tool-approve approved=true input={"command":1} remember="once""#,
    ]);
    story.event(&refusal("invalid_payload"), Some(2));
    story.check(&["read y yes fresh"]);
    story.line(Some("y"));
    story.check(&[r#"c3 chat:tool-approve approved=true remember="once""#]);
    story.event(&refusal("approval_not_found"), Some(3));
    story.check(&[]);
}

#[test]
fn an_input_can_be_typed_where_there_is_no_editor() {
    let mut story = Story::one_question();
    story.event(&question("t1"), None);
    story.line(Some("e"));
    story.did.clear();
    let actions = story.talk.type_input(None);
    story.note(&actions);
    story.check(&[r#"read another "command" fresh"#]);
    story.line(Some(r#"{"command":"ls -l"}"#));
    story.check(&[
        r#"c2 chat:tool-approve approved=true input={"command":"ls -l"} remember="once""#,
    ]);
    for (line, expected) in [
        (
            Some("git status\n"),
            r#"c2 chat:tool-approve approved=true input={"command":"git status"} remember="once""#,
        ),
        // Nothing is changed.
        (Some("\n"), "read y yes fresh"),
        (Some("{"), "read y yes fresh"),
        (None, "read y yes fresh"),
    ] {
        let mut story = Story::asked();
        story.line(Some("e"));
        story.talk.type_input(Some("no editor"));
        story.did.clear();
        story.line(line);
        story.check(&[expected]);
    }
}

#[test]
fn a_question_is_kept_open_while_somebody_is_there() {
    let ask = |attended: bool, typed: Option<i64>| {
        let mut story = Story::begin(Options {
            prompt: (!attended).then(|| "hi".to_owned()),
            attended,
            ..Options::default()
        });
        if let Some(seconds) = typed {
            story.line_at(Some("hello"), seconds);
        }
        let mut confirm = question("t1");
        if let Event::ChatToolConfirm(confirm) = &mut confirm {
            confirm.expires_at = Some("1970-01-01T00:01:12Z".to_owned());
        }
        // 12 s before it lapses.
        let at = Timestamp::from_second(60).unwrap();
        let actions = story.talk.event(&confirm, None, at);
        story.note(&actions);
        story.did.clear();
        story
    };
    let extend = |story: &mut Story| {
        let at = story.talk.extends_at().unwrap();
        let actions = story.talk.extend(at);
        story.note(&actions);
        at.as_second()
    };
    let mut story = ask(true, Some(0));
    assert_eq!((extend(&mut story), extend(&mut story)), (66, 72));
    story.check(&["c2 chat:tool-extend", "c3 chat:tool-extend"]);
    // It was answered meanwhile: nothing to tell.
    let error = json!({"code": "approval_not_found", "message": "m"});
    let actions = story
        .talk
        .event(&event("session:error", &error), Some(2), NOW);
    assert_eq!(actions, []);
    story.event(&resolved("t1", "expired", "timeout"), None);
    assert_eq!(story.talk.extends_at(), None);

    // Nobody typed for long; then somebody edits.
    let mut story = ask(true, None);
    extend(&mut story);
    story.check(&[]);
    story.line_at(Some("e"), 70);
    story.did.clear();
    extend(&mut story);
    story.check(&["c1 chat:tool-extend"]);
    // Nobody is there at all, and an older daemon.
    assert_eq!(ask(false, None).talk.extends_at(), None);
    let mut story = ask(true, Some(0));
    extend(&mut story);
    let error = json!({"code": "unknown_type", "message": "m"});
    story.event(&event("session:error", &error), Some(2));
    assert_eq!(story.talk.extends_at(), None);
}

/// A question about money, or that it is settled.
fn money(id: &str, outcome: Option<&str>) -> Event {
    let mut payload = json!({"conversationId": "default", "messageId": "m1", "requestId": id});
    let (kind, more) = match outcome {
        Some(outcome) => (
            "chat:budget-resolved",
            json!({"outcome": outcome, "by": "timeout"}),
        ),
        None => (
            "chat:budget-confirm",
            json!({"scope": "session", "spentUsd": 1.0, "limitUsd": 1.0, "nextUsd": 0.1, "turn": 1, "choices": []}),
        ),
    };
    let more = more.as_object().unwrap().clone();
    payload.as_object_mut().unwrap().extend(more);
    event(kind, &payload)
}

/// The same about a file.
fn trust(id: &str, outcome: Option<&str>) -> Event {
    let mut payload = json!({"conversationId": "default", "messageId": "m1", "requestId": id});
    let (kind, more) = match outcome {
        Some(outcome) => (
            "chat:trust-resolved",
            json!({"outcome": outcome, "by": "timeout"}),
        ),
        None => {
            let file = json!({"path": "AGENTS.md", "kind": "instructions", "sha256": "ab", "bytes": 1, "text": "x"});
            (
                "chat:trust-confirm",
                json!({"files": [file], "remember": "session"}),
            )
        }
    };
    let more = more.as_object().unwrap().clone();
    payload.as_object_mut().unwrap().extend(more);
    event(kind, &payload)
}

/// Answers what is on the screen, and returns the types of what was sent, and how many prompts there were.
fn answered(story: &mut Story, line: &str) -> (Vec<String>, usize) {
    story.did.clear();
    story.line(Some(line));
    let sent = story.did.iter().filter_map(|it| it.split(' ').nth(1));
    let sent = sent.filter(|it| it.contains(':')).map(str::to_owned);
    let reads = story.did.iter().filter(|it| it.starts_with("read"));
    (sent.collect(), reads.count())
}

#[test]
fn questions_of_all_kinds_are_asked_one_after_the_other_and_none_is_lost() {
    let mut story = Story::asked();
    for event in [
        money("c1", None),
        trust("f1", None),
        trust("f2", None),
        // After a gap it is announced again.
        money("c1", None),
        question("t2"),
    ] {
        story.event(&event, None);
    }
    story.check(&[]);
    for (line, sent, reads) in [
        ("y", Some("chat:tool-approve"), 1),
        ("y", Some("chat:tool-approve"), 1),
        ("what?", None, 1),
        ("n", Some("chat:budget-approve"), 1),
        ("y", Some("chat:trust-approve"), 1),
        ("y", Some("chat:trust-approve"), 0),
    ] {
        let sent: Vec<String> = sent.map(str::to_owned).into_iter().collect();
        assert_eq!(answered(&mut story, line), (sent, reads), "{line}");
    }
}

#[test]
fn what_is_on_the_screen_stays_there_until_it_is_answered_or_settled() {
    let mut story = Story::begin(Options {
        attended: true,
        ..Options::default()
    });
    story.line(Some("hello"));
    story.event(&sent(), Some(1));
    story.did.clear();
    story.event(&trust("f1", None), None);
    story.event(&money("c1", None), None);
    story.event(&question("t1"), None);
    story.event(&question("t2"), None);
    assert_eq!(story.did.len(), 1, "{:?}", story.did);
    // None of these is on the screen.
    story.did.clear();
    story.event(&resolved("t1", "expired", "timeout"), None);
    story.event(&money("c1", Some("expired")), None);
    story.check(&[]);
    story.event(&trust("f1", Some("expired")), None);
    story.check(&["forget", "read y yes fresh"]);
    story.line(Some("y"));
    story.check(&[r#"c2 chat:tool-approve approved=true remember="once""#]);
}

#[test]
fn at_the_end_of_the_input_nobody_is_there_to_be_asked() {
    let mut story = Story::one_question();
    story.did.clear();
    story.event(&trust("f1", None), None);
    story.event(&money("c1", None), None);
    story.did.clear();
    story.line(None);
    story.line(None);
    assert!(story.did[0].starts_with("c2 chat:trust-approve approved=false"));
    assert!(
        story.did[2].starts_with("c3 chat:budget-approve"),
        "{:?}",
        story.did
    );
    let mut story = Story::one_question();
    story.event(&trust("f1", None), None);
    story.event(&money("c1", None), None);
    story.did.clear();
    story.event(&ready(false), None);
    story.event(&trust("f2", None), None);
    assert_eq!(
        story.did.iter().filter(|it| it.starts_with("read")).count(),
        1
    );
}
