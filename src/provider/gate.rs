//! The gate before a provider that is busy or gone: one back-off for all conversations that use the
//! same address with the same key, so that fifty of them don't each find out for themselves.
//!
//! A refusal closes the gate for as long as the provider asked, or for a back-off that doubles while
//! nothing succeeds. Then one request goes first; the others follow one after the other, at a distance
//! that grows with refusals and shrinks with answers. The gate does not wait: it fails a turn with the
//! time of its place in the row, so that all waiting is the exchange's, seen by the user and cut short
//! by a cancel. Such a failure is marked (`ProviderError::unasked`) and is no attempt of the turn's own.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::retry::{MAX_HONOURED, shortest_delay};
use super::{Chunk, ErrorKind, ProviderError};
use crate::config::ProviderConfig;
use crate::mutex::{Mutex, MutexGuard};

/// The distance between requests after the first refusal; no longer than the shortest back-off, so
/// that a conversation alone never waits for it.
const FIRST_PACE: Duration = Duration::from_millis(250);

/// The longest distance.
const MAX_PACE: Duration = Duration::from_secs(2);

/// A shorter distance is none.
const MIN_PACE: Duration = Duration::from_millis(50);

/// How long the one that goes first may take to be answered before the next may follow.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// After so long without a refusal, and without anybody waiting, all is as if none had been.
const CALM: Duration = Duration::from_secs(10);

/// Most models with a long delay that are remembered; a further one is asked again.
const MAX_DELAYED: usize = 256;

/// The longest delay that is remembered: what is longer was not meant, or lasts longer than the daemon.
const MAX_DELAY: Duration = Duration::from_secs(7 * 24 * 3600);

/// The gates of the instances there are; clones share them.
#[derive(Clone, Default)]
pub(super) struct Gates {
    /// By a digest of address and key, so that no key is kept here. Gone with their last instance.
    by_account: Arc<Mutex<HashMap<[u8; 32], Weak<Gate>>>>,
}

impl Gates {
    /// Returns the gate of an instance, which it shares with all that have its address and key.
    pub(super) fn of(&self, config: &ProviderConfig) -> Arc<Gate> {
        let mut gates = self.by_account.lock();
        gates.retain(|_, gate| gate.strong_count() > 0);
        let place = gates.entry(account(config)).or_default();
        place.upgrade().unwrap_or_else(|| {
            let gate = Arc::new(Gate::default());
            *place = Arc::downgrade(&gate);
            gate
        })
    }
}

/// What a provider tells its callers apart by: the key, or without one the extra headers.
fn account(config: &ProviderConfig) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(config.base_url.trim_end_matches('/'));
    match &config.api_key {
        Some(key) => {
            digest.update([0]);
            digest.update(key.expose_secret().trim());
        }
        None => {
            for (name, value) in &config.headers {
                digest.update([1]);
                digest.update(name.to_ascii_lowercase());
                digest.update([2]);
                digest.update(value.expose_secret());
            }
        }
    }
    digest.finalize().into()
}

/// Stands before the instances with one address and key.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Locked only to look at it or to move times.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: Option<Closed>,
    /// Closings since something succeeded.
    strikes: u32,
    /// Counts closings: what was asked before the last one says nothing new by failing too.
    epoch: u64,
    /// Whether something succeeded since the last closing.
    proven: bool,
    /// Since when the one that goes first is under way.
    probe: Option<Instant>,
    /// Distance between requests where several wait.
    pace: Duration,
    /// What it does not fall below: somewhat more than what was refused last.
    least_pace: Duration,
    /// Whether several wait.
    crowd: bool,
    /// When the last request was let through, by the plan.
    last: Option<Instant>,
    /// The next place in the row that nobody has.
    next: Option<Instant>,
    /// Delays that nobody waits for, by model: quotas of a day or of a model are told so.
    delayed: BTreeMap<String, Closed>,
}

#[derive(Clone, Debug)]
struct Closed {
    until: Instant,
    by: ProviderError,
}

impl Closed {
    /// What a turn that is not sent fails with.
    fn refusal(&self, wait: Duration, strikes: u32) -> ProviderError {
        ProviderError {
            retry_after: Some(wait),
            unasked: true,
            strikes: Some(strikes),
            message: format!(
                "the provider is left alone for {:.1} s more: {}",
                wait.as_secs_f64(),
                self.by.message
            ),
            ..self.by.clone()
        }
    }
}

impl Gate {
    /// Lets a request for a model pass where the gate is open.
    ///
    /// # Errors
    ///
    /// What closed the gate, with the time after which to come back.
    pub(super) fn pass(self: &Arc<Self>, model: &str) -> Result<Pass, ProviderError> {
        let now = Instant::now();
        let mut state = self.state();
        let is_probe = state.admit(model, now)?;
        let epoch = state.epoch;
        drop(state);
        Ok(Pass {
            gate: Arc::clone(self),
            model: model.to_owned(),
            epoch,
            is_probe,
            answered: false,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Whether a request may go now, and as the one that goes first.
    fn admit(&mut self, model: &str, now: Instant) -> Result<bool, ProviderError> {
        self.delayed.retain(|_, delayed| delayed.until > now);
        if let Some(delayed) = self.delayed.get(model) {
            return Err(delayed.refusal(delayed.until - now, self.strikes));
        }
        let last_place = self.next;
        let is_over = |closed: &Closed| {
            now > last_place.map_or(closed.until, |it| it.max(closed.until)) + CALM
        };
        if self.closed.as_ref().is_some_and(is_over) {
            *self = Self {
                epoch: self.epoch + 1,
                delayed: std::mem::take(&mut self.delayed),
                ..Self::default()
            };
        }
        let Some(closed) = self.closed.clone() else {
            return Ok(false);
        };
        let due = self.last.map_or(now, |last| last + self.pace);
        let earliest = if now < closed.until {
            closed.until
        } else if self.probe.is_some_and(|since| now < since + PROBE_TIME) {
            now + self.pace.max(MIN_PACE)
        } else if self.crowd && now + self.pace / 4 < due {
            due
        } else {
            // By the plan, so that who wakes late does not push back all who follow.
            self.last = Some(due.max(now.checked_sub(self.pace).unwrap_or(now)).min(now));
            self.probe = (!self.proven).then_some(now);
            return Ok(!self.proven);
        };
        self.crowd = true;
        let place = self.place(earliest, now);
        Err(closed.refusal(place - now, self.strikes))
    }

    /// Gives away the next place in the row.
    fn place(&mut self, earliest: Instant, now: Instant) -> Instant {
        let place = self.next.map_or(earliest, |next| next.max(earliest));
        let place = place.min(now + MAX_HONOURED).max(earliest);
        self.next = Some(place + self.pace);
        place
    }

    /// Takes in that a request was refused which was let through in `epoch`.
    fn refuse(&mut self, model: &str, epoch: u64, error: &mut ProviderError) {
        let now = Instant::now();
        let asked = error.retry_after.unwrap_or_default();
        let by_load = matches!(error.kind, ErrorKind::RateLimit | ErrorKind::Overloaded);
        if by_load && asked > MAX_HONOURED {
            if self.delayed.len() < MAX_DELAYED {
                let until = now + asked.min(MAX_DELAY);
                let by = error.clone();
                self.delayed.insert(model.to_owned(), Closed { until, by });
            }
            return;
        }
        let closes = by_load || error.kind == ErrorKind::Connect;
        if !closes || (asked.is_zero() && error.should_retry == Some(false)) {
            return;
        }
        if epoch == self.epoch {
            self.epoch += 1;
            self.strikes = self.strikes.saturating_add(1);
            self.least_pace = (self.pace + self.pace / 2).min(MAX_PACE);
            self.pace = (self.pace * 2).clamp(FIRST_PACE, MAX_PACE);
            self.proven = false;
            self.probe = None;
            self.last = None;
        } else {
            self.crowd = true;
        }
        error.strikes = Some(self.strikes);
        let until = now + asked.max(shortest_delay(error.kind, self.strikes));
        if self
            .closed
            .as_ref()
            .is_none_or(|earlier| earlier.until < until)
        {
            let by = error.clone();
            self.closed = Some(Closed { until, by });
        }
    }

    /// Takes in that the provider answered.
    fn answer(&mut self, epoch: u64) {
        if epoch != self.epoch {
            return;
        }
        self.strikes = 0;
        self.proven = true;
        self.probe = None;
        self.pace = (self.pace - self.pace / 16).max(self.least_pace);
        if self.pace < MIN_PACE {
            self.pace = Duration::ZERO;
        }
    }
}

/// The leave of one request. It tells the gate what came of it, by being dropped where that says nothing.
pub(super) struct Pass {
    gate: Arc<Gate>,
    model: String,
    epoch: u64,
    is_probe: bool,
    answered: bool,
}

impl Pass {
    /// The provider had time for the request, whatever it said.
    pub(super) fn answered(&mut self) {
        if !self.answered {
            self.answered = true;
            self.gate.state().answer(self.epoch);
        }
    }

    /// The request failed. Closes the gate where the failure is about load, and notes in the error how
    /// often in a row that happened to anybody.
    pub(super) fn failed(&mut self, error: &mut ProviderError) {
        self.gate.state().refuse(&self.model, self.epoch, error);
    }

    /// Takes in what the body of an answer brings.
    pub(super) fn heard(&mut self, item: &mut Result<Chunk, ProviderError>) {
        match item {
            // What comes before anything is said may yet turn into a refusal.
            Ok(Chunk::Start { .. } | Chunk::Notice(_)) => {}
            Ok(_) => self.answered(),
            Err(error) => self.failed(error),
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        if self.is_probe && self.epoch == state.epoch {
            state.probe = None;
        }
    }
}

#[cfg(test)]
mod tests;
