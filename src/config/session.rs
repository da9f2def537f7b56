//! What a session keeps, and what its client may not change.

use std::time::Duration;

use super::check;

/// What a session keeps.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// How long a session outlives its last socket.
    pub resume_grace: Duration,
    /// Bytes of numbered events kept for a resume.
    pub buffer_bytes: usize,
    /// Keys, e.g. `chat.trust_level`, that no client may loosen.
    pub locked: Vec<String>,
}

impl SessionConfig {
    /// Whether a client may not change a key of `[chat]`. `providers` locks the choice of a provider too.
    pub fn is_locked(&self, key: &str) -> bool {
        let is_named = |name: &str| self.locked.iter().any(|locked| locked == name);
        is_named(key) || (key == "chat.provider" && self.locks_providers())
    }

    /// Whether a client may neither configure a provider nor choose one.
    pub fn locks_providers(&self) -> bool {
        self.locked.iter().any(|locked| locked == check::PROVIDERS)
    }
}
