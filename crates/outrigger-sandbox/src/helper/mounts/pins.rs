//! Keeps a command from planting code in the repository that git would later run outside the sandbox.
//!
//! Hooks and settings become read-only. That alone would not do, since the directory above a mount point may be
//! renamed and a copy put in its place: so `.git` is mounted on itself first, and then cannot be moved. Nor would it do
//! while a name is free that leads git to settings elsewhere: what is missing is made, with a content that means
//! nothing, and goes again when the last command has ended (`helper::repository`).

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode as FileMode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{During, SetupError, clone_opened, cover_opened, open};
use crate::helper::raw;
use crate::layers::Step;
use crate::policy::{Pin, Pinned};
use crate::repository::{HOOKS, placeholder};

/// What git takes programs to run from, below its directory.
const REPOSITORY: [&str; 4] = ["config", HOOKS, "commondir", "config.worktree"];

/// The same for the directory of a linked worktree.
const WORKTREE: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

const MORE_SETTINGS: &str = "config.worktree";

/// Pins a place, if it is still there.
pub(super) fn pin(pin: &Pin) -> Result<(), SetupError> {
    pin_opened(pin).during(Step::Mounts, pin.path.display())
}

fn pin_opened(pin: &Pin) -> io::Result<()> {
    let place = match open(&pin.path) {
        Ok(place) => place,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let (names, worktree_config) = match pin.what {
        // A link is none, which the command could turn anyway.
        Pinned::ReadOnly => return read_only(&place).or_else(passed_over),
        Pinned::Folder => return cover_with_itself(&place).or_else(passed_over),
        Pinned::Repository { worktree_config } => (REPOSITORY.as_slice(), worktree_config),
        Pinned::Worktree => (WORKTREE.as_slice(), false),
    };
    cover_with_itself(&place)?;
    // Opened again: what was mounted is on top of what was open.
    let git = open(&pin.path)?;
    for name in names {
        let is_read = *name != MORE_SETTINGS || worktree_config;
        if is_read && open_below(&git, name)?.is_none() {
            // A directory we may not write to needs no protection from a command that may not either.
            make(&git, name).unwrap_or_default();
        }
        if let Some(place) = open_below(&git, name)? {
            read_only(&place)?;
        }
    }
    Ok(())
}

/// A link cannot be mounted on.
fn passed_over(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory => Ok(()),
        _ => Err(error),
    }
}

fn make(git: &OwnedFd, name: &str) -> io::Result<()> {
    let Some(content) = placeholder(name) else {
        return match name {
            HOOKS => Ok(rustix::fs::mkdirat(
                git,
                name,
                FileMode::from_raw_mode(0o755),
            )?),
            _ => Ok(()),
        };
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = rustix::fs::openat(git, name, flags, FileMode::from_raw_mode(0o644))?;
    File::from(made).write_all(content)
}

fn read_only(place: &OwnedFd) -> io::Result<()> {
    let mount = clone_opened(place)?;
    raw::set_mount_attributes(mount.as_fd(), libc::MOUNT_ATTR_RDONLY, true)?;
    cover_opened(&mount, place)
}

fn cover_with_itself(place: &OwnedFd) -> io::Result<()> {
    cover_opened(&clone_opened(place)?, place)
}

/// Opens an entry of a directory; `None` when there is none or it is a link, which the command could turn anyway.
fn open_below(directory: &OwnedFd, name: &str) -> io::Result<Option<OwnedFd>> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(
        directory,
        name,
        OFlags::PATH | OFlags::CLOEXEC,
        FileMode::empty(),
        resolve,
    ) {
        Ok(entry) => Ok(Some(entry)),
        Err(Errno::NOENT | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
