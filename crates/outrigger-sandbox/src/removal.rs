//! Removes what a command made. For a thread that may block: it may take minutes.
//!
//! Neither depth nor number of what lies in it costs memory, stack or descriptors: what is found in a directory below the
//! top is moved up to the top, so that there are never more than two levels to look at.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags};

use crate::real;

const BATCH: usize = 1_024;

fn names(dir: &Dir) -> Vec<OsString> {
    let entries = dir.entries().into_iter().flatten().flatten();
    entries.take(BATCH).map(|entry| entry.file_name()).collect()
}

/// Removes the directory and all in it, as far as that is possible.
pub(super) fn remove(directory: &Path) {
    if let (Some(parent), Some(name)) = (directory.parent(), directory.file_name())
        && let Ok(parent) = Dir::open_ambient_dir(parent, ambient_authority())
    {
        remove_in(&parent, name).unwrap_or_default();
    }
}

/// Removes what has a name in a directory: a file, a link, or a directory and all in it.
pub(super) fn remove_in(parent: &Dir, name: &OsStr) -> io::Result<()> {
    if let Ok(top) = open(parent, name) {
        empty(&top);
    }
    Ok(real::remove(parent, name)?)
}

/// Opens a directory, no link followed, giving ourselves the rights to it where a command took them.
fn open(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::openat(dir, name, flags | OFlags::PATH, Mode::empty())?;
    let mode = real::mode_of(&place)?;
    if !mode.contains(Mode::RWXU) {
        real::set_mode(&place, mode | Mode::RWXU).unwrap_or_default();
    }
    let opened = rustix::fs::openat(&place, ".", flags | OFlags::RDONLY, Mode::empty())?;
    Ok(Dir::from_std_file(opened.into()))
}

/// Empties a directory. Ends, for each round removes or moves up something, and what is moved up was deeper before.
fn empty(top: &Dir) {
    // No name that lies there already, and so none that a command can foresee.
    let prefix = getrandom::u64().unwrap_or_default();
    let mut number = 0_u64;
    let mut move_up = |inner: &Dir, entry: &OsStr| {
        // To be moved, a directory has to be one that we may write to.
        open(inner, entry).map_or_else(drop, drop);
        number += 1;
        let free = format!(".outrigger-{prefix:016x}-{number}");
        rustix::fs::renameat(inner, entry, top, free).is_ok()
    };
    loop {
        let mut progress = false;
        for name in names(top) {
            if real::remove(top, &name).is_ok() {
                progress = true;
            } else if let Ok(inner) = open(top, &name) {
                for entry in names(&inner) {
                    let removed = real::remove(&inner, &entry).is_ok();
                    progress |= removed || move_up(&inner, &entry);
                }
            }
        }
        if !progress {
            return;
        }
    }
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
