//! Notices to all sessions: a server that is ready or gone, a search engine that is down, a provider that was found.

use tokio::sync::broadcast;

use crate::message::{Notice, Severity};
use crate::protocol::event::{Event, McpAuthRequired};

/// Notices that a session may be behind; older ones it misses.
const BACKLOG: usize = 64;

/// What sessions are told.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Something that is no conversation's error.
    Notice(Notice),
    /// An MCP server that asks its user to sign in.
    SignIn(McpAuthRequired),
}

impl From<News> for Event {
    fn from(news: News) -> Self {
        match news {
            News::Notice(notice) => Self::SessionNotice(notice),
            News::SignIn(asked) => Self::McpAuthRequired(asked),
        }
    }
}

/// The way to all sessions; clones lead to the same ones.
#[derive(Clone)]
pub struct Notices(broadcast::Sender<News>);

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
        drop(self.0.send(News::Notice(Notice {
            severity,
            code: code.to_owned(),
            message,
        })));
    }

    /// Sends that a server asks its user to sign in, and logs at whose page. The address in it is for the user alone.
    pub fn sign_in(&self, asked: McpAuthRequired) {
        tracing::info!(
            server = asked.server,
            host = asked.host,
            "an MCP server asks to sign in"
        );
        drop(self.0.send(News::SignIn(asked)));
    }

    /// Receives what is sent from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<News> {
        self.0.subscribe()
    }
}
