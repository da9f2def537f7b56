//! Sign-ins of the same user in other processes, such as `outrigger chat` beside an editor's agent: what these bring is in the
//! vault, and nobody rings for it.

use std::time::Duration;

use tokio::sync::watch;

use super::SignIn;
use crate::message::Severity;
use crate::notices::To;

/// How often whoever waits for a sign-in looks for one of another process, where that costs nothing: soon for a person who comes
/// back from there. Where it may cost a question of the system, somebody has to [seek](SignIn::seek) it.
const LOOK: Duration = Duration::from_secs(2);

/// What a sign-in is waited for.
pub(in crate::mcp) struct Waits {
    /// What the server did not take, or found too little.
    pub(super) refused: Option<String>,
    /// Which rights it wants.
    pub(super) wanted: Vec<String>,
    /// The sign-ins here.
    pub(super) done: watch::Receiver<u64>,
}

impl SignIn {
    /// Returns what is waited for by whoever has no connection. What ends from here on is seen.
    pub(in crate::mcp) async fn waits(&self) -> Waits {
        let mut done = self.done.subscribe();
        done.mark_unchanged();
        let refused = self.held.lock().await.access().map(str::to_owned);
        Waits {
            refused,
            wanted: Vec::new(),
            done,
        }
    }

    /// Waits until somebody has signed in, here or in another process.
    pub(in crate::mcp) async fn signed_in(&self, mut waits: Waits) {
        let often = self.all.vault.is_worth_a_look();
        loop {
            let due = async {
                match often {
                    true => tokio::time::sleep(LOOK).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = waits.done.changed() => return,
                () = self.sought.notified() => {}
                () = due => {}
            }
            if self.look(waits.refused.as_deref(), &waits.wanted).await {
                return self.close_what_is_over().await;
            }
        }
    }

    /// Has whoever waits look now: somebody asks for the server.
    pub(in crate::mcp) fn seek(&self) {
        self.sought.notify_waiters();
    }

    /// Returns whether another process has signed in, where nobody has here.
    pub(in crate::mcp) async fn is_done_elsewhere(&self) -> bool {
        let is_here = self.held.lock().await.access().is_some();
        if is_here || !self.look(None, &[]).await {
            return false;
        }
        self.close_what_is_over().await;
        self.done.send_modify(|done| *done += 1);
        true
    }

    /// Looks for another token than one, with these rights.
    async fn look(&self, refused: Option<&str>, wanted: &[String]) -> bool {
        let mut held = self.held.lock().await;
        held.takes_newer(self).await;
        held.access().is_some() && held.access() != refused && held.has(wanted)
    }

    /// Ends the sign-in that is open here, where there is what it is for.
    async fn close_what_is_over(&self) {
        let mut open = self.pending.lock().await;
        // One for more rights is over where these are there.
        let more = open.as_ref().filter(|pending| pending.asked.more);
        let more = more.map(|pending| pending.scopes.as_slice());
        let is_over = self.held.lock().await.has(more.unwrap_or_default());
        let Some(pending) = open.take_if(|_| is_over) else {
            return;
        };
        self.all.close(&pending.state);
        let (name, host) = (&self.server, &pending.asked.host);
        let message = format!("signed in to the MCP server `{name}` at {host}, in another process");
        let (severity, code) = (Severity::Info, "mcp_signed_in");
        self.notices.send(To::Operators, severity, code, message);
    }
}
