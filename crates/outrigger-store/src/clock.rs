//! The time by which sessions are too old: the machine's clock, as far as it can be believed.
//!
//! A clock that is a year ahead for an hour must not cost what was said in that year. So the time that is believed goes on
//! by a day at a start of the process and by a day for each hour that it runs, at most, and never back; it is kept in the
//! store. A daemon that was not started for a month deletes what is too old a day and a half later.
//!
//! What is written while the clock is behind is dated by it: to the believed time, or it would be too old at once when the
//! clock is right again.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How far the clock may be off before it is not believed, or not used, and how much faster than the process's own it may go.
const DAY_MS: i64 = crate::MS_OF_DAY;
const TIMES: u32 = 24;

/// The time, in milliseconds since 1970, as far as it is believed.
#[derive(Debug)]
pub(crate) struct Clock {
    /// What was believed when the process began, and since when it runs.
    at_start: i64,
    began: Instant,
    /// The latest that was believed.
    latest: i64,
}

impl Clock {
    /// Goes on from the time that is kept in the store; from now where there is none.
    pub(crate) fn from(kept: Option<i64>) -> Self {
        let at_start = kept.unwrap_or_else(now);
        Self {
            at_start,
            began: Instant::now(),
            latest: at_start,
        }
    }

    /// Returns the time, and whether it is to be kept in the store since it went on.
    pub(crate) fn read(&mut self) -> (i64, bool) {
        let latest = self.believed(now(), self.began.elapsed());
        let has_gone_on = latest != self.latest;
        self.latest = latest;
        (latest, has_gone_on)
    }

    /// Returns the time where the machine's clock is behind it.
    pub(crate) fn if_behind(&self) -> Option<i64> {
        (now() < self.latest.saturating_sub(DAY_MS)).then_some(self.latest)
    }

    /// Returns what is believed where the clock says this, and the process runs for so long.
    fn believed(&self, clock: i64, runs: Duration) -> i64 {
        let runs = i64::try_from(runs.saturating_mul(TIMES).as_millis()).unwrap_or(i64::MAX);
        let most = self.at_start.saturating_add(DAY_MS).saturating_add(runs);
        clock.min(most).max(self.latest)
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_believed_as_far_as_it_goes_on_as_time_does() {
        const HOUR: Duration = Duration::from_secs(60 * 60);
        let clock = Clock {
            at_start: 100 * DAY_MS,
            began: Instant::now(),
            latest: 100 * DAY_MS,
        };
        for (says, runs, expected) in [
            // It goes on as it should.
            (100, Duration::ZERO, 100),
            (101, HOUR * 24, 101),
            // It jumped ahead by a year: a day at once, and one more for each hour.
            (465, Duration::ZERO, 101),
            (465, HOUR, 102),
            // After a month off.
            (130, HOUR * 28, 129),
            (130, HOUR * 30, 130),
            // It jumped back, or shows the year 1970.
            (90, HOUR, 100),
            (0, HOUR, 100),
        ] {
            let believed = clock.believed(says * DAY_MS, runs);
            assert_eq!(believed, expected * DAY_MS, "{says} {runs:?}");
        }
        assert_eq!(clock.believed(i64::MAX, Duration::MAX), i64::MAX);
    }
}
