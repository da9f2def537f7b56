//! The body of an answer to chunks: looks at what the body really is, frames it, decodes it.
//!
//! Knows no socket; bytes come as a stream, from HTTP or from a file. Servers answer a request for a
//! stream with JSON, with a page of HTML, or with the right bytes under the wrong content type, so
//! the first byte decides and the content type only helps.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future;
use futures::stream::{self, BoxStream, Stream, StreamExt, TryStreamExt};
use tokio::time::Sleep;

use super::decode::Decoder;
use super::halves::Halves;
use super::lines::{MAX_EVENT_BYTES, too_long};
use super::ndjson::Rows;
use super::sse::{Events, is_whole};
use super::{Chunk, ChunkStream, ErrorKind, ProviderError};
use crate::runtime::block_in_place_if_large;

/// The bytes of a body, as reads bring them. An error is final: the connection broke or fell silent.
pub(crate) type ByteStream = BoxStream<'static, Result<Bytes, ProviderError>>;

/// How long the end of the bytes is waited for after [`Chunk::End`] was given, so that the connection
/// can be used again: servers send it right after, and a new TLS connection costs far more.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// Most frames read past the end marker; a server that sends more loses its connection.
const DRAIN_FRAMES: usize = 64;

/// Most white space before the first byte of an answer, or after its first line: servers that keep a connection
/// awake with it send some bytes a minute.
const MAX_BLANK_BYTES: usize = 1024 * 1024;

/// How the wire format cuts a stream into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON value a line.
    Ndjson,
}

/// One frame of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The event's name; empty where it has none.
    pub(crate) event: String,
    /// Its data; never empty.
    pub(crate) data: String,
}

/// What a body is made of.
enum Piece {
    Frame(Frame),
    Whole(String),
}

type Pieces = BoxStream<'static, Result<Piece, ProviderError>>;

/// Reads a body with a 2xx status and returns its chunks.
///
/// `content_type` is the header's value, empty where there was none. Each read is decoded as it
/// comes; the stream ends after [`Chunk::End`] or the first error. Whoever polls it past
/// [`Chunk::End`] lets the connection be used again; see [`DRAIN_TIME`].
pub(crate) fn chunks(
    bytes: ByteStream,
    framing: Framing,
    content_type: String,
    decoder: Box<dyn Decoder>,
) -> ChunkStream {
    let pieces = stream::once(open(bytes, framing, content_type)).try_flatten();
    Chunks {
        pieces: pieces.boxed(),
        decoder,
        decoded: Vec::new(),
        halves: Halves::default(),
        ready: VecDeque::new(),
        error: None,
        ended: false,
        drained: false,
        drain_frames: DRAIN_FRAMES,
        drain_time: None,
    }
    .boxed()
}

/// Finds out what the body is and returns its pieces.
async fn open(
    mut bytes: ByteStream,
    framing: Framing,
    content_type: String,
) -> Result<Pieces, ProviderError> {
    let mut head = Vec::new();
    let mut blank = 0;
    loop {
        let length = head.len();
        if skip_blank(&mut head) {
            break;
        }
        count_blank(&mut blank, length - head.len())?;
        match bytes.next().await {
            Some(read) => head.extend_from_slice(&read?),
            None => return Ok(stream::empty().boxed()),
        }
    }
    let content_type = content_type.to_ascii_lowercase();
    match head.first() {
        Some(b'{' | b'[') if framing == Framing::Ndjson || content_type.contains("ndjson") => {
            if first_line_is_cut(&mut head, &mut bytes).await? {
                return Ok(whole(again(head, bytes)));
            }
            Ok(Rows::new(again(head, bytes)).map_ok(Piece::Frame).boxed())
        }
        Some(b'{') if content_type.contains("event-stream") => {
            // Lines without the fields of events; one alone is a whole answer.
            if another_line_follows(&mut head, &mut bytes).await? {
                return Ok(Rows::new(again(head, bytes)).map_ok(Piece::Frame).boxed());
            }
            Ok(whole(again(head, bytes)))
        }
        Some(b'{' | b'[') => Ok(whole(again(head, bytes))),
        Some(b'<') => Err(no_answer("a page of HTML", head, bytes).await),
        Some(b'd' | b'e' | b'i' | b'r' | b':') => {
            Ok(Events::new(again(head, bytes)).map_ok(Piece::Frame).boxed())
        }
        _ if content_type.contains("event-stream") => {
            Ok(Events::new(again(head, bytes)).map_ok(Piece::Frame).boxed())
        }
        _ => Err(no_answer("text", head, bytes).await),
    }
}

/// Drops white space and byte order marks in front; whether a byte that says something is there.
fn skip_blank(head: &mut Vec<u8>) -> bool {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mut rest = head.as_slice();
    loop {
        rest = rest.trim_ascii_start();
        match rest.strip_prefix(MARK) {
            Some(after) => rest = after,
            None => break,
        }
    }
    head.drain(..head.len() - rest.len());
    !head.is_empty() && !MARK.starts_with(head)
}

/// Reads on to the first line end; whether the line is only the beginning of JSON in several lines,
/// or the body ended with it.
async fn first_line_is_cut(
    head: &mut Vec<u8>,
    bytes: &mut ByteStream,
) -> Result<bool, ProviderError> {
    let mut searched = 0;
    loop {
        let unsearched = head.get(searched..).unwrap_or_default();
        if let Some(end) = unsearched.iter().position(|&byte| byte == b'\n') {
            let line = head.get(..searched + end).unwrap_or_default();
            return Ok(!is_whole(&String::from_utf8_lossy(line)));
        }
        searched = head.len();
        if searched > MAX_EVENT_BYTES {
            return Err(too_long());
        }
        match bytes.next().await {
            Some(Ok(read)) => head.extend_from_slice(&read),
            // The rest of the line is lost; what is left of it is the reader's to judge.
            Some(Err(error)) => {
                *bytes = stream::once(future::ready(Err(error))).boxed();
                return Ok(false);
            }
            None => return Ok(is_whole(&String::from_utf8_lossy(head))),
        }
    }
}

/// Reads on behind the first line; whether that is whole JSON and another line comes after it.
async fn another_line_follows(
    head: &mut Vec<u8>,
    bytes: &mut ByteStream,
) -> Result<bool, ProviderError> {
    if first_line_is_cut(head, bytes).await? {
        return Ok(false);
    }
    let Some(end) = head.iter().position(|&byte| byte == b'\n') else {
        return Ok(false);
    };
    let mut blank = 0;
    loop {
        let after = head.get(end + 1..).unwrap_or_default();
        let next = after.trim_ascii_start();
        let (skipped, first) = (after.len() - next.len(), next.first().copied());
        // Whatever comes, these blank lines say nothing, so they are not kept, however the reads are cut.
        head.drain(end + 1..end + 1 + skipped);
        if let Some(first) = first {
            return Ok(first == b'{');
        }
        count_blank(&mut blank, skipped)?;
        match bytes.next().await {
            Some(Ok(read)) => head.extend_from_slice(&read),
            Some(Err(error)) => {
                *bytes = stream::once(future::ready(Err(error))).boxed();
                return Ok(false);
            }
            None => return Ok(false),
        }
    }
}

/// Adds white space to what came of it so far.
fn count_blank(blank: &mut usize, more: usize) -> Result<(), ProviderError> {
    *blank += more;
    if *blank <= MAX_BLANK_BYTES {
        return Ok(());
    }
    Err(ProviderError::new(
        ErrorKind::Protocol,
        format!(
            "the provider sent more than {} MiB of white space in the place of an answer",
            MAX_BLANK_BYTES / (1024 * 1024)
        ),
    ))
}

fn again(head: Vec<u8>, bytes: ByteStream) -> ByteStream {
    stream::once(future::ready(Ok(Bytes::from(head))))
        .chain(bytes)
        .boxed()
}

fn whole(bytes: ByteStream) -> Pieces {
    stream::once(async move {
        let body = bytes
            .try_fold(Vec::new(), |mut body, read| {
                body.extend_from_slice(&read);
                let fits = body.len() <= MAX_EVENT_BYTES;
                future::ready(if fits { Ok(body) } else { Err(too_long()) })
            })
            .await?;
        let body = String::from_utf8(body)
            .unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned());
        if is_whole(&body) {
            Ok(Piece::Whole(body))
        } else {
            Err(not_a_stream("broken JSON", body.as_bytes()))
        }
    })
    .boxed()
}

/// Bytes shown of a body that is no answer.
const SHOWN_BYTES: usize = 200;

/// Reads on until there is enough to show, however the bytes are cut.
async fn no_answer(what: &str, mut head: Vec<u8>, mut bytes: ByteStream) -> ProviderError {
    while head.len() < SHOWN_BYTES {
        match bytes.next().await {
            Some(Ok(read)) => head.extend_from_slice(&read),
            Some(Err(_)) | None => break,
        }
    }
    not_a_stream(what, &head)
}

/// The error for a body that is no answer of a model.
fn not_a_stream(what: &str, head: &[u8]) -> ProviderError {
    let start = String::from_utf8_lossy(head.get(..SHOWN_BYTES).unwrap_or(head));
    let start = super::error::safe_message(&start);
    ProviderError::new(
        ErrorKind::Protocol,
        format!("the provider answered with {what} instead of a stream, check base_url: {start}"),
    )
}

/// The chunks of one body.
struct Chunks {
    pieces: Pieces,
    decoder: Box<dyn Decoder>,
    /// What the decoder pushed last; kept for its allocation.
    decoded: Vec<Chunk>,
    /// Surrogate pairs of which one half came.
    halves: Halves,
    ready: VecDeque<Chunk>,
    /// Comes after what is ready.
    error: Option<ProviderError>,
    /// Nothing more is decoded.
    ended: bool,
    /// The bytes ended, or are given up.
    drained: bool,
    drain_frames: usize,
    drain_time: Option<Pin<Box<Sleep>>>,
}

impl Chunks {
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
            self.error = Some(Halves::error(error));
            self.ended = true;
        } else if self.decoder.is_done() {
            self.finish(None);
        }
    }

    /// The bytes are over, by `broke` where they did not end by themselves.
    fn finish(&mut self, broke: Option<ProviderError>) {
        self.ended = true;
        let outcome = self.decoder.finish(&mut self.decoded);
        self.error = match (outcome, broke) {
            // The answer was whole before the connection broke.
            (Ok(()), Some(broke)) if broke.kind != ErrorKind::Protocol => None,
            (Ok(()), None) => None,
            (_, Some(broke)) => Some(broke),
            (Err(error), None) => Some(error),
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

    /// Waits a little for the bytes to end.
    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.drained {
            match self.pieces.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(_))) if self.drain_frames > 0 => self.drain_frames -= 1,
                Poll::Ready(_) => self.drained = true,
                Poll::Pending => {
                    let time = self
                        .drain_time
                        .get_or_insert_with(|| Box::pin(tokio::time::sleep(DRAIN_TIME)));
                    ready!(time.as_mut().poll(cx));
                    self.drained = true;
                }
            }
        }
        Poll::Ready(())
    }
}

impl Stream for Chunks {
    type Item = Result<Chunk, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(chunk) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if this.ended {
                if let Some(error) = this.error.take() {
                    this.drained = true;
                    return Poll::Ready(Some(Err(error)));
                }
                ready!(this.poll_drained(cx));
                return Poll::Ready(None);
            }
            match ready!(this.pieces.poll_next_unpin(cx)) {
                Some(Ok(piece)) => this.decode(&piece),
                Some(Err(broke)) => this.finish(Some(broke)),
                None => {
                    this.drained = true;
                    this.finish(None);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
