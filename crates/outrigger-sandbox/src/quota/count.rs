//! Counts what a folder holds, whatever a command made of it, and while one changes it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::real;

/// How far it looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Files and folders; some seconds' work.
    pub(super) files: usize,
    /// Folders within each other; each is held open.
    pub(super) depth: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            files: 1_000_000,
            depth: 64,
        }
    }
}

/// The unit of what a file takes on the disk, see stat(2).
const BLOCK: u64 = 512;

/// A folder that is open, what is in it still to be looked at, and the mode to give back to it.
struct Level {
    folder: OwnedFd,
    inner: Vec<OsString>,
    closed: Option<(OwnedFd, Mode)>,
}

impl Drop for Level {
    fn drop(&mut self) {
        if let Some((place, mode)) = &self.closed {
            set_mode(place, *mode);
        }
    }
}

struct Walk {
    bytes: u64,
    files: usize,
    /// Files with several names, which take their place once: device and inode.
    seen: HashSet<(u64, u64)>,
}

/// Returns the bytes that a folder and all in it take on the disk, without what is mounted there; `None` where that is
/// more than can be looked at. No link is followed.
pub(super) fn bytes(top: impl AsFd, bounds: Bounds) -> Option<u64> {
    let mut walk = Walk {
        bytes: 0,
        files: 0,
        seen: HashSet::new(),
    };
    let mount = mount_of(&top);
    let first = open(&top, OsStr::new(".")).ok().flatten()?;
    let mut levels = vec![walk.enter(first, bounds)?];
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.inner.pop() else {
            levels.pop();
            continue;
        };
        // What cannot be opened is gone by now, or something else.
        let Ok(Some(inner)) = open(&level.folder, &name) else {
            continue;
        };
        if mount_of(&inner.folder) != mount {
            continue;
        }
        if levels.len() >= bounds.depth {
            return None;
        }
        levels.push(walk.enter(inner, bounds)?);
    }
    Some(walk.bytes)
}

impl Walk {
    /// Counts what is in a folder, and takes note of the folders in it.
    fn enter(&mut self, mut level: Level, bounds: Bounds) -> Option<Level> {
        let Ok(entries) = Dir::read_from(&level.folder) else {
            return Some(level);
        };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&level.folder, name, AtFlags::SYMLINK_NOFOLLOW)
            else {
                continue;
            };
            self.files += 1;
            if self.files > bounds.files {
                return None;
            }
            let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if is_folder {
                level.inner.push(name.to_owned());
            }
            if is_folder || stat.st_nlink < 2 || self.seen.insert((stat.st_dev, stat.st_ino)) {
                let blocks = u64::try_from(stat.st_blocks).unwrap_or_default();
                self.bytes = self.bytes.saturating_add(blocks.saturating_mul(BLOCK));
            }
        }
        Some(level)
    }
}

/// Opens a folder; one that its owner closed is opened to us for as long as we are in it. `None` where it is no folder.
fn open(above: impl AsFd, name: &OsStr) -> io::Result<Option<Level>> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let reading = flags | OFlags::RDONLY;
    let level = |folder, closed| Level {
        folder,
        inner: Vec::new(),
        closed,
    };
    match rustix::fs::openat(&above, name, reading, Mode::empty()) {
        Ok(folder) => return Ok(Some(level(folder, None))),
        Err(Errno::ACCESS) => {}
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let place = rustix::fs::openat(&above, name, flags | OFlags::PATH, Mode::empty())?;
    let mode = real::mode_of(&place)?;
    set_mode(&place, mode | Mode::RWXU);
    let folder = rustix::fs::openat(&place, ".", reading, Mode::empty());
    let folder = folder.inspect_err(|_| set_mode(&place, mode))?;
    Ok(Some(level(folder, Some((place, mode)))))
}

/// The number of the mount that a folder is in, the same for all where the kernel does not say. Devices tell no more: a part
/// of a file system may have one of its own.
fn mount_of(folder: impl AsFd) -> u64 {
    let asked = rustix::fs::statx(folder, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
    asked.map(|it| it.stx_mnt_id).unwrap_or_default()
}

fn set_mode(place: &OwnedFd, mode: Mode) {
    real::set_mode(place, mode).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn count(folder: &std::path::Path, bounds: Bounds) -> Option<u64> {
        bytes(File::open(folder).unwrap(), bounds)
    }

    #[test]
    fn all_that_takes_space_is_counted_once() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().join("top");
        fs::create_dir_all(top.join("closed/inner")).unwrap();
        let all = || count(&top, Bounds::default()).unwrap();
        let empty = all();
        fs::write(top.join("closed/inner/file"), vec![1; 100_000]).unwrap();
        let one = all();
        assert!((100_000..200_000).contains(&(one - empty)), "{empty} {one}");
        // A second name, a hole, and what lies elsewhere take nothing.
        fs::hard_link(top.join("closed/inner/file"), top.join("again")).unwrap();
        File::create(top.join("sparse"))
            .unwrap()
            .set_len(1 << 30)
            .unwrap();
        fs::write(place.path().join("outside"), vec![1; 1_000_000]).unwrap();
        symlink("../outside", top.join("link")).unwrap();
        symlink("..", top.join("closed/up")).unwrap();
        assert!((one..one + 50_000).contains(&all()), "{one} {}", all());
        // Nor does it hide anything that nobody may look into, which stays so.
        for folder in ["closed/inner", "closed"] {
            fs::set_permissions(top.join(folder), Permissions::from_mode(0o000)).unwrap();
        }
        assert!((one..one + 50_000).contains(&all()), "{one} {}", all());
        let mode = |folder: &str| {
            top.join(folder)
                .symlink_metadata()
                .unwrap()
                .permissions()
                .mode()
        };
        assert_eq!(mode("closed") & 0o777, 0);
        fs::set_permissions(top.join("closed"), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(mode("closed/inner") & 0o777, 0);
    }

    #[test]
    fn what_is_too_much_is_said_so() {
        let place = tempfile::tempdir().unwrap();
        let bounds = Bounds {
            files: 10,
            depth: 4,
        };
        fs::create_dir_all(place.path().join("a/b/c")).unwrap();
        assert!(count(place.path(), bounds).is_some());
        fs::create_dir(place.path().join("a/b/c/d")).unwrap();
        assert_eq!(count(place.path(), bounds), None);
        fs::remove_dir(place.path().join("a/b/c/d")).unwrap();
        for number in 0..8 {
            fs::write(place.path().join(format!("a/{number}")), "").unwrap();
        }
        assert_eq!(count(place.path(), bounds), None);
    }
}
