//! The order of a turn's questions: calls are prepared side by side, and the user is asked in the order of the calls.

use std::collections::BTreeSet;

use tokio::sync::watch;

/// The positions of the calls that may still ask.
pub(super) struct Turnstile {
    open: watch::Sender<BTreeSet<usize>>,
}

/// One call's place in the order. Dropped, it lets the later ones pass.
pub(super) struct Place {
    position: usize,
    open: watch::Sender<BTreeSet<usize>>,
}

impl Turnstile {
    /// Makes the order of so many calls, all of which may ask.
    pub(super) fn new(calls: usize) -> Self {
        Self {
            open: watch::Sender::new((0..calls).collect()),
        }
    }

    /// Returns the place of the call at this position, counted from 0.
    pub(super) fn place(&self, position: usize) -> Place {
        Place {
            position,
            open: self.open.clone(),
        }
    }
}

impl Place {
    /// Waits until no earlier call may ask any more.
    pub(super) async fn first(&self) {
        let mut open = self.open.subscribe();
        let position = self.position;
        let first = open.wait_for(|open| open.first().is_none_or(|first| *first >= position));
        // The sender lives in `self`, so this cannot fail.
        drop(first.await);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.send_modify(|open| {
            open.remove(&self.position);
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_call_asks_when_no_earlier_one_may() {
        let turnstile = Turnstile::new(3);
        let first = turnstile.place(0);
        let second = turnstile.place(1);
        let third = turnstile.place(2);
        assert!(third.first().now_or_never().is_none());
        drop(second);
        assert!(third.first().now_or_never().is_none());
        drop(first);
        assert!(third.first().now_or_never().is_some());
    }
}
