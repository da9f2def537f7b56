//! The line of those who come back to a session that has to be read from the store; where it is too long, others are told when to
//! come.
//!
//! When a daemon was started anew everybody comes in one moment. As many wait as have their session before a client gives up.
//! The others are told pauses, each a little later than the one before, and closer together than sessions are read: who comes a
//! little early waits, and the store never stands still while somebody is away.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::protocol::SessionCode;
use crate::protocol::event::SessionError;
use crate::units::millis;

/// How many sessions are read at once.
const AT_ONCE: usize = 64;

/// How long somebody waits. A client gives up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(6);

/// How long it takes from one session to the next, as long as nobody knows, and the least and the most that is believed. So no
/// more than `PATIENCE / QUICKEST` wait.
const FIRST: Duration = Duration::from_millis(3);
const QUICKEST: Duration = Duration::from_micros(500);
const SLOWEST: Duration = Duration::from_millis(200);

/// How much of what is believed is what was seen last: one in so many.
const SMOOTHING: u32 = 64;

/// How many are told to come in the time that one session takes.
const DENSITY: u32 = 2;

/// The shortest and the longest pause that is named, before its jitter. Who is told the longest may find the line too long once more.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(25);

/// The jitter: up to a part in so many of the pause is added to it, and no more than a second.
const JITTER: u32 = 4;
const MOST_JITTER: Duration = Duration::from_secs(1);

/// The line before the store.
#[derive(Debug)]
pub(crate) struct Line {
    places: Arc<Semaphore>,
    plan: Mutex<Plan>,
}

#[derive(Debug)]
struct Plan {
    /// How many wait.
    waiting: u32,
    /// The time from one session to the next while somebody waits.
    pace: Duration,
    /// When a session was read last, if somebody has waited since.
    last: Option<Instant>,
    /// Up to when those who were told have their time.
    taken: Option<Instant>,
}

/// That a session is read, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    line: Arc<Line>,
    permit: Option<OwnedSemaphorePermit>,
}

/// That somebody waits, until it is dropped.
struct Waits<'a>(&'a Line);

impl Default for Line {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(AT_ONCE)),
            plan: Mutex::new(Plan {
                waiting: 0,
                pace: FIRST,
                last: None,
                taken: None,
            }),
        }
    }
}

impl Line {
    /// Waits for a place; fails with what somebody is told who would have to wait too long.
    pub(super) async fn enter(self: &Arc<Self>) -> Result<Place, SessionError> {
        let places = Arc::clone(&self.places);
        let permit = match Arc::clone(&places).try_acquire_owned() {
            Ok(permit) => Ok(permit),
            Err(_) => {
                if self.is_too_long() {
                    return Err(self.told());
                }
                let _waits = self.wait();
                // Never closed.
                let permit = timeout(PATIENCE, places.acquire_owned()).await;
                permit.ok().and_then(Result::ok).ok_or_else(|| self.told())
            }
        };
        Ok(Place {
            line: Arc::clone(self),
            permit: Some(permit?),
        })
    }

    /// Counts somebody who waits.
    fn wait(&self) -> Waits<'_> {
        self.plan.lock().waiting += 1;
        Waits(self)
    }

    fn is_too_long(&self) -> bool {
        let plan = self.plan.lock();
        plan.pace * plan.waiting >= PATIENCE
    }

    fn told(&self) -> SessionError {
        let random = getrandom::u32().unwrap_or(u32::MAX / 2);
        let pause = self.plan.lock().pause(Instant::now(), random);
        SessionError {
            retry_after_ms: Some(millis(pause)),
            ..SessionError::new(
                SessionCode::RateLimited,
                "too many come back to their sessions at once; come back after this pause",
            )
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.plan.lock().waiting -= 1;
    }
}

impl Plan {
    /// Returns how long somebody is to stay away; `random` is any number.
    fn pause(&mut self, now: Instant, random: u32) -> Duration {
        // By then half of those have gone who wait now.
        let soonest = now + (self.pace * self.waiting / 2).max(SHORTEST);
        let next = |taken| taken + self.pace / DENSITY;
        let at = self.taken.map_or(soonest, next);
        let at = at.max(soonest).min(now + LONGEST);
        self.taken = Some(at);
        let pause = at - now;
        let jitter = (pause / JITTER).min(MOST_JITTER);
        pause + jitter.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// Notes that a session was read.
    fn read(&mut self, now: Instant) {
        let others_wait = self.waiting > 0;
        if let Some(last) = self.last.filter(|_| others_wait) {
            let took = (now - last).clamp(QUICKEST, SLOWEST);
            self.pace = (self.pace * (SMOOTHING - 1) + took) / SMOOTHING;
        }
        self.last = others_wait.then_some(now);
    }
}

impl Place {
    /// Gives the place up for a while, in which nothing is read.
    pub(super) async fn away(&mut self, away: impl Future<Output = ()>) {
        drop(self.permit.take());
        away.await;
        // Never closed. Who had a place is not sent away, but counts for those who come.
        let _waits = self.line.wait();
        self.permit = Arc::clone(&self.line.places).acquire_owned().await.ok();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.line.plan.lock().read(Instant::now());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tokio::task::JoinSet;

    use super::*;

    /// How many wait at most where nothing was read yet.
    const MOST: usize = (PATIENCE.as_millis() / FIRST.as_millis()) as usize;

    /// Takes all places, and then has as many wait as may.
    pub(in crate::session) async fn full(
        line: &Arc<Line>,
    ) -> (Vec<Place>, JoinSet<Result<Place, SessionError>>) {
        let mut places = Vec::new();
        for _ in 0..AT_ONCE {
            places.push(line.enter().await.unwrap());
        }
        let mut waiting = JoinSet::new();
        for _ in 0..MOST {
            let line = Arc::clone(line);
            waiting.spawn(async move { line.enter().await });
        }
        while (line.plan.lock().waiting as usize) < MOST {
            tokio::task::yield_now().await;
        }
        (places, waiting)
    }

    async fn told(line: &Arc<Line>) -> Duration {
        let refused = line.enter().await.unwrap_err();
        assert_eq!(refused.code, SessionCode::RateLimited);
        Duration::from_millis(refused.retry_after_ms.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn who_would_wait_too_long_is_told_when_and_each_one_later() {
        let line = Arc::<Line>::default();
        let (mut places, mut waiting) = full(&line).await;
        let plan = |random| {
            let mut plan = line.plan.lock();
            (0..1_000)
                .map(|_| plan.pause(Instant::now(), random))
                .collect::<Vec<_>>()
        };
        let least = plan(0);
        assert_eq!(least[0], PATIENCE / 2);
        let next = FIRST / DENSITY;
        assert!(least.windows(2).all(|two| two[1] == two[0] + next));
        // The jitter is up to a quarter.
        let most = plan(u32::MAX);
        let after = least[999] + next;
        assert_eq!(most[0], after + (after / JITTER).min(MOST_JITTER));
        assert!(told(&line).await > least[999]);
        places.pop();
        assert!(
            waiting.join_next().await.unwrap().unwrap().is_ok(),
            "the next one has a place"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_waited_too_long_is_told_when_to_come_again() {
        let line = Arc::<Line>::default();
        let (_places, mut waiting) = full(&line).await;
        let began = Instant::now();
        while let Some(told) = waiting.join_next().await {
            assert!(told.unwrap().unwrap_err().retry_after_ms.is_some());
            assert_eq!(began.elapsed(), PATIENCE);
        }
        assert_eq!(line.plan.lock().waiting, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_wait_as_are_read_in_time() {
        let most = |took: Duration| {
            let mut plan = Plan {
                waiting: 1,
                pace: FIRST,
                last: None,
                taken: None,
            };
            let mut now = Instant::now();
            for _ in 0..1_000 {
                plan.read(now);
                now += took;
            }
            PATIENCE.as_micros() / plan.pace.as_micros()
        };
        assert_eq!(most(Duration::from_millis(1)), 6_000);
        assert_eq!(most(Duration::from_millis(20)), 300);
        assert_eq!(most(Duration::from_secs(60)), 30);
        assert_eq!(most(Duration::ZERO), 12_000);
    }

    #[tokio::test(start_paused = true)]
    async fn no_pause_is_longer_than_the_longest() {
        let line = Arc::<Line>::default();
        let (_places, _waiting) = full(&line).await;
        let mut last = Duration::ZERO;
        for _ in 0..100_000 {
            last = told(&line).await;
        }
        assert!(last >= LONGEST && last <= LONGEST + MOST_JITTER, "{last:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_another_daemon_has_no_place_meanwhile() {
        let line = Arc::<Line>::default();
        let mut places = Vec::new();
        for _ in 0..AT_ONCE {
            places.push(line.enter().await.unwrap());
        }
        let mut waits = places.pop().unwrap();
        let away = waits.away(async {
            let other = line.enter().await.unwrap();
            assert_eq!(line.places.available_permits(), 0);
            drop(other);
        });
        away.await;
        assert_eq!(line.places.available_permits(), 0, "it has one again");
        drop(waits);
        assert!(line.enter().await.is_ok());
    }
}
