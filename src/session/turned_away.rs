//! Why somebody does not get a session.

use crate::protocol::SessionCode;
use crate::protocol::event::SessionError;

/// Why there is no room for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSession {
    /// The daemon has as many as it may.
    #[error(
        "the daemon has as many sessions as it may (server.max_sessions); close one, or wait until one has ended"
    )]
    TooMany,
    /// The user has as many as one may.
    #[error(
        "this user has as many sessions at once as one may (auth.limits.sessions); close one, or wait until one has ended"
    )]
    Quota,
}

impl From<NoSession> for SessionError {
    fn from(why: NoSession) -> Self {
        let code = match why {
            NoSession::TooMany => SessionCode::RateLimited,
            NoSession::Quota => SessionCode::QuotaExceeded,
        };
        Self::new(code, why.to_string())
    }
}

/// Returns why a session is not for a socket whose token is for other folders than the one that it works in.
pub(crate) fn elsewhere() -> SessionError {
    SessionError::new(
        SessionCode::Forbidden,
        "that session works in a folder that this socket's token is not for",
    )
}
