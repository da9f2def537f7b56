//! Amounts of money: whole micro-dollars inside, US dollars with at most six digits outside. Pure.

use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Micro-dollars of a dollar.
const MICROS: f64 = 1e6;

/// The most that can be written as a number with six digits and read back: a billion dollars.
const MOST: i64 = 1_000_000_000_000_000;

/// An amount in US dollars, to the millionth. Sums stop at the largest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(i64);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Returns so many micro-dollars.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns so many dollars, to the nearest millionth; `None` for what is negative, no number, or more than a billion.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let micros = (dollars * MICROS).round();
        (0.0..=MOST as f64)
            .contains(&micros)
            .then_some(Self(micros as i64))
    }

    /// Returns it in micro-dollars.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Returns it in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / MICROS
    }

    /// Adds.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Takes away; never below zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0).max(0))
    }

    /// Returns a part of it, rounded down.
    #[must_use]
    pub fn part(self, part: f64) -> Self {
        Self((self.0 as f64 * part) as i64)
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::plus)
    }
}

impl fmt::Display for Money {
    /// Writes `$1.98`: two digits, and up to six where it has more.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, micros) = (self.0 / 1_000_000, (self.0 % 1_000_000).abs());
        let digits = format!("{micros:06}");
        let more = digits.trim_end_matches('0').len().max(2);
        write!(f, "${dollars}.{}", digits.get(..more).unwrap_or(&digits))
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        let problem = "must be US dollars from 0 to 1000000000";
        Self::from_dollars(dollars).ok_or_else(|| D::Error::custom(problem))
    }
}

impl JsonSchema for Money {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Money".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "format": "double"})
    }
}

/// What a cap is for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum BudgetScope {
    /// One task.
    Task,
    /// One exchange.
    Exchange,
    /// A conversation.
    Conversation,
    /// A session.
    Session,
    /// A day of the user.
    User,
    /// A day of the daemon.
    Daemon,
    /// A day of a provider instance.
    Provider,
}

impl BudgetScope {
    /// Returns it as people read it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Task => "this task",
            Self::Exchange => "this exchange",
            Self::Conversation => "this conversation",
            Self::Session => "this session",
            Self::User => "your day",
            Self::Daemon => "the daemon's day",
            Self::Provider => "the provider's day",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dollars_become_micro_dollars_or_nothing() {
        for (dollars, micros) in [
            (0.0, Some(0)),
            (2.0, Some(2_000_000)),
            (0.000_000_4, Some(0)),
            (0.000_17, Some(170)),
            (1e9, Some(MOST)),
            (1e9 + 1.0, None),
            (-0.01, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            let money = Money::from_dollars(dollars).map(Money::micros);
            assert_eq!(money, micros, "{dollars}");
        }
    }

    #[test]
    fn people_read_two_digits_or_what_there_is() {
        for (micros, text) in [
            (0, "$0.00"),
            (1_980_000, "$1.98"),
            (1_900_000, "$1.90"),
            (170, "$0.00017"),
            (123_456_789, "$123.456789"),
        ] {
            assert_eq!(Money::from_micros(micros).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn outside_there_are_at_most_six_digits_and_they_are_read_back(micros in 0..=MOST) {
            let money = Money::from_micros(micros);
            let text = serde_json::to_string(&money).unwrap();
            let digits = match text.split_once('e') {
                // A millionth is written so.
                Some((_, exponent)) => exponent.trim_start_matches('-').parse().unwrap(),
                None => text.split_once('.').map_or(0, |(_, digits)| digits.len()),
            };
            prop_assert!(digits <= 6, "{}", text);
            prop_assert_eq!(serde_json::from_str::<Money>(&text).unwrap(), money);
        }
    }
}
