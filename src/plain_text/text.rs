//! Other people's text made fit for a terminal. Pure.

use crate::terminal_text::is_hidden;

/// Writes a text so that what is seen is what is there: controls, characters that cannot be seen and
/// those that reorder text are escaped, and so are blanks that are none to a shell. Line ends and tabs stay.
pub(crate) fn exposed(text: &str) -> String {
    escaped(text, is_hidden)
}

/// The same for what has to stay on its line.
pub(crate) fn exposed_line(text: &str) -> String {
    escaped(text, |c| is_hidden(c) || matches!(c, '\n' | '\t'))
}

/// Keeps a text from steering the terminal; scripts that are written right to left stay readable.
pub(super) fn harmless(text: &str) -> String {
    escaped(text, |c| {
        c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{2028}' | '\u{2029}')
    })
}

/// Writes a text on one line, cut after `width` characters.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let line = exposed(&words.join(" "));
    match line.char_indices().nth(width) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

/// Puts `prefix` before each line; no line end after the last.
pub(super) fn prefixed(text: &str, prefix: &str) -> String {
    let lines = text.trim_end_matches('\n').split('\n');
    let lines: Vec<String> = lines.map(|line| format!("{prefix}{line}")).collect();
    lines.join("\n")
}

fn escaped(text: &str, wrong: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if wrong(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_hides_is_escaped() {
        let cases = [
            ("plain\n\ttext", "plain\n\ttext", "plain\n\ttext"),
            ("\u{1b}[2Jx", "\\u{1b}[2Jx", "\\u{1b}[2Jx"),
            ("a\u{202e}b", "a\\u{202e}b", "a\u{202e}b"),
            ("a\u{200b}b", "a\\u{200b}b", "a\u{200b}b"),
            (
                "bell\u{7}\u{9b}1m",
                "bell\\u{7}\\u{9b}1m",
                "bell\\u{7}\\u{9b}1m",
            ),
            ("back\rover", "back\\u{d}over", "back\\u{d}over"),
            ("שלום é 漢", "שלום é 漢", "שלום é 漢"),
            (
                "ls\u{a0}-l\u{3000}a\u{2800}b",
                "ls\\u{a0}-l\\u{3000}a\\u{2800}b",
                "ls\u{a0}-l\u{3000}a\u{2800}b",
            ),
            (
                "a\u{2028}b\u{2029}c",
                "a\\u{2028}b\\u{2029}c",
                "a\\u{2028}b\\u{2029}c",
            ),
        ];
        for (text, in_question, in_answer) in cases {
            assert_eq!(exposed(text), in_question);
            assert_eq!(harmless(text), in_answer);
        }
    }

    #[test]
    fn one_line_is_cut_between_characters() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("a\u{a0}b", 10), "a\\u{a0}b");
        assert_eq!(one_line("éééé", 3), "ééé…");
        assert_eq!(one_line("ééé", 3), "ééé");
    }

    #[test]
    fn each_line_gets_its_prefix() {
        assert_eq!(prefixed("a\nb\n", "  "), "  a\n  b");
        assert_eq!(prefixed("", "  "), "  ");
    }
}
