//! The body of an answer to chunks: cuts it into frames, decodes them.
//!
//! Knows no socket; bytes come as a stream, from HTTP or from a file.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::future;
use futures::stream::{self, BoxStream, StreamExt};

use super::decode::Decoder;
use super::frames::{Frames, Piece};
use super::halves::Halves;
use super::{Chunk, ChunkStream, ErrorKind, ProviderError};
use crate::runtime::block_in_place_if_large;

/// The bytes of a body, as reads bring them. An error is final: the connection broke or fell silent.
pub(crate) type ByteStream = BoxStream<'static, Result<Bytes, ProviderError>>;

/// How long the end of the bytes is waited for after [`Chunk::End`] was given, so that the connection
/// can be used again: servers send it right after, and a new TLS connection costs far more.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// Most reads past the end marker; a server that sends more loses its connection.
const DRAIN_READS: usize = 64;

/// Reads a body with a 2xx status and returns its chunks.
///
/// `content_type` is the header's value, empty where there was none. Each read is decoded as it
/// comes; the stream ends after [`Chunk::End`] or the first error. Whoever polls it past
/// [`Chunk::End`] lets the connection be used again; see [`DRAIN_TIME`].
pub(crate) fn chunks(bytes: ByteStream, content_type: &str, decoder: Decoder) -> ChunkStream {
    let body = Body {
        bytes,
        frames: Frames::new(decoder.wire.is_ndjson(), content_type),
        decoder,
        decoded: Vec::new(),
        halves: Halves::default(),
        ready: VecDeque::new(),
        broke: None,
        error: None,
        ended: false,
        drained: false,
    };
    stream::unfold(body, |mut body| async move {
        let chunk = body.next().await?;
        Some((chunk, body))
    })
    .fuse()
    .boxed()
}

struct Body {
    bytes: ByteStream,
    frames: Frames,
    decoder: Decoder,
    /// What the decoder pushed last; kept for its allocation.
    decoded: Vec<Chunk>,
    halves: Halves,
    ready: VecDeque<Chunk>,
    /// What ended the bytes, where they did not end by themselves.
    broke: Option<ProviderError>,
    error: Option<ProviderError>,
    ended: bool,
    /// The bytes ended, or are given up.
    drained: bool,
}

impl Body {
    async fn next(&mut self) -> Option<Result<Chunk, ProviderError>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(Ok(chunk));
            }
            if self.ended {
                if let Some(error) = self.error.take() {
                    self.drained = true;
                    return Some(Err(Halves::error(error)));
                }
                if !self.drained {
                    self.drain().await;
                }
                return None;
            }
            match self.frames.pieces.pop_front() {
                Some(piece) => self.decode(&piece),
                None if self.drained || self.broke.is_some() => self.finish(),
                None => match self.bytes.next().await {
                    Some(Ok(read)) => self.broke = self.frames.push(read).err(),
                    Some(Err(broke)) => {
                        self.broke = Some(self.frames.judge(0).err().unwrap_or(broke));
                    }
                    None => {
                        self.drained = true;
                        self.broke = self.frames.end().err();
                    }
                },
            }
        }
    }

    fn decode(&mut self, piece: &Piece) {
        let Self {
            decoder, decoded, ..
        } = self;
        let outcome = match piece {
            Piece::Frame(frame) => block_in_place_if_large(&frame.data, |data| {
                decoder.frame(&frame.event, data, decoded)
            }),
            Piece::Whole(body) => {
                block_in_place_if_large(body, |body| decoder.whole(body, decoded))
            }
        };
        self.take_decoded();
        if let Err(error) = outcome {
            self.halves.finish(&mut self.ready);
            self.error = Some(error);
            self.ended = true;
        } else if self.decoder.is_done() {
            self.broke = None;
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.ended = true;
        let outcome = self.decoder.finish(&mut self.decoded);
        self.error = match (outcome, self.broke.take()) {
            // The answer was whole before the connection broke.
            (Ok(()), Some(broke)) if broke.kind != ErrorKind::Protocol => None,
            (_, Some(broke)) => Some(broke),
            (outcome, None) => outcome.err(),
        };
        if self.error.is_some() {
            self.decoded.retain(|chunk| !matches!(chunk, Chunk::End(_)));
        }
        self.take_decoded();
        self.halves.finish(&mut self.ready);
    }

    fn take_decoded(&mut self) {
        for chunk in self.decoded.drain(..) {
            self.halves.join(chunk, &mut self.ready);
        }
    }

    async fn drain(&mut self) {
        let read = async {
            for _ in 0..DRAIN_READS {
                let Some(Ok(_)) = self.bytes.next().await else {
                    break;
                };
            }
        };
        // The clock starts only where the end is not there at once.
        let time = async { tokio::time::sleep(DRAIN_TIME).await };
        future::select(pin!(read), pin!(time)).await;
    }
}

#[cfg(test)]
mod tests;
