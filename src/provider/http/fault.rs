//! Failures of a connection in words: which server, what happened; never a path, query or key.

use std::error::Error;
use std::time::Duration;

use reqwest::Url;

use crate::provider::error::safe_message;
use crate::provider::{ErrorKind, ProviderError};

/// The error for a request that got no answer.
pub(super) fn before_answer(url: &str, error: &reqwest::Error) -> ProviderError {
    let place = place(url);
    let cause = cause(error);
    if error.is_timeout() {
        let message = format!("failed to connect to {place} in time");
        return ProviderError::new(ErrorKind::Timeout, message);
    }
    if error.is_builder() {
        let message = format!("failed to build the request to {place}, check base_url: {cause}");
        return ProviderError::new(ErrorKind::NotConfigured, message);
    }
    let message = if error.is_connect() {
        format!("failed to connect to {place}: {cause}")
    } else {
        format!("the connection to {place} broke before the answer: {cause}")
    };
    ProviderError::new(ErrorKind::Connect, message)
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
    let parsed = Url::parse(url).ok();
    let place = parsed.as_ref().and_then(|url| {
        let host = url.host_str()?;
        let port = url.port_or_known_default()?;
        Some(format!("{host}:{port}"))
    });
    place.unwrap_or_else(|| "the provider".to_owned())
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
