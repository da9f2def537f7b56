//! Whether and when a failed turn is tried again. Pure: it neither sleeps nor draws random numbers.
//!
//! It does not know whether output was sent on already; that is the exchange's to weigh. What all
//! conversations with a provider share is in `gate`.

use std::time::Duration;

use super::{ErrorKind, ProviderError};

/// First delay before jitter; doubled with each attempt.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Longest delay of our own choosing.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Longest delay a provider may request and get; what is longer fails at once, and the user sees it.
pub const MAX_HONOURED: Duration = Duration::from_secs(120);

/// Share of the requested delay that is added at random, so that all who got the same time do
/// not come back at it.
const SPREAD: f64 = 0.1;

/// Overload passes more slowly than a broken connection.
const OVERLOAD_FACTOR: u32 = 2;

/// Returns how long to wait before the next attempt, `None` to give up now: there are at most so many retries of
/// one turn, the first attempt not counted.
///
/// `attempt` counts the failures of this turn so far, this one included, from 1. `jitter` is
/// random, 0 to 1. The delay is at least what the provider requested; where it requested more
/// than [`MAX_HONOURED`], the error is final and carries the time. A turn that was not sent waits
/// for its position in the queue, whatever its attempt.
pub fn next_delay(
    max_retries: u32,
    error: &ProviderError,
    attempt: u32,
    jitter: f64,
) -> Option<Duration> {
    if error.not_sent {
        // The gate has spread them already.
        let wait = error.retry_after.unwrap_or_default();
        return (attempt <= max_retries && wait <= MAX_HONOURED).then_some(wait);
    }
    if attempt == 0 || attempt > max_retries || !may_pass(error) {
        return None;
    }
    let jitter = Some(jitter).filter(|it| it.is_finite()).unwrap_or(1.0);
    let jitter = jitter.clamp(0.0, 1.0);
    let requested = error.retry_after.unwrap_or_default();
    (requested <= MAX_HONOURED).then(|| {
        let spread = requested.mul_f64(1.0 + SPREAD * jitter);
        spread.max(backoff(error.kind, attempt, jitter))
    })
}

/// Whether the same request may succeed later: what is tried again, and what a client sees of it. The
/// provider's own word wins, but for money and keys.
pub fn may_pass(error: &ProviderError) -> bool {
    let by_kind = match error.kind {
        ErrorKind::Connect
        | ErrorKind::Timeout
        | ErrorKind::RateLimit
        | ErrorKind::Overloaded
        | ErrorKind::IncompleteStream => true,
        // 501: the server will never know how.
        ErrorKind::Server => error.status != Some(501),
        ErrorKind::Conflict | ErrorKind::Unknown => error.should_retry.unwrap_or(false),
        ErrorKind::InvalidRequest => error.is_model_mistake(),
        _ => false,
    };
    by_kind && error.should_retry.unwrap_or(true)
}

/// Exponential, and random over its upper half so that those who failed together return apart.
fn backoff(kind: ErrorKind, attempt: u32, jitter: f64) -> Duration {
    let factor = match kind {
        ErrorKind::Overloaded => OVERLOAD_FACTOR,
        _ => 1,
    };
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    let longest = FIRST_DELAY
        .saturating_mul(doubled.saturating_mul(factor))
        .min(MAX_BACKOFF);
    longest.mul_f64(0.5 + jitter / 2.0)
}

/// The shortest delay before the attempt after so many failures in a row: what the gate of all
/// conversations closes for, so that one alone is not held up by it.
pub(super) fn shortest_delay(kind: ErrorKind, failures: u32) -> Duration {
    backoff(kind, failures.max(1), 0.0)
}

/// The failures of one turn, as they count against its retries.
///
/// What the turn did not send itself costs it nothing as long as others get through; where nobody does,
/// their failures are its own, so that fifty conversations give up together and not one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failures {
    own: u32,
    /// The least number of failures in a row of anybody that this turn knows of: only those since count.
    least: Option<u32>,
}

impl Failures {
    /// Counts one more; returns how many there are.
    pub fn add(&mut self, error: &ProviderError) -> u32 {
        self.own = self.own.saturating_add(u32::from(!error.not_sent));
        // A failure that is not about load was no answer that others got: it does not make theirs count anew.
        let Some(failures) = error.consecutive_failures else {
            return self.own;
        };
        let least = self.least.unwrap_or(failures).min(failures);
        self.least = Some(least);
        self.own.max(failures - least)
    }
}

#[cfg(test)]
mod tests;
