//! Files that are hidden although they lie where the command may read: something empty is mounted over each of them.
//!
//! It can be read: development servers and test runners read each `.env` and walk through each folder that they find,
//! and end where they may not. What writes to repositories may not read it, for it would record that the file is empty.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode as FileMode, OFlags, ResolveFlags};

use super::{During, SetupError, clone_opened, cover_opened, file_type, open};
use crate::command::GitAccess;
use crate::helper::raw;
use crate::layers::Step;
use crate::policy::Policy;

const HIDING_FILE: &str = "/.hidden-file";

const HIDING_DIRECTORY: &str = "/.hidden-directory";

pub(super) struct Masks {
    file: OwnedFd,
    directory: OwnedFd,
}

impl Masks {
    /// Makes the two in the new root, which is closed to the command later.
    pub(super) fn prepare(git: GitAccess) -> io::Result<Self> {
        File::create(HIDING_FILE)?;
        fs::create_dir(HIDING_DIRECTORY)?;
        let (file, directory) = match git {
            GitAccess::ReadOnly | GitAccess::ExistingReadOnly => (0o444, 0o555),
            GitAccess::Write | GitAccess::Create | GitAccess::Nested => (0o000, 0o000),
        };
        for (path, rights) in [(HIDING_FILE, file), (HIDING_DIRECTORY, directory)] {
            fs::set_permissions(path, Permissions::from_mode(rights))?;
        }
        Ok(Self {
            file: open(HIDING_FILE)?,
            directory: open(HIDING_DIRECTORY)?,
        })
    }

    pub(super) fn cover(&self, policy: &Policy) -> Result<(), SetupError> {
        let command = &policy.command;
        for path in &command.hidden {
            let mut seen = command.read_write.iter().chain(&command.read_only);
            let root = seen.find(|root| path.starts_with(root));
            // What is seen through nothing that was asked for may still lie in the system.
            let root = root.map_or(Path::new("/"), PathBuf::as_path);
            let below = path.strip_prefix(root).unwrap_or(path);
            self.cover_below(root, below)
                .during(Step::Mounts, path.display())?;
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
