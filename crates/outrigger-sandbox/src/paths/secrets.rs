//! Which files are secrets, by what stays the same when they are renamed or linked: their inodes.
//!
//! Filled by [`Roots::hidden`](super::Roots::hidden), asked by commands' masks and by whatever opens a file. It lives
//! as long as the daemon's hold on the project: a secret that was renamed while no daemon ran has only its name.

use std::collections::HashMap;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
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
    /// Not all that tells of a file has it: with musl, the standard library's does not.
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

    /// Returns that of what is open. With musl, the standard library says no time of birth of it.
    #[cfg(target_os = "linux")]
    pub(super) fn of_open(file: impl AsFd, metadata: &Metadata) -> Self {
        use rustix::fs::{AtFlags, StatxFlags, statx};

        let identity = Self::of(metadata);
        let born = || {
            let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
            let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
            let seconds = u64::try_from(found.stx_btime.tv_sec).ok()?;
            let born = Duration::new(seconds, found.stx_btime.tv_nsec);
            has_birth.then(|| SystemTime::UNIX_EPOCH + born)
        };
        Self {
            born: identity.born.or_else(born),
            ..identity
        }
    }

    /// Returns that of what is open.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn of_open<F>(_file: F, metadata: &Metadata) -> Self {
        Self::of(metadata)
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
        let born = self.born.entry(identity.place).or_default();
        *born = identity.born.or(*born);
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

    /// Returns whether it is a secret's. A number whose time of birth is not known, then or now, is one.
    pub(super) fn holds(&self, identity: Identity) -> bool {
        let Some(born) = self.born.get(&identity.place) else {
            return false;
        };
        born.zip(identity.born)
            .is_none_or(|(then, now)| then == now)
    }

    /// The same; a number that belongs to another file by now is forgotten.
    pub(super) fn confirm(&mut self, metadata: &Metadata) -> bool {
        let holds = self.holds(Identity::of(metadata));
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
    fn a_time_of_birth_that_is_not_known_makes_no_file_another_one() {
        let [early, late] =
            [1, 2].map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let of = |born| Identity {
            place: (1, 7),
            born,
        };
        for (then, now, holds) in [
            (Some(early), Some(early), true),
            (Some(early), Some(late), false),
            (Some(early), None, true),
            (None, Some(late), true),
            (None, None, true),
        ] {
            let mut known = Known::default();
            known.add(of(then));
            assert_eq!(known.holds(of(now)), holds, "{then:?} {now:?}");
            // What was known of it stays.
            known.add(of(None));
            assert_eq!(known.holds(of(now)), holds, "{then:?} {now:?}");
        }
    }

    #[test]
    fn the_number_of_a_secret_that_is_gone_makes_no_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let metadata = Metadata::from_file(file.as_file()).unwrap();
        // As folders' entries are looked at.
        let metadata_of = |path: &std::path::Path| {
            let folder = path.parent().unwrap();
            let folder = cap_std::fs::Dir::open_ambient_dir(folder, cap_std::ambient_authority());
            folder
                .unwrap()
                .symlink_metadata(path.file_name().unwrap())
                .unwrap()
        };
        let now = Identity::of_open(&file, &metadata);
        let mut known = Known::default();
        known.add(now);
        assert!(known.holds(now) && known.confirm(&metadata));
        known.add(Identity {
            born: Some(SystemTime::UNIX_EPOCH),
            ..now
        });
        assert!(!known.holds(now));
        let beside = metadata_of(file.path());
        assert!(!known.confirm(&beside));
        let (device, inode) = now.place;
        assert!(!known.may_hold(device, inode));
    }
}
