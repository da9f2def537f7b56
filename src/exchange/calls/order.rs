//! The order of a turn's calls, which are prepared side by side: the user is asked in the order of the calls, and of two that
//! concern the same files, one of which writes, the later one runs after the earlier one, as the model wrote them.
//!
//! Where locks keep the two apart, it is enough that they queue in their order. Reading goes on beside a command of another
//! conversation, so that of their own they wait for its end here.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::message::ToolCall;
use crate::tool::Claim;
use crate::tool::locks::{exclude, meet};

/// A call, for those after it.
struct Earlier {
    /// How a user is told of it.
    name: String,
    state: Mutex<State>,
    /// Woken whenever the state changes.
    changed: Notify,
}

/// What a call may still do that later ones wait for.
struct State {
    may_ask: bool,
    files: Files,
}

/// What is known of the files that a call concerns.
enum Files {
    Unknown,
    Claimed {
        claims: Vec<Claim>,
        has_queued: bool,
    },
    /// It has ended, needs none, or never runs.
    Passed,
}

impl Files {
    /// Returns whether one with these claims waits for their call.
    fn come_before(&self, own: &[Claim]) -> bool {
        match self {
            Self::Unknown => !own.is_empty(),
            Self::Claimed { claims, has_queued } => {
                meet(claims, own) && !(*has_queued && exclude(claims, own))
            }
            Self::Passed => false,
        }
    }
}

/// One call's place in the order, until its end. Dropped, it lets the later ones pass.
pub(super) struct Place {
    /// All calls of the turn.
    calls: Arc<[Earlier]>,
    number: usize,
}

impl Place {
    /// Returns the places of a turn's calls, all of which may ask.
    pub(super) fn in_order(calls: &[ToolCall]) -> impl Iterator<Item = Self> + use<> {
        let calls = calls.iter().map(|call| Earlier {
            name: format!("{} {}", call.id, call.name),
            state: Mutex::new(State {
                may_ask: true,
                files: Files::Unknown,
            }),
            changed: Notify::new(),
        });
        let calls: Arc<[_]> = calls.collect();
        (0..calls.len()).map(move |number| Self {
            calls: Arc::clone(&calls),
            number,
        })
    }

    /// Returns the place of a call that is the only one.
    pub(super) fn alone() -> Self {
        Self {
            calls: Arc::default(),
            number: 0,
        }
    }

    /// Waits until no earlier call may ask any more.
    pub(super) async fn first_to_ask(&self) {
        self.until_none(|state| state.may_ask).await;
    }

    /// Says that the call has asked, or need not. What it asks after that comes at any time.
    pub(super) fn asked(&self) {
        self.change(|state| state.may_ask = false);
    }

    /// Says what the call claims, as its input is now.
    pub(super) fn claim(&self, claims: &[Claim]) {
        self.change(|state| {
            state.files = match claims {
                [] => Files::Passed,
                claims => Files::Claimed {
                    claims: claims.to_vec(),
                    has_queued: false,
                },
            }
        });
    }

    /// Says that the call has queued for what it claims.
    pub(super) fn queued(&self) {
        self.change(|state| {
            if let Files::Claimed { has_queued, .. } = &mut state.files {
                *has_queued = true;
            }
        });
    }

    /// Returns the name of the first earlier call that this one with these claims waits for; `None` where there is none.
    pub(super) fn earlier(&self, claims: &[Claim]) -> Option<&str> {
        let mut earlier = self.calls.iter().take(self.number);
        let first = earlier.find(|call| call.state.lock().files.come_before(claims));
        first.map(|call| call.name.as_str())
    }

    /// Waits until this one may queue for these claims.
    pub(super) async fn first_to_queue(&self, claims: &[Claim]) {
        self.until_none(|state| state.files.come_before(claims))
            .await;
    }

    async fn until_none(&self, holds_up: impl Fn(&State) -> bool) {
        // From the first one again after each: the user may have changed what an earlier one concerns.
        let earlier = || {
            let mut calls = self.calls.iter().take(self.number);
            calls.find(|call| holds_up(&call.state.lock()))
        };
        while let Some(call) = earlier() {
            // Made before the second look, so that nothing between the two is missed.
            let changed = call.changed.notified();
            if holds_up(&call.state.lock()) {
                changed.await;
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Some(own) = self.calls.get(self.number) {
            change(&mut own.state.lock());
            own.changed.notify_waiters();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.change(|state| {
            *state = State {
                may_ask: false,
                files: Files::Passed,
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::Map;

    use super::*;
    use crate::message::ToolId;

    fn places<const CALLS: usize>() -> [Place; CALLS] {
        let call = |number| ToolCall {
            id: ToolId::new(format!("t{number}")),
            name: "bash".to_owned(),
            input: Map::new(),
            provider_call_id: None,
        };
        let calls: Vec<_> = (0..CALLS).map(call).collect();
        let places: Vec<_> = Place::in_order(&calls).collect();
        places.try_into().ok().unwrap()
    }

    fn writes(file: &str) -> [Claim; 1] {
        [Claim::Write(file.to_owned())]
    }

    fn reads(file: &str) -> [Claim; 1] {
        [Claim::Read(file.to_owned())]
    }

    fn any() -> [Claim; 1] {
        [Claim::WriteTree(vec![String::new()])]
    }

    fn reads_any() -> [Claim; 1] {
        [Claim::ReadTree(vec![String::new()])]
    }

    #[test]
    fn a_call_asks_when_no_earlier_one_may() {
        let [first, second, third] = places();
        assert!(third.first_to_ask().now_or_never().is_none());
        drop(second);
        assert!(third.first_to_ask().now_or_never().is_none());
        // What files it concerns says nothing of that.
        first.claim(&[]);
        assert!(third.first_to_ask().now_or_never().is_none());
        first.asked();
        assert!(third.first_to_ask().now_or_never().is_some());
    }

    #[test]
    fn one_that_has_asked_still_comes_first() {
        let [first, second] = places();
        first.claim(&any());
        first.asked();
        assert_eq!(second.earlier(&any()), Some("t0 bash"));
    }

    /// Until the earlier one queues, and until its end where no lock keeps the two apart.
    #[test]
    fn what_concerns_the_same_files_waits_and_nothing_else_does() {
        for (earlier, later, waits_at_first, waits_for_the_end) in [
            (writes("a"), writes("a"), true, false),
            (writes("a"), reads("a"), true, false),
            (reads("a"), writes("a"), true, false),
            (reads("a"), reads("a"), false, false),
            (writes("a"), writes("b"), false, false),
            (any(), writes("a"), true, false),
            (writes("a"), any(), true, false),
            (any(), any(), true, false),
            (any(), reads("a"), true, true),
            (reads("a"), any(), true, true),
            (any(), reads_any(), true, true),
            (reads_any(), any(), true, true),
            (reads_any(), writes("a"), true, true),
            (writes("a"), reads_any(), true, true),
            (reads_any(), reads_any(), false, false),
            (reads_any(), reads("a"), false, false),
        ] {
            let [first, second] = places();
            let expected = |waits: bool| waits.then_some("t0 bash");
            first.claim(&earlier);
            let at_first = second.earlier(&later);
            assert_eq!(at_first, expected(waits_at_first), "{earlier:?} {later:?}");
            first.queued();
            let then = second.earlier(&later);
            assert_eq!(then, expected(waits_for_the_end), "{earlier:?} {later:?}");
            drop(first);
            assert_eq!(second.earlier(&later), None);
        }
    }

    #[test]
    fn a_call_of_which_nothing_is_known_may_concern_any_file() {
        let [first, second] = places();
        assert!(second.first_to_queue(&reads("a")).now_or_never().is_none());
        assert!(second.first_to_queue(&[]).now_or_never().is_some());
        first.claim(&[]);
        assert!(second.first_to_queue(&reads("a")).now_or_never().is_some());
    }

    #[tokio::test]
    async fn it_waits_for_one_that_concerned_other_files_before() {
        let [first, second, third] = places();
        first.claim(&writes("b"));
        second.claim(&writes("a"));
        let [wanted] = [reads("a")];
        let mut waits = std::pin::pin!(third.first_to_queue(&wanted));
        assert!(waits.as_mut().now_or_never().is_none());
        first.claim(&writes("a"));
        drop(second);
        assert!(waits.as_mut().now_or_never().is_none());
        drop(first);
        assert!(waits.now_or_never().is_some());
    }

    #[tokio::test]
    async fn it_waits_for_all_earlier_ones_and_for_no_later_one() {
        let [first, second, third, fourth] = places();
        first.claim(&writes("a"));
        second.claim(&writes("a"));
        fourth.claim(&any());
        let waits = async {
            third.first_to_queue(&any()).await;
            "reached"
        };
        tokio::pin!(waits);
        assert!(waits.as_mut().now_or_never().is_none());
        drop(second);
        assert!(waits.as_mut().now_or_never().is_none());
        // What the user made of it.
        first.claim(&writes("b"));
        assert!(waits.as_mut().now_or_never().is_none());
        drop(first);
        assert_eq!(waits.await, "reached");
    }
}
