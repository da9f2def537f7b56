//! Output as it comes, in pieces that can be looked at for secrets: a secret may come in two, or with colours in it.
//!
//! What may be the beginning of a secret is held back until its rest has come. How secrets look is
//! [`Redactor`]'s business.

use crate::telemetry::Redactor;
use crate::tool::OutputStream;

/// The longest text without an end, or private key, that is waited for, in bytes.
pub(super) const MAX_HELD: usize = 64 * 1024;

/// How a private key begins and ends; it has many lines.
const KEY: (&str, &str) = ("-----BEGIN ", "-----END ");

/// The two streams of a running call, as a client sees them.
#[derive(Debug)]
pub(super) struct Live {
    redactor: Redactor,
    stdout: String,
    stderr: String,
}

impl Live {
    pub(super) fn new(redactor: &Redactor) -> Self {
        Self {
            redactor: redactor.clone(),
            stdout: String::new(),
            stderr: String::new(),
        }
    }

    /// Takes a piece and returns what can be shown of the stream by now, perhaps nothing.
    pub(super) fn push(&mut self, stream: OutputStream, chunk: &str) -> String {
        let held = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
            // Whole texts of the tool's own.
            OutputStream::Progress => return clean(&self.redactor, chunk),
        };
        held.push_str(chunk);
        let rest = held.split_off(finished_words(held, &self.redactor));
        clean(&self.redactor, &std::mem::replace(held, rest))
    }

    /// Returns what was held back, at the end.
    pub(super) fn finish(&mut self) -> [(OutputStream, String); 2] {
        [
            (OutputStream::Stdout, std::mem::take(&mut self.stdout)),
            (OutputStream::Stderr, std::mem::take(&mut self.stderr)),
        ]
        .map(|(stream, held)| (stream, clean(&self.redactor, &held)))
    }
}

/// Takes the secrets out; where one shows only without terminal controls, these go as well.
pub(super) fn clean(redactor: &Redactor, text: &str) -> String {
    let redacted = redactor.redact(text);
    if text.contains('\u{1b}') {
        let plain = strip_ansi_escapes::strip_str(redacted.as_ref());
        if let std::borrow::Cow::Owned(redacted) = redactor.redact(&plain) {
            return redacted;
        }
    }
    redacted.into_owned()
}

/// How much of a text can be shown: words that ended, and no beginning of a secret.
fn finished_words(text: &str, redactor: &Redactor) -> usize {
    if text.len() > MAX_HELD {
        return last_word(text);
    }
    let words = text
        .char_indices()
        .rev()
        .find(|(_, letter)| letter.is_whitespace())
        .map_or(0, |(at, letter)| at + letter.len_utf8());
    open_key(text, words.min(redactor.unfinished(text)))
}

/// How much of what came can be looked at for secrets: whole lines, and no key without its end.
pub(super) fn finished_lines(text: &str) -> usize {
    if text.len() > MAX_HELD {
        return last_word(text);
    }
    open_key(text, text.rfind('\n').map_or(0, |at| at + 1))
}

/// Where the last word of a text begins that is too long to be waited for; its end where it has only one.
fn last_word(text: &str) -> usize {
    let last_word = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    if last_word > 0 && text.is_char_boundary(last_word) {
        last_word
    } else {
        text.len()
    }
}

/// The end, or the beginning of a key before it that has no end yet.
fn open_key(text: &str, end: usize) -> usize {
    match text.rfind(KEY.0) {
        Some(key) if key < end && text.get(key..end).is_some_and(|it| !it.contains(KEY.1)) => key,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(redactor: &Redactor, chunks: &[&str]) -> Vec<String> {
        let mut live = Live::new(redactor);
        let mut shown: Vec<String> = chunks
            .iter()
            .map(|chunk| live.push(OutputStream::Stdout, chunk))
            .collect();
        let [(_, rest), _] = live.finish();
        shown.push(rest);
        shown
    }

    #[test]
    fn a_secret_in_pieces_is_never_shown() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        redactor.add("correct horse battery");
        for (chunks, wanted) in [
            (
                vec!["a hunter2-", "hunter2 b"],
                vec!["a ", "[redacted] ", "b"],
            ),
            (
                vec!["x correct ", "horse ", "battery y "],
                vec!["x ", "", "[redacted] y ", ""],
            ),
            (vec!["correct ", "answer "], vec!["", "correct answer ", ""]),
            (
                vec!["hunter2-\u{1b}[0m", "hunter2 "],
                vec!["", "[redacted] ", ""],
            ),
            (vec!["one two"], vec!["one ", "two"]),
        ] {
            assert_eq!(shown(&redactor, &chunks), wanted, "{chunks:?}");
        }
        let secret = "hunter2-hunter2";
        for at in 1..secret.len() {
            let (first, second) = secret.split_at(at);
            assert_eq!(shown(&redactor, &[first, second]).concat(), "[redacted]");
        }
    }

    #[test]
    fn what_has_no_end_is_not_held_for_ever() {
        let long = "x".repeat(3 * MAX_HELD);
        let shown = shown(&Redactor::default(), &[&long, "y"]);
        assert_eq!(shown, [long, String::new(), "y".to_owned()]);
    }
}
