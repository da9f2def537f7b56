//! What was spent of one cap, and what is reserved. Pure.

use super::days::Day;
use crate::message::Money;

/// The sums of an exchange, a conversation, a session, or a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// The most that may be spent; `None` for no cap.
    limit: Option<Money>,
    spent: Money,
    /// What requests that run are expected to cost.
    reserved: Money,
    /// Whether somebody was warned.
    is_warned: bool,
    /// The day it is for, where it is a day's.
    day: Option<Day>,
}

/// By how much a cap is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raise {
    By(Money),
    /// There is none any more.
    Unlimited,
}

/// How a cap stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stand {
    pub spent: Money,
    pub reserved: Money,
    pub limit: Money,
}

impl Stand {
    /// Returns whether a request may go that is expected to cost so much.
    pub(super) fn allows(&self, amount: Money) -> bool {
        self.spent < self.limit && self.spent.plus(self.reserved).plus(amount) <= self.limit
    }

    /// Returns whether a last answer may go, for which a twentieth of the cap is added.
    pub(crate) fn allows_last(&self, amount: Money) -> bool {
        let more = Money::from_micros(self.limit.micros() / 20);
        self.spent.plus(self.reserved).plus(amount) <= self.limit.plus(more)
    }

    /// Returns what is left.
    pub(crate) fn left(&self) -> Money {
        self.limit.minus(self.spent)
    }

    /// Returns by how much it has to be raised for a request that is expected to cost so much.
    pub(crate) fn lacks(&self, amount: Money) -> Money {
        let needed = self.spent.plus(self.reserved).plus(amount);
        needed.minus(self.limit)
    }
}

impl Sums {
    pub(super) fn limited(limit: Option<Money>) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Begins anew where another day has come. What is reserved stays: it is paid for in the new one.
    pub(super) fn on(&mut self, day: Option<Day>) {
        if day.is_some() && self.day != day {
            (self.day, self.spent, self.is_warned) = (day, Money::ZERO, false);
        }
    }

    /// Returns how the cap stands; `None` where there is none.
    pub(super) fn stand(&self) -> Option<Stand> {
        Some(Stand {
            spent: self.spent,
            reserved: self.reserved,
            limit: self.limit?,
        })
    }

    pub(super) fn reserve(&mut self, amount: Money) {
        self.reserved = self.reserved.plus(amount);
    }

    pub(super) fn release(&mut self, amount: Money) {
        self.reserved = self.reserved.minus(amount);
    }

    pub(super) fn add(&mut self, amount: Money) {
        self.spent = self.spent.plus(amount);
    }

    /// Returns whether somebody has to be warned now: once, from this part of the cap on.
    pub(super) fn warns(&mut self, part: f64) -> bool {
        let is_due = self
            .limit
            .is_some_and(|limit| self.spent >= limit.part(part));
        is_due && !std::mem::replace(&mut self.is_warned, true)
    }

    pub(super) fn limit(&mut self, limit: Option<Money>) {
        self.limit = limit;
        self.is_warned = false;
    }

    pub(super) fn raise(&mut self, by: Raise) {
        self.limit(match by {
            Raise::By(amount) => self.limit.map(|limit| limit.plus(amount)),
            Raise::Unlimited => None,
        });
    }

    pub(super) fn spent(&self) -> Money {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn micros(micros: i64) -> Money {
        Money::from_micros(micros)
    }

    #[test]
    fn a_request_may_go_where_it_fits_and_something_is_left() {
        for (limit, spent, reserved, amount, may) in [
            (100, 0, 0, 100, true),
            (100, 0, 0, 101, false),
            (100, 60, 30, 10, true),
            (100, 60, 31, 10, false),
            (100, 99, 0, 0, true),
            // What costs nothing goes no further either.
            (100, 100, 0, 0, false),
            (0, 0, 0, 0, false),
        ] {
            let stand = Stand {
                spent: micros(spent),
                reserved: micros(reserved),
                limit: micros(limit),
            };
            assert_eq!(stand.allows(micros(amount)), may, "{stand:?} {amount}");
            let mut raised = stand;
            raised.limit = raised.limit.plus(stand.lacks(micros(amount)));
            let fits = raised.spent < raised.limit;
            assert_eq!(raised.allows(micros(amount)), fits, "{raised:?}");
        }
    }

    #[test]
    fn a_last_answer_has_a_twentieth_more() {
        let stand = Stand {
            spent: micros(100),
            reserved: Money::ZERO,
            limit: micros(100),
        };
        assert!(stand.allows_last(micros(5)));
        assert!(!stand.allows_last(micros(6)));
    }

    #[test]
    fn a_warning_comes_once_for_each_day_and_again_after_a_raise() {
        let mut sums = Sums::limited(Some(micros(100)));
        let days = ["2026-11-25", "2026-11-26"].map(|day| Some(day.parse().unwrap()));
        sums.on(days[0]);
        sums.add(micros(79));
        assert!(!sums.warns(0.8));
        sums.add(micros(1));
        assert!(sums.warns(0.8) && !sums.warns(0.8));
        sums.raise(Raise::By(micros(100)));
        assert!(!sums.warns(0.8));
        sums.add(micros(80));
        assert!(sums.warns(0.8));
        sums.on(days[1]);
        assert_eq!(sums.spent(), Money::ZERO);
        assert!(!sums.warns(0.8));
        sums.raise(Raise::Unlimited);
        sums.add(micros(1_000));
        assert!(!sums.warns(0.8) && sums.stand().is_none());
    }

    proptest! {
        // Requests side by side, each of which costs up to twice what was expected.
        #[test]
        fn what_is_spent_exceeds_a_cap_by_one_request_of_each_line_at_most(
            limit in 1_i64..1_000,
            steps in prop::collection::vec((0_usize..8, 1_i64..100, 0_i64..200), 1..200),
        ) {
            let mut sums = Sums::limited(Some(micros(limit)));
            let mut lines: [Option<(i64, i64)>; 8] = [None; 8];
            let mut dearest = 0;
            for (line, expected, cost) in steps {
                match lines[line].take() {
                    Some((reserved, cost)) => {
                        sums.add(micros(cost));
                        sums.release(micros(reserved));
                    }
                    None if sums.stand().unwrap().allows(micros(expected)) => {
                        sums.reserve(micros(expected));
                        lines[line] = Some((expected, cost));
                        dearest = dearest.max(cost);
                    }
                    None => {}
                }
            }
            for (reserved, cost) in lines.into_iter().flatten() {
                sums.add(micros(cost));
                sums.release(micros(reserved));
            }
            prop_assert!(sums.spent().micros() <= limit + 8 * dearest);
            prop_assert_eq!(sums.stand().unwrap().reserved, Money::ZERO);
        }
    }
}
