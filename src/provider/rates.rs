//! How fast an instance is asked: so many requests at once, so many requests and tokens a minute, and the sessions that
//! wait take turns. What the provider itself refuses is the business of `gate`, behind this.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::config::RateLimits;
use crate::runtime::sleep_until;

/// The time in which a bucket is filled.
const MINUTE: Duration = Duration::from_secs(60);

/// The way to an instance, shared by all conversations.
#[derive(Debug)]
pub(crate) struct Rates(Mutex<State>);

#[derive(Debug)]
struct State {
    parallel: usize,
    running: usize,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    /// Sessions that wait, the one whose turn it is first; each with what it waits for, in order.
    waiting: VecDeque<(String, VecDeque<Waiter>)>,
}

#[derive(Debug)]
struct Waiter {
    tokens: u64,
    may_go: oneshot::Sender<()>,
}

/// Requests or tokens that may be taken now; filled evenly, up to what a minute has.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    most: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    fn full(most: u64, now: Instant) -> Self {
        let most = most as f64;
        Self {
            most,
            level: most,
            at: now,
        }
    }

    /// Returns when so much may be taken: all that there ever is, where that is less.
    fn when(&mut self, amount: f64, now: Instant) -> Instant {
        let filled = now
            .saturating_duration_since(self.at)
            .div_duration_f64(MINUTE);
        self.level = (self.level + filled * self.most).min(self.most);
        self.at = now;
        let lacking = (amount.min(self.most) - self.level).max(0.0);
        now + MINUTE.mul_f64(lacking / self.most)
    }
}

impl State {
    /// Lets go who may; returns when the next one may, where that is a matter of time.
    fn let_go(&mut self, now: Instant) -> Option<Instant> {
        loop {
            let (_, waiters) = self.waiting.front_mut()?;
            waiters.retain(|waiter| !waiter.may_go.is_closed());
            let Some(tokens) = waiters.front().map(|waiter| waiter.tokens) else {
                self.waiting.pop_front();
                continue;
            };
            if self.running >= self.parallel {
                return None;
            }
            let requests = self.requests.as_mut().map(|it| it.when(1.0, now));
            let tokens_at = self.tokens.as_mut().map(|it| it.when(tokens as f64, now));
            if let Some(at) = requests.max(tokens_at).filter(|at| *at > now) {
                return Some(at);
            }
            let (session, mut waiters) = self.waiting.pop_front()?;
            let next = waiters.pop_front();
            // The others of the session wait behind other sessions.
            if !waiters.is_empty() {
                self.waiting.push_back((session, waiters));
            }
            if next.is_some_and(|waiter| waiter.may_go.send(()).is_ok()) {
                self.running += 1;
                self.take(1.0, tokens as f64);
            }
        }
    }

    fn take(&mut self, requests: f64, tokens: f64) {
        for (bucket, amount) in [(&mut self.requests, requests), (&mut self.tokens, tokens)] {
            if let Some(bucket) = bucket {
                bucket.level = (bucket.level - amount).min(bucket.most);
            }
        }
    }
}

impl Rates {
    /// Returns the way to an instance that nobody has asked yet.
    pub(crate) fn new(limits: RateLimits) -> Arc<Self> {
        let now = Instant::now();
        let bucket = |most: Option<u64>| most.map(|most| Bucket::full(most, now));
        Arc::new(Self(Mutex::new(State {
            parallel: limits.parallel.unwrap_or(usize::MAX),
            running: 0,
            requests: bucket(limits.requests_per_minute),
            tokens: bucket(limits.tokens_per_minute),
            waiting: VecDeque::new(),
        })))
    }

    /// Puts a request of a session, of about so many tokens, into the queue.
    pub(crate) fn enter(self: &Arc<Self>, session: &str, tokens: u64) -> Entry {
        let (may_go, went) = oneshot::channel();
        let waiter = Waiter { tokens, may_go };
        let mut state = self.0.lock();
        let known = state.waiting.iter_mut().find(|(id, _)| id == session);
        match known {
            Some((_, waiters)) => waiters.push_back(waiter),
            None => {
                let waiters = VecDeque::from([waiter]);
                state.waiting.push_back((session.to_owned(), waiters));
            }
        }
        let next_at = state.let_go(Instant::now());
        drop(state);
        Entry {
            rates: Arc::clone(self),
            tokens,
            next_at,
            went: Some(went),
        }
    }
}

/// A request in the queue; it leaves it where this is dropped.
pub(crate) struct Entry {
    rates: Arc<Rates>,
    tokens: u64,
    /// When to look again, where nobody else would.
    next_at: Option<Instant>,
    went: Option<oneshot::Receiver<()>>,
}

impl Entry {
    /// Returns whether it has to wait.
    pub(crate) fn waits(&mut self) -> bool {
        let went = self.went.as_mut().map(oneshot::Receiver::try_recv);
        if matches!(went, Some(Ok(()))) {
            self.went = None;
        }
        self.went.is_some()
    }

    /// Returns about how long, where that is a matter of time.
    pub(crate) fn delay(&self) -> Option<Duration> {
        let next = self.next_at?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Waits for its turn.
    pub(crate) async fn admitted(mut self) -> Admitted {
        while let Some(went) = &mut self.went {
            tokio::select! {
                biased;
                _ = went => self.went = None,
                () = sleep_until(self.next_at) => {
                    self.next_at = self.rates.0.lock().let_go(Instant::now());
                }
            }
        }
        Admitted {
            rates: Arc::clone(&self.rates),
            tokens: self.tokens,
        }
    }
}

impl Drop for Entry {
    /// Gives back what it was let go with and did not take.
    fn drop(&mut self) {
        if let Some(mut went) = self.went.take() {
            let was_let_go = went.try_recv().is_ok();
            drop(went);
            if was_let_go {
                drop(Admitted {
                    rates: Arc::clone(&self.rates),
                    tokens: self.tokens,
                });
            } else {
                self.rates.0.lock().let_go(Instant::now());
            }
        }
    }
}

/// One of the requests that run.
#[must_use = "it runs for as long as this lives"]
pub(crate) struct Admitted {
    rates: Arc<Rates>,
    tokens: u64,
}

impl Admitted {
    /// Corrects what it was expected to take.
    pub(crate) fn took(&mut self, tokens: u64) {
        let more = tokens as f64 - self.tokens as f64;
        self.tokens = tokens;
        self.rates.0.lock().take(0.0, more);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut state = self.rates.0.lock();
        state.running = state.running.saturating_sub(1);
        state.let_go(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn rates(parallel: usize, requests: Option<u64>, tokens: Option<u64>) -> Arc<Rates> {
        Rates::new(RateLimits {
            parallel: Some(parallel),
            requests_per_minute: requests,
            tokens_per_minute: tokens,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_that_wait_take_turns() {
        let rates = rates(1, None, None);
        let mut running = rates.enter("a", 0);
        assert!(!running.waits());
        let mut running = running.admitted().await;
        let mut entries: Vec<_> = ["a", "a", "b", "c", "a", "b"]
            .into_iter()
            .map(|session| (session, rates.enter(session, 0)))
            .collect();
        let mut order = Vec::new();
        while !entries.is_empty() {
            drop(running);
            let next = entries.iter_mut().position(|(_, entry)| !entry.waits());
            let (session, entry) = entries.remove(next.unwrap());
            assert!(entries.iter_mut().all(|(_, entry)| entry.waits()));
            order.push(session);
            running = entry.admitted().await;
        }
        assert_eq!(order.concat(), "abcaba");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_wait_any_more_holds_up_nobody() {
        let rates = rates(1, None, None);
        let running = rates.enter("a", 0).admitted().await;
        let (gone, let_go, next) = (
            rates.enter("b", 0),
            rates.enter("c", 0),
            rates.enter("d", 0),
        );
        drop(gone);
        drop(running);
        // It was let go, and never went.
        drop(let_go);
        drop(next.admitted().now_or_never().unwrap());
        assert_eq!(rates.0.lock().running, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_so_many_requests_and_tokens() {
        let begin = Instant::now();
        let by_requests = rates(9, Some(2), None);
        for seconds in [0, 0, 30, 60] {
            drop(by_requests.enter("a", 0).admitted().await);
            assert_eq!(begin.elapsed().as_secs(), seconds);
        }
        let begin = Instant::now();
        let by_tokens = rates(9, None, Some(600));
        let mut first = by_tokens.enter("a", 600).admitted().await;
        // Half of it was not needed.
        first.took(300);
        drop(by_tokens.enter("b", 400).admitted().await);
        assert_eq!(begin.elapsed().as_secs(), 10);
        // More than a minute has waits for a whole one.
        drop(by_tokens.enter("b", 6_000).admitted().await);
        assert_eq!(begin.elapsed().as_secs(), 70);
    }
}
