//! Takes secrets out of a text that comes in pieces: a secret may come in two.

use super::Redactor;
use crate::secret::LONGEST_KEY;
use crate::terminal_text;

/// The longest text without an end, or private key, that is waited for, in bytes.
const MAX_HELD: usize = LONGEST_KEY;

/// How a private key begins and ends; it has many lines.
const KEY: (&str, &str) = ("-----BEGIN ", "-----END ");

/// What is waited for before it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The end of a word, for who watches.
    Word,
    /// The end of a line, for what is kept.
    Line,
}

/// A text that comes in pieces. What may be the beginning of a secret is held back until its rest has come.
pub struct Stream {
    redactor: Redactor,
    unit: Unit,
    held: String,
    masked: u64,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("unit", &self.unit)
            .finish_non_exhaustive()
    }
}

impl Stream {
    /// Begins a text.
    pub fn new(redactor: &Redactor, unit: Unit) -> Self {
        Self {
            redactor: redactor.clone(),
            unit,
            held: String::new(),
            masked: 0,
        }
    }

    /// Takes a piece and returns what is clean of secrets by now, perhaps nothing.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let end = self.finished();
        let rest = self.held.split_off(end);
        let ready = std::mem::replace(&mut self.held, rest);
        self.clean(&ready)
    }

    /// Returns what was held back, at the end.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        self.clean(&rest)
    }

    /// Returns how many places were replaced so far.
    pub fn masked(&self) -> u64 {
        self.masked
    }

    fn clean(&mut self, text: &str) -> String {
        let (clean, masked) = clean(&self.redactor, text);
        self.masked += masked;
        clean
    }

    /// How much of what is held can be looked at: whole units, no beginning of a secret, and no key without its end.
    fn finished(&self) -> usize {
        let text = self.held.as_str();
        let is_end = |letter: char| match self.unit {
            Unit::Word => letter.is_whitespace(),
            Unit::Line => letter == '\n',
        };
        let last = text.char_indices().rfind(|(_, letter)| is_end(*letter));
        let units = last.map_or(0, |(at, letter)| at + letter.len_utf8());
        let units = self.redactor.uncut(text, units);
        let is_waited_for = |key: &usize| text.len() - key < LONGEST_KEY;
        let waited_for = open_keys(text).find(is_waited_for);
        // No key is as long as what follows the others; as much as one would have goes with its beginning.
        let others = open_keys(text).take_while(|key| !is_waited_for(key));
        let others = others.map(|key| text.ceil_char_boundary(key + LONGEST_KEY));
        let end = others.fold(units, usize::max);
        let end = waited_for.map_or(end, |key| end.min(key));
        if text.len() - end <= MAX_HELD {
            return end;
        }
        // Too long to be waited for. It is cut where no key has a character, if it can be.
        let in_key = |letter: char| letter.is_ascii_alphanumeric() || "+/=_.-%\\".contains(letter);
        let cut = text.char_indices().rfind(|(_, letter)| !in_key(*letter));
        let cut = cut.map_or(0, |(at, letter)| at + letter.len_utf8());
        let most = waited_for.unwrap_or(text.len());
        match self.redactor.uncut(text, cut.min(most)) {
            cut if cut > end => cut,
            _ => most,
        }
    }
}

/// Takes the secrets out; where one shows only without terminal controls, these go as well.
fn clean(redactor: &Redactor, text: &str) -> (String, u64) {
    let (redacted, masked) = redactor.redact_counted(text);
    if text.contains('\u{1b}') {
        let shown = terminal_text::shown(&redacted);
        let (shown, more) = redactor.redact_counted(&shown);
        if more > 0 {
            return (shown.into_owned(), masked + more);
        }
    }
    (redacted.into_owned(), masked)
}

/// Where keys begin that have no end yet, the first one first.
fn open_keys(text: &str) -> impl Iterator<Item = usize> {
    let ended = text.rfind(KEY.1).unwrap_or(0);
    let open = text.get(ended..).unwrap_or_default();
    open.match_indices(KEY.0).map(move |(at, _)| ended + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(redactor: &Redactor, unit: Unit, chunks: &[&str]) -> Vec<String> {
        let mut stream = Stream::new(redactor, unit);
        let mut shown: Vec<String> = chunks.iter().map(|chunk| stream.push(chunk)).collect();
        shown.push(stream.finish());
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
            (vec!["correct horse battery"], vec!["", "[redacted]"]),
            (vec!["one two"], vec!["one ", "two"]),
        ] {
            assert_eq!(pieces(&redactor, Unit::Word, &chunks), wanted, "{chunks:?}");
        }
        let hex: String = b"correct horse battery"
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let (first, second) = hex.split_at(20);
        let wrapped = format!("{first}\n{second}");
        for secret in ["hunter2-hunter2", "correct%20horse\\u0020battery", &wrapped] {
            for unit in [Unit::Word, Unit::Line] {
                for at in 1..secret.len() {
                    let (first, second) = secret.split_at(at);
                    let shown = pieces(&redactor, unit, &[first, second]).concat();
                    assert_eq!(shown, "[redacted]", "{secret} {at}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_end_is_not_held_for_ever() {
        let long = "x".repeat(3 * MAX_HELD);
        for unit in [Unit::Word, Unit::Line] {
            let shown = pieces(&Redactor::default(), unit, &[&long, "y"]);
            assert_eq!(shown, [long.clone(), String::new(), "y".to_owned()]);
        }
    }

    #[test]
    fn a_flood_does_not_open_a_key() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIE\n";
        let rest = "SECRETHALF\n-----END PRIVATE KEY-----\nafter\n";
        let begun = "-----BEGIN X\n";
        for flood in [
            "x ".repeat(MAX_HELD / 2) + "\n",
            begun.to_owned() + &"x\n".repeat(40_000),
            // In one line, and with two that are too long.
            begun.to_owned() + &"y".repeat(3 * MAX_HELD),
            begun.to_owned() + &"x\n".repeat(20_000) + begun + &"x\n".repeat(40_000),
        ] {
            for unit in [Unit::Word, Unit::Line] {
                let first = flood.clone() + key;
                let shown = pieces(&Redactor::default(), unit, &[&first, rest]).concat();
                assert!(
                    !shown.contains("SECRETHALF") && !shown.contains("MIIE"),
                    "{unit:?}"
                );
                assert!(shown.ends_with("[redacted]\nafter\n"), "{unit:?}");
                assert!(shown.starts_with(&flood), "{unit:?}");
            }
        }
    }

    #[test]
    fn a_flood_does_not_cut_a_secret_in_two() {
        let redactor = Redactor::default();
        redactor.add("correct horse battery");
        let flood = "{\"a\":1},".repeat(MAX_HELD / 8 + 1);
        for (first, second) in [
            ("correct ho", "rse battery"),
            ("ghp_0123456789abcdefghij", "ABCDEFGHIJ012345\""),
        ] {
            let shown = pieces(&redactor, Unit::Line, &[&(flood.clone() + first), second]).concat();
            assert!(
                shown.ends_with("},[redacted]") || shown.ends_with("},[redacted]\""),
                "{first}"
            );
        }
    }

    #[test]
    fn what_only_begins_like_a_key_is_shown_after_a_while() {
        let begin = "-----BEGIN PRIVATE KEY-----\n";
        let line = "ordinary text, no key at all\n";
        let many = LONGEST_KEY / line.len() + 100;
        let mut chunks = vec![begin];
        chunks.extend(std::iter::repeat_n(line, many));
        let shown = pieces(&Redactor::default(), Unit::Line, &chunks).concat();
        assert!(shown.starts_with("[redacted]"));
        assert!(shown.ends_with(line), "{}", shown.len());
    }
}
