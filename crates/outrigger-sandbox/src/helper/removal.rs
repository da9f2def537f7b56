//! Removes a directory that a command made.
//!
//! Done here and not in the daemon, since it may take minutes. Neither depth nor number of what lies in it costs
//! memory, stack or descriptors: what is found in a directory below the top is moved up to the top, so that there are
//! never more than two levels to look at.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Names that are taken from a directory at once.
const BATCH: usize = 1_024;

/// Names that nothing has.
struct Free {
    prefix: u64,
    number: u64,
}

impl Free {
    fn next(&mut self) -> String {
        self.number += 1;
        format!(".outrigger-{:016x}-{}", self.prefix, self.number)
    }
}

/// What is at a name, no link followed; `None` where nothing is or nothing can be seen.
fn kind(dir: &Dir, name: &OsStr) -> Option<FileType> {
    let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

/// The names in a directory, at most so many.
fn names(dir: &Dir, most: usize) -> Vec<OsString> {
    let entries = dir.entries().into_iter().flatten().flatten();
    entries.take(most).map(|entry| entry.file_name()).collect()
}

/// Removes the directory and all in it, as far as that is possible.
pub(super) fn remove(directory: &Path) {
    if let (Some(parent), Some(name)) = (directory.parent(), directory.file_name())
        && let Ok(parent) = Dir::open_ambient_dir(parent, ambient_authority())
    {
        remove_at(&parent, name);
    }
}

/// The same by the directory that holds it.
pub(super) fn remove_at(dir: &Dir, name: &OsStr) {
    if let Ok(top) = open(dir, name) {
        empty(&top);
    }
    let flags = match kind(dir, name) {
        Some(FileType::Directory) => AtFlags::REMOVEDIR,
        _ => AtFlags::empty(),
    };
    rustix::fs::unlinkat(dir, name, flags).unwrap_or_default();
}

/// Opens a directory, no link followed, giving ourselves the rights to it where a command took them.
pub(super) fn open(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::openat(dir, name, flags | OFlags::PATH, Mode::empty())?;
    let mode = rustix::fs::fstat(&place)?.st_mode;
    if mode & 0o700 != 0o700 {
        // By the descriptor: what is at the name may be another by now.
        let path = format!("/proc/self/fd/{}", place.as_raw_fd());
        let wanted = Mode::from_raw_mode(mode & 0o7777 | 0o700);
        rustix::fs::chmod(path, wanted).unwrap_or_default();
    }
    let opened = rustix::fs::openat(&place, ".", flags | OFlags::RDONLY, Mode::empty())?;
    Ok(Dir::from_std_file(opened.into()))
}

/// Empties a directory. Ends, for each round removes or moves up something, and what is moved up was deeper before.
fn empty(top: &Dir) {
    // No name that lies there already, and so none that a command can foresee.
    let mut free = Free {
        prefix: getrandom::u64().unwrap_or_default(),
        number: 0,
    };
    loop {
        let found = names(top, BATCH);
        let mut progress = false;
        for name in found {
            progress |= remove_entry(top, &name) || flatten(top, &name, &mut free);
        }
        if !progress {
            return;
        }
    }
}

/// Removes a file or an empty directory.
fn remove_entry(dir: &Dir, name: &OsStr) -> bool {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) => true,
        Err(Errno::ISDIR | Errno::PERM) => {
            rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR).is_ok()
        }
        Err(_) => false,
    }
}

/// Removes what is in a directory, and moves up what cannot be removed yet.
fn flatten(top: &Dir, name: &OsStr, free: &mut Free) -> bool {
    let Ok(inner) = open(top, name) else {
        return false;
    };
    let mut progress = false;
    loop {
        let mut gone = false;
        for entry in names(&inner, BATCH) {
            gone |= remove_entry(&inner, &entry) || move_up(&inner, &entry, top, free);
        }
        progress |= gone;
        if !gone {
            return progress | remove_entry(top, name);
        }
    }
}

fn move_up(inner: &Dir, entry: &OsStr, top: &Dir, free: &mut Free) -> bool {
    // To be moved, a directory has to be one that we may write to.
    open(inner, entry).map_or_else(drop, drop);
    rustix::fs::renameat(inner, entry, top, free.next()).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_without_rights_goes_and_what_a_link_names_stays() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        let private = place.path().join("private");
        fs::create_dir_all(private.join("locked/inner/deep")).unwrap();
        std::os::unix::fs::symlink(&outside, private.join("locked/link")).unwrap();
        for locked in ["locked/inner/deep", "locked/inner", "locked"] {
            fs::set_permissions(private.join(locked), Permissions::from_mode(0o000)).unwrap();
        }
        remove(&private);
        assert!(!private.exists());
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    }

    #[test]
    fn neither_depth_nor_number_is_in_the_way() {
        let place = tempfile::tempdir().unwrap();
        let top = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        let mode = Mode::from_raw_mode(0o700);
        rustix::fs::mkdirat(&top, "deep", mode).unwrap();
        let mut dir = open(&top, OsStr::new("deep")).unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&dir, "d", mode).unwrap();
            dir = open(&dir, OsStr::new("d")).unwrap();
        }
        let wide = place.path().join("deep/wide");
        for number in 0..3_000 {
            fs::create_dir_all(wide.join(format!("{number}/inner"))).unwrap();
        }
        remove(&place.path().join("deep"));
        assert!(fs::read_dir(place.path()).unwrap().next().is_none());
    }
}
