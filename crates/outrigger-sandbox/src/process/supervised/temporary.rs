//! The temporary directory of a command that has none of a conversation's.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::policy::PRIVATE;
use crate::{Command, Mode, Shared};

/// The temporary directory of a command that does not run yet, removed when it is dropped. There is none in full mode, whose
/// is in a file system of the command's own.
pub(super) struct UnusedTmp(Option<PathBuf>);

impl UnusedTmp {
    pub(super) fn new(path: Option<PathBuf>, mode: Mode) -> Self {
        Self(path.filter(|_| mode < Mode::Full))
    }

    /// Returns what its helper removes from now on.
    pub(super) fn into_used(mut self) -> Option<PathBuf> {
        self.0.take()
    }
}

impl Drop for UnusedTmp {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            std::fs::remove_dir(path).unwrap_or_default();
        }
    }
}

/// Returns the command's temporary directory, made unless it is to be in a file system of the command's own.
pub(super) fn private_tmp(
    shared: &Shared,
    command: &Command,
    mode: Mode,
) -> io::Result<Option<PathBuf>> {
    let given = || command.read_write.iter().chain(&command.read_only);
    let is_own = |place: &&Path| !given().any(|given| place.starts_with(given));
    let parent = match mode {
        // The first that is not the system's, as for an MCP server which was given `/tmp`.
        Mode::Full => PRIVATE.iter().map(Path::new).find(is_own),
        _ => Some(shared.settings.temporary.as_path()),
    };
    let Some(parent) = parent.filter(|_| command.private_tmp) else {
        return Ok(None);
    };
    let number = getrandom::u64().map_err(io::Error::other)?;
    let path = parent.join(format!("outrigger-{number:016x}"));
    if mode < Mode::Full {
        // Fails if it exists: nobody can have put one there for us.
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            let hint = "TMPDIR has to name a folder that is there and can be written";
            io::Error::new(error.kind(), format!("{}: {error}; {hint}", path.display()))
        })?;
    }
    Ok(Some(path))
}
