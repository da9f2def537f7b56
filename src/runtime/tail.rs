//! The end of what a program writes to its standard error, for people who ask why it failed.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::sync::CancellationToken;

/// The last bytes of a stream; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    // Held for a copy of some bytes, never across an await.
    bytes: Arc<Mutex<VecDeque<u8>>>,
    /// Cancelled at the stream's end.
    ended: CancellationToken,
}

impl Tail {
    /// Reads a stream to its end in a task of its own, so that its writer never waits, and keeps so many bytes.
    pub(crate) fn follow(
        stream: Option<impl AsyncRead + Unpin + Send + 'static>,
        most: usize,
    ) -> Self {
        let tail = Self::default();
        let kept = tail.clone();
        tokio::spawn(async move {
            let _ended = kept.ended.clone().drop_guard();
            let Some(mut stream) = stream else {
                return;
            };
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                let mut bytes = kept.bytes.lock();
                bytes.extend(buffer.get(..count).unwrap_or_default());
                let excess = bytes.len().saturating_sub(most);
                bytes.drain(..excess);
            }
        });
        tail
    }

    /// Waits until all was read: a program's end is known before its last words are.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns what was written last, controls included; empty where nothing was.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes.lock().make_contiguous()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_long_stream_is_kept() {
        let text: String = (0..2_000)
            .map(|number| format!("line {number}\n"))
            .collect();
        let stream = std::io::Cursor::new(text.into_bytes());
        let tail = Tail::follow(Some(stream), 1_000);
        tail.ended().await;
        let text = tail.text();
        assert!(text.ends_with("line 1998\nline 1999\n"), "{text}");
        assert_eq!(text.len(), 1_000);
        assert_eq!(Tail::follow(None::<tokio::io::Empty>, 1_000).text(), "");
    }
}
