//! Reads what a command writes, without ever being held up, flooded or fooled by it.
//!
//! [`collect`] ends a command that never stops writing, and does not wait for the end of a pipe that somebody else still
//! holds.

mod kept;

use std::future::{Future, ready};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use encoding_rs::{Decoder, UTF_8};
use futures::future::OptionFuture;
use futures::stream::{self, StreamExt, select};
use tokio::io::AsyncRead;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{BytesCodec, FramedRead};

pub use kept::{Captured, HeadAndTail};

use super::process::{Exit, Process};

/// Bytes of both streams after which a command is killed, all of which can be had later
/// ([`super::spill::QUOTA_BYTES`]).
pub const TOTAL_BYTES: u64 = 128 * 1024 * 1024;

/// Bytes of both streams that are read in a second of a command that is [followed](follow). Reading costs the daemon
/// processor time, for as long as the command runs.
pub const FOLLOW_RATE: u32 = 4 * 1024 * 1024;

/// One read from a pipe; as much as a pipe of Linux holds by default.
const READ_BYTES: usize = 64 * 1024;

/// After the program's end, output ends with the first silence this long.
const IDLE_GRACE: Duration = Duration::from_millis(100);

/// After the program's end, no output is read for longer than this.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Between asking a command to end and killing it.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);

/// The same while the daemon ends, which has its own grace before.
const LAST_GRACE: Duration = Duration::from_millis(500);

static ENDING: AtomicBool = AtomicBool::new(false);

/// Says that the daemon ends: from now on, commands that are asked to end are killed soon.
pub fn hurry() {
    ENDING.store(true, Ordering::Relaxed);
}

fn terminate_grace() -> Duration {
    match ENDING.load(Ordering::Relaxed) {
        true => LAST_GRACE,
        false => TERMINATE_GRACE,
    }
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Why a command came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended<R> {
    /// By itself.
    Exited,
    /// It was stopped; the value is what the `stop` future gave.
    Stopped(R),
    /// It wrote more than [`collect`] was told to bear.
    Flooded,
}

/// All there is to say about a command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output<R> {
    /// Bytes of standard output.
    pub stdout_bytes: u64,
    /// Bytes of standard error.
    pub stderr_bytes: u64,
    /// How the program ended.
    pub exit: Exit,
    /// Why.
    pub ended: Ended<R>,
}

/// Reads a command's output until it ends, and stops it when `stop` completes (a time-out, a cancellation): asked to
/// end first, killed two seconds later. It is killed at once when both streams have brought more than `total_bytes`.
///
/// `on_text` gets every piece as it comes and must not block; the order between the two streams is not known. What is
/// not UTF-8 is replaced; a character cut by a read comes whole in the next piece. Dropping the future leaves the
/// command to whoever owns it.
pub async fn collect<R>(
    process: &mut Process,
    total_bytes: u64,
    stop: impl Future<Output = R>,
    on_text: impl FnMut(Stream, &str),
) -> Output<R> {
    read(process, Bound::Total(total_bytes), stop, on_text).await
}

/// The same for a command that may write for as long as it runs: it is not killed for that, but read at
/// [`FOLLOW_RATE`] at most, and waits when it writes faster, as on a slow terminal.
pub async fn follow<R>(
    process: &mut Process,
    stop: impl Future<Output = R>,
    on_text: impl FnMut(Stream, &str),
) -> Output<R> {
    read(process, Bound::Rate(FOLLOW_RATE), stop, on_text).await
}

/// What keeps a command that never stops writing from taking all there is.
#[derive(Debug, Clone, Copy)]
enum Bound {
    /// It is killed after so many bytes.
    Total(u64),
    /// So many bytes are read in a second.
    Rate(u32),
}

impl Bound {
    fn is_passed(self, bytes: u64) -> bool {
        matches!(self, Self::Total(most) if bytes > most)
    }

    /// When reading goes on after a piece of so many bytes; `None` for at once.
    fn resumes_after(self, bytes: usize) -> Option<Instant> {
        match self {
            Self::Total(_) => None,
            Self::Rate(rate) => {
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                Some(Instant::now() + Duration::from_secs(1) * bytes / rate)
            }
        }
    }
}

async fn read<R>(
    process: &mut Process,
    bound: Bound,
    stop: impl Future<Output = R>,
    on_text: impl FnMut(Stream, &str),
) -> Output<R> {
    let mut stop = pin!(stop);
    let stdout = pieces(Stream::Stdout, process.stdout.take());
    let mut pieces = select(stdout, pieces(Stream::Stderr, process.stderr.take()));
    let mut texts = Texts::new(on_text);
    let mut ended = Ended::Exited;
    let mut kill_at: Option<Instant> = None;
    let mut resume_at: Option<Instant> = None;
    let exit = loop {
        tokio::select! {
            Some(piece) = pieces.next(), if resume_at.is_none() => {
                resume_at = bound.resumes_after(piece.1.len());
                texts.push(piece).await;
            }
            Some(()) = OptionFuture::from(resume_at.map(sleep_until)) => resume_at = None,
            exit = process.wait() => break exit,
            reason = &mut stop, if matches!(ended, Ended::Exited) => {
                process.terminate();
                kill_at = Some(Instant::now() + terminate_grace());
                ended = Ended::Stopped(reason);
            }
            Some(()) = OptionFuture::from(kill_at.map(sleep_until)) => {
                process.kill();
                kill_at = None;
            }
        }
        if !matches!(ended, Ended::Flooded) && bound.is_passed(texts.total_bytes()) {
            process.kill();
            ended = Ended::Flooded;
        }
    };
    drain(&mut pieces, &mut texts).await;
    texts.finish();
    Output {
        stdout_bytes: texts.stdout.bytes,
        stderr_bytes: texts.stderr.bytes,
        exit,
        ended,
    }
}

/// Shortens a text that is there as a whole as a stream would be: its head and its tail.
pub fn shorten(text: &str, kept_bytes: usize) -> Captured {
    let mut kept = HeadAndTail::new(kept_bytes);
    kept.push(text);
    kept.finish()
}

/// Reads a pipe piece by piece. Cancel-safe: nothing is taken from it before a read completes.
fn pieces(
    stream: Stream,
    pipe: Option<impl AsyncRead + Unpin>,
) -> impl futures::Stream<Item = (Stream, BytesMut)> + Unpin {
    let reads = pipe.map(|pipe| FramedRead::with_capacity(pipe, BytesCodec::new(), READ_BYTES));
    stream::iter(reads)
        .flatten()
        .filter_map(move |read: io::Result<BytesMut>| ready(read.ok().map(|bytes| (stream, bytes))))
}

/// Reads what is buffered. The pipes usually end at once; one that a stranger holds open does not keep us.
async fn drain(
    mut pieces: impl futures::Stream<Item = (Stream, BytesMut)> + Unpin,
    texts: &mut Texts<impl FnMut(Stream, &str)>,
) {
    let all = async {
        while let Ok(Some(piece)) = timeout(IDLE_GRACE, pieces.next()).await {
            texts.push(piece).await;
        }
    };
    timeout(DRAIN_LIMIT, all).await.unwrap_or_default();
}

/// Makes text of what the two streams bring.
struct Texts<F> {
    stdout: Decoded,
    stderr: Decoded,
    text: String,
    on_text: F,
}

struct Decoded {
    decoder: Decoder,
    bytes: u64,
}

impl Decoded {
    fn new() -> Self {
        Self {
            decoder: UTF_8.new_decoder_without_bom_handling(),
            bytes: 0,
        }
    }
}

impl<F: FnMut(Stream, &str)> Texts<F> {
    fn new(on_text: F) -> Self {
        Self {
            stdout: Decoded::new(),
            stderr: Decoded::new(),
            text: String::new(),
            on_text,
        }
    }

    fn total_bytes(&self) -> u64 {
        self.stdout.bytes + self.stderr.bytes
    }

    /// Takes a piece, and lets everybody else have a turn: the pipe of a command that writes without pause is always
    /// ready, and what a piece costs is spent for nobody but it.
    async fn push(&mut self, (stream, bytes): (Stream, BytesMut)) {
        self.decode(stream, &bytes, false);
        tokio::task::yield_now().await;
    }

    fn finish(&mut self) {
        self.decode(Stream::Stdout, &[], true);
        self.decode(Stream::Stderr, &[], true);
    }

    fn decode(&mut self, stream: Stream, bytes: &[u8], last: bool) {
        let decoded = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        decoded.bytes += bytes.len() as u64;
        self.text.clear();
        // Enough for any input of this length, or nothing if that overflows, when nothing could be decoded anyway.
        let needed = decoded.decoder.max_utf8_buffer_length(bytes.len());
        self.text.reserve(needed.unwrap_or_default());
        let (_, _, _) = decoded
            .decoder
            .decode_to_string(bytes, &mut self.text, last);
        if !self.text.is_empty() {
            (self.on_text)(stream, &self.text);
        }
    }
}

#[cfg(test)]
mod tests;
