//! A command's private temporary directory.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where temporary directories are in full mode: file systems of the command's own, bounded, gone with it. The first
/// that is not the system's, as for an MCP server which was given `/tmp`.
pub(super) const IN_NAMESPACE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// A path in a directory that nothing has.
pub(super) fn unused(parent: &Path) -> io::Result<PathBuf> {
    let number = getrandom::u64().map_err(io::Error::other)?;
    Ok(parent.join(format!("outrigger-{number:016x}")))
}

/// A directory only this user can enter. The helper removes it when the command's tree is dead; dropping this removes
/// nothing, since the command may still be dying.
#[derive(Debug)]
pub(super) struct Private {
    path: PathBuf,
}

impl Private {
    /// Makes one with a random name.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        let path = unused(parent)?;
        // Fails if it exists: nobody can have put one there for us.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it where nothing was put into it, whatever became of the helper.
    pub(super) fn remove_unused(&self) {
        fs::remove_dir(&self.path).unwrap_or_default();
    }

    /// Whether it is gone, as the helper leaves it.
    pub(super) fn is_gone(&self) -> bool {
        self.path.symlink_metadata().is_err()
    }
}
