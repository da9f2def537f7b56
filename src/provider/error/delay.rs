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
    match header(headers, "x-should-retry")?.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Reads `retry-after-ms`, then `retry-after` in seconds, as a date, or as what limits are given in.
///
/// A date is compared with the answer's own `date`, so that the local clock need not be right; `now`
/// stands in where there is none.
pub(super) fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let milliseconds = header(headers, "retry-after-ms")
        .and_then(|value| value.trim().parse::<f64>().ok())
        .and_then(|value| seconds(value / 1000.0));
    milliseconds.or_else(|| {
        let value = header(headers, RETRY_AFTER.as_str())?.trim();
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
    headers
        .iter()
        .filter(|(name, _)| {
            let name = name.as_str();
            (name.contains("ratelimit") || name.contains("rate-limit")) && name.contains("reset")
        })
        .filter(|(name, _)| {
            let left = name.as_str().replace("reset", "remaining");
            header(headers, &left).is_none_or(|left| left.trim() == "0")
        })
        .filter(|(name, _)| {
            // Of the several limits of a subscription only some are reached.
            let status = name.as_str().replace("reset", "status");
            header(headers, &status).is_none_or(|status| !status.trim().starts_with("allowed"))
        })
        .filter_map(|(_, value)| reset(value.to_str().ok()?, headers, now))
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
            Value::String(text) => text.parse().map_or_else(|_| go_duration(text), seconds),
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
    BEFORE.iter().find_map(|before| {
        let (_, rest) = text.split_once(before)?;
        worded_duration(rest)
    })
}

/// Reads a duration at the start of `text` with its unit, given as a letter or a word.
fn worded_duration(text: &str) -> Option<Duration> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, rest) = text.split_at_checked(end)?;
    let rest = rest.trim_start();
    for (unit, scale) in [
        ("milliseconds", 0.001),
        ("second", 1.0),
        ("minute", 60.0),
        ("hour", 3600.0),
    ] {
        if rest.starts_with(unit) {
            return seconds(number.parse::<f64>().ok()? * scale);
        }
    }
    let word = text.split_whitespace().next()?;
    go_duration(word.trim_end_matches(|c: char| !c.is_ascii_alphabetic()))
}

/// Reads a duration as Go prints it: `1s`, `6m0s`, `120ms`, `1.57s`, `1h2m3s`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, after) = rest.split_at_checked(end)?;
        let unit_end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit_end)?;
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * scale;
        rest = after;
    }
    if text.is_empty() {
        None
    } else {
        seconds(total)
    }
}

/// Reads one reset header: a Go duration, seconds, seconds or milliseconds of the epoch, RFC 3339.
fn reset(value: &str, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    /// Numbers above count from 1970: seconds since 2001, milliseconds since 2001.
    const EPOCH_SECONDS: f64 = 1e9;
    const EPOCH_MILLISECONDS: f64 = 1e12;
    let value = value.trim();
    match value.parse::<f64>() {
        Ok(number) if number >= EPOCH_MILLISECONDS => {
            // Whole milliseconds, which a division would blur.
            let since = Duration::from_millis(number.round() as u64);
            until(SystemTime::UNIX_EPOCH.checked_add(since)?, headers, now)
        }
        Ok(number) if number >= EPOCH_SECONDS => until(epoch(number)?, headers, now),
        Ok(number) => seconds(number),
        Err(_) => match value.parse::<Timestamp>() {
            Ok(time) => until(time.into(), headers, now),
            Err(_) => go_duration(value),
        },
    }
}

fn epoch(value: f64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(value).ok()?)
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
    headers.get(name)?.to_str().ok()
}
