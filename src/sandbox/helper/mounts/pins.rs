//! Keeps a command from planting code in the repository that git would later run outside the sandbox.
//!
//! Hooks and settings become read-only. That alone would not do, since the directory above a mount point may be
//! renamed and a copy put in its place: so `.git` is mounted on itself first, and then cannot be moved.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode as FileMode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{During, SetupError, clone_opened, cover_opened, file_type, open};
use crate::sandbox::helper::raw;
use crate::sandbox::layers::Step;

/// What git takes programs to run from, below its directory. The last is created empty where it is missing, so that it
/// can be pinned.
const READ_ONLY: [&str; 3] = ["config", "config.worktree", "hooks"];

const CREATED: &str = "hooks";

/// Pins the repository of a root, if it has one.
pub(super) fn pin(root: &Path) -> Result<(), SetupError> {
    pin_repository(root).during(Step::Mounts, root.join(".git").display())?;
    match outside_directory(root) {
        Some(directory) => pin_directory(&directory).during(Step::Mounts, directory.display()),
        None => Ok(()),
    }
}

fn pin_repository(root: &Path) -> io::Result<()> {
    let opened = open(root)?;
    let Some(git) = open_below(&opened, ".git")? else {
        return Ok(());
    };
    match file_type(&git)? {
        FileType::Directory => pin_directory(&root.join(".git")),
        // The file of a linked worktree or a submodule, which names the directory.
        FileType::RegularFile => read_only(&git),
        _ => Ok(()),
    }
}

fn pin_directory(directory: &Path) -> io::Result<()> {
    cover_with_itself(&open(directory)?)?;
    // Opened again: what was mounted is on top of what was open.
    let git = open(directory)?;
    if open_below(&git, CREATED)?.is_none() {
        // A directory we may not write to needs no protection from a command that may not either.
        rustix::fs::mkdirat(&git, CREATED, FileMode::from_raw_mode(0o755)).unwrap_or_default();
    }
    for name in READ_ONLY {
        if let Some(place) = open_below(&git, name)? {
            read_only(&place)?;
        }
    }
    Ok(())
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

/// The repository a linked worktree belongs to, when it lies outside the root.
///
/// The worktree's `.git` file is only believed when the repository points back to it: a command may have written the
/// file in an earlier run, but nothing outside the root.
pub(super) fn outside_directory(root: &Path) -> Option<PathBuf> {
    let file = root.join(".git");
    let named = fs::read_to_string(&file).ok()?;
    let administration = root
        .join(named.strip_prefix("gitdir:")?.trim())
        .canonicalize()
        .ok()?;
    let back = fs::read_to_string(administration.join("gitdir")).ok()?;
    if Path::new(back.trim()) != file || administration.starts_with(root) {
        return None;
    }
    let common = fs::read_to_string(administration.join("commondir")).ok()?;
    let common = administration.join(common.trim()).canonicalize().ok()?;
    // The administration of a worktree always lies in its repository.
    (common.join("HEAD").is_file() && administration.starts_with(common.join("worktrees")))
        .then_some(common)
}

#[cfg(test)]
mod tests;
