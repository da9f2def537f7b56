//! How strongly commands are confined.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How strongly commands are confined, from not at all to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Control of the process tree only; no layer.
    None,
    /// What macOS and Windows have for it, which nobody tried on a real machine: nothing is promised. Only where
    /// [`Settings::unverified`](crate::Settings::unverified) asks for it, never on Linux.
    Unverified,
    /// System calls filtered and resources limited; every file of the user is reachable.
    Limits,
    /// As `Limits`, and Landlock keeps files to the roots.
    Fallback,
    /// As `Fallback`, in namespaces of its own: no view of other processes, a private home and `/tmp`, `.git` pinned.
    Full,
}

impl Mode {
    /// Whether a command can be held to hosts that are decided about one by one ([`Command::hosts`](crate::Command::hosts)).
    pub fn decides_by_hosts(self) -> bool {
        match self {
            Self::Full => true,
            // By a proxy, which is all that such a command can reach.
            Self::Unverified => cfg!(target_os = "macos"),
            Self::Fallback | Self::Limits | Self::None => false,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}
