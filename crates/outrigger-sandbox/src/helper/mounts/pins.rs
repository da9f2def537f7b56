//! Mounts that keep a command from changing what git runs outside of the sandbox.
//!
//! A read-only mount is not enough, since the directory above a mount point may be renamed and a copy put in its place:
//! so that is mounted on itself first, and then cannot be moved.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, Mode as FileMode, OFlags};

use super::{clone_opened, cover_opened, file_type, open};
use crate::git::SETTINGS;
use crate::helper::raw;
use crate::policy::{Pin, Pinned};

const WORKTREE: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

/// Where the text that stands for a link is, until it is mounted.
const LINK: &str = "/.link";

pub(super) fn pin(pin: &Pin) -> io::Result<()> {
    let place = match open(&pin.path) {
        Ok(place) => place,
        // Nothing can be below a file.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let names: Vec<&str> = match pin.what {
        Pinned::ReadOnly => return read_only(&place, &pin.path),
        // A link in the place of a folder: what it leads to is pinned by its own path.
        Pinned::Folder if file_type(&place)? == FileType::Symlink => return Ok(()),
        Pinned::Folder => return cover_with_itself(&place),
        Pinned::Repository => SETTINGS.map(|(name, _)| name).into(),
        Pinned::Worktree => WORKTREE.into(),
    };
    cover_with_itself(&place)?;
    for name in names {
        let path = pin.path.join(name);
        match open(&path) {
            Ok(place) => read_only(&place, &path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_only(place: &OwnedFd, path: &Path) -> io::Result<()> {
    let mount = match file_type(place)? {
        FileType::Symlink => instead_of_link(place, path)?,
        _ => clone_opened(place)?,
    };
    raw::set_mount_attributes(mount.as_fd(), libc::MOUNT_ATTR_RDONLY, true)?;
    cover_opened(&mount, place)?;
    // What is mounted stays; a file without a name could not be.
    match std::fs::remove_file(LINK) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns what is mounted over a link, which could be turned otherwise: the file that it leads to; for a folder, a file
/// that names it in git's words, for none but a file can be mounted there.
fn instead_of_link(link: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    if let Ok(target) = rustix::fs::open(path, flags, FileMode::empty())
        && file_type(&target)? == FileType::RegularFile
    {
        return clone_opened(&target);
    }
    let target = rustix::fs::readlinkat(link, "", Vec::new())?;
    let text = [b"gitdir: ", target.as_bytes(), b"\n"].concat();
    std::fs::write(LINK, text)?;
    clone_opened(&open(LINK)?)
}

fn cover_with_itself(place: &OwnedFd) -> io::Result<()> {
    cover_opened(&clone_opened(place)?, place)
}
