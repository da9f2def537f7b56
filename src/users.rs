//! Whose a socket is, and what it may: said by the gate, and handed on to whatever is done for it.
//!
//! A daemon without users has one, whose name is empty and who may do everything. Nothing here reads a token or asks anybody.

pub(crate) mod quota;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
pub use outrigger_store::User;
use tokio_util::sync::CancellationToken;

use crate::message::{Money, TrustLevel};
use crate::protocol::roles::SocketRole;

/// How long the clock is not looked at: it may be set, and a machine may sleep.
const LOOK: Duration = Duration::from_secs(30);

/// Returns what users of one daemon have in common where commands are confined less than fully.
pub(crate) fn not_apart(mode: &str) -> String {
    format!(
        "there are users, and the sandbox is in mode {mode}: commands of one user may reach ports, processes and files of another one's commands"
    )
}

/// What somebody may do who was let in.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Whose the sessions are that it reaches.
    pub user: User,
    /// The most that its sockets may do on a session.
    pub role: SocketRole,
    /// Whether it may also do what is about the daemon: its configuration, figures, providers and MCP servers.
    pub is_operator: bool,
    /// The folders below which its projects are, of those that the operator allows; all of those where there is none.
    pub roots: Option<Vec<PathBuf>>,
    /// The most that may be done without asking.
    pub most_trust: TrustLevel,
    /// The most that its user may spend in a day. It counts for the user as long as anybody has it.
    pub day: Option<Arc<Money>>,
    /// The most bytes that its user may keep. It counts as the day does.
    pub disk: Option<Arc<u64>>,
    /// When it ends.
    pub ends: Option<Timestamp>,
    /// Cancelled when it was taken back.
    pub revoked: CancellationToken,
}

/// Returns whether a path leads nowhere up.
pub(crate) fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    parts.all(|part| part != Component::ParentDir)
}

/// Why a grant counts no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

impl Over {
    /// Returns the code and the reason with which its sockets are closed.
    pub(crate) fn close(self) -> (u16, &'static str) {
        match self {
            Self::Expired => (4004, "token_expired"),
            Self::Revoked => (4005, "token_revoked"),
        }
    }
}

impl Default for Grant {
    fn default() -> Self {
        Self::of_the_daemon(SocketRole::Driver)
    }
}

impl Grant {
    /// Returns that of whoever has the daemon's own token, or one for a role.
    pub fn of_the_daemon(role: SocketRole) -> Self {
        Self {
            user: User::default(),
            role,
            is_operator: true,
            roots: None,
            most_trust: TrustLevel::Autonomous,
            day: None,
            disk: None,
            ends: None,
            revoked: CancellationToken::new(),
        }
    }

    /// Returns whether it may look at all sessions and end the daemon. The one place that says so.
    pub(crate) fn may_operate(&self) -> bool {
        self.is_operator && self.role == SocketRole::Driver
    }

    /// Returns whether a folder may be a project, as far as this says.
    pub(crate) fn allows_folder(&self, folder: &Path) -> bool {
        // A path that goes up again is below nothing.
        let is_below = |root: &PathBuf| folder.starts_with(root) && is_plain(folder);
        let roots = self.roots.as_ref();
        roots.is_none_or(|roots| roots.iter().any(is_below))
    }

    /// Waits until it counts no more.
    pub(crate) async fn over(&self) -> Over {
        let ended = async {
            let Some(ends) = self.ends else {
                return std::future::pending().await;
            };
            loop {
                let left = Timestamp::now().duration_until(ends);
                if left.is_negative() || left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.unsigned_abs().min(LOOK)).await;
            }
        };
        tokio::select! {
            () = self.revoked.cancelled() => Over::Revoked,
            () = ended => Over::Expired,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_for_some_folders_or_for_all() {
        let some = Grant {
            roots: Some(vec![PathBuf::from("/work/anna")]),
            ..Grant::default()
        };
        for (folder, expected) in [
            ("/work/anna", true),
            ("/work/anna/deep", true),
            ("/work/annabel", false),
            ("/work/anna/../ben", false),
            ("/work", false),
            ("/", false),
        ] {
            assert_eq!(some.allows_folder(Path::new(folder)), expected, "{folder}");
        }
        assert!(Grant::default().allows_folder(Path::new("/")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_grant_is_over_when_it_ends_or_is_taken_back() {
        let past = Grant {
            ends: Some(Timestamp::UNIX_EPOCH),
            ..Grant::default()
        };
        assert_eq!(past.over().await, Over::Expired);
        let taken = Grant::default();
        taken.revoked.cancel();
        assert_eq!(taken.over().await, Over::Revoked);
    }
}
