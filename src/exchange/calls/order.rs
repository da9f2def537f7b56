//! The order of a turn's calls that concern the same files. Calls are prepared and asked about side by side; those that
//! read or write what an earlier one writes come after it, as the model wrote them.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::message::ToolCall;
use crate::tool::Claim;
use crate::tool::locks::exclude;

/// A call, for those after it.
struct Earlier {
    /// How a user is told of it.
    name: String,
    files: Mutex<Files>,
    /// Woken whenever more is known of its files.
    known: Notify,
}

/// What is known of the files that a call concerns.
enum Files {
    Unknown,
    Claimed(Vec<Claim>),
    /// It has queued for them, needs none, or never runs.
    Passed,
}

impl Earlier {
    /// Returns whether it has to queue before a call with these claims.
    fn comes_before(&self, claims: &[Claim]) -> bool {
        match &*self.files.lock() {
            Files::Unknown => !claims.is_empty(),
            Files::Claimed(theirs) => exclude(theirs, claims),
            Files::Passed => false,
        }
    }
}

/// One call's position in the order. Dropped, it lets the later ones pass.
pub(super) struct Position {
    /// All calls of the turn.
    calls: Arc<[Earlier]>,
    number: usize,
}

impl Position {
    /// Returns the positions of a turn's calls.
    pub(super) fn in_order(calls: &[ToolCall]) -> impl Iterator<Item = Self> + use<> {
        let calls = calls.iter().map(|call| Earlier {
            name: format!("{} {}", call.id, call.name),
            files: Mutex::new(Files::Unknown),
            known: Notify::new(),
        });
        let calls: Arc<[_]> = calls.collect();
        (0..calls.len()).map(move |number| Self {
            calls: Arc::clone(&calls),
            number,
        })
    }

    /// Returns the position of a call that is the only one.
    pub(super) fn alone() -> Self {
        Self {
            calls: Arc::default(),
            number: 0,
        }
    }

    /// Says what the call claims, as its input is now.
    pub(super) fn claim(&self, claims: &[Claim]) {
        self.note(match claims {
            [] => Files::Passed,
            claims => Files::Claimed(claims.to_vec()),
        });
    }

    /// Returns the name of the first earlier call that has to queue before this one with these claims; `None` where there is
    /// none.
    pub(super) fn earlier(&self, claims: &[Claim]) -> Option<&str> {
        let mut earlier = self.calls.iter().take(self.number);
        let first = earlier.find(|call| call.comes_before(claims));
        first.map(|call| call.name.as_str())
    }

    /// Waits until no earlier call has to queue before this one.
    pub(super) async fn reached(&self, claims: &[Claim]) {
        for call in self.calls.iter().take(self.number) {
            loop {
                // Made before the look, so that nothing between the two is missed.
                let known = call.known.notified();
                if !call.comes_before(claims) {
                    break;
                }
                known.await;
            }
        }
    }

    fn note(&self, files: Files) {
        if let Some(own) = self.calls.get(self.number) {
            *own.files.lock() = files;
            own.known.notify_waiters();
        }
    }
}

impl Drop for Position {
    fn drop(&mut self) {
        self.note(Files::Passed);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::Map;

    use super::*;
    use crate::message::ToolId;

    fn positions<const CALLS: usize>() -> [Position; CALLS] {
        let call = |number| ToolCall {
            id: ToolId::new(format!("t{number}")),
            name: "bash".to_owned(),
            input: Map::new(),
            provider_call_id: None,
        };
        let calls: Vec<_> = (0..CALLS).map(call).collect();
        let positions: Vec<_> = Position::in_order(&calls).collect();
        positions.try_into().ok().unwrap()
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

    #[test]
    fn what_concerns_the_same_files_waits_and_nothing_else_does() {
        for (earlier, later, waits) in [
            (writes("a"), writes("a"), true),
            (writes("a"), reads("a"), true),
            (reads("a"), writes("a"), true),
            (reads("a"), reads("a"), false),
            (writes("a"), writes("b"), false),
            (any(), writes("a"), true),
            (any(), any(), true),
            (any(), reads("a"), false),
        ] {
            let [first, second] = positions();
            first.claim(&earlier);
            let expected = waits.then_some("t0 bash");
            assert_eq!(second.earlier(&later), expected, "{earlier:?} {later:?}");
            drop(first);
            assert_eq!(second.earlier(&later), None);
        }
    }

    #[test]
    fn a_call_of_which_nothing_is_known_may_concern_any_file() {
        let [first, second] = positions();
        assert!(second.reached(&reads("a")).now_or_never().is_none());
        assert!(second.reached(&[]).now_or_never().is_some());
        first.claim(&[]);
        assert!(second.reached(&reads("a")).now_or_never().is_some());
    }

    #[tokio::test]
    async fn it_waits_for_all_earlier_ones_and_for_no_later_one() {
        let [first, second, third, fourth] = positions();
        first.claim(&writes("a"));
        second.claim(&writes("a"));
        fourth.claim(&any());
        let waits = async {
            third.reached(&any()).await;
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
