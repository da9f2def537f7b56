//! The bytes of an answer with a limit on silence between them.
//!
//! The limit is on bytes, not on events: a comment is a sign of life. reqwest's own read time-out
//! belongs to a client, which instances share.

use std::time::Duration;

use futures::stream::{self, StreamExt};
use reqwest::Response;

use super::fault;
use crate::provider::body::ByteStream;
use crate::provider::{ErrorKind, ProviderError};

/// Returns the bytes of an answer. Fails when the connection breaks or nothing comes for the limit.
pub(super) fn bounded(response: Response, limit: Duration) -> ByteStream {
    stream::try_unfold(response, move |mut response| async move {
        match tokio::time::timeout(limit, response.chunk()).await {
            Ok(Ok(read)) => Ok(read.map(|read| (read, response))),
            Ok(Err(error)) => Err(fault::within_answer(&error)),
            Err(_) => Err(ProviderError::new(
                ErrorKind::Timeout,
                format!("the provider sent nothing for {} s", limit.as_secs_f64()),
            )),
        }
    })
    .boxed()
}
