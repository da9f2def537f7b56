//! Failures of a connection in words: which server, what happened; never a path, query or key.

use std::error::Error;
use std::time::Duration;

use reqwest::Url;

use crate::provider::error::safe_message;
use crate::provider::{ErrorKind, ProviderError};

/// The error for a request that got no answer.
pub(super) fn before_answer(url: &str, error: &reqwest::Error) -> ProviderError {
    let (place, cause) = (place(url), cause(error));
    let (kind, message) = if error.is_timeout() {
        let message = format!("failed to connect to {place} in time");
        (ErrorKind::Timeout, message)
    } else if error.is_builder() {
        let message = format!("failed to build the request to {place}, check base_url: {cause}");
        (ErrorKind::NotConfigured, message)
    } else if error.is_connect() {
        let message = format!("failed to connect to {place}: {cause}");
        (ErrorKind::Connect, message)
    } else {
        let message = format!("the connection to {place} broke before the answer: {cause}");
        (ErrorKind::Connect, message)
    };
    ProviderError::new(kind, message)
}

/// The error for an answer that broke off.
pub(super) fn within_answer(error: &reqwest::Error) -> ProviderError {
    ProviderError::new(
        ErrorKind::IncompleteStream,
        format!("the connection broke within the answer: {}", cause(error)),
    )
}

/// The error for what took longer than `limit`.
pub(super) fn too_slow(url: &str, what: &str, limit: Duration) -> ProviderError {
    ProviderError::new(
        ErrorKind::Timeout,
        format!(
            "{what} from {} within {} s",
            place(url),
            limit.as_secs_f64()
        ),
    )
}

/// Host and port of a URL.
pub(super) fn place(url: &str) -> String {
    let place = |url: Url| {
        Some(format!(
            "{}:{}",
            url.host_str()?,
            url.port_or_known_default()?
        ))
    };
    let parsed = Url::parse(url).ok();
    parsed
        .and_then(place)
        .unwrap_or_else(|| "the provider".to_owned())
}

/// The innermost cause, which is the one that says something: "connection refused".
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if innermost.source().is_none() && std::ptr::addr_eq(innermost, error) {
        // reqwest prints the URL behind its own words.
        return "the request could not be made".to_owned();
    }
    safe_message(&innermost.to_string().to_lowercase())
}
