//! Durations and sizes as people write them: `"30s"`, `"16MiB"`.
//!
//! A bare number is a size in bytes. It is no duration, because nobody can tell seconds from
//! milliseconds; only a permission's `timeout`, which is on the wire too, takes milliseconds.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The units of a duration, in milliseconds.
const DURATION_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
/// The units of a size, in bytes; matched without regard to case.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

/// Reads a duration: `"500ms"`, `"30s"`, `"5m"`, `"1h"`, `"1h30m"`, `"0s"`, `"0"`.
///
/// `None` where it has no unit, an unknown one, a fraction, or exceeds 2^64 ms.
pub fn parse_duration(text: &str) -> Option<Duration> {
    parse_millis(text).map(Duration::from_millis)
}

fn parse_millis(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    if matches!(rest, "" | "0") {
        return (rest == "0").then_some(0);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, tail) = split_number(rest)?;
        let end = tail.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, tail) = tail.split_at_checked(end.unwrap_or(tail.len()))?;
        let (_, factor) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.checked_mul(*factor)?)?;
        rest = tail.trim_start();
    }
    Some(total)
}

/// Reads a size in bytes: `"16MiB"`, `"100 KiB"`, `"1GB"`, `"4096"`.
///
/// `None` where the unit is unknown, there is a fraction, or the size exceeds 2^64 bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text.trim())?;
    if unit.is_empty() {
        return Some(number);
    }
    let mut units = SIZE_UNITS.iter();
    let (_, factor) = units.find(|(name, _)| unit.eq_ignore_ascii_case(name))?;
    number.checked_mul(*factor)
}

/// Reads `"200%"`.
fn parse_percent(text: &str) -> Option<u64> {
    match split_number(text.trim())? {
        (number, "%") => Some(number),
        _ => None,
    }
}

/// Splits leading digits from what follows them and white space.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, tail) = text.split_at_checked(end.unwrap_or(text.len()))?;
    Some((digits.parse().ok()?, tail.trim_start()))
}

/// Returns a duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a duration in the largest unit that divides it, so that it can be read again.
pub fn format_duration(duration: Duration) -> String {
    format_millis(millis(duration))
}

fn format_millis(millis: u64) -> String {
    match millis {
        0 => "0s".to_owned(),
        millis => in_largest(millis, &DURATION_UNITS),
    }
}

/// Writes a size in the largest binary unit that divides it, so that it can be read again.
pub fn format_size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes => in_largest(
            bytes,
            &[("", 1), ("KiB", KIB), ("MiB", MIB), ("GiB", 1 << 30)],
        ),
    }
}

/// Writes an amount in the largest of the units that divides it; the first one divides any.
fn in_largest(amount: u64, units: &[(&str, u64)]) -> String {
    let mut units = units.iter().rev();
    let fitting = units.find(|(_, factor)| amount.is_multiple_of(*factor));
    let (unit, factor) = fitting.unwrap_or(&("", 1));
    format!("{}{unit}", amount / factor)
}

/// Milliseconds of a day: the longest of most durations.
pub(crate) const DAY: u64 = 24 * 60 * 60 * 1000;
/// Bytes of a KiB and a MiB.
pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

/// A duration in a configuration file, from and up to so many milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("format" = "duration-text"))]
pub(crate) struct Span<const LEAST: u64, const MOST: u64>(
    #[schemars(with = "String")] pub(crate) Duration,
);

impl<const LEAST: u64, const MOST: u64> Span<LEAST, MOST> {
    /// Reads the duration alone, for serde's `with`.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Ok(<Self as Deserialize>::deserialize(from)?.0)
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Span<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = DURATION.read(deserializer, LEAST..=MOST)?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

/// A number of bytes in a configuration file, in a range.
#[derive(JsonSchema)]
#[schemars(inline, with = "String", extend("type" = ["string", "integer"], "format" = "size-text"))]
pub(crate) enum Size<const LEAST: u64, const MOST: u64> {}

impl<const LEAST: u64, const MOST: u64> Size<LEAST, MOST> {
    /// Reads the bytes, for serde's `with`.
    pub(crate) fn deserialize<'de, D, T>(from: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: TryFrom<u64>,
    {
        let bytes = SIZE.read(from, LEAST..=MOST)?;
        T::try_from(bytes).map_err(|_| de::Error::custom("more than this machine can address"))
    }
}

impl<const LEAST: u64, const MOST: u64> Size<LEAST, MOST> {
    /// Reads the bytes; an empty text stands for none.
    pub(crate) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        SIZE.read_or_none(from, LEAST..=MOST)
    }
}

/// Percent in a configuration file, in a range.
#[derive(JsonSchema)]
#[schemars(inline, with = "String", extend("format" = "percent-text"))]
pub(crate) enum Percent<const LEAST: u64, const MOST: u64> {}

impl<const LEAST: u64, const MOST: u64> Percent<LEAST, MOST> {
    /// Reads the percent; an empty text stands for none.
    pub(crate) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        PERCENT.read_or_none(from, LEAST..=MOST)
    }
}

/// A number in a configuration file, in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Number<const LEAST: u64, const MOST: u64>(pub(crate) u64);

impl<const LEAST: u64, const MOST: u64> Number<LEAST, MOST> {
    /// Reads the number alone, for serde's `with`.
    pub(crate) fn deserialize<'de, D, T>(from: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: TryFrom<u64> + Default,
    {
        Ok(<Self as Deserialize>::deserialize(from)?.get())
    }

    /// Returns the number in the type that the range was chosen for.
    pub(crate) fn get<T: TryFrom<u64> + Default>(self) -> T {
        T::try_from(self.0).unwrap_or_default()
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Number<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        within(number, LEAST..=MOST, |number| number.to_string()).map(Self)
    }
}

/// A share of a whole from 0 to 1, kept and bounded in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<const LEAST: u64 = 0, const MOST: u64 = 100>(u64);

impl<const LEAST: u64, const MOST: u64> Share<LEAST, MOST> {
    /// Returns the hundredths.
    pub fn percent(self) -> u64 {
        self.0
    }
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Share<LEAST, MOST> {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "format": "share" })
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Share<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        let hundredths = |percent: u64| percent as f64 / 100.0;
        if !(hundredths(LEAST)..=hundredths(MOST)).contains(&share) {
            return Err(de::Error::custom(format!(
                "{share} is not between {} and {}",
                hundredths(LEAST),
                hundredths(MOST)
            )));
        }
        // In range, so nothing is lost but what is below a hundredth.
        Ok(Self((share * 100.0).round() as u64))
    }
}

impl<const LEAST: u64, const MOST: u64> Serialize for Share<LEAST, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 100.0)
    }
}

/// The time limit of a permission, `"120s"` or milliseconds, from and up to so many milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("type" = ["string", "integer"], "format" = "timeout-text"))]
pub struct Timeout<const LEAST: u64 = 0, const MOST: u64 = { u64::MAX }>(
    #[schemars(with = "String")] pub(crate) Duration,
);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Timeout<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = TIMEOUT.read(deserializer, LEAST..=MOST)?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl Serialize for Timeout {
    /// Writes milliseconds.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(millis(self.0))
    }
}

/// How an amount is written.
#[derive(Clone, Copy)]
struct Form {
    /// What an error says was expected.
    says: &'static str,
    parse: fn(&str) -> Option<u64>,
    /// Whether a bare number is an amount.
    bare: bool,
    write: fn(u64) -> String,
}

const DURATION: Form = Form {
    says: "a duration: a number and ms, s, m or h, as in \"500ms\", \"30s\", \"5m\" or \"1h\"",
    parse: parse_millis,
    bare: false,
    write: format_millis,
};
const SIZE: Form = Form {
    says: "a size: bytes, or a number and B, KB, MB, GB, KiB, MiB or GiB, as in \"100KiB\" or \"1GB\"",
    parse: parse_size,
    bare: true,
    write: format_size,
};
const PERCENT: Form = Form {
    says: "percent, as in \"50%\" or \"200%\"",
    parse: parse_percent,
    bare: false,
    write: |percent| format!("{percent}%"),
};
const TIMEOUT: Form = Form {
    says: "a duration such as \"120s\" or \"5m\", or a number of milliseconds",
    bare: true,
    ..DURATION
};

impl Form {
    fn read<'de, D: Deserializer<'de>>(
        self,
        deserializer: D,
        range: RangeInclusive<u64>,
    ) -> Result<u64, D::Error> {
        within(deserializer.deserialize_any(self)?, range, self.write)
    }

    /// The same, where an empty text stands for none.
    fn read_or_none<'de, D: Deserializer<'de>>(
        self,
        deserializer: D,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        if value.as_str().is_some_and(|text| text.trim().is_empty()) {
            return Ok(None);
        }
        let amount = self.read(value, range);
        amount.map(Some).map_err(de::Error::custom)
    }
}

impl Visitor<'_> for Form {
    type Value = u64;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.says)
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        match self.bare {
            true => Ok(number),
            false => Err(E::invalid_type(de::Unexpected::Unsigned(number), &self)),
        }
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
        }
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

fn within<E: de::Error>(
    amount: u64,
    range: RangeInclusive<u64>,
    write: fn(u64) -> String,
) -> Result<u64, E> {
    if range.contains(&amount) {
        return Ok(amount);
    }
    let (least, most) = (write(*range.start()), write(*range.end()));
    Err(E::custom(format!("allowed: {least} to {most}")))
}

#[cfg(test)]
mod tests;
