//! The way to a session that is kept.

use super::super::sessions::kept;
use super::*;
use crate::protocol::answer::KeptSession;

fn options(wanted: Wanted, prompt: Option<&str>) -> Options {
    Options {
        wanted: Some(wanted),
        prompt: prompt.map(str::to_owned),
        ..Options::default()
    }
}

fn id(text: &str) -> Wanted {
    Wanted::Id(text.to_owned())
}

fn page(sessions: &[KeptSession], next: Option<&str>) -> Event {
    let mut page = json!({ "sessions": sessions });
    if let Some(next) = next {
        page["nextCursor"] = json!(next);
    }
    event("session:list-result", &page)
}

/// The greeting of a session that is gone on in.
fn greeting(id: &str, resumed: bool) -> Event {
    let Event::SessionReady(mut greeting) = ready(resumed) else {
        unreachable!("it is one");
    };
    greeting.session_id = SessionId::new(id);
    Event::SessionReady(greeting)
}

fn history() -> Event {
    let messages = json!([{"role": "user", "content": "earlier"}]);
    let payload = json!({"conversationId": "default", "messages": messages});
    event("chat:history-result", &payload)
}

fn state(running: bool, approvals: &[&str]) -> Event {
    let conversation = match running {
        true => {
            json!({"conversationId": "default", "state": "thinking", "messageId": "m7", "queue": []})
        }
        false => json!({"conversationId": "default", "state": "idle", "queue": []}),
    };
    let asked = |id: &&str| serde_json::to_value(question(id)).unwrap()["payload"].clone();
    let approvals: Vec<Value> = approvals.iter().map(asked).collect();
    event(
        "session:state-result",
        &json!({"conversations": [conversation], "approvals": approvals}),
    )
}

/// Goes on in the session `s1`, to the answer that says how things stand there.
fn open(story: &mut Story, first: u64, running: bool, approvals: &[&str]) {
    story.event(&greeting("s1", true), None);
    // What is told again of it, and answers to an earlier chat.
    story.event(&greeting("s1", false), None);
    story.event(&question("t0"), None);
    story.event(&state(false, &["t0"]), Some(first + 9));
    story.check(&[&format!("c{first} chat:history")]);
    story.event(&history(), Some(first));
    story.check(&[&format!("c{} session:state", first + 1)]);
    story.event(&state(running, approvals), Some(first + 1));
}

#[test]
fn the_last_session_is_gone_on_in() {
    let mut story = Story::begin(options(Wanted::Last, None));
    story.check(&["c1 session:list"]);
    story.event(&page(&[kept("s1", "one")], Some("more")), Some(1));
    story.check(&["open s1"]);
    open(&mut story, 2, false, &[]);
    story.check(&["read >"]);
    story.line(Some("and now?"));
    story.check(&[r#"c4 chat:send content="and now?""#]);
}

#[test]
fn what_runs_there_is_waited_for_and_what_is_asked_is_asked() {
    let mut story = Story::begin(options(Wanted::Last, None));
    story.event(&page(&[kept("s1", "one")], None), Some(1));
    story.did.clear();
    open(&mut story, 2, true, &["t4"]);
    story.check(&["read y yes fresh"]);
    story.line(Some("y"));
    story.check(&["c4 chat:tool-approve approved=true remember=\"once\""]);
    story.event(&end("end_turn"), None);
    story.check(&["read >"]);

    // One question is asked when that is over.
    let mut story = Story::begin(options(Wanted::Last, Some("hi")));
    story.event(&page(&[kept("s1", "one")], None), Some(1));
    story.did.clear();
    open(&mut story, 2, true, &[]);
    story.check(&[]);
    story.event(&end("error"), None);
    story.check(&[r#"c4 chat:send content="hi""#]);
    story.event(&end("end_turn"), None);
    story.check(&["quit true"]);
}

#[test]
fn a_session_is_found_by_the_beginning_of_its_id_wherever_it_is() {
    let mut story = Story::begin(options(id("ab"), None));
    story.event(&page(&[kept("xy", "other")], Some("next")), Some(1));
    story.event(&page(&[], None), Some(2));
    // Among those that were put away.
    story.event(&page(&[kept("abc", "it")], None), Some(3));
    story.check(&[
        "c1 session:list",
        "c2 session:list",
        "c3 session:list",
        "open abc",
    ]);
    // A whole id counts, whatever else begins so.
    let mut story = Story::begin(options(id("ab"), None));
    story.event(
        &page(&[kept("abc", "other"), kept("ab", "it")], None),
        Some(1),
    );
    story.check(&["c1 session:list", "open ab"]);
}

#[test]
fn a_session_that_cannot_be_gone_on_in_ends_a_chat_that_was_begun_for_it() {
    let several = page(&[kept("abc", "one"), kept("abd", "two")], None);
    for (wanted, answers) in [
        (Wanted::Last, vec![page(&[], None)]),
        (Wanted::Last, vec![refusal("forbidden")]),
        (id("ab"), vec![several]),
        (
            id("ab"),
            vec![page(&[kept("x", "x")], None), page(&[], None)],
        ),
        (id(""), vec![page(&[], None), page(&[], None)]),
    ] {
        let mut story = Story::begin(options(wanted.clone(), Some("hi")));
        for (at, answer) in answers.iter().enumerate() {
            story.did.clear();
            story.event(answer, Some(at as u64 + 1));
        }
        story.check(&["quit false"]);
    }
    // The daemon ends, or does not say how things stand there.
    let mut story = Story::begin(options(Wanted::Last, None));
    story.event(&page(&[kept("s1", "one")], None), Some(1));
    story.event(&greeting("s1", true), None);
    story.did.clear();
    story.event(&refusal("shutting_down"), Some(2));
    story.check(&["quit false"]);
    // It was deleted meanwhile.
    let mut story = Story::begin(options(Wanted::Last, None));
    story.event(&page(&[kept("s1", "one")], None), Some(1));
    story.did.clear();
    story.event(&greeting("another", false), None);
    story.check(&["quit false"]);
}

#[test]
fn sessions_are_listed_and_picked() {
    let mut story = Story::conversation();
    story.line(Some("/sessions"));
    story.event(
        &page(&[kept("s9", "nine"), kept("s1", "one")], None),
        Some(1),
    );
    story.check(&["read >", "c1 session:list", "read >"]);
    story.line(Some(" /sessions 2 "));
    story.event(
        &page(&[kept("s9", "nine"), kept("s1", "one")], None),
        Some(2),
    );
    story.check(&["c2 session:list", "open s1"]);
    open(&mut story, 3, false, &[]);
    story.check(&["read >"]);
    // What is not there is said, and the chat goes on where it is.
    story.line(Some("/sessions 7"));
    story.event(&page(&[], None), Some(5));
    story.event(&page(&[], None), Some(6));
    story.check(&["c5 session:list", "c6 session:list", "read >"]);
    story.line(Some("/sessions"));
    story.event(&refusal("forbidden"), Some(7));
    story.check(&["c7 session:list", "read >"]);
}
