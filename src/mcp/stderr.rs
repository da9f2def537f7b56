//! The end of what a server writes to its standard error, for people who ask why it failed.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

use parking_lot::Mutex;

/// Bytes kept of what a server wrote last: enough for a stack trace's end.
const KEPT: usize = 4 * 1024;

/// The last bytes of a stream; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail {
    // Held for a copy of some bytes, never across an await.
    bytes: Arc<Mutex<VecDeque<u8>>>,
    /// Cancelled at the stream's end.
    ended: CancellationToken,
}

impl Tail {
    /// Reads a stream to its end in a task of its own, so that its writer never waits.
    pub(super) fn follow(stream: Option<impl AsyncRead + Unpin + Send + 'static>) -> Self {
        let tail = Self::default();
        let kept = tail.clone();
        tokio::spawn(async move {
            let _ended = kept.ended.clone().drop_guard();
            let Some(mut stream) = stream else {
                return;
            };
            let mut buffer = [0; KEPT];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                kept.push(buffer.get(..count).unwrap_or_default());
            }
        });
        tail
    }

    /// Waits until all was read: a program's end is known before its last words are.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    fn push(&self, more: &[u8]) {
        let mut bytes = self.bytes.lock();
        bytes.extend(more);
        let excess = bytes.len().saturating_sub(KEPT);
        bytes.drain(..excess);
    }

    /// What was written last, in lines without controls; empty where nothing was.
    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> = {
            let kept = self.bytes.lock();
            kept.iter().copied().collect()
        };
        let text = crate::terminal_text::shown(&String::from_utf8_lossy(&bytes));
        text.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_long_stream_is_kept_without_controls() {
        let tail = Tail::default();
        for number in 0..2_000 {
            tail.push(format!("line {number}\n").as_bytes());
        }
        tail.push(b"\x1b[31mlast\x1b[0m\x07\n");
        let text = tail.text();
        assert!(text.ends_with("line 1999\nlast"), "{text}");
        assert!(text.len() <= KEPT);
        assert_eq!(Tail::follow(None::<tokio::io::Empty>).text(), "");
    }
}
