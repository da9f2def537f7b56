use proptest::prelude::*;

use super::*;

#[test]
fn what_a_terminal_shows() {
    let cases = [
        ("plain\n\ttext\n", "plain\n\ttext\n"),
        ("a\tb\tc", "a\tb\tc"),
        ("no end", "no end"),
        ("trailing blanks  \n", "trailing blanks  \n"),
        ("dos\r\nlines\r\n", "dos\nlines\n"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("10%\r50%\r100%\r", "100%"),
        // The rest of what was longer stays, unless it is erased.
        ("downloading\rdone\n", "doneloading\n"),
        ("downloading\r\u{1b}[Kdone\n", "done\n"),
        ("downloading\rdone\u{1b}[K\n", "done\n"),
        ("downloading\u{1b}[2K\rdone\n", "done\n"),
        ("downloading\u{1b}[1K\n", "\n"),
        ("abc\u{8}\u{8}X\n", "aXc\n"),
        ("**bold**\u{8}\u{8}  \n", "**bold\n"),
        ("⠋ one\u{1b}[1G⠙ two\u{1b}[1G\u{1b}[0Kdone\n", "done\n"),
        ("ab\u{1b}[3Cc\n", "ab   c\n"),
        ("abcdef\u{1b}[4DX\n", "abXdef\n"),
        // Tabs in lines that are written over.
        ("a\tb\rX\n", "X\tb\n"),
        ("a\tb\rXYZ\n", "XYZ     b\n"),
        ("ab\r\tc\n", "ab\tc\n"),
        ("12345678\r\tc\n", "12345678c\n"),
        // Several lines of progress.
        (
            "a 1%\nb 1%\n\u{1b}[2Aa 9%\nb 9%\nend\n",
            "a 9%\nb 9%\nend\n",
        ),
        ("a 1%\nb 1%\n\u{1b}[2A\u{1b}[Jend\n", "end\n"),
        ("a\nb\u{1b}[1Fc\u{1b}[1Ed\n", "c\nd\n"),
        ("a\nb\u{1b}Mc\n", "ac\nb"),
        // All else is dropped.
        ("\u{1b}[31mred\u{1b}[0m\n", "red\n"),
        ("\u{1b}[38:2::1:2:3mred\u{1b}[m\u{1b}[?25l\n", "red\n"),
        ("\u{1b}]0;title\u{7}x", "x"),
        ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\x", "linkx"),
        ("\u{1b}P+q\u{1b}\\x\u{1b}(Bb\u{1b}7c\u{1b}8", "xbc"),
        ("bell\u{7}\0\u{9b}x\u{85}y", "bellxy"),
        ("\u{1b}[2J\u{1b}[Hx", "x"),
        (
            "a\u{1b}[999999999Cb",
            &("a".to_owned() + &" ".repeat(MAX_COLUMN - 1) + "b"),
        ),
        // A sequence without an end takes no more than its line.
        ("a\u{1b}]0;tit\nb\u{1b}[3\nc\n", "a\nb\nc\n"),
        ("a\u{1b}[3\u{18}m\n", "am\n"),
        ("é漢🚣\rX\n", "X漢🚣\n"),
        ("", ""),
        ("\n\n", "\n\n"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text), expected, "{text:?}");
    }
}

#[test]
fn recorded_programs_leave_what_they_left_on_the_screen() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/terminal");
    for name in ["cargo", "npm", "pip", "pytest"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.raw"))).unwrap();
        let golden = folder.join(format!("{name}.txt"));
        if std::env::var_os("OUTRIGGER_UPDATE").is_some() {
            std::fs::write(&golden, shown(&text)).unwrap();
        }
        assert_eq!(
            shown(&text),
            std::fs::read_to_string(golden).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn memory_does_not_grow_with_a_stream() {
    let mut screen = Screen::default();
    let mut bytes = 0;
    for _ in 0..1_000 {
        bytes += screen.push(&"x".repeat(1_000)).len();
        assert!(screen.page.above.is_empty() && screen.page.line.width() <= MAX_LINE + 1_000);
    }
    assert_eq!(bytes + screen.finish().len(), 1_000_000);
    let mut screen = Screen::default();
    for _ in 0..1_000 {
        screen.push("line\n\u{1b}]never ended ");
        assert!(screen.page.above.len() < OPEN_LINES && screen.sequence <= MAX_SEQUENCE);
    }
    let mut screen = Screen::default();
    for _ in 0..1_000 {
        screen.push(&"\u{1b}]never ended ".repeat(10));
        assert!(screen.sequence <= MAX_SEQUENCE + 4);
    }
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_text(
        pieces in proptest::collection::vec(
            prop::sample::select(vec![
                "\r", "\n", "\t", "\u{8}", "\u{1b}", "[", "K", "2A", "3B", "4C", "5D", "J", "1G", "]", ";", "\u{7}",
                "\\", "P", "abc", "é漢", " ", "\u{1b}[K", "\u{1b}[2A", "\u{1b}[3C",
            ]),
            0..40,
        )
    ) {
        let text = pieces.concat();
        let mut screen = Screen::default();
        let mut cut: String = pieces.iter().map(|piece| screen.push(piece)).collect();
        cut.push_str(&screen.finish());
        prop_assert_eq!(cut, shown(&text));
    }

    #[test]
    fn text_without_controls_stays_as_it_is(text in "([a-z é漢]|\t|\n){0,200}") {
        prop_assert_eq!(shown(&text), text);
    }
}
