//! A change of a file as an editor shows it: the whole file before and after where both are known and not too long, else the
//! changed lines, marked as such. Pure.

use std::path::Path;

use serde_json::{Value, json};

use super::render::text_content;
use crate::message::CUT_DIFF;

/// The longest file that is shown whole, in bytes.
pub(super) const MAX_WHOLE: usize = 256 * 1024;

/// What is known of a file besides its unified diff.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known<'a> {
    /// The whole file before the change.
    pub before: Option<&'a str>,
    /// The whole file after it.
    pub after: Option<&'a str>,
}

/// A piece of a unified diff.
#[derive(Debug, Default)]
struct Hunk {
    /// The line before its first one, in the old file and in the new one.
    at: [usize; 2],
    /// Its lines in both.
    sides: [Vec<String>; 2],
}

/// A unified diff, read.
#[derive(Debug, Default)]
struct Difference {
    is_new_file: bool,
    /// That it was cut, in its own words.
    cut: Option<String>,
    /// What else it says that is no line of the file.
    notes: Vec<String>,
    hunks: Vec<Hunk>,
}

/// Returns what a client shows of a change: differences first, then what has to be said of them.
pub(super) fn content(path: &Path, unified: &str, known: Known<'_>) -> Vec<Value> {
    let read = read(unified);
    let diff = |old: Option<&str>, new: &str| json!({"type": "diff", "path": path, "oldText": old, "newText": new});
    let mut notes = read.notes.clone();
    let mut shown = match whole(&read, known) {
        Some((old, new)) => vec![diff(old.as_deref(), &new)],
        None => {
            let said = "Not the whole file: the changed lines and what is around them.";
            notes.push(said.to_owned());
            notes.extend(read.cut.clone());
            let [old, new] = [0, 1];
            let text = |hunk: &Hunk, side: usize| {
                let lines = hunk.sides.get(side).map(|lines| lines.concat());
                lines.unwrap_or_default()
            };
            let hunks = read.hunks.iter().map(|hunk| {
                let before = text(hunk, old);
                diff((!read.is_new_file).then_some(&*before), &text(hunk, new))
            });
            hunks.collect()
        }
    };
    if !notes.is_empty() {
        shown.push(text_content(&notes.join("\n")));
    }
    shown
}

/// Returns what a client shows of a replacement whose surroundings are not known.
pub(super) fn replacement(path: &Path, old: &str, new: &str) -> Vec<Value> {
    let said = "Not the whole file: the lines that are replaced.";
    vec![
        json!({"type": "diff", "path": path, "oldText": old, "newText": new}),
        text_content(said),
    ]
}

/// Returns the whole file before and after, where both are known or follow from the other.
fn whole(read: &Difference, known: Known<'_>) -> Option<(Option<String>, String)> {
    let is_whole = read.cut.is_none();
    let (before, after) = match (read.is_new_file, known.before, known.after) {
        (true, _, Some(after)) => (None, after.to_owned()),
        (true, _, None) if is_whole => (None, patched("", &read.hunks, false)?),
        (true, ..) => return None,
        (false, Some(before), Some(after)) => (Some(before.to_owned()), after.to_owned()),
        (false, Some(before), None) if is_whole => {
            let after = patched(before, &read.hunks, false)?;
            (Some(before.to_owned()), after)
        }
        (false, None, Some(after)) if is_whole => {
            let before = patched(after, &read.hunks, true)?;
            (Some(before), after.to_owned())
        }
        (false, ..) => return None,
    };
    let fits = |text: &str| text.len() <= MAX_WHOLE;
    (before.as_deref().is_none_or(fits) && fits(&after)).then_some((before, after))
}

/// Returns a text with the hunks applied, or taken back; `None` where they do not fit it.
fn patched(text: &str, hunks: &[Hunk], is_back: bool) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut patched, mut next) = (String::new(), 0);
    for hunk in hunks {
        let [old, new] = &hunk.sides;
        let [old_at, new_at] = hunk.at;
        let (from, to, at) = match is_back {
            false => (old, new, old_at),
            true => (new, old, new_at),
        };
        patched.extend(lines.get(next..at)?.iter().copied());
        next = at + from.len();
        if lines.get(at..next)? != from.as_slice() {
            return None;
        }
        patched.extend(to.iter().map(String::as_str));
    }
    patched.extend(lines.get(next..)?.iter().copied());
    Some(patched)
}

fn read(unified: &str) -> Difference {
    let mut read = Difference::default();
    // The sides that the last line is on.
    let mut last: &[usize] = &[];
    for line in unified.lines() {
        if line.starts_with("@@ ") {
            read.hunks.push(Hunk {
                at: places(line),
                ..Hunk::default()
            });
            continue;
        }
        if line.starts_with(CUT_DIFF) {
            read.cut = Some(line.trim_matches(['[', ']']).to_owned());
            continue;
        }
        let Some(hunk) = read.hunks.last_mut() else {
            read.is_new_file |= line.starts_with("--- /dev/null");
            if line.starts_with('[') {
                read.notes.push(line.trim_matches(['[', ']']).to_owned());
            }
            continue;
        };
        let (mark, rest) = line.split_at_checked(1).unwrap_or((line, ""));
        match mark {
            // The line before has no end.
            "\\" => {
                for side in last {
                    let line = hunk.sides.get_mut(*side).and_then(|side| side.last_mut());
                    line.map(String::pop);
                }
                continue;
            }
            "-" => last = &[0],
            "+" => last = &[1],
            // An empty line of the surroundings may have lost its mark.
            _ => last = &[0, 1],
        }
        for side in last {
            let side = hunk.sides.get_mut(*side);
            side.into_iter()
                .for_each(|side| side.push(format!("{rest}\n")));
        }
    }
    read
}

/// Reads where a hunk is: `@@ -3,2 +3,4 @@`.
fn places(header: &str) -> [usize; 2] {
    let place = |mark: char| {
        let range = header.split(' ').find_map(|it| it.strip_prefix(mark))?;
        let (line, count) = range.split_once(',').unwrap_or((range, "1"));
        let line: usize = line.parse().ok()?;
        // One without lines stands behind the line that it names.
        Some(if count == "0" {
            line
        } else {
            line.saturating_sub(1)
        })
    };
    [
        place('-').unwrap_or_default(),
        place('+').unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/p/a";

    fn shown(unified: &str, before: Option<&str>, after: Option<&str>) -> Vec<Value> {
        content(Path::new(PATH), unified, Known { before, after })
    }

    fn diff(old: Option<&str>, new: &str) -> Value {
        json!({"type": "diff", "path": PATH, "oldText": old, "newText": new})
    }

    const TWO: &str = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n@@ -9,2 +9,3 @@\n nine\n-ten\n\\ No newline at end of file\n+ten\n+eleven\n";

    #[test]
    fn a_file_that_is_known_is_shown_whole() {
        let before = "one\ntwo\n3\n4\n5\n6\n7\n8\nnine\nten";
        let after = "ONE\ntwo\n3\n4\n5\n6\n7\n8\nnine\nten\neleven\n";
        let expected = [diff(Some(before), after)];
        assert_eq!(shown(TWO, Some(before), None), expected);
        assert_eq!(shown(TWO, None, Some(after)), expected);
        let emptied = "--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+n\n";
        assert_eq!(shown(emptied, Some(""), None), [diff(Some(""), "n\n")]);
        let new = "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+n\n";
        assert_eq!(shown(new, None, None), [diff(None, "n\n")]);
    }

    #[test]
    fn what_is_not_the_whole_file_says_so() {
        let hunks = [
            diff(Some("one\ntwo\n"), "ONE\ntwo\n"),
            diff(Some("nine\nten"), "nine\nten\neleven\n"),
        ];
        let long = "x\n".repeat(MAX_WHOLE);
        for before in [None, Some("another\nfile\n"), Some(&*long)] {
            let shown = shown(TWO, before, None);
            assert_eq!(shown[..2], hunks);
            let text = shown[2]["content"]["text"].as_str().unwrap();
            assert!(text.contains("Not the whole file"), "{text}");
        }
        let cut = format!(
            "--- /dev/null\n+++ b/a\n@@ -0,0 +1,9 @@\n+n\n{CUT_DIFF}after 65536 bytes; 0 lines become 9]\n"
        );
        let part = shown(&cut, None, None);
        let text = part[1]["content"]["text"].as_str().unwrap();
        assert!(text.contains("cut after 65536 bytes"), "{text}");
        let whole = "n\n".repeat(9);
        assert_eq!(shown(&cut, None, Some(&whole)), [diff(None, &whole)]);
        let opaque = "[the old content is not text, and is replaced]\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+n\n";
        let text = &shown(opaque, None, None)[1]["content"]["text"];
        assert_eq!(text, "the old content is not text, and is replaced");
    }
}
