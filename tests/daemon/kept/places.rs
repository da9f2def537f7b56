//! Folders on a disk and in memory.

use std::fmt;
use std::path::Path;

use tempfile::TempDir;

/// A sort of file system.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Memory,
    Disk,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "tmpfs",
            Self::Disk => "a disk",
        })
    }
}

impl Place {
    /// Returns a folder there; none where this machine has no such place.
    pub(super) fn folder(self) -> Option<TempDir> {
        let places = ["/dev/shm", "/var/tmp", env!("CARGO_TARGET_TMPDIR")];
        let mut places = places.into_iter().map(Path::new);
        let place =
            places.find(|it| it.is_dir() && is_in_memory(it) == matches!(self, Self::Memory));
        place.map(|it| tempfile::tempdir_in(it).unwrap())
    }
}

/// Returns whether a folder is on a tmpfs: what is written there needs no disk.
#[cfg(target_os = "linux")]
pub(super) fn is_in_memory(folder: &Path) -> bool {
    // linux/magic.h
    const TMPFS: u64 = 0x0102_1994;
    let found = rustix::fs::statfs(folder).unwrap();
    u64::try_from(found.f_type).unwrap() == TMPFS
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_in_memory(_: &Path) -> bool {
    false
}
