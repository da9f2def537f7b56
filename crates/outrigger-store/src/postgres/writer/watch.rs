//! Tells in time that the lease is not renewed: beside the task that writes, which may wait for an answer just then.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::time::{Instant, timeout_at};

use super::super::lease::Counts;
use crate::queue::HealthState;

/// The way to who waits for the lease to be renewed, who ends with it.
pub(super) struct Watch(Sender<Instant>);

impl Watch {
    /// Begins to wait: what is not renewed for so long is told.
    pub(super) fn begin(
        health: Arc<Mutex<HealthState>>,
        counts: &Arc<Counts>,
        lapses_after: Duration,
    ) -> Self {
        let (renewed, at) = watch::channel(Instant::now());
        tokio::spawn(wait(at, health, Arc::clone(counts), lapses_after));
        Self(renewed)
    }

    /// Says that the lease was renewed by what was sent at this time.
    pub(super) fn renewed(&self, at: Instant) {
        self.0.send_replace(at);
    }
}

async fn wait(
    mut renewed: Receiver<Instant>,
    health: Arc<Mutex<HealthState>>,
    counts: Arc<Counts>,
    lapses_after: Duration,
) {
    loop {
        let until = *renewed.borrow_and_update() + lapses_after;
        match timeout_at(until, renewed.changed()).await {
            Ok(Ok(())) => continue,
            Ok(Err(_)) => return,
            Err(_) => {}
        }
        counts.lapses.fetch_add(1, Ordering::Relaxed);
        health.lock().lapse();
        let mut again = Instant::now() + lapses_after;
        // What was sent long ago may be answered late, and does not count.
        while *renewed.borrow_and_update() + lapses_after <= Instant::now() {
            match timeout_at(again, renewed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    // Sessions that began meanwhile have to end, too.
                    health.lock().lapse();
                    again += lapses_after;
                }
            }
        }
    }
}
