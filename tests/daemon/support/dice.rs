//! Chance that is the same in each run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers that look random and are the same in each run.
#[derive(Clone)]
pub(crate) struct Dice(Arc<AtomicU64>);

impl Dice {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(0x9E37_79B9_7F4A_7C15)))
    }

    /// A number below `most`.
    pub(crate) fn roll(&self, most: u64) -> u64 {
        let step = |mut x: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        };
        let before = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |x| Some(step(x)));
        step(before.unwrap()) % most
    }
}
