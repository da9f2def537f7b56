//! A command's private temporary directory.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory only this user can enter. The helper removes it when the command's tree is dead; dropping this removes
/// nothing, since the command may still be dying.
#[derive(Debug)]
pub(super) struct Private {
    path: PathBuf,
}

impl Private {
    /// Makes one with a random name.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        let number = getrandom::u64().map_err(io::Error::other)?;
        let path = parent.join(format!("outrigger-{number:016x}"));
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
