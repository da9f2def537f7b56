//! Who comes back to a session that has to be read from the store: so many wait in line, and the others are told when to come.
//!
//! When a daemon was started anew everybody comes in one moment. What each of them is told is a little later than what the one
//! before was, so that they come as fast as sessions are read, and no two of them in one moment.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::protocol::SessionCode;
use crate::protocol::event::SessionError;
use crate::units::millis;

/// How many wait at once. The last one has its session before a client gives up, which is after ten seconds, where reading one
/// takes no longer than [`SLOWEST`].
const LINE: usize = 128;

/// How long it takes to read a session while others are read too, as long as nobody knows, and the least and the most that is
/// believed.
const FIRST: Duration = Duration::from_millis(3);
const QUICKEST: Duration = Duration::from_micros(500);
const SLOWEST: Duration = Duration::from_millis(50);

/// How much of what is believed is what was seen last: one in so many.
const SMOOTHING: u32 = 16;

/// The longest pause that is named, before its jitter. Who is told that may find the line full once more.
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
    /// The time from one session to the next while the line is full.
    pace: Duration,
    /// When a session was read last, if the line has been full since.
    last: Option<Instant>,
    /// Up to when those who were told have their time.
    taken: Option<Instant>,
}

/// A place in the line, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    line: Arc<Line>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(LINE)),
            plan: Mutex::new(Plan {
                pace: FIRST,
                last: None,
                taken: None,
            }),
        }
    }
}

impl Line {
    /// Returns a place, or what somebody is told for whom there is none.
    pub(super) fn enter(self: &Arc<Self>) -> Result<Place, SessionError> {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(permit) => Ok(Place {
                line: Arc::clone(self),
                permit: Some(permit),
            }),
            Err(_) => {
                let random = getrandom::u32().unwrap_or(u32::MAX / 2);
                let pause = self.plan.lock().pause(Instant::now(), random);
                Err(SessionError {
                    retry_after_ms: Some(millis(pause)),
                    ..SessionError::new(
                        SessionCode::RateLimited,
                        "too many come back to their sessions at once; come back after this pause",
                    )
                })
            }
        }
    }
}

impl Plan {
    /// Returns how long somebody is to stay away; `random` is any number.
    fn pause(&mut self, now: Instant, random: u32) -> Duration {
        // By then half of those have gone who are in the line now.
        let soonest = now + self.pace * (LINE as u32 / 2);
        let after = self.taken.map_or(soonest, |taken| taken + self.pace);
        let at = after.max(soonest).min(now + LONGEST);
        self.taken = Some(at);
        let pause = at - now;
        let jitter = (pause / JITTER).min(MOST_JITTER);
        pause + jitter.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    /// Notes that a place is given up.
    fn left(&mut self, now: Instant, was_full: bool) {
        if let Some(last) = self.last.filter(|_| was_full) {
            let took = (now - last).clamp(QUICKEST, SLOWEST);
            self.pace = (self.pace * (SMOOTHING - 1) + took) / SMOOTHING;
        }
        self.last = was_full.then_some(now);
    }
}

impl Place {
    /// Gives the place up for a while, in which nothing is read.
    pub(super) async fn away(&mut self, away: impl Future<Output = ()>) {
        drop(self.permit.take());
        away.await;
        // Never closed. Who was in the line is not sent away.
        self.permit = Arc::clone(&self.line.places).acquire_owned().await.ok();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let was_full = self.line.places.available_permits() == 0;
        self.line.plan.lock().left(Instant::now(), was_full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a line.
    fn full(line: &Arc<Line>) -> Vec<Place> {
        (0..LINE).map(|_| line.enter().unwrap()).collect()
    }

    fn told(line: &Arc<Line>) -> Duration {
        let refused = line.enter().unwrap_err();
        assert_eq!(refused.code, SessionCode::RateLimited);
        Duration::from_millis(refused.retry_after_ms.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_is_told_when_and_each_one_later() {
        let line = Arc::<Line>::default();
        let mut places = full(&line);
        let plan = |random| {
            let mut plan = line.plan.lock();
            (0..1_000)
                .map(|_| plan.pause(Instant::now(), random))
                .collect::<Vec<_>>()
        };
        let least = plan(0);
        assert_eq!(least[0], FIRST * (LINE as u32 / 2));
        assert!(least.windows(2).all(|two| two[1] == two[0] + FIRST));
        // The jitter is up to a quarter.
        let most = plan(u32::MAX);
        let next = least[999] + FIRST;
        assert_eq!(most[0], next + next / JITTER);
        assert!(told(&line) > most[0]);
        places.pop();
        assert!(line.enter().is_ok(), "a place is free again");
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_is_as_long_as_sessions_take_and_has_a_bound() {
        let pause_at = async |took: Duration| {
            let line = Arc::<Line>::default();
            let mut places = full(&line);
            for _ in 0..200 {
                tokio::time::sleep(took).await;
                places.pop();
                places.push(line.enter().unwrap());
            }
            line.plan.lock().pause(Instant::now(), 0)
        };
        let quick = pause_at(Duration::from_millis(1)).await;
        let slow = pause_at(Duration::from_millis(20)).await;
        let hung = pause_at(Duration::from_secs(60)).await;
        let half = LINE as u32 / 2;
        assert!(quick < Duration::from_millis(2) * half, "{quick:?}");
        assert!(slow > Duration::from_millis(18) * half, "{slow:?}");
        assert!(hung <= SLOWEST * half, "{hung:?}");
        let line = Arc::<Line>::default();
        let _places = full(&line);
        let mut last = Duration::ZERO;
        for _ in 0..100_000 {
            last = told(&line);
        }
        assert!(last <= LONGEST + MOST_JITTER, "{last:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_another_daemon_leaves_the_line_meanwhile() {
        let line = Arc::<Line>::default();
        let mut places = full(&line);
        let mut waits = places.pop().unwrap();
        let away = waits.away(async {
            let other = line.enter().unwrap();
            assert!(line.enter().is_err());
            drop(other);
        });
        away.await;
        assert!(line.enter().is_err(), "it is in the line again");
        drop(waits);
        assert!(line.enter().is_ok());
    }
}
