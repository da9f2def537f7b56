//! What of the system's settings is not for everybody, to be hidden from commands when the daemon runs as root.
//!
//! Root is the owner of all of it, and a list of names would lack the next one; so `/etc` is walked. That takes longer
//! than all else that full mode does, so what was found holds for a moment.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::Mode as FileMode;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Where the system keeps what root alone may read. The rest of what is seen of the system (`/usr`, `/opt`) is programs,
/// and too much to look through.
const SYSTEM_SETTINGS: [&str; 2] = ["/etc", "/usr/local/etc"];

/// Most entries of them that are looked at: a system has one or two thousand. A folder that is not looked into is
/// hidden.
const MAX_ENTRIES: usize = 50_000;

const MAX_DEPTH: usize = 32;

const FRESH: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Closed {
    found: Mutex<Option<(Instant, Arc<[PathBuf]>)>>,
}

impl Closed {
    /// The paths to hide; none where the kernel hides them by itself, from an ordinary user.
    pub(super) async fn paths(&self) -> Arc<[PathBuf]> {
        if !rustix::process::geteuid().is_root() {
            return Arc::default();
        }
        let mut found = self.found.lock().await;
        if let Some((when, paths)) = &*found
            && when.elapsed() < FRESH
        {
            return Arc::clone(paths);
        }
        let when = Instant::now();
        // Without an answer the folders are hidden whole.
        let paths = tokio::task::spawn_blocking(find)
            .await
            .unwrap_or_else(|_| SYSTEM_SETTINGS.map(PathBuf::from).into());
        *found = Some((when, Arc::clone(&paths)));
        paths
    }
}

fn find() -> Arc<[PathBuf]> {
    let mut remaining = MAX_ENTRIES;
    let mut found = Vec::new();
    for settings in SYSTEM_SETTINGS {
        closed_below(Path::new(settings), 0, &mut remaining, &mut found);
    }
    found.into()
}

fn closed_below(folder: &Path, depth: usize, remaining: &mut usize, found: &mut Vec<PathBuf>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) if depth < MAX_DEPTH => entries,
        Ok(_) => return found.push(folder.to_owned()),
        Err(_) => return,
    };
    for entry in entries.flatten() {
        if *remaining == 0 {
            return found.push(folder.to_owned());
        }
        *remaining -= 1;
        // Of the entry itself; what a link names has a name of its own.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let mode = FileMode::from_raw_mode(metadata.mode());
        if metadata.is_dir() && mode.contains(FileMode::XOTH) {
            closed_below(&entry.path(), depth + 1, remaining, found);
        } else if metadata.is_dir() || (metadata.is_file() && !mode.contains(FileMode::ROTH)) {
            found.push(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
