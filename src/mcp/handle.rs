//! The way to a server: for whoever has something to ask of it.

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::service::{Peer, RoleClient};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::audience::Voice;
use super::catalog::Catalog;
use super::client::Followers;
use super::elicitation::Elicitations;
use super::roots::Roots;
use super::sign_in::SignIn;
use super::subscriptions::Subscriptions;
use crate::config::McpServerConfig;
use crate::protocol::answer::McpServer;
use crate::protocol::mcp::McpListName;
use crate::tool::{Registry, Tool};

/// A way to a server.
#[derive(Clone)]
pub(super) struct Handle {
    pub(super) name: Arc<str>,
    pub(super) config: Arc<McpServerConfig>,
    pub(super) link: watch::Receiver<Link>,
    pub(super) followers: Followers,
    pub(super) elicitations: Elicitations,
    pub(super) stop: CancellationToken,
    pub(super) voice: Voice,
    pub(super) subscriptions: Subscriptions,
    pub(super) roots: Roots,
    /// What it has besides tools.
    pub(super) catalog: Arc<Mutex<Arc<Catalog>>>,
    /// Its row of `mcp:list`.
    pub(super) row: Arc<Mutex<McpServer>>,
    /// Whether it has no tools any more, whatever it still says. Held while they are put where the model sees them.
    pub(super) is_withdrawn: Arc<Mutex<bool>>,
    /// Where its tools go.
    pub(super) registry: Arc<Registry>,
    /// How it is signed in at; `None` for a program, and where a header of the operator's answers.
    pub(super) sign_in: Option<Arc<SignIn>>,
}

/// Whether calls can be made.
#[derive(Clone, Debug)]
pub(super) enum Link {
    /// Not now, but soon.
    Waiting,
    Up(Life),
    /// Not any more, for this reason.
    Down(String),
}

/// One connection to the server.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) peer: Peer<RoleClient>,
    /// Cancelled by a call that found it broken. Its own, so that no call ends the connection after it.
    pub(super) broken: CancellationToken,
    /// Cancelled when its user signs out.
    pub(super) signed_out: CancellationToken,
}

impl Handle {
    /// Replaces its tools, unless it was ended.
    pub(super) fn show(&self, tools: Vec<Arc<dyn Tool>>) {
        self.replace(&self.is_withdrawn.lock(), tools);
    }

    /// Ends the server. Its tools are gone when this returns, so that another one may have its name at once.
    pub(super) fn end(&self) {
        self.stop.cancel();
        let mut is_withdrawn = self.is_withdrawn.lock();
        self.replace(&is_withdrawn, Vec::new());
        *is_withdrawn = true;
    }

    pub(super) fn replace(&self, is_withdrawn: &bool, tools: Vec<Arc<dyn Tool>>) {
        if !*is_withdrawn {
            self.registry.replace(&format!("mcp:{}", self.name), tools);
        }
    }

    /// Replaces what it has besides tools; returns which lists are others than before.
    pub(super) fn put(&self, catalog: Catalog) -> Vec<McpListName> {
        let mut known = self.catalog.lock();
        let changes = catalog.changes(&known);
        *known = Arc::new(catalog);
        changes
    }

    /// Returns what the server has besides tools.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.lock())
    }

    /// Ends the connection that there is once its user has signed out, so that another one is made.
    pub(super) fn signed_out(&self) {
        if let Link::Up(life) = &*self.link.borrow() {
            life.signed_out.cancel();
        }
    }

    /// Has a server that waits for its user look whether another process has signed in.
    pub(super) fn seek(&self) {
        if let Some(sign_in) = &self.sign_in {
            sign_in.seek();
        }
    }

    /// Returns the server's row of `mcp:list`.
    pub(super) fn row(&self) -> McpServer {
        self.row.lock().clone()
    }

    /// Waits for a connection.
    pub(super) async fn life(&self) -> Result<Life, String> {
        let mut link = self.link.clone();
        let settled = link
            .wait_for(|link| !matches!(link, Link::Waiting))
            .await
            .map(|link| link.clone());
        match settled {
            Ok(Link::Up(life)) => Ok(life),
            Ok(Link::Down(why)) => {
                self.seek();
                Err(why)
            }
            Ok(Link::Waiting) | Err(_) => Err("it was stopped".to_owned()),
        }
    }
}
