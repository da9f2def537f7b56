//! Days of a time zone. Pure: the time comes in as an argument.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// A day, as the calendar has it.
pub(crate) type Day = Date;

#[derive(Clone, Debug)]
pub(crate) struct Days {
    zone: TimeZone,
}

impl Days {
    pub(crate) fn new(zone: TimeZone) -> Self {
        Self { zone }
    }

    /// Returns the day of a time.
    pub(crate) fn day(&self, at: Timestamp) -> Day {
        at.to_zoned(self.zone.clone()).date()
    }

    /// Returns when the day of a time began.
    pub(crate) fn start(&self, at: Timestamp) -> Timestamp {
        self.begin(self.day(at)).unwrap_or(at)
    }

    /// Returns when the day after that of a time begins.
    pub(crate) fn next(&self, at: Timestamp) -> Timestamp {
        let next = self.day(at).checked_add(1.day()).ok();
        next.and_then(|day| self.begin(day)).unwrap_or(at)
    }

    fn begin(&self, day: Day) -> Option<Timestamp> {
        let begin = day.to_zoned(self.zone.clone()).ok()?;
        Some(begin.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_where_its_zone_says_also_when_clocks_are_set() {
        // Summer time in the rules of central Europe, without a database.
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (zone, at, start, next) in [
            (
                TimeZone::UTC,
                "2026-11-25T23:59:59Z",
                "2026-11-25T00:00:00Z",
                "2026-11-26T00:00:00Z",
            ),
            (
                TimeZone::UTC,
                "2026-11-26T00:00:00Z",
                "2026-11-26T00:00:00Z",
                "2026-11-27T00:00:00Z",
            ),
            (
                berlin.clone(),
                "2026-11-25T23:30:00Z",
                "2026-11-25T23:00:00Z",
                "2026-11-26T23:00:00Z",
            ),
            // 25 hours.
            (
                berlin,
                "2026-10-25T12:00:00Z",
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
        ] {
            let (days, at): (_, Timestamp) = (Days::new(zone), at.parse().unwrap());
            assert_eq!(days.start(at), start.parse().unwrap(), "{at}");
            assert_eq!(days.next(at), next.parse().unwrap(), "{at}");
        }
    }
}
