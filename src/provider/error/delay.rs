//! How long a provider wants to be left alone: headers, fields and sentences, in every form seen by
//! 2026-11-20.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

/// Longest delay believed; more is a mistake of units.
const MAX_DELAY: Duration = Duration::from_secs(31 * 24 * 3600);

/// Reads `x-should-retry`.
pub(super) fn should_retry(headers: &HeaderMap) -> Option<bool> {
    header(headers, "x-should-retry")?.parse().ok()
}

/// Reads `retry-after-ms`, then `retry-after` in seconds, as a date, or as what limits are given in.
///
/// A date is compared with the answer's own `date`, so that the local clock need not be right; `now`
/// stands in where there is none.
pub(super) fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let milliseconds = header(headers, "retry-after-ms")
        .and_then(|value| value.parse::<f64>().ok())
        .and_then(|value| seconds(value / 1000.0));
    milliseconds.or_else(|| {
        let value = header(headers, RETRY_AFTER.as_str())?;
        match http_date(value) {
            Some(date) => until(date, headers, now),
            None => reset(value, headers, now),
        }
    })
}

/// Reads the `…-reset…` headers of limits that are used up; for 429 only, since they come with every
/// answer. The longest of several counts.
pub(super) fn from_limits(status: u16, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    if status != 429 {
        return None;
    }
    let is_reached = |name: &str| {
        let beside = |word: &str| header(headers, &name.replace("reset", word));
        // Of the several limits of a subscription only some are reached.
        beside("remaining").is_none_or(|left| left == "0")
            && beside("status").is_none_or(|status| !status.starts_with("allowed"))
    };
    headers
        .keys()
        .map(|name| name.as_str())
        .filter(|name| name.contains("ratelimit") || name.contains("rate-limit"))
        .filter(|name| name.contains("reset") && is_reached(name))
        .filter_map(|name| reset(header(headers, name)?, headers, now))
        .max()
}

/// Reads what a body names: Google's `retryDelay`, `retry_after` and `resets_in_seconds` in seconds.
pub(super) fn from_fields(fields: &Value) -> Option<Duration> {
    const KEYS: [&str; 5] = [
        "retry_after",
        "retryAfter",
        "retry_after_seconds",
        "resets_in_seconds",
        "retryDelay",
    ];
    let details = fields.get("details").and_then(Value::as_array);
    std::iter::once(fields)
        .chain(fields.get("metadata"))
        .chain(details.into_iter().flatten())
        .flat_map(|object| KEYS.iter().filter_map(move |key| object.get(key)))
        .find_map(|value| match value {
            Value::Number(number) => seconds(number.as_f64()?),
            Value::String(text) => text.parse().map_or_else(|_| with_units(text), seconds),
            _ => None,
        })
}

/// Reads sentences in lower case: "try again in 1.3s", "retry after 20 seconds", "retry in 6m0s".
pub(super) fn from_text(text: &str) -> Option<Duration> {
    const BEFORE: [&str; 4] = [
        "try again in ",
        "retry in ",
        "retry after ",
        "try again after ",
    ];
    BEFORE
        .iter()
        .find_map(|before| with_units(text.split_once(before)?.1))
}

/// Reads the duration that a text begins with: `1s`, `6m0s`, `120ms`, `1.57s`, `1.5h30m`, `20 seconds`.
fn with_units(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = None;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at_checked(end)?;
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_alphabetic());
        let (unit, after) = after.split_at_checked(end.unwrap_or(after.len()))?;
        let scale = match unit.to_ascii_lowercase().as_str() {
            "us" | "µs" => 1e-6,
            "ms" | "millisecond" | "milliseconds" => 1e-3,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => return None,
        };
        total = Some(total.unwrap_or(0.0) + number.parse::<f64>().ok()? * scale);
        rest = after;
    }
    seconds(total?)
}

/// Reads one reset header: a duration, seconds, seconds or milliseconds of the epoch, RFC 3339.
fn reset(value: &str, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    /// Numbers above count from 1970: seconds since 2001, milliseconds since 2001.
    const EPOCH_SECONDS: f64 = 1e9;
    const EPOCH_MILLISECONDS: f64 = 1e12;
    let since_epoch = match value.parse::<f64>() {
        // Whole milliseconds, which a division would blur.
        Ok(number) if number >= EPOCH_MILLISECONDS => Duration::from_millis(number.round() as u64),
        Ok(number) if number >= EPOCH_SECONDS => Duration::try_from_secs_f64(number).ok()?,
        Ok(number) => return seconds(number),
        Err(_) => match value.parse::<Timestamp>() {
            Ok(time) => return until(time.into(), headers, now),
            Err(_) => return with_units(value),
        },
    };
    let time = SystemTime::UNIX_EPOCH.checked_add(since_epoch)?;
    until(time, headers, now)
}

fn until(time: SystemTime, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let now = header(headers, DATE.as_str())
        .and_then(http_date)
        .unwrap_or(now);
    let delay = time.duration_since(now).unwrap_or_default();
    (delay <= MAX_DELAY).then_some(delay)
}

fn http_date(value: &str) -> Option<SystemTime> {
    let time = jiff::fmt::rfc2822::parse(value).ok()?;
    Some(time.timestamp().into())
}

fn seconds(value: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value)
        .ok()
        .filter(|delay| *delay <= MAX_DELAY)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}
