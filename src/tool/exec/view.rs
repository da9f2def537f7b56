//! What the model reads of a stream of output: what a terminal would show, without secrets, and of that head and tail.
//!
//! In this order: the tail of a stream may begin in the middle of a key, and a progress bar is as long as its last state.

use crate::sandbox::output::{Captured, HeadAndTail};
use crate::telemetry::{MASK, Redactor, Stream, Unit};
use crate::terminal_text::Screen;

pub(super) struct View {
    screen: Screen,
    clean: Stream,
    kept: HeadAndTail,
}

pub(super) struct Shown {
    pub(super) kept: Captured,
    /// How many places of it show the mask in place of a secret.
    pub(super) masked: u64,
}

impl View {
    pub(super) fn new(redactor: &Redactor, cap: usize) -> Self {
        Self {
            screen: Screen::default(),
            clean: Stream::new(redactor, Unit::Line),
            kept: HeadAndTail::new(cap),
        }
    }

    pub(super) fn push(&mut self, piece: &str) {
        let shown = self.screen.push(piece);
        if !shown.is_empty() {
            self.kept.push(&self.clean.push(&shown));
        }
    }

    pub(super) fn finish(mut self) -> Shown {
        let rest = self.screen.finish();
        self.kept.push(&self.clean.push(&rest));
        self.kept.push(&self.clean.finish());
        let kept = self.kept.finish();
        let masked = match kept.left_out_bytes {
            0 => self.clean.masked(),
            // Some of them are in what is left out.
            _ => (kept.text.matches(MASK).count() as u64).min(self.clean.masked()),
        };
        Shown { kept, masked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&str], cap: usize) -> Shown {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let mut view = View::new(&redactor, cap);
        pieces.iter().for_each(|piece| view.push(piece));
        view.finish()
    }

    #[test]
    fn the_tail_does_not_begin_in_a_key() {
        let key = "-----BEGIN PRIVATE KEY-----\n".to_owned()
            + &"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(100)
            + "-----END PRIVATE KEY-----\n";
        let text = "head\n".repeat(100) + &key + &"tail\n".repeat(10);
        // The last half of it begins in the key's middle.
        let shown = shown(&[&text], 2_000);
        assert!(!shown.kept.text.contains("MIIE"), "{}", shown.kept.text);
        assert_eq!((shown.masked, shown.kept.left_out_bytes), (1, 0));
    }

    #[test]
    fn a_secret_is_found_before_it_is_cut_and_counted_where_it_is_shown() {
        let text = "x".repeat(95) + " hunter2-hunter2 " + &"y".repeat(300) + " hunter2-hunter2";
        let shown = shown(&[&text], 200);
        assert!(!shown.kept.text.contains("hunter2"), "{}", shown.kept.text);
        assert_eq!(shown.masked, 1);
    }

    #[test]
    fn a_progress_bar_is_its_last_state_however_long_it_ran() {
        let mut all = String::new();
        for update in 0..3_000 {
            all.push_str(&format!("\r{:3} % done", update / 30));
        }
        all.push_str("\r100 % done\n");
        let shown = shown(&[&all], 100 * 1024);
        assert_eq!(
            (all.len(), shown.kept.text.as_str()),
            (33_012, "100 % done\n")
        );
    }
}
