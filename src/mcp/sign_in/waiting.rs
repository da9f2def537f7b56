//! Calls that wait until somebody has signed in. Where they wait is the connection, which knows their requests; whose time limit
//! stands still is the call's own affair (`crate::mcp::tool`).

use std::sync::Arc;

use rmcp::model::RequestId;

use super::{SignIn, WAIT_FOR};
use crate::protocol::event::McpAuthRequired;

/// A call waits while this lives.
pub(super) struct Waiting {
    sign_in: Arc<SignIn>,
    request: RequestId,
}

impl SignIn {
    /// Notes that a call waits.
    pub(super) fn begin_to_wait(self: &Arc<Self>, request: &RequestId) -> Waiting {
        self.waiting.send_modify(|all| all.push(request.clone()));
        Waiting {
            sign_in: Arc::clone(self),
            request: request.clone(),
        }
    }

    /// Waits until a call waits, or does so no more.
    pub(in crate::mcp) async fn until(&self, waits: bool, request: &RequestId) {
        let mut waiting = self.waiting.subscribe();
        // The sender is here.
        drop(waiting.wait_for(|all| all.contains(request) == waits).await);
    }

    /// What a call says that has waited for nothing; `None` where it does not wait.
    pub(in crate::mcp) fn is_awaited(&self, request: &RequestId) -> Option<String> {
        let waits = self.waiting.borrow().contains(request);
        let asked = self.asks().filter(|_| waits)?;
        Some(open_at(&asked))
    }
}

/// What a call says for which nobody has signed in.
pub(super) fn nobody_came(asked: &McpAuthRequired) -> String {
    format!(
        "nobody has signed in as the server wants it within {} minutes; {}",
        WAIT_FOR.as_secs() / 60,
        open_at(asked)
    )
}

fn open_at(asked: &McpAuthRequired) -> String {
    format!(
        "a sign-in is open at {} until {}, and the call can be made again once somebody has signed in there",
        asked.host, asked.expires_at
    )
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let waiting = &self.sign_in.waiting;
        waiting.send_modify(|all| all.retain(|it| *it != self.request));
    }
}
