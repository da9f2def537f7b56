//! The gate before a provider that is busy or gone: one back-off for all conversations that use the
//! same address with the same key, so that fifty of them don't each find out for themselves.
//!
//! A refusal closes the gate for as long as the provider requires, or for a back-off that doubles while
//! nothing succeeds. Then one request goes first; the others follow one after the other, at a distance
//! that doubles with refusals and halves with answers. After two answers in a row all go, unless that was
//! refused a short while ago. The gate does not wait: it fails a turn with the time of its position in the queue,
//! so that all waiting is the exchange's, seen by the user and cut short by a cancel; through
//! [`ProviderError::wait`] it learns that its position comes earlier. Such a failure is marked
//! (`ProviderError::not_sent`) and is no attempt of the turn's own.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;

use super::retry::{MAX_HONOURED, shortest_delay};
use super::{Chunk, ErrorKind, ProviderError};
use crate::config::ProviderConfig;

/// The distance between requests after the first refusal.
const FIRST_PACE: Duration = Duration::from_millis(250);

/// The longest distance.
const MAX_PACE: Duration = Duration::from_secs(2);

/// The least distance while the one that goes first is under way.
const MIN_PACE: Duration = Duration::from_millis(50);

/// How long the one that goes first may take to be answered before the next may follow.
const PROBE_TIME: Duration = Duration::from_secs(10);

/// So many answers in a row end the queue: all who wait go at once.
const ENOUGH_ANSWERS: u32 = 2;

/// After so long without a refusal, and without anybody waiting, all is as if none had been.
const CALM: Duration = Duration::from_secs(10);

/// Most models with a long delay that are remembered; requests to a further one are sent again.
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
        let entry = gates.entry(account(config)).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let gate = Arc::new(Gate::default());
            *entry = Arc::downgrade(&gate);
            gate
        })
    }
}

/// What a provider distinguishes its callers by: the key, or without one the extra headers.
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
    consecutive_failures: u32,
    /// Counts closings: a request sent before the last one says nothing new by failing too.
    epoch: u64,
    /// Answers since the last closing.
    answers: u32,
    /// When all were let go last, and at which distance the answers before that had come.
    reopened: Option<(Instant, Duration)>,
    /// Since when the one that goes first is under way.
    probe: Option<Instant>,
    /// Distance between requests where several wait.
    pace: Duration,
    /// What it does not fall below: somewhat more than what was refused last.
    least_pace: Duration,
    /// Whether several wait, so that a conversation alone never waits for the distance.
    has_waiters: bool,
    /// When the last request was let through, by the plan.
    last: Option<Instant>,
    /// The next position in the queue that nobody has.
    next: Option<Instant>,
    /// Notifies those who wait of how the queue moves.
    queue: watch::Sender<Queue>,
    /// Delays that nobody waits for, by model: quotas of a day or of a model come so.
    delayed: BTreeMap<String, Closed>,
}

/// How the queue has moved since its gate was closed.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// Of which closing it is.
    epoch: u64,
    /// How much of the waiting is left of what it was at first, 0 to 1.
    scale: f64,
    /// When that changed last.
    moved: Option<Instant>,
    /// Whether all may go.
    is_over: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Queue {
    fn new(epoch: u64) -> Self {
        Self {
            epoch,
            scale: 1.0,
            moved: None,
            is_over: false,
        }
    }
}

/// A turn's position in the queue.
#[derive(Debug)]
pub(crate) struct QueuePosition {
    queue: watch::Receiver<Queue>,
    /// The queue when the position was given.
    then: Queue,
}

impl QueuePosition {
    /// Waits for `delay`, or for less where the queue moves on meanwhile.
    pub(super) async fn wait(&self, delay: Duration) {
        let (mut queue, mut then) = (self.queue.clone(), self.then);
        let mut until = Instant::now() + delay;
        loop {
            let now = *queue.borrow_and_update();
            if now.is_over {
                return;
            }
            let before = match now.epoch == then.epoch {
                true => then.scale,
                // Of another closing, where the gate was closed again meanwhile: that queue begins anew.
                false => 1.0,
            };
            if let Some(moved) = now.moved {
                let left = until.saturating_duration_since(moved);
                until = moved + left.mul_f64((now.scale / before).clamp(0.0, 1.0));
            }
            then = now;
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => return,
                Ok(()) = queue.changed() => {}
            }
        }
    }
}

/// Where somebody waits is no part of what went wrong.
impl PartialEq for QueuePosition {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
struct Closed {
    until: Instant,
    by: ProviderError,
}

impl Closed {
    /// What a turn that is not sent fails with.
    fn refusal(&self, wait: Duration, consecutive_failures: u32) -> ProviderError {
        ProviderError {
            retry_after: Some(wait),
            not_sent: true,
            consecutive_failures: Some(consecutive_failures),
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
    /// Permits a request for a model where the gate is open.
    ///
    /// The error is what closed the gate, with the time after which to come back.
    pub(super) fn permit(self: &Arc<Self>, model: &str) -> Result<Permit, ProviderError> {
        let now = Instant::now();
        let mut state = self.state.lock();
        Ok(Permit {
            is_probe: state.admit(model, now)?,
            epoch: state.epoch,
            gate: Arc::clone(self),
            model: model.to_owned(),
            answered: false,
        })
    }
}

impl State {
    /// Whether a request may go now, and as the one that goes first.
    fn admit(&mut self, model: &str, now: Instant) -> Result<bool, ProviderError> {
        self.delayed.retain(|_, delayed| delayed.until > now);
        if let Some(delayed) = self.delayed.get(model) {
            return Err(delayed.refusal(delayed.until - now, self.consecutive_failures));
        }
        let last_position = self.next;
        let is_over = |closed: &Closed| {
            now > last_position.map_or(closed.until, |it| it.max(closed.until)) + CALM
        };
        if self.closed.as_ref().is_some_and(is_over) {
            let epoch = self.epoch + 1;
            *self = Self {
                epoch,
                queue: watch::Sender::new(Queue::new(epoch)),
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
        } else if self.has_waiters && now + self.pace / 4 < due {
            due
        } else {
            // By the plan, so that who wakes late does not push back all who follow.
            self.last = Some(due.max(now.checked_sub(self.pace).unwrap_or(now)).min(now));
            // The last one in the queue: who comes now waits for nobody.
            self.has_waiters &= self.next.is_some_and(|next| next > now + self.pace);
            let goes_first = self.answers == 0;
            self.probe = goes_first.then_some(now);
            return Ok(goes_first);
        };
        self.has_waiters = true;
        let position = self.next_position(earliest, now);
        Err(ProviderError {
            position: Some(Arc::new(QueuePosition {
                queue: self.queue.subscribe(),
                then: *self.queue.borrow(),
            })),
            ..closed.refusal(position - now, self.consecutive_failures)
        })
    }

    /// Gives away the next position in the queue.
    fn next_position(&mut self, earliest: Instant, now: Instant) -> Instant {
        let position = self.next.map_or(earliest, |next| next.max(earliest));
        let position = position.min(now + MAX_HONOURED).max(earliest);
        self.next = Some(position + self.pace);
        position
    }

    /// Takes in that a request was refused which was let through in `epoch`.
    fn refuse(&mut self, model: &str, epoch: u64, error: &mut ProviderError) {
        let now = Instant::now();
        let requested = error.retry_after.unwrap_or_default();
        let by_load = matches!(error.kind, ErrorKind::RateLimit | ErrorKind::Overloaded);
        if by_load && requested > MAX_HONOURED {
            if self.delayed.len() < MAX_DELAYED {
                let until = now + requested.min(MAX_DELAY);
                let by = error.clone();
                self.delayed.insert(model.to_owned(), Closed { until, by });
            }
            return;
        }
        let closes = by_load || error.kind == ErrorKind::Connect;
        if !closes || (requested.is_zero() && error.should_retry == Some(false)) {
            return;
        }
        // Where the gate is open, also a late refusal closes it anew: nobody who comes then is of the queue before.
        if epoch == self.epoch || self.closed.is_none() {
            self.epoch += 1;
            self.consecutive_failures = self.consecutive_failures.saturating_add(1);
            let reopened = self.reopened.take();
            if by_load {
                // Where all at once were too many, what was answered before is known to go well.
                let went_well = reopened.filter(|(at, _)| now < *at + CALM);
                self.least_pace = match went_well {
                    Some((_, pace)) => pace,
                    // One after the other, after some answers.
                    None if self.answers > 0 => (self.pace + self.pace / 2).min(MAX_PACE),
                    None => self.least_pace,
                };
                self.pace = (self.pace * 2).clamp(FIRST_PACE, MAX_PACE);
            } else {
                // Who is not there says nothing of how much he can take.
                self.pace = self.pace.max(FIRST_PACE);
            }
            self.queue.send_replace(Queue::new(self.epoch));
            self.answers = 0;
            self.probe = None;
            self.last = None;
        } else {
            self.has_waiters = true;
        }
        error.consecutive_failures = Some(self.consecutive_failures);
        let until = now + requested.max(shortest_delay(error.kind, self.consecutive_failures));
        let known = self.closed.as_ref();
        if known.is_none_or(|known| known.until < until) {
            let by = error.clone();
            self.closed = Some(Closed { until, by });
        }
    }

    /// Takes in that the provider answered.
    fn answer(&mut self, epoch: u64) {
        if epoch != self.epoch || self.closed.is_none() {
            return;
        }
        let now = Instant::now();
        self.consecutive_failures = 0;
        self.probe = None;
        self.answers = self.answers.saturating_add(1);
        // Where the provider refused again after some answers, it serves no more than a few at a time.
        if self.answers >= ENOUGH_ANSWERS && self.least_pace.is_zero() {
            self.reopen(now);
        } else {
            self.shorten_waits(now);
        }
    }

    /// Lets all go who wait.
    fn reopen(&mut self, now: Instant) {
        self.reopened = Some((now, self.pace));
        self.closed = None;
        self.has_waiters = false;
        self.last = None;
        self.next = None;
        self.pace = Duration::ZERO;
        self.queue.send_modify(|queue| queue.is_over = true);
    }

    /// Halves the distance between those who wait, as far as it may fall.
    fn shorten_waits(&mut self, now: Instant) {
        let pace = (self.pace / 2).max(self.least_pace).min(self.pace);
        if pace == self.pace {
            return;
        }
        let ratio = pace.div_duration_f64(self.pace);
        self.pace = pace;
        self.next = self
            .next
            .map(|next| now + next.saturating_duration_since(now).mul_f64(ratio));
        self.queue.send_modify(|queue| {
            queue.scale *= ratio;
            queue.moved = Some(now);
        });
    }
}

/// The permit of one request. It reports to the gate what came of it; it is dropped where that says nothing.
pub(super) struct Permit {
    gate: Arc<Gate>,
    model: String,
    epoch: u64,
    is_probe: bool,
    answered: bool,
}

impl Permit {
    /// The provider had time for the request, whatever it said.
    pub(super) fn answered(&mut self) {
        if !self.answered {
            self.answered = true;
            self.gate.state.lock().answer(self.epoch);
        }
    }

    /// The request failed. Closes the gate where the failure is about load, and notes in the error how
    /// often in a row that happened to anybody.
    pub(super) fn failed(&mut self, error: &mut ProviderError) {
        self.gate
            .state
            .lock()
            .refuse(&self.model, self.epoch, error);
    }

    /// Observes what the body of an answer brings.
    pub(super) fn observe(&mut self, item: &mut Result<Chunk, ProviderError>) {
        match item {
            // What comes before anything is said may yet turn into a refusal.
            Ok(Chunk::Start { .. } | Chunk::Notice(_)) => {}
            Ok(_) => self.answered(),
            Err(error) => self.failed(error),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        if self.is_probe && self.epoch == state.epoch {
            state.probe = None;
        }
    }
}

#[cfg(test)]
mod tests;
