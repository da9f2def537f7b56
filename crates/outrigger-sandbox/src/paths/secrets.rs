//! Which files are secrets, by what stays the same when they are renamed or linked: their inodes.
//!
//! Filled by [`Roots::hidden`](super::Roots::hidden), asked by commands' masks and by whatever opens a file. It lives
//! as long as the daemon's hold on the project: a secret that was renamed while no daemon ran has only its name.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use cap_fs_ext::MetadataExt;
use cap_std::fs::Metadata;

/// Most secrets remembered. With more, not all can be hidden, and no command runs.
const MAX_KNOWN: usize = 100_000;

/// How long the last walk speaks for files with several names.
const FRESH: Duration = Duration::from_secs(5);

/// One file: an inode's number is given away again, its time of birth is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// Device and inode.
    place: (u64, u64),
    born: Option<SystemTime>,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let born = metadata.created().ok();
        Self {
            place: (metadata.dev(), metadata.ino()),
            born: born.map(cap_std::time::SystemTime::into_std),
        }
    }
}

/// The secrets of both roots.
#[derive(Debug, Default)]
pub(super) struct Known {
    born: HashMap<(u64, u64), Option<SystemTime>>,
    full: bool,
    /// When the roots were last walked, and whether to the end.
    walked: Option<(Instant, bool)>,
}

impl Known {
    pub(super) fn add(&mut self, identity: Identity) {
        if self.born.len() >= MAX_KNOWN && !self.born.contains_key(&identity.place) {
            if !std::mem::replace(&mut self.full, true) {
                tracing::error!(
                    "more than {MAX_KNOWN} secrets in the project, more than are remembered: no command runs any more"
                );
            }
            return;
        }
        self.born.insert(identity.place, identity.born);
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.full
    }

    pub(super) fn walked(&mut self, complete: bool) {
        self.walked = Some((Instant::now(), complete));
    }

    /// Whether the last walk, if there was one, saw everything.
    pub(super) fn was_complete(&self) -> bool {
        self.walked.is_none_or(|(_, complete)| complete)
    }

    /// Whether the last walk is recent, and if so, whether it saw everything.
    pub(super) fn fresh(&self) -> Option<bool> {
        let (at, complete) = self.walked?;
        (at.elapsed() < FRESH).then_some(complete)
    }

    /// Whether the number is a secret's, or was.
    pub(super) fn may_hold(&self, device: u64, inode: u64) -> bool {
        self.born.contains_key(&(device, inode))
    }

    pub(super) fn holds(&self, metadata: &Metadata) -> bool {
        let identity = Identity::of(metadata);
        self.born.get(&identity.place) == Some(&identity.born)
    }

    /// The same; a number that belongs to another file by now is forgotten.
    pub(super) fn confirm(&mut self, metadata: &Metadata) -> bool {
        let holds = self.holds(metadata);
        if !holds {
            self.born.remove(&(metadata.dev(), metadata.ino()));
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_forgotten_for_another() {
        let identity = |inode| Identity {
            place: (1, inode),
            born: None,
        };
        let mut known = Known::default();
        for inode in 0..MAX_KNOWN as u64 {
            known.add(identity(inode));
        }
        known.add(identity(0));
        assert!(known.is_complete());
        known.add(identity(MAX_KNOWN as u64));
        assert!(known.may_hold(1, 0) && !known.is_complete());
        known.add(identity(MAX_KNOWN as u64 + 1));
        assert!(known.born.len() == MAX_KNOWN && !known.is_complete());
    }

    #[test]
    fn the_number_of_a_secret_that_is_gone_makes_no_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let metadata = Metadata::from_file(file.as_file()).unwrap();
        let now = Identity::of(&metadata);
        let mut known = Known::default();
        known.add(now);
        assert!(known.confirm(&metadata));
        known.add(Identity {
            born: Some(SystemTime::UNIX_EPOCH),
            ..now
        });
        assert!(!known.confirm(&metadata));
        let (device, inode) = now.place;
        assert!(!known.may_hold(device, inode));
    }
}
