//! Notices to all sessions: a server that is ready or gone, a search engine that is down, a provider that was found.

use tokio::sync::broadcast;

use crate::message::{Notice, Severity};

/// Notices that a session may be behind; older ones it misses.
const BACKLOG: usize = 64;

/// The way to all sessions; clones lead to the same ones.
#[derive(Clone)]
pub struct Notices(broadcast::Sender<Notice>);

impl Default for Notices {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}

impl Notices {
    /// Logs a notice and sends it to all sessions.
    pub fn send(&self, severity: Severity, code: &str, message: String) {
        match severity {
            Severity::Info => tracing::info!(code, "{message}"),
            Severity::Warning | Severity::Error => tracing::warn!(code, "{message}"),
        }
        // Nobody may be connected.
        drop(self.0.send(Notice {
            severity,
            code: code.to_owned(),
            message,
        }));
    }

    /// Receives what is sent from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.0.subscribe()
    }
}
