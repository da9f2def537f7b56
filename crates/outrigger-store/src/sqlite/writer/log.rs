//! The log of changes (`-wal`), which is taken into the file from time to time: it grows for as long as somebody reads
//! what is in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::super::file;
use super::Writer;

/// From how many bytes on it is taken into the file, and cut, while nothing else is to do, and from how many on at once.
const CHECKPOINT: u64 = 4 * 1024 * 1024;
const CHECKPOINT_NOW: u64 = 64 * 1024 * 1024;

/// After which time it is tried again, where somebody read what is in it: the attempt waits a second for them.
const CUT_AGAIN: Duration = Duration::from_secs(5);

/// What is known of it.
#[derive(Default)]
pub(super) struct Log {
    /// Its bytes, when it was looked at last.
    pub(super) bytes: Arc<AtomicU64>,
    /// When it is tried again to cut it.
    cut_again: Option<Instant>,
}

impl Log {
    /// Returns after which time it is tried again to cut it.
    pub(super) fn cut_again(&self) -> Option<Duration> {
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        self.cut_again.map(until)
    }
}

impl Writer {
    /// Takes the log into the file and cuts it, where it is long and nothing waits.
    pub(super) fn checkpoint(&mut self) {
        let bytes = self.measure_log();
        if bytes < CHECKPOINT {
            self.log.cut_again = None;
            return;
        }
        if self.log.cut_again().is_some_and(|wait| !wait.is_zero()) {
            return;
        }
        if bytes < CHECKPOINT_NOW && !self.room.is_empty() {
            return;
        }
        self.log.cut_again = None;
        let Some(connection) = &self.connection else {
            return;
        };
        let cut = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        // It says whether somebody still reads what is in it.
        let is_read = cut.unwrap_or_else(|error: rusqlite::Error| {
            tracing::debug!(%error, "the log of changes stays");
            true
        });
        if is_read {
            self.log.cut_again = Instant::now().checked_add(CUT_AGAIN);
        }
        self.measure_log();
    }

    fn measure_log(&self) -> u64 {
        let log = std::fs::metadata(file::with(&self.path, "-wal"));
        let bytes = log.map_or(0, |it| it.len());
        self.log.bytes.store(bytes, Ordering::Relaxed);
        bytes
    }
}
