//! How much the file tools write for one session altogether.

use std::sync::atomic::{AtomicU64, Ordering};

/// Most files written: each is synced, and a model that writes more is in a loop.
const MAX_FILES: u64 = 10_000;

const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// What a session has written so far.
#[derive(Debug, Default)]
pub struct WriteQuota {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl WriteQuota {
    /// Takes a file of so many bytes from what is left; returns a text for the model where that is more.
    pub fn take(&self, bytes: u64) -> Result<(), String> {
        // Added first, so that two at once cannot both take what is left; a refused write counts, too.
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if files > MAX_FILES || bytes > MAX_BYTES {
            return Err(format!(
                "this session has written all it may ({MAX_FILES} files, {MAX_BYTES} bytes); the user has to start another"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_bytes_both_count() {
        let quota = WriteQuota::default();
        assert!((0..MAX_FILES).all(|_| quota.take(1).is_ok()));
        assert!(quota.take(1).is_err());
        let quota = WriteQuota::default();
        assert!(quota.take(MAX_BYTES).is_ok());
        assert!(quota.take(1).is_err());
    }
}
