use serde_json::{Value, json};

use super::*;

fn event(kind: &str, mut payload: Value, conversation: &str) -> Event {
    payload["conversationId"] = json!(conversation);
    serde_json::from_value(json!({"type": kind, "payload": payload})).unwrap()
}

fn start(conversation: &str) -> Event {
    let start = json!({"messageId": "m1", "provider": "p", "model": "m"});
    event("chat:stream-start", start, conversation)
}

fn end(conversation: &str, message: &str, reason: &str) -> Event {
    let end = json!({"messageId": message, "stopReason": reason, "partial": false, "turns": 1,
        "toolCalls": 0, "usage": {}, "durationMs": 1});
    event("chat:stream-end", end, conversation)
}

fn confirm(host: Option<&str>) -> Event {
    let mut confirm = json!({"messageId": "m1", "toolId": "t1", "toolName": "bash", "input": {},
        "danger": {"level": "warning", "reasons": []}, "reason": "trust"});
    if let Some(host) = host {
        confirm["host"] = json!(host);
    }
    event("chat:tool-confirm", confirm, "a")
}

fn resolved(host: Option<&str>) -> Event {
    let mut resolved =
        json!({"messageId": "m1", "toolId": "t1", "outcome": "approved", "by": "user"});
    if let Some(host) = host {
        resolved["host"] = json!(host);
    }
    event("chat:tool-resolved", resolved, "a")
}

fn states(events: &[Event]) -> Vec<(SessionStateName, usize)> {
    let news = news(events).into_iter();
    news.map(|it| (it.status.state, it.status.requires.len()))
        .collect()
}

fn news(events: &[Event]) -> Vec<News> {
    let mut status = Status::default();
    let mut news = Vec::new();
    for event in events {
        status.fold(event);
        news.extend(status.news());
    }
    news
}

#[test]
fn a_question_is_new_once_and_an_answer_to_another_one_is_none() {
    let told = news(&[
        start("a"),
        confirm(None),
        confirm(Some("a.example")),
        confirm(None),
        resolved(None),
        resolved(Some("a.example")),
    ]);
    let new: Vec<bool> = told.iter().map(|it| it.has_new_question).collect();
    // The third is that the two are in another order.
    assert_eq!(new, [false, true, true, false, false, false]);
}

#[test]
fn each_change_is_told_once() {
    use SessionStateName::{Failed, Idle, RequiresAction, Running};

    let told = states(&[
        start("a"),
        start("b"),
        confirm(None),
        // Announced again, as when it was extended.
        confirm(None),
        confirm(Some("example.org")),
        resolved(None),
        end("b", "m1", "end_turn"),
        resolved(Some("example.org")),
        end("a", "m1", "error"),
        start("a"),
        end("a", "m1", "end_turn"),
    ]);
    assert_eq!(
        told,
        [
            (Running, 0),
            (RequiresAction, 1),
            (RequiresAction, 2),
            (RequiresAction, 1),
            (Running, 0),
            (Failed, 0),
            (Running, 0),
            (Idle, 0),
        ]
    );
}

#[test]
fn what_goes_wrong_in_a_task_is_no_failure_of_the_session() {
    use SessionStateName::{Idle, Running};

    let told = states(&[
        start("a"),
        start("task:t1"),
        end("task:t1", "m1", "error"),
        end("a", "m1", "end_turn"),
    ]);
    assert_eq!(told, [(Running, 0), (Idle, 0)]);
}

#[test]
fn an_end_leaves_no_question_of_its_exchange_and_one_of_the_queue_changes_nothing() {
    use SessionStateName::{Idle, RequiresAction, Running};

    let told = states(&[
        start("a"),
        confirm(None),
        end("a", "m2", "cancelled"),
        end("a", "m1", "cancelled"),
    ]);
    assert_eq!(told, [(Running, 0), (RequiresAction, 1), (Idle, 0)]);
}

fn queued(message: &str, content: Option<&str>, position: usize) -> Event {
    let mut queued = json!({"messageId": message, "position": position});
    if let Some(content) = content {
        queued["content"] = json!(content);
    }
    event("chat:queued", queued, "a")
}

fn started(message: &str, duplicate: bool) -> Event {
    let sent = json!({"messageId": message, "state": "started", "duplicate": duplicate});
    event("chat:send-result", sent, "a")
}

#[test]
fn what_waits_runs_unless_it_is_held() {
    use SessionStateName::{Failed, Idle, Running};

    let end_of = |message: &str| end("a", message, "end_turn");
    let start_of = |message: &str| {
        let start = json!({"messageId": message, "provider": "p", "model": "m"});
        event("chat:stream-start", start, "a")
    };
    for (events, expected) in [
        // Between two exchanges the session is not idle.
        (
            vec![
                started("m1", false),
                queued("m2", None, 1),
                start_of("m1"),
                end_of("m1"),
                start_of("m2"),
                end_of("m2"),
                started("m2", true),
            ],
            vec![Running, Idle],
        ),
        // Of a daemon of before: held until something is said.
        (
            vec![
                queued("m1", Some("one"), 1),
                queued("m2", Some("two"), 2),
                started("m3", false),
                start_of("m3"),
                end("a", "m3", "error"),
                start_of("m1"),
                end("a", "m1", "error"),
                end("a", "m2", "cancelled"),
            ],
            vec![Running, Failed],
        ),
        (
            vec![queued("m1", Some("one"), 1), end("a", "m1", "cancelled")],
            vec![],
        ),
        // It becomes part of what runs.
        (
            vec![
                start_of("m1"),
                queued("m2", None, 1),
                queued("m2", None, 0),
                end_of("m1"),
            ],
            vec![Running, Idle],
        ),
    ] {
        let told: Vec<_> = states(&events)
            .into_iter()
            .map(|(state, _)| state)
            .collect();
        assert_eq!(told, expected, "{events:?}");
    }
}

#[test]
fn what_no_event_has_told_yet_is_noted() {
    let mut status = Status::default();
    let conversation = ConversationId::new("a");
    let mut told = |change: &dyn Fn(&mut Status)| {
        change(&mut status);
        status.news().map(|it| it.status.state)
    };
    let running = Some(SessionStateName::Running);
    assert_eq!(told(&|it| it.reads(&conversation)), running);
    assert_eq!(told(&|it| it.note_live(&conversation, true)), None);
    assert_eq!(told(&|it| it.has_read(&conversation)), None);
    assert_eq!(told(&|it| it.fold(&start("a"))), None);
    assert_eq!(told(&|it| it.note_live(&conversation, true)), None);
    let idle = Some(SessionStateName::Idle);
    assert_eq!(told(&|it| it.fold(&end("a", "m1", "end_turn"))), idle);
}

#[test]
fn a_failure_is_forgotten_with_its_conversation() {
    use SessionStateName::{Failed, Idle, Running};

    let close = event("chat:close-result", json!({"closed": true}), "a");
    let told = states(&[start("a"), end("a", "m1", "timeout"), close]);
    assert_eq!(told, [(Running, 0), (Failed, 0), (Idle, 0)]);
}
