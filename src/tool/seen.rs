//! What a conversation has seen of files, so that it does not undo what others did to them.
//!
//! A file is remembered by a hash of its content, not by time and size: two writes within one tick of the file system's
//! clock look alike by those, and a file that was merely touched does not.

use std::collections::HashMap;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// Most files remembered; the one seen longest ago is forgotten first. About 1 MiB at most.
const MAX_FILES: usize = 4096;

/// The state of each file as the conversation last read or wrote it.
///
/// The lock is held for a look-up, never across an await.
#[derive(Debug, Default)]
pub struct SeenFiles {
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// Each with the number of the sighting, by which the oldest is known.
    files: HashMap<String, (Fingerprint, u64)>,
    clock: u64,
}

/// The content of a file as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint of a whole file's content.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// Returns the SHA-256.
    pub fn hash(&self) -> [u8; 32] {
        self.0
    }

    /// Returns the SHA-256 in hexadecimal.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl SeenFiles {
    /// Returns what the file was like when last seen; `None` where it never was.
    ///
    /// `file` is the file's identity, as in [`Located::identity`](crate::sandbox::paths::Located::identity).
    pub fn recall(&self, file: &str) -> Option<Fingerprint> {
        let memory = self.memory.lock();
        memory.files.get(file).map(|(fingerprint, _)| *fingerprint)
    }

    /// Remembers what the file is like now.
    pub fn remember(&self, file: &str, fingerprint: Fingerprint) {
        let mut memory = self.memory.lock();
        memory.clock += 1;
        let at = memory.clock;
        memory.files.insert(file.to_owned(), (fingerprint, at));
        if memory.files.len() > MAX_FILES {
            let oldest = memory.files.iter().min_by_key(|(_, (_, at))| *at);
            if let Some(oldest) = oldest.map(|(file, _)| file.clone()) {
                memory.files.remove(&oldest);
            }
        }
    }

    /// Forgets the file, for it is known to be gone.
    pub fn forget(&self, file: &str) {
        self.memory.lock().files.remove(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sighting_counts_until_it_is_forgotten() {
        let seen = SeenFiles::default();
        assert_eq!(seen.recall("a"), None);
        seen.remember("a", Fingerprint::of(b"1"));
        seen.remember("a", Fingerprint::of(b"2"));
        assert_eq!(seen.recall("a"), Some(Fingerprint::of(b"2")));
        seen.forget("a");
        assert_eq!(seen.recall("a"), None);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes_first() {
        let seen = SeenFiles::default();
        for number in 0..=MAX_FILES {
            seen.remember(&format!("f{number}"), Fingerprint::of(b""));
        }
        assert_eq!(seen.recall("f0"), None);
        assert!(seen.recall("f1").is_some());
        assert!(seen.recall(&format!("f{MAX_FILES}")).is_some());
    }

    #[test]
    fn hex_is_the_usual_sha_256() {
        assert_eq!(
            Fingerprint::of(b"").hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
