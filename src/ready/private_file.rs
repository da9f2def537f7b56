//! A file that only its user may read, removed when its owner is dropped.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// A file of mode 0600.
#[derive(Debug)]
pub struct PrivateFile {
    /// Where it is.
    pub path: PathBuf,
}

impl PrivateFile {
    /// Writes a text and a line end, by rename, so that nobody reads half of it.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub fn write(path: PathBuf, text: &str) -> io::Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options
            .open(&temporary)
            .and_then(|mut file| writeln!(file, "{text}"))
            .and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            // What is left of the attempt, where anything is.
            drop(fs::remove_file(&temporary));
        }
        written.map(|()| Self { path })
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "a file could not be removed");
        }
    }
}
