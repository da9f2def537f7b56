//! Which number is whose.
//!
//! A number is given to a name once and stays the name's as long as the process lives; where none is left, the next name
//! gets none, and its commands do not run. No file on the disk has such an owner (`helper/identity.rs`), so that nothing
//! is left of a number when the daemon ends. The first try follows from the name alone: after a restart a user has the
//! same number, unless two names want the same one.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::IdRange;

/// The numbers that were given.
#[derive(Debug)]
pub(crate) struct Table {
    range: IdRange,
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    by_name: BTreeMap<String, u32>,
    taken: BTreeSet<u32>,
}

impl Table {
    pub(crate) fn new(range: IdRange) -> Self {
        Self {
            range,
            given: Mutex::default(),
        }
    }

    pub(crate) fn range(&self) -> IdRange {
        self.range
    }

    /// Returns the number of a name; `None` where others have them all.
    pub(crate) fn of(&self, name: &str) -> Option<u32> {
        let mut given = self.given.lock();
        if let Some(id) = given.by_name.get(name) {
            return Some(*id);
        }
        let IdRange { first, last } = self.range;
        let wanted = u32::try_from(fnv(name) % self.range.len()).unwrap_or_default();
        let wanted = first + wanted;
        let mut tried = (wanted..=last).chain(first..wanted);
        let id = tried.find(|id| !given.taken.contains(id))?;
        given.by_name.insert(name.to_owned(), id);
        given.taken.insert(id);
        Some(id)
    }
}

/// FNV-1a: the same in each version of this program, and no more than a place to begin.
fn fnv(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_have_a_number_and_a_name_keeps_its_own() {
        let table = Table::new("100-104".parse().unwrap());
        let names = ["", "anna", "ben", "carla", "dora"];
        let ids = names.map(|name| table.of(name).unwrap());
        let mut sorted = ids;
        sorted.sort_unstable();
        assert_eq!(sorted, [100, 101, 102, 103, 104]);
        assert_eq!(table.of("one too many"), None);
        assert_eq!(names.map(|name| table.of(name).unwrap()), ids);
        assert_eq!(table.of("one too many"), None);
    }

    #[test]
    fn after_a_restart_a_name_has_the_same_number() {
        let range = "100000-165535".parse().unwrap();
        let (one, other) = (Table::new(range), Table::new(range));
        let first = ["anna", "ben"].map(|name| one.of(name));
        let second = ["ben", "anna"].map(|name| other.of(name));
        assert_eq!(first, [second[1], second[0]]);
        assert_ne!(first[0], first[1]);
    }
}
