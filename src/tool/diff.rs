//! Unified diffs of what a call writes, for the user who is asked and for the client. Pure but for a
//! deadline, so that a strange pair of texts cannot hold a call up.

use std::io::{self, Write};
use std::time::Duration;

use similar::{Algorithm, DiffTag, TextDiff};

use super::listed::listed;
use crate::message::{CUT_DIFF, is_cut_diff};
use crate::terminal_text::visible;

/// Longest diff, in bytes; what is longer is cut with a line that says so.
const MAX_DIFF_BYTES: usize = 64 * 1024;

/// How long the shortest diff is looked for; then a longer one has to do.
const SEARCH: Duration = Duration::from_millis(250);

const CONTEXT: usize = 3;

/// What changes from one text to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) text: String,
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

/// Compares `old` (`None`: there is no file) with `new`.
///
/// Control, invisible and bidirectional characters are escaped: what is approved must be what is seen.
pub(crate) fn compare(path: &str, old: Option<&str>, new: &str) -> Difference {
    let (before, after) = match old {
        // Line ends that both have would stand as noise at the end of every line.
        Some(old) if old.contains("\r\n") && new.contains("\r\n") && !bare_line_feed(old, new) => {
            (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"))
        }
        other => (other.unwrap_or_default().to_owned(), new.to_owned()),
    };
    // A carriage return alone ends no line here, or what follows it would stand behind it and not be marked.
    let [from, to] = [&before, &after].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Patience)
        .timeout(SEARCH)
        .newline_terminated(true)
        .diff_slices(&from, &to);
    let (mut added, mut removed) = (0, 0);
    for op in diff.ops() {
        if op.tag() != DiffTag::Equal {
            removed += op.old_range().len();
            added += op.new_range().len();
        }
    }
    let path = listed(path);
    let mut capped = Capped(Vec::new());
    let shown_from = old.map_or("/dev/null".to_owned(), |_| format!("a/{path}"));
    let written = diff
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&shown_from, &format!("b/{path}"))
        .to_writer(&mut capped);
    let mut text = visible(&String::from_utf8_lossy(&capped.0));
    if written.is_err() {
        let whole_lines = text.rfind('\n').map_or(0, |end| end + 1);
        text.truncate(whole_lines);
        text.push_str(&format!(
            "{CUT_DIFF}after {MAX_DIFF_BYTES} bytes; {} lines become {}]\n",
            before.lines().count(),
            after.lines().count()
        ));
    }
    Difference {
        text,
        added,
        removed,
    }
}

/// Returns whether two diffs show the same change, lines around it included, wherever in the file that is.
///
/// Of a diff that was cut, the rest is not known: it is like no other.
pub(crate) fn is_same_change(one: &str, other: &str) -> bool {
    let [shown, made] = [one, other].map(|diff| {
        let lines = diff.lines();
        lines.filter(|line| !line.starts_with("@@"))
    });
    !is_cut_diff(one) && !is_cut_diff(other) && shown.eq(made)
}

/// Whether one of the texts has a line that ends otherwise.
fn bare_line_feed(old: &str, new: &str) -> bool {
    [old, new]
        .iter()
        .any(|text| text.matches('\n').count() != text.matches("\r\n").count())
}

/// Takes up to [`MAX_DIFF_BYTES`], then fails: two texts may be 40 MiB.
struct Capped(Vec<u8>);

impl Write for Capped {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = MAX_DIFF_BYTES - self.0.len();
        if room == 0 && !piece.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = piece.get(..room).unwrap_or(piece);
        self.0.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_what_changes() {
        for (old, new, expected) in [
            (Some("a\n"), "a\n", ""),
            (
                Some("a\nb\nc\n"),
                "a\nx\nc\n",
                "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n",
            ),
            (None, "n\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+n\n"),
            (
                Some("a\r\nb\r\n"),
                "a\r\nx\r\n",
                "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+x\n",
            ),
            (
                Some("a\r\n"),
                "a\n",
                "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\\r\n+a\n",
            ),
            // All of a line is marked.
            (
                Some("a\rb\n"),
                "a\rc\rb\n",
                "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\\rb\n+a\\rc\\rb\n",
            ),
            (
                Some("\n"),
                "\u{202e}\u{1b}[0m\n",
                "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-\n+\\u{202e}\\u{1b}[0m\n",
            ),
        ] {
            assert_eq!(compare("f", old, new).text, expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn a_change_is_known_again_elsewhere() {
        let text = |old: &str, new: &str| compare("f", Some(old), new).text;
        let change = text("1\nb\n3\n", "1\nx\n3\n");
        let many = "line\n".repeat(MAX_DIFF_BYTES / 4);
        let cut = text("", &many);
        assert!(cut.contains(CUT_DIFF));
        for (other, is_same) in [
            (change.clone(), true),
            (text("1\nb\n3\n", "1\ny\n3\n"), false),
            (text("1\nb\n3\n", "1\nx\n"), false),
            (text("2\nb\n3\n", "2\nx\n3\n"), false),
            (text("1\nb\n3", "1\nx\n3"), false),
            (compare("g", Some("b\n"), "x\n").text, false),
            (compare("f", None, "x\n").text, false),
            (String::new(), false),
            (cut.clone(), false),
        ] {
            assert_eq!(is_same_change(&change, &other), is_same, "{other}");
            assert_eq!(is_same_change(&other, &change), is_same, "{other}");
        }
        assert!(!is_same_change(&cut, &cut));
        let [one, other] = [3, 9].map(|before| {
            let before = "0\n".repeat(before);
            text(&format!("{before}b\n"), &format!("{before}x\n"))
        });
        assert!(one != other && is_same_change(&one, &other), "{one}{other}");
    }

    #[test]
    fn lines_are_counted_and_names_stay_on_their_line() {
        let difference = compare("f", Some("a\nb\nc\n"), "a\nx\ny\nc\n");
        assert_eq!((difference.removed, difference.added), (1, 2));
        let text = compare("f\n+forged", None, "n\n").text;
        assert_eq!(
            text,
            "--- /dev/null\n+++ b/\"f\\n+forged\"\n@@ -0,0 +1 @@\n+n\n"
        );
    }

    #[test]
    fn false_blanks_and_separators_are_seen() {
        let text = compare("f", None, "a\u{2028}b\u{a0}c\u{3000}d\u{2800}e\n").text;
        assert!(
            text.ends_with("+a\\u{2028}b\\u{a0}c\\u{3000}d\\u{2800}e\n"),
            "{text}"
        );
    }

    #[test]
    fn a_long_diff_is_cut_at_a_line_and_says_so() {
        let new = "line\n".repeat(MAX_DIFF_BYTES);
        let text = compare("f", None, &new).text;
        assert!(text.len() < MAX_DIFF_BYTES + 200);
        assert!(
            text.ends_with("bytes; 0 lines become 65536]\n"),
            "{}",
            text.len()
        );
        let last = text.lines().last().unwrap();
        assert!(last.starts_with(CUT_DIFF), "{last}");
        let one_line = "x".repeat(2 * MAX_DIFF_BYTES);
        assert!(
            compare("f", None, &one_line)
                .text
                .ends_with("0 lines become 1]\n")
        );
    }
}
