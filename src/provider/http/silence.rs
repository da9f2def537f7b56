//! The bytes of an answer with a limit on silence between them.
//!
//! The limit is on bytes, not on events: a comment is a sign of life. reqwest's own read time-out
//! belongs to a client, which instances share.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, Stream, StreamExt};
use reqwest::Response;
use tokio::time::{Instant, Sleep};

use super::fault;
use crate::provider::{ErrorKind, ProviderError};

/// The bytes of an answer. Fails when the connection breaks or nothing comes for the limit.
pub(super) struct Bounded {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    limit: Duration,
    /// When bytes came last. The timer is moved only when it fires, not at each read.
    last: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Bounded {
    /// Reads a response's body.
    pub(super) fn new(response: Response, limit: Duration) -> Self {
        Self {
            bytes: response.bytes_stream().boxed(),
            limit,
            last: Instant::now(),
            timer: None,
        }
    }

    /// Waits until the limit is over, counted from the last bytes.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.last.checked_add(self.limit) else {
            return Poll::Pending;
        };
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl Stream for Bounded {
    type Item = Result<Bytes, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.bytes.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(read))) => {
                self.last = Instant::now();
                Poll::Ready(Some(Ok(read)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(fault::within_answer(&error)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => self.poll_silence(cx).map(|()| {
                let limit = self.limit.as_secs_f64();
                Some(Err(ProviderError::new(
                    ErrorKind::Timeout,
                    format!("the provider sent nothing for {limit} s"),
                )))
            }),
        }
    }
}
