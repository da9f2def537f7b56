//! Connections that have not shown the token yet: few, and the one that waits longest goes first.
//!
//! Anybody on the machine, and any page in a browser, may open connections. They have places of their own, so
//! that they take none from clients with the token; and whoever comes always gets one, so that a crowd of
//! half-sent requests keeps nobody out for longer than it takes to send a head.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use parking_lot::Mutex;

/// Connections without the token at once where there may be fewer sockets than that; with the longest head that is 2 MiB.
/// Otherwise there may be as many as sockets: whoever has thousands of clients has all of them come at once after a restart,
/// and one that waits costs a fraction of a socket.
const LEAST_WAITING: usize = 128;

/// Wrong tokens a second that are answered at once.
const FREE_FAILURES: u32 = 5;

/// How long the answer to a further one takes.
const FAILURE_DELAY: Duration = Duration::from_millis(250);

pub(crate) struct Waiting {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// By number, which is longest first.
    places: BTreeMap<u64, CancellationToken>,
    /// Wrong tokens since then.
    failures: Option<(Instant, u32)>,
}

/// A connection's place; given up when it is dropped.
pub(super) struct Place {
    number: u64,
    waiting: Arc<Waiting>,
    /// Cancelled when somebody else needs the place.
    pub(super) evicted: CancellationToken,
}

impl Waiting {
    /// Returns places for connections of a daemon that may have so many sockets.
    pub(crate) fn for_sockets(sockets: usize) -> Self {
        Self {
            most: sockets.max(LEAST_WAITING),
            state: Mutex::default(),
        }
    }

    /// Gives a connection a place, another's if there is none free.
    pub(super) fn enter(self: &Arc<Self>) -> Arc<Place> {
        let evicted = CancellationToken::new();
        let mut state = self.state.lock();
        if state.places.len() >= self.most
            && let Some((_, longest)) = state.places.pop_first()
        {
            longest.cancel();
        }
        let number = state.next;
        state.next += 1;
        state.places.insert(number, evicted.clone());
        Arc::new(Place {
            number,
            waiting: Arc::clone(self),
            evicted,
        })
    }

    /// Counts a wrong token; returns how long its answer is to be held back.
    pub(super) fn failed(&self, now: Instant) -> Duration {
        let mut state = self.state.lock();
        let (since, count) = match state.failures {
            Some((since, count)) if now.duration_since(since) < Duration::from_secs(1) => {
                (since, count.saturating_add(1))
            }
            _ => (now, 1),
        };
        state.failures = Some((since, count));
        if count > FREE_FAILURES {
            FAILURE_DELAY
        } else {
            Duration::ZERO
        }
    }
}

impl Place {
    /// The connection has shown the token: nobody takes its place any more.
    pub(super) fn admit(&self) {
        self.waiting.state.lock().places.remove(&self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_waiting_goes_and_whoever_showed_the_token_stays() {
        let waiting = Arc::new(Waiting::for_sockets(1));
        let first = waiting.enter();
        let second = waiting.enter();
        first.admit();
        let crowd: Vec<_> = (0..LEAST_WAITING).map(|_| waiting.enter()).collect();
        assert!(!first.evicted.is_cancelled());
        assert!(second.evicted.is_cancelled());
        assert!(crowd.iter().all(|place| !place.evicted.is_cancelled()));
        let newest = waiting.enter();
        assert!(crowd[0].evicted.is_cancelled());
        assert!(!newest.evicted.is_cancelled());
        drop(crowd);
        drop(newest);
        assert_eq!(waiting.state.lock().places.len(), 0);
    }

    #[test]
    fn a_daemon_for_many_sockets_lets_as_many_wait() {
        let waiting = Arc::new(Waiting::for_sockets(1_000));
        let crowd: Vec<_> = (0..1_000).map(|_| waiting.enter()).collect();
        assert!(crowd.iter().all(|place| !place.evicted.is_cancelled()));
        let _newest = waiting.enter();
        assert!(crowd[0].evicted.is_cancelled());
    }

    #[test]
    fn many_wrong_tokens_are_answered_slowly() {
        let waiting = Waiting::for_sockets(1);
        let now = Instant::now();
        for _ in 0..FREE_FAILURES {
            assert_eq!(waiting.failed(now), Duration::ZERO);
        }
        assert_eq!(waiting.failed(now), FAILURE_DELAY);
        assert_eq!(waiting.failed(now + Duration::from_secs(1)), Duration::ZERO);
    }
}
