//! Where the chat's daemon is.

use secrecy::SecretString;

/// Where the daemon is.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// The WebSocket, e.g. `ws://127.0.0.1:4517/ws`.
    pub(super) url: String,
    /// The token, where there is one.
    pub(super) token: Option<SecretString>,
    /// Whether a daemon that goes away is waited for.
    pub(super) outlives_daemon: bool,
}
