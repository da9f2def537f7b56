//! Durations and sizes as people write them: `"30s"`, `"16MiB"`.
//!
//! A bare number is a size in bytes. It is no duration, because nobody can tell seconds from
//! milliseconds; only a permission's `timeout`, which is on the wire too, takes milliseconds.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serializer};

/// What a duration looks like, for error messages.
pub(crate) const DURATION_FORM: &str =
    "a duration: a number and ms, s, m or h, as in \"500ms\", \"30s\", \"5m\" or \"1h\"";
/// What a size looks like, for error messages.
pub(crate) const SIZE_FORM: &str =
    "a size: bytes, or a number and B, KB, MB, GB, KiB, MiB or GiB, as in \"100KiB\" or \"1GB\"";
/// What the time limit of a permission looks like, for error messages.
pub(crate) const TIMEOUT_FORM: &str =
    "a duration such as \"120s\" or \"5m\", or a number of milliseconds";

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
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, tail) = split_number(rest)?;
        let end = tail
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(end)?;
        let (_, factor) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(number.checked_mul(*factor)?)?;
        rest = tail.trim_start();
    }
    Some(Duration::from_millis(total))
}

/// Reads a size in bytes: `"16MiB"`, `"100 KiB"`, `"1GB"`, `"4096"`.
///
/// `None` where the unit is unknown, there is a fraction, or the size exceeds 2^64 bytes.
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text.trim())?;
    if unit.is_empty() {
        return Some(number);
    }
    let (_, factor) = SIZE_UNITS
        .iter()
        .find(|(name, _)| unit.eq_ignore_ascii_case(name))?;
    number.checked_mul(*factor)
}

/// Splits leading digits from what follows them and white space.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, tail) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, tail.trim_start()))
}

/// Writes a duration in the largest unit that divides it, so that it can be read again.
pub fn format_duration(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    for (unit, factor) in DURATION_UNITS.iter().rev() {
        if millis.is_multiple_of(*factor) {
            return format!("{}{unit}", millis / factor);
        }
    }
    format!("{millis}ms")
}

/// Writes a size in the largest binary unit that divides it, so that it can be read again.
pub fn format_size(bytes: u64) -> String {
    for (unit, factor) in [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes > 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    bytes.to_string()
}

/// A duration in a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("format" = "duration-text"))]
pub(crate) struct Span(#[schemars(with = "String")] pub(crate) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, DURATION_FORM, parse_duration, None).map(Self)
    }
}

/// A number of bytes in a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("type" = ["string", "integer"], "format" = "size-text"))]
pub(crate) struct Size(#[schemars(with = "String")] pub(crate) u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, SIZE_FORM, parse_size, Some(|bytes| bytes)).map(Self)
    }
}

/// The time limit of a permission: `"120s"` or milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(inline, extend("type" = ["string", "integer"], "format" = "timeout-text"))]
pub(crate) struct Timeout(#[schemars(with = "String")] pub(crate) Duration);

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = Some(Duration::from_millis as fn(u64) -> Duration);
        read(deserializer, TIMEOUT_FORM, parse_duration, millis).map(Self)
    }
}

/// Reads a text, or a whole number where one has a meaning; `form` is what an error says was expected.
fn read<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    form: &'static str,
    of_text: fn(&str) -> Option<T>,
    of_number: Option<fn(u64) -> T>,
) -> Result<T, D::Error> {
    struct Reader<T> {
        form: &'static str,
        of_text: fn(&str) -> Option<T>,
        of_number: Option<fn(u64) -> T>,
    }
    impl<T> Visitor<'_> for Reader<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.form)
        }
        fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
            match self.of_number {
                Some(of_number) => Ok(of_number(number)),
                None => Err(E::invalid_type(de::Unexpected::Unsigned(number), &self)),
            }
        }
        fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
            match u64::try_from(number) {
                Ok(number) => self.visit_u64(number),
                Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
            }
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            (self.of_text)(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_any(Reader {
        form,
        of_text,
        of_number,
    })
}

/// Serde of an optional time limit: `"120s"` or milliseconds in, milliseconds out.
pub(crate) mod optional_timeout {
    use super::{Deserialize, Deserializer, Duration, Serializer, Timeout};

    /// Writes milliseconds.
    #[expect(
        clippy::ref_option,
        reason = "serde's `with` hands over `&Option<Duration>`"
    )]
    pub(crate) fn serialize<S: Serializer>(
        timeout: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match timeout {
            Some(timeout) => {
                serializer.serialize_u64(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
            }
            None => serializer.serialize_none(),
        }
    }

    /// Reads `"120s"`, milliseconds or null.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Timeout>::deserialize(deserializer)?.map(|timeout| timeout.0))
    }
}

#[cfg(test)]
mod tests;
