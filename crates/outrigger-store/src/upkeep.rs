//! What limits there are, and when they are looked at; for every store.

use std::time::Duration;

use crate::{Growth, Limits};

/// After how many commits the limits are looked at, and after which time at the latest.
const COMMITS: u32 = 256;
pub(crate) const EVERY: Duration = Duration::from_secs(60 * 60);

/// From which part of the bytes that may be kept on it is told, in percent.
const FILLING: u64 = 80;

/// Told what limits came to.
pub(crate) type Tell = Box<dyn Fn(Growth) + Send>;

/// What is to be done about growth when nothing else is.
pub(crate) struct Upkeep {
    pub(crate) limits: Limits,
    pub(crate) tell: Option<Tell>,
    commits: u32,
    /// Whether the limits are to be looked at.
    pub(crate) is_due: bool,
    /// Whether there may be something that an import left, or a large session that was deleted.
    pub(crate) has_left: bool,
    /// Whether there may be pages to give back.
    pub(crate) has_free: bool,
    /// How full it was when that was told.
    told: Fullness,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fullness {
    Fine,
    Filling,
    Full,
}

impl Default for Upkeep {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            tell: None,
            commits: 0,
            is_due: false,
            has_left: false,
            // Those that an earlier process left.
            has_free: true,
            told: Fullness::Fine,
        }
    }
}

impl Upkeep {
    /// Returns whether something is to be done.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due || self.has_left || self.has_free
    }

    /// Returns whether it is to be looked at from time to time though nothing is written.
    pub(crate) fn is_limited(&self) -> bool {
        self.limits != Limits::default()
    }

    pub(crate) fn look(&mut self) {
        self.is_due = self.is_limited();
    }

    pub(crate) fn committed(&mut self) {
        self.commits += 1;
        if self.commits >= COMMITS {
            self.commits = 0;
            self.look();
        }
    }

    pub(crate) fn tell(&self, growth: Growth) {
        if let Some(tell) = &self.tell {
            tell(growth);
        }
    }

    pub(crate) fn tell_fullness(&mut self, bytes: u64, max_bytes: u64) {
        let is = match bytes {
            _ if bytes > max_bytes => Fullness::Full,
            _ if bytes > max_bytes / 100 * FILLING => Fullness::Filling,
            _ => Fullness::Fine,
        };
        if is > self.told {
            self.tell(match is {
                Fullness::Full => Growth::Full { bytes, max_bytes },
                _ => Growth::Filling { bytes, max_bytes },
            });
        }
        self.told = is;
    }
}
