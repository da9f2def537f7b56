//! NDJSON out of bytes: one frame per line that is not blank.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::stream::{Fuse, Stream, StreamExt};

use super::ProviderError;
use super::body::Frame;
use super::lines::{LineEnd, Lines};
use super::sse::is_whole;

/// The lines of a body, in order. The last one comes too where no line end follows it, unless it
/// was cut.
pub(crate) struct Rows<S> {
    bytes: Fuse<S>,
    lines: Lines,
}

impl<S> Rows<S> {
    /// Reads a body from its beginning.
    pub(crate) fn new(bytes: S) -> Self
    where
        S: Stream<Item = Result<Bytes, ProviderError>>,
    {
        Self {
            bytes: bytes.fuse(),
            lines: Lines::new(LineEnd::Lf),
        }
    }
}

impl<S> Stream for Rows<S>
where
    S: Stream<Item = Result<Bytes, ProviderError>> + Unpin,
{
    type Item = Result<Frame, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            while let Some(line) = this.lines.next_line()? {
                if let Some(frame) = row(line) {
                    return Poll::Ready(Some(Ok(frame)));
                }
            }
            match ready!(this.bytes.poll_next_unpin(cx)) {
                Some(bytes) => this.lines.push(bytes?),
                None => {
                    let rest = this.lines.take_rest().filter(|rest| is_whole(rest));
                    return Poll::Ready(rest.and_then(row).map(Ok));
                }
            }
        }
    }
}

fn row(line: String) -> Option<Frame> {
    (!line.trim().is_empty()).then_some(Frame {
        event: String::new(),
        data: line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pieces: &[&str]) -> Vec<String> {
        let bytes: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Bytes::copy_from_slice(piece.as_bytes())))
            .collect();
        let rows = Rows::new(futures::stream::iter(bytes));
        futures::executor::block_on(rows.map(|row| row.unwrap().data).collect())
    }

    #[test]
    fn blank_lines_go_and_a_cut_line_goes() {
        let cases: &[(&[&str], &[&str])] = &[
            (
                &["{\"a\":1}\n\n  \r\n{\"b\":", "2}\n"],
                &["{\"a\":1}", "{\"b\":2}"],
            ),
            (&["{\"a\":1}\n{\"b\":2}"], &["{\"a\":1}", "{\"b\":2}"]),
            (&["{\"a\":1}\n{\"b\":"], &["{\"a\":1}"]),
            (&[""], &[]),
        ];
        for (pieces, expected) in cases {
            assert_eq!(rows(pieces), *expected, "{pieces:?}");
        }
    }
}
