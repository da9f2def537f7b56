use super::*;

/// Presses the keys of a script: letters as they are, and names in angle brackets.
fn press(draft: &mut Draft, script: &str, history: &History) -> Outcome {
    let mut outcome = Outcome::Nothing;
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        let name = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let (code, modifiers) = match name {
            Some((name, after)) => {
                rest = after;
                named(name)
            }
            None => {
                rest = rest.split_at(first.len_utf8()).1;
                (KeyCode::Char(first), KeyModifiers::NONE)
            }
        };
        outcome = draft.key(KeyEvent::new(code, modifiers), history);
    }
    outcome
}

fn named(name: &str) -> (KeyCode, KeyModifiers) {
    let (modifiers, name) = match name.split_once('-') {
        Some(("c", name)) => (KeyModifiers::CONTROL, name),
        Some(("m", name)) => (KeyModifiers::ALT, name),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "back" => KeyCode::Backspace,
        "del" => KeyCode::Delete,
        "tab" => KeyCode::Tab,
        "enter" => KeyCode::Enter,
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    (code, modifiers)
}

/// The text with a bar at the cursor.
fn seen(draft: &Draft) -> String {
    let (before, after) = draft.text().split_at(draft.position());
    format!("{before}|{after}")
}

#[test]
fn keys_edit_the_line() {
    for (script, expected) in [
        ("", "|"),
        ("abc", "abc|"),
        ("abc<left><left>x", "ax|bc"),
        ("abc<home>x<end>y", "xabcy|"),
        ("abc<c-a>x<c-e>y", "xabcy|"),
        ("abc<back>", "ab|"),
        ("abc<home><del><c-d>", "|c"),
        ("one two<m-b>x", "one x|two"),
        ("one two<c-left><c-left>x<m-f>y", "xoney| two"),
        ("one two<c-w>", "one |"),
        ("one two<c-u>", "|"),
        ("one two<c-u><c-y><c-y>", "one twoone two|"),
        ("one two<home><c-k>x<c-y>", "xone two|"),
        ("ab<c-t>", "ba|"),
        ("a<m-enter>b<c-j>c", "a\nb\nc|"),
        // Wide and combined characters are one step.
        ("漢字<left>x", "漢x|字"),
        ("e\u{301}a<left><left>x", "x|e\u{301}a"),
        ("👩\u{200d}🚀<back>", "|"),
        ("ab<c-j>cdef<up>x<down>y", "abx\ncdey|f"),
    ] {
        let mut draft = Draft::default();
        press(&mut draft, script, &History::default());
        assert_eq!(seen(&draft), expected, "{script}");
    }
}

#[test]
fn some_keys_are_for_others() {
    for (script, expected) in [
        ("hi<enter>", Outcome::Entered("hi".to_owned())),
        ("<enter>", Outcome::Entered(String::new())),
        ("<c-c>", Outcome::Interrupt),
        ("<c-d>", Outcome::End),
        ("x<c-d>", Outcome::Nothing),
        ("<tab>", Outcome::Complete),
        ("<c-l>", Outcome::Clear),
        ("<c-z>", Outcome::Suspend),
        ("<left>", Outcome::Nothing),
    ] {
        let outcome = press(&mut Draft::default(), script, &History::default());
        assert_eq!(outcome, expected, "{script}");
    }
    let released = KeyEvent {
        kind: KeyEventKind::Release,
        ..KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)
    };
    let outcome = Draft::default().key(released, &History::default());
    assert_eq!(outcome, Outcome::Nothing);
}

#[test]
fn what_was_sent_comes_back() {
    let mut history = History::default();
    for line in ["git status", "hello", "git log", "two\nlines"] {
        history.add(line);
    }
    for (script, expected) in [
        ("<up>", "two\nlines|"),
        ("<up><up>", "git log|"),
        ("<up><up><down>", "two\nlines|"),
        ("new<down>", "new|"),
        ("<up><down>", "|"),
        // Only what begins as the line does, and then what was typed.
        ("git<up>", "git log|"),
        ("git<up><up>", "git status|"),
        ("git<up><up><up>", "git status|"),
        ("git<up><up><down><down>", "git|"),
        ("<c-p><c-p><c-n>", "two\nlines|"),
        ("<up><up><left>x<up>", "git lox|g"),
    ] {
        let mut draft = Draft::default();
        press(&mut draft, script, &history);
        assert_eq!(seen(&draft), expected, "{script}");
    }
}

#[test]
fn what_is_pasted_is_one_draft() {
    let mut draft = Draft::default();
    press(&mut draft, "say: !<left>", &History::default());
    assert_eq!(
        draft.paste("one\r\ntwo\rthree\n\u{1b}[31m\u{3}漢"),
        Outcome::Changed
    );
    assert_eq!(seen(&draft), "say: one\ntwo\nthree\n[31m漢|!");
    let too_long = "x".repeat(DRAFT_BYTES);
    assert_eq!(draft.paste(&too_long), Outcome::Full);
    assert_eq!(draft.take(), "say: one\ntwo\nthree\n[31m漢!");
    assert_eq!(seen(&draft), "|");
}

#[test]
fn a_completion_takes_the_place_of_its_word() {
    let mut draft = Draft::default();
    press(&mut draft, "see sr now<c-left><left>", &History::default());
    assert_eq!(draft.complete(4, "src/"), Outcome::Changed);
    assert_eq!(seen(&draft), "see src/| now");
    assert_eq!(draft.complete(100, "x"), Outcome::Full);
}
