//! Files that are hidden although they lie where the command may read.
//!
//! Something without any access right is mounted over each of them. The command gets "permission denied", which says
//! more than an empty file would.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode as FileMode, OFlags, ResolveFlags};

use super::{During, SetupError, clone_opened, cover_opened, file_type, open};
use crate::sandbox::helper::raw;
use crate::sandbox::layers::Step;
use crate::sandbox::policy::Policy;

/// Where the system keeps what root alone may read, and so a command when the daemon runs as root. The rest of what is
/// seen of the system (`/usr`, `/opt`) is programs, and too much to look through for each command.
const SYSTEM_SETTINGS: [&str; 2] = ["/etc", "/usr/local/etc"];

/// Most entries of them that are looked at: a system has one or two thousand. A folder that is not looked into is
/// hidden.
const MAX_ENTRIES: usize = 50_000;

/// Deepest folder of them looked into.
const MAX_DEPTH: usize = 32;

const HIDING_FILE: &str = "/.hidden-file";

const HIDING_DIRECTORY: &str = "/.hidden-directory";

/// An unreadable file and an unreadable directory.
pub(super) struct Masks {
    file: OwnedFd,
    directory: OwnedFd,
}

impl Masks {
    /// Makes the two in the new root, which is closed to the command later.
    pub(super) fn prepare() -> Result<Self, SetupError> {
        make_masks().during(Step::Mounts, "preparing what hides files")
    }

    /// Covers the hidden paths of the policy, and the system's secrets.
    pub(super) fn cover(&self, policy: &Policy) -> Result<(), SetupError> {
        let seen = || policy.read_write.iter().chain(&policy.read_only);
        for path in &policy.hidden {
            // What is seen through nothing that was asked for may still lie in the system.
            let root = seen().find(|root| path.starts_with(root));
            let root = root.map_or(Path::new("/"), PathBuf::as_path);
            let below = path.strip_prefix(root).unwrap_or(path);
            self.cover_below(root, below)
                .during(Step::Mounts, path.display())?;
        }
        if rustix::process::geteuid().is_root() {
            for path in system_secrets() {
                self.cover_below(Path::new("/"), path.strip_prefix("/").unwrap_or(&path))
                    .during(Step::Mounts, path.display())?;
            }
        }
        Ok(())
    }

    /// Covers a path below a directory. One that does not exist, or leads through a link, is not there to be hidden:
    /// what a link names is hidden by its own path.
    fn cover_below(&self, root: &Path, below: &Path) -> io::Result<()> {
        let root = open(root)?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let place = match rustix::fs::openat2(&root, below, flags, FileMode::empty(), resolve) {
            Ok(place) => place,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mask = if file_type(&place)? == FileType::Directory {
            &self.directory
        } else {
            &self.file
        };
        let mount = clone_opened(mask)?;
        raw::set_mount_attributes(mount.as_fd(), libc::MOUNT_ATTR_RDONLY, false)?;
        cover_opened(&mount, &place)
    }
}

fn make_masks() -> io::Result<Masks> {
    File::create(HIDING_FILE)?;
    fs::create_dir(HIDING_DIRECTORY)?;
    for path in [HIDING_FILE, HIDING_DIRECTORY] {
        fs::set_permissions(path, Permissions::from_mode(0o000))?;
    }
    Ok(Masks {
        file: open(HIDING_FILE)?,
        directory: open(HIDING_DIRECTORY)?,
    })
}

/// What of the system's settings is not for everybody: the daemon's root is the owner of all of it, whatever rights it
/// gave up. A list of names would lack the next one.
fn system_secrets() -> Vec<PathBuf> {
    let mut left = MAX_ENTRIES;
    let mut found = Vec::new();
    for settings in SYSTEM_SETTINGS {
        closed_below(Path::new(settings), 0, &mut left, &mut found);
    }
    found
}

fn closed_below(folder: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) if depth < MAX_DEPTH => entries,
        Ok(_) => return found.push(folder.to_owned()),
        Err(_) => return,
    };
    for entry in entries.flatten() {
        if *left == 0 {
            return found.push(folder.to_owned());
        }
        *left -= 1;
        // Of the entry itself; what a link names has a name of its own.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let mode = FileMode::from_raw_mode(metadata.mode());
        if metadata.is_dir() && mode.contains(FileMode::XOTH) {
            closed_below(&entry.path(), depth + 1, left, found);
        } else if metadata.is_dir() || (metadata.is_file() && !mode.contains(FileMode::ROTH)) {
            found.push(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
