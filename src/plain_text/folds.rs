//! Output of calls for a person: its first lines, and the rest when it is asked for. Pure.

use std::collections::VecDeque;

use crate::message::ToolId;

/// Lines of a call's output that are shown as they come.
pub(crate) const SHOWN_LINES: usize = 20;

/// Calls whose output is kept.
const CALLS: usize = 30;

/// Bytes that are kept of a call's output; what is longer is cut.
const OUTPUT_BYTES: usize = 256 * 1024;

/// The outputs of the last calls.
#[derive(Debug, Default)]
pub(super) struct Folds {
    calls: VecDeque<Kept>,
}

#[derive(Debug)]
struct Kept {
    id: ToolId,
    text: String,
    /// Line ends so far, also of what was cut.
    lines: usize,
    is_cut: bool,
    /// Whether a part of it was not shown.
    is_folded: bool,
    /// Whether the text is the call's result, which was not shown at all.
    is_result: bool,
}

impl Folds {
    /// Takes a piece of a call's output; returns what of it is shown, and whether the folded part begins after that.
    pub(super) fn take<'a>(&mut self, id: &ToolId, piece: &'a str) -> (&'a str, bool) {
        self.with(id, |call| {
            call.keep(piece);
            let left = SHOWN_LINES.saturating_sub(call.lines);
            let ends = piece.match_indices('\n').map(|(at, _)| at + 1);
            let end = match left.checked_sub(1) {
                None => 0,
                Some(before) => ends.clone().nth(before).unwrap_or(piece.len()),
            };
            call.lines += ends.count();
            let is_hidden = end < piece.len();
            let begins = is_hidden && !call.is_folded;
            call.is_folded |= is_hidden;
            (piece.get(..end).unwrap_or_default(), begins)
        })
    }

    /// Takes the result of a call that ended; returns how many of its lines are folded.
    pub(super) fn ended(&mut self, id: &ToolId, result: &str) -> usize {
        self.with(id, |call| {
            if call.text.is_empty() {
                call.keep(result);
                call.is_result = true;
                return 0;
            }
            call.hidden()
        })
    }

    /// Returns the whole output of a call, named by its id or the number in it, or of the last one.
    pub(crate) fn find(&self, which: &str) -> Result<(&ToolId, &str, bool), String> {
        let is_meant = |call: &&Kept| match which {
            "" => call.is_result || call.is_folded,
            which => call.id.as_str() == which || call.id.as_str().strip_prefix('t') == Some(which),
        };
        let mut calls = self.calls.iter().rev().filter(|call| !call.text.is_empty());
        match calls.find(is_meant) {
            Some(call) => Ok((&call.id, &call.text, call.is_cut)),
            None if which.is_empty() => Err("no call has output that was not shown".to_owned()),
            None => Err(format!(
                "there is no output of a call {which}; of the last {CALLS} calls it is kept, and their ids are t1, t2 and so on"
            )),
        }
    }

    /// Does something with a call, which is the last one from now on.
    fn with<T>(&mut self, id: &ToolId, act: impl FnOnce(&mut Kept) -> T) -> T {
        let at = self.calls.iter().position(|call| call.id == *id);
        let known = at.and_then(|at| self.calls.remove(at));
        let mut call = known.unwrap_or_else(|| Kept::new(id.clone()));
        let outcome = act(&mut call);
        if self.calls.len() == CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(call);
        outcome
    }
}

impl Kept {
    fn new(id: ToolId) -> Self {
        Self {
            id,
            text: String::new(),
            lines: 0,
            is_cut: false,
            is_folded: false,
            is_result: false,
        }
    }

    fn keep(&mut self, piece: &str) {
        let room = OUTPUT_BYTES.saturating_sub(self.text.len());
        let end = piece.floor_char_boundary(room.min(piece.len()));
        self.text.push_str(piece.get(..end).unwrap_or_default());
        self.is_cut |= end < piece.len();
    }

    fn hidden(&self) -> usize {
        let last = usize::from(!self.text.ends_with('\n') || self.is_cut);
        (self.lines + last).saturating_sub(SHOWN_LINES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(range: std::ops::Range<usize>) -> String {
        range.map(|number| format!("{number}\n")).collect()
    }

    #[test]
    fn lines_are_folded_after_the_twentieth() {
        let id = ToolId::new("t1");
        for (pieces, shown, folds, hidden) in [
            (vec![lines(0..3)], lines(0..3), 0, 0),
            (vec![lines(0..20)], lines(0..20), 0, 0),
            (
                vec![lines(0..19), "half".to_owned(), " line\n".to_owned()],
                lines(0..19) + "half line\n",
                0,
                0,
            ),
            (vec![lines(0..25)], lines(0..20), 1, 5),
            (
                vec![lines(0..15), lines(15..30), lines(30..40)],
                lines(0..20),
                1,
                20,
            ),
            (vec![lines(0..20), "no end".to_owned()], lines(0..20), 1, 1),
        ] {
            let mut kept = Folds::default();
            let mut seen = String::new();
            let mut folded = 0;
            for piece in &pieces {
                let (part, is_folded) = kept.take(&id, piece);
                seen.push_str(part);
                folded += usize::from(is_folded);
            }
            assert_eq!((seen, folded), (shown, folds), "{pieces:?}");
            assert_eq!(kept.ended(&id, "a result"), hidden, "{pieces:?}");
            let (_, text, is_cut) = kept.find("t1").unwrap();
            assert_eq!((text, is_cut), (pieces.concat().as_str(), false));
        }
    }

    #[test]
    fn a_call_is_named_by_id_number_or_not_at_all() {
        let mut kept = Folds::default();
        for (id, output) in [
            ("t1", lines(0..30)),
            ("t2", lines(0..40)),
            ("t3", lines(0..2)),
        ] {
            kept.take(&ToolId::new(id), &output);
            kept.ended(&ToolId::new(id), "");
        }
        for (which, expected) in [
            ("", Some("t2")),
            ("1", Some("t1")),
            ("t1", Some("t1")),
            ("3", Some("t3")),
            ("9", None),
            ("x", None),
        ] {
            let found = kept.find(which).ok().map(|(id, ..)| id.as_str());
            assert_eq!(found, expected, "{which:?}");
        }
        // One that showed nothing has its result.
        kept.ended(&ToolId::new("t4"), "whole file");
        assert_eq!(kept.find("").unwrap().1, "whole file");
        assert!(Folds::default().find("").is_err());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut kept = Folds::default();
        let id = ToolId::new("t1");
        for _ in 0..3 {
            kept.take(&id, &"é".repeat(OUTPUT_BYTES / 4));
        }
        let (_, text, is_cut) = kept.find("t1").unwrap();
        assert!(text.len() <= OUTPUT_BYTES && is_cut);
        for number in 0..CALLS {
            kept.take(&ToolId::new(format!("n{number}")), "x");
        }
        assert!(kept.find("t1").is_err());
        assert_eq!(kept.calls.len(), CALLS);
    }
}
