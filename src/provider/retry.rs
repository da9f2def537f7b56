//! Whether and when a failed turn is tried again, and the gate before a provider that asked for rest.
//!
//! The decision is pure: it neither sleeps nor draws random numbers. It does not know whether output
//! was sent on already; that is the exchange's to weigh. The gate does not wait either: it fails a
//! turn with the time that is left, so that all waiting is the exchange's, seen by the user and cut
//! short by a cancel.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{ErrorKind, ProviderError};

/// First delay before jitter; doubled with each attempt.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Longest delay of our own choosing.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Longest delay a provider may ask for and get; what is longer is told to the user at once.
pub const MAX_HONOURED: Duration = Duration::from_secs(120);

/// Share of the delay asked for that is added at random, so that all who were told the same time do
/// not come back at it.
const SPREAD: f64 = 0.1;

/// Overload passes more slowly than a broken connection.
const OVERLOAD_FACTOR: u32 = 2;

/// How often a turn is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    max_retries: u32,
}

impl Policy {
    /// A policy with at most so many retries of one turn; the first attempt does not count.
    pub fn new(max_retries: u32) -> Self {
        Self { max_retries }
    }

    /// Returns how long to wait before the next attempt, `None` to give up now.
    ///
    /// `attempt` counts the failures of this turn so far, this one included, from 1. `jitter` is
    /// random, 0 to 1. The delay is at least what the provider asked for; where it asked for more
    /// than [`MAX_HONOURED`], the error is final and carries the time.
    pub fn next_delay(&self, error: &ProviderError, attempt: u32, jitter: f64) -> Option<Duration> {
        if attempt == 0 || attempt > self.max_retries || !may_pass(error) {
            return None;
        }
        let jitter = if jitter.is_finite() {
            jitter.clamp(0.0, 1.0)
        } else {
            1.0
        };
        let asked = error.retry_after.unwrap_or_default();
        (asked <= MAX_HONOURED).then(|| {
            let spread = asked.mul_f64(1.0 + SPREAD * jitter);
            spread.max(backoff(error.kind, attempt, jitter))
        })
    }
}

/// Whether the same request may succeed later. The provider's own word wins, but for money and keys.
fn may_pass(error: &ProviderError) -> bool {
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
        ErrorKind::Protocol
        | ErrorKind::Authentication
        | ErrorKind::Permission
        | ErrorKind::Quota
        | ErrorKind::NotFound
        | ErrorKind::TooLarge
        | ErrorKind::ContextLength
        | ErrorKind::ContentFilter
        | ErrorKind::NoTools
        | ErrorKind::NotConfigured => false,
    };
    by_kind && error.should_retry.unwrap_or(true)
}

/// Exponential, and random over its upper half so that those who failed together return apart.
fn backoff(kind: ErrorKind, attempt: u32, jitter: f64) -> Duration {
    let factor = if kind == ErrorKind::Overloaded {
        OVERLOAD_FACTOR
    } else {
        1
    };
    let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
    let longest = FIRST_DELAY
        .saturating_mul(doubled.saturating_mul(factor))
        .min(MAX_BACKOFF);
    longest.mul_f64(0.5 + jitter / 2.0)
}

/// Stands before a provider instance: while it wants rest, nobody knocks, so that fifty
/// conversations don't each find out for themselves.
#[derive(Debug, Default)]
pub struct Gate {
    /// Locked only to read or to move the time.
    closed: Mutex<Option<Closed>>,
}

#[derive(Clone, Copy, Debug)]
struct Closed {
    until: Instant,
    by: ErrorKind,
}

impl Gate {
    /// Lets a turn pass where the gate is open.
    ///
    /// # Errors
    ///
    /// What closed the gate, with the time that is left.
    pub fn pass(&self) -> Result<(), ProviderError> {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Closed { until, by }) = *closed else {
            return Ok(());
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            *closed = None;
            return Ok(());
        }
        Err(ProviderError {
            retry_after: Some(left),
            ..ProviderError::new(
                by,
                format!(
                    "the provider asked another conversation to wait, {} s are left",
                    left.as_secs_f64().ceil()
                ),
            )
        })
    }

    /// Closes the gate where the provider is busy and named a time, for that time. One beyond
    /// [`MAX_HONOURED`] is nobody's to wait for: it may be mistaken, and is told to each who asks. An
    /// earlier penalty is never shortened.
    pub fn penalise(&self, error: &ProviderError) {
        let (ErrorKind::RateLimit | ErrorKind::Overloaded, Some(delay)) =
            (error.kind, error.retry_after)
        else {
            return;
        };
        if delay > MAX_HONOURED {
            return;
        }
        let until = Instant::now() + delay;
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if closed.is_none_or(|earlier| earlier.until < until) {
            *closed = Some(Closed {
                until,
                by: error.kind,
            });
        }
    }
}

#[cfg(test)]
mod tests;
