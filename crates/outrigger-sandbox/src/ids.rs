//! Numbers of users of the system, as which the commands of the daemon's users run.

#[cfg(target_os = "linux")]
mod table;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub(crate) use table::Table;

/// What the kernel shows in the place of owners that it cannot show.
const NOBODY: u32 = 65_534;

/// A range of numbers of users and groups, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRange {
    first: u32,
    last: u32,
}

impl IdRange {
    /// The first.
    pub fn first(self) -> u32 {
        self.first
    }

    /// The last.
    pub fn last(self) -> u32 {
        self.last
    }

    /// Returns whether a number is one of them.
    pub fn contains(self, id: u32) -> bool {
        (self.first..=self.last).contains(&id)
    }

    #[cfg(target_os = "linux")]
    fn len(self) -> u64 {
        u64::from(self.last - self.first) + 1
    }
}

impl fmt::Display for IdRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.first, self.last)
    }
}

impl FromStr for IdRange {
    type Err = String;

    /// From `100000-165535`.
    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "write the first and the last number, as \"100000-165535\"".to_owned();
        let (first, last) = text.split_once('-').ok_or_else(form)?;
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| form());
        let range = Self {
            first: number(first)?,
            last: number(last)?,
        };
        if range.first > range.last {
            return Err(form());
        }
        // The last number of all means "none" in system calls.
        if range.contains(0) || range.contains(NOBODY) || range.contains(u32::MAX) {
            return Err(format!(
                "the range must have neither 0 (root), {NOBODY} (nobody) nor {} in it",
                u32::MAX
            ));
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_numbers_and_has_nobody_elses() {
        for (text, expected) in [
            ("100000-165535", Some((100_000, 165_535))),
            (" 7 - 7 ", Some((7, 7))),
            ("65535-70000", Some((65_535, 70_000))),
            ("100000", None),
            ("100000:65536", None),
            ("2-1", None),
            ("0-10", None),
            ("60000-70000", None),
            ("4294967290-4294967295", None),
            (
                "4294967290-4294967294",
                Some((4_294_967_290, 4_294_967_294)),
            ),
            ("1-4294967296", None),
            ("-1-5", None),
            ("", None),
        ] {
            let range = text.parse::<IdRange>().ok();
            assert_eq!(range.map(|it| (it.first, it.last)), expected, "{text}");
        }
    }
}
