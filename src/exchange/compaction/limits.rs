//! When a conversation is not compacted any more: no loop of compactions is endless. Pure.

use std::collections::VecDeque;

/// So many compactions within so many turns are too many: the window is full again at once.
const AT_ONCE: (usize, u64) = (3, 6);

/// So many failures in a row are enough.
const MAX_FAILURES: u32 = 2;

/// How the compactions of a conversation went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Breaker {
    /// Turns that ended well.
    turns: u64,
    /// The turns before which the last ones were done, since the user said something.
    done: VecDeque<u64>,
    /// Failures in a row, since the user said something.
    failures: u32,
    /// How often in a row no model's summary was taken.
    refused: u32,
    /// How often in a row the vendor's own compaction failed.
    native_failed: u32,
    is_told_small: bool,
    is_told_paused: bool,
    /// Whether a hook said no, since the user said something.
    is_held: bool,
}

impl Breaker {
    /// Counts a turn.
    pub(crate) fn turn(&mut self) {
        self.turns += 1;
    }

    /// Begins anew: the user said something.
    pub(crate) fn restart(&mut self) {
        self.done.clear();
        self.failures = 0;
        self.is_told_paused = false;
        self.is_held = false;
    }

    /// Notes that a hook said no.
    pub(super) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Returns whether a hook said no, since the user said something.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns whether the window was full again too soon, too often, and nobody was told yet.
    pub(super) fn is_first_pause(&mut self) -> bool {
        self.is_thrashing() && !std::mem::replace(&mut self.is_told_paused, true)
    }

    /// Returns whether no more is to be tried.
    pub(crate) fn is_open(&self) -> bool {
        self.failures >= MAX_FAILURES || self.is_thrashing()
    }

    /// Returns whether the window was full again too soon, too often.
    fn is_thrashing(&self) -> bool {
        let (count, turns) = AT_ONCE;
        let ends = self.done.front().zip(self.done.back());
        self.done.len() == count
            && ends.is_some_and(|(first, last)| last.saturating_sub(*first) < turns)
    }

    /// Returns whether models' summaries were refused so often that none is asked for.
    pub(super) fn is_without_model(&self) -> bool {
        self.refused >= MAX_FAILURES
    }

    pub(super) fn done(&mut self) {
        self.failures = 0;
        self.done.push_back(self.turns);
        if self.done.len() > AT_ONCE.0 {
            self.done.pop_front();
        }
    }

    pub(super) fn failed(&mut self) {
        self.failures += 1;
    }

    /// A model's summary was taken.
    pub(super) fn accepted(&mut self) {
        self.refused = 0;
    }

    /// No summary of a model was taken.
    pub(super) fn refused(&mut self) {
        self.refused += 1;
    }

    /// Returns whether the vendor's own compaction failed so often that none is asked for.
    pub(super) fn is_without_native(&self) -> bool {
        self.native_failed >= MAX_FAILURES
    }

    /// The vendor's own compaction was taken, or was not.
    pub(super) fn native(&mut self, is_taken: bool) {
        self.native_failed = match is_taken {
            true => 0,
            false => self.native_failed + 1,
        };
    }

    /// Returns whether nobody was told yet that the window is too small.
    pub(super) fn is_first_time_small(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told_small, true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whenever_the_window_is_full_a_third_of_the_turns_compact_at_most(
            full in prop::collection::vec(any::<bool>(), 1..300),
        ) {
            let mut breaker = Breaker::default();
            let mut done = 0;
            for is_full in &full {
                if *is_full && !breaker.is_open() {
                    breaker.done();
                    done += 1;
                }
                breaker.turn();
            }
            // Three more in the end, with which it gives up.
            prop_assert!(done <= full.len() / 3 + 3, "{done}");
        }
    }

    #[test]
    fn compactions_that_come_too_soon_end() {
        // Turns between compactions, and how many are done in 100 turns.
        for (between, expected) in [(1, 3), (2, 3), (3, 34), (4, 25), (50, 2)] {
            let mut breaker = Breaker::default();
            let mut done = 0;
            for turn in 0..100 {
                if turn % between == 0 && !breaker.is_open() {
                    breaker.done();
                    done += 1;
                    if breaker.is_thrashing() {
                        break;
                    }
                }
                breaker.turn();
            }
            assert_eq!(done, expected, "{between}");
        }
    }

    #[test]
    fn failures_in_a_row_end_it_until_the_user_speaks() {
        let mut breaker = Breaker::default();
        breaker.failed();
        breaker.done();
        breaker.failed();
        assert!(!breaker.is_open());
        breaker.failed();
        assert!(breaker.is_open());
        breaker.restart();
        assert!(!breaker.is_open());
    }

    #[test]
    fn models_that_sum_up_badly_are_not_asked_again() {
        let mut breaker = Breaker::default();
        breaker.refused();
        breaker.accepted();
        breaker.refused();
        assert!(!breaker.is_without_model());
        breaker.refused();
        assert!(breaker.is_without_model());
        breaker.restart();
        assert!(breaker.is_without_model());
        breaker.native(false);
        breaker.native(true);
        breaker.native(false);
        assert!(!breaker.is_without_native());
        breaker.native(false);
        breaker.restart();
        assert!(breaker.is_without_native());
    }
}
