//! The text of turns: which of it counts, and what stands between.

use super::*;

#[test]
fn a_discarded_turn_is_said_to_be_void() {
    check(
        &[text("Hal"), discarded(), text("Hello"), end()],
        "Hal\nthe provider broke off; what it said above is void, it is asked again: it broke\nHello\n── done · 1 turn · 1.5 s\n",
    );
}

#[test]
fn an_answer_for_a_program_has_no_discarded_text() {
    let events = [
        text("Hal"),
        discarded(),
        text("Hel"),
        text("lo"),
        usage(),
        end(),
    ];
    let (answer, _) = shown(true, &events);
    assert_eq!(answer, "Hello\n");
}

#[test]
fn an_answer_for_a_program_is_shown_turn_by_turn_and_as_it_came() {
    let odd = "\u{1b}[1m\u{202e}";
    let events = [
        text(odd),
        usage(),
        start("t1", &json!({})),
        text("cut off"),
        end(),
    ];
    let (answer, _) = shown(true, &events);
    assert_eq!(answer, format!("{odd}\ncut off\n"));
    let (answer, _) = shown(false, &events);
    assert_eq!(answer, "\\u{1b}[1m\u{202e}\ncut off\n");
}

#[test]
fn an_empty_line_stands_between_turns_that_no_call_separates() {
    let notice = event(
        "session:notice",
        json!({"severity": "info", "code": "hook_refused", "message": "not yet"}),
    );
    let call = start("t1", &json!({}));
    for (between, answer, all) in [
        (vec![], "one\n\ntwo\n", "one\n\ntwo\n"),
        (vec![notice], "one\n\ntwo\n", "one\nnote: not yet\n\ntwo\n"),
        (vec![call], "one\ntwo\n", "one\n▸ t1 bash\ntwo\n"),
    ] {
        let turns = [vec![text("one"), usage()], between, vec![text("tw")]];
        let mut events = turns.concat();
        events.extend([text("o"), usage(), end(), text("next")]);
        for hold in [true, false] {
            let (answered, shown) = shown(hold, &events);
            let rest = "── done · 1 turn · 1.5 s\n";
            let next = if hold { "" } else { "next" };
            assert_eq!(answered, format!("{answer}{next}"));
            assert_eq!(shown, format!("{all}{rest}{next}"));
        }
    }
}
