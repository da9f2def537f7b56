//! What goes wrong between the daemon and a provider, in one type.
//!
//! Classification of statuses, bodies and errors inside a stream lives here, for all wire formats:
//! vendors borrow each other's words. Whether to try again is `retry`'s to say.

use std::time::Duration;

/// A provider's failure, safe to show: no key, no URL with credentials, no stack.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What sort of failure it is.
    pub kind: ErrorKind,
    /// The provider's own message where it sent one, at most 2 KiB.
    pub message: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's own error type, e.g. `overloaded_error`.
    pub error_type: Option<String>,
    /// The provider's own code, numbers as text.
    pub code: Option<String>,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
}

impl ProviderError {
    /// An error without status, type, code or delay.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            error_type: None,
            code: None,
            retry_after: None,
        }
    }
}

/// What sort of failure it is. A kind exists where somebody acts on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// No connection: refused, reset before the headers, no such host, TLS.
    Connect,
    /// Too slow: connecting, first byte, or silence.
    Timeout,
    /// 429 and its like.
    RateLimit,
    /// 529, 503 and errors that say so.
    Overloaded,
    /// Other 5xx.
    Server,
    /// The stream ended before its end marker.
    IncompleteStream,
    /// The answer is not what the wire format allows: HTML, garbage, a broken frame.
    Protocol,
    /// 400, 404 on the path, 422: the request itself.
    InvalidRequest,
    /// 401: the key is missing or wrong.
    Authentication,
    /// 403: the key may not do this.
    Permission,
    /// Money: credits, billing, a spend limit.
    Quota,
    /// The model does not exist there.
    NotFound,
    /// 413: the request is too large.
    TooLarge,
    /// The conversation does not fit the model's context.
    ContextLength,
    /// The provider's filter refused the input.
    ContentFilter,
    /// 409.
    Conflict,
    /// The model has no tools.
    NoTools,
    /// The provider instance lacks its key or another setting.
    NotConfigured,
    /// An error that says nothing.
    Unknown,
}
