//! A connection that notes when its client shows a sign of life.
//!
//! What comes is one. So is that a write which had to wait goes on: the client's side has taken what was written before. A
//! client that reads slowly would else be silent for as long as a ping waits behind what it has not read yet.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::LastActivity;

pub(super) struct Watched<S> {
    stream: S,
    activity: Arc<LastActivity>,
    /// Whether the last write has to wait for the client.
    waits: bool,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, activity: Arc<LastActivity>) -> Self {
        Self {
            stream,
            activity,
            waits: false,
        }
    }

    /// Notes how a write went. One that did not have to wait says nothing: the system takes much for a client that is gone.
    fn wrote(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let waited = std::mem::replace(&mut self.waits, written.is_pending());
        if waited && matches!(written, Poll::Ready(Ok(1..))) {
            self.activity.note();
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.activity.note();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_what_waited_is_there_and_one_that_takes_nothing_is_not() {
        let (ours, mut theirs) = duplex(10);
        let activity = Arc::new(LastActivity::default());
        let mut ours = Watched::new(ours, Arc::clone(&activity));
        let began = Instant::now();
        advance(Duration::from_secs(1)).await;
        // The system takes it, whoever is there.
        ours.write_all(b"0123456789").await.unwrap();
        assert_eq!(activity.last(), began);
        assert!(ours.write(b"more").now_or_never().is_none());
        assert_eq!(activity.last(), began);
        theirs.read_exact(&mut [0; 4]).await.unwrap();
        ours.write_all(b"more").await.unwrap();
        let took = Instant::now();
        assert_eq!(activity.last(), took);
        advance(Duration::from_secs(1)).await;
        theirs.write_all(b"hi").await.unwrap();
        ours.read_exact(&mut [0; 2]).await.unwrap();
        assert_eq!(activity.last(), took + Duration::from_secs(1));
    }
}
