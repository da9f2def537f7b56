//! A person at a line editor: lines that wait, and what is dropped.

use super::*;

/// A conversation at a line editor, in which something runs.
fn busy() -> Story {
    let mut story = Story::begin(Options {
        attended: true,
        composes: true,
        ..Options::default()
    });
    story.line(Some("hello"));
    story.event(&sent(), Some(1));
    story.did.clear();
    story
}

/// What is said about a line.
fn said(story: &mut Story, line: &str) -> String {
    let actions = story.talk.line(Some(line), NOW);
    let texts = actions.iter().filter_map(|action| match action {
        Action::Show(Piece::Aside(_, text)) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn what_is_sent_while_something_runs_waits_for_its_turn() {
    let mut story = busy();
    for line in ["second", "", "/trust nonsense", "third"] {
        story.line(Some(line));
    }
    story.check(&[]);
    story.event(&end("end_turn"), None);
    story.check(&[r#"c2 chat:send content="second""#]);
    story.event(&end("end_turn"), None);
    // What is wrong keeps nothing up.
    story.check(&["read >", r#"c3 chat:send content="third""#]);
    story.event(&end("end_turn"), None);
    story.check(&["read >"]);
}

#[test]
fn what_needs_no_turn_does_not_wait() {
    let mut story = busy();
    for (line, words) in [
        ("/help", "Alt-Enter"),
        ("/output", "no call has output"),
        ("later", "sent when what runs is done"),
    ] {
        let said = said(&mut story, line);
        assert!(said.contains(words), "{line}: {said}");
    }
    story.line(Some("/quit"));
    story.check(&["quit true"]);
}

/// A call may wait for just that.
#[test]
fn a_sign_in_does_not_wait_for_what_runs() {
    let mut story = busy();
    story.line(Some(
        "/sign-in docs http://127.0.0.1:1/oauth/callback?code=c&state=s",
    ));
    story.line(Some("/sign-out docs"));
    story.check(&["c2 mcp:auth", "c3 mcp:sign-out"]);
}

#[test]
fn a_cancel_drops_what_waits() {
    let mut story = busy();
    story.line(Some("second"));
    let actions = story.talk.interrupted();
    story.note(&actions);
    story.check(&["c2 chat:cancel queued=true"]);
    story.event(&end("cancelled"), None);
    story.check(&["read >"]);
}

#[test]
fn what_is_sent_on_the_way_to_another_session_waits_for_it() {
    let mut story = Story::begin(Options {
        composes: true,
        ..Options::default()
    });
    story.did.clear();
    story.line(Some("/sessions"));
    story.line(Some("hello"));
    story.check(&["c1 session:list"]);
    story.event(&refusal("invalid_payload"), Some(1));
    story.check(&[r#"c2 chat:send content="hello""#]);
}

#[test]
fn only_so_many_lines_wait() {
    let mut story = busy();
    for number in 0..16 {
        let said = said(&mut story, &number.to_string());
        assert!(said.contains("sent when"), "{number}: {said}");
    }
    let said = said(&mut story, "one more");
    assert!(said.contains("is not sent"), "{said}");
}

#[test]
fn a_line_for_a_question_that_lapsed_does_not_wait_to_be_sent() {
    for (line, seconds, is_dropped) in [
        ("y", 1, true),
        ("t today, please", 9, true),
        ("y", 600, true),
        ("something else", 600, false),
    ] {
        for was_typed_for in [true, false] {
            let mut story = busy();
            story.event(&question("t1"), None);
            story.event(&resolved("t1", "expired", "timeout"), None);
            story.check(&["read y yes fresh", "forget"]);
            if !was_typed_for {
                story.talk.nothing_was_typed();
            }
            story.line_at(Some(line), seconds);
            story.event(&end("end_turn"), None);
            let sent = format!("c2 chat:send content={line:?}");
            // What reads as an answer is one in any case.
            match is_dropped && (was_typed_for || line == "y") {
                true => story.check(&["read >"]),
                false => story.check(&[&sent]),
            }
        }
    }
}

#[test]
fn a_long_message_is_shown_in_part() {
    let mut story = busy();
    let line: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    let actions = story.talk.echo(&line.join("\n"));
    let [Action::Show(Piece::Aside(_, text))] = actions.as_slice() else {
        panic!("{actions:?}");
    };
    assert!(text.ends_with("19\n… 10 lines more\n"), "{text}");
}
