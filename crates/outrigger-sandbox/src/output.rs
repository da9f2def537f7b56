//! Reads what a command writes, without ever being held up, flooded or fooled by it.
//!
//! [`collect`] goes on reading what it no longer keeps (a full pipe would stop the command), ends a command that never
//! stops writing, and does not wait for the end of a pipe that somebody else still holds.

mod kept;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use encoding_rs::{Decoder, UTF_8};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, sleep_until};

pub use kept::{Captured, HeadAndTail};

use super::process::{Exit, Process};

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

/// A piece of output, handed on as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Where it was written.
    pub stream: Stream,
    /// The text; what is not UTF-8 is replaced. A character cut by a read comes whole in the next piece.
    pub text: &'a str,
}

/// How much output is kept and borne.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Bytes kept of each stream, half from its start and half from its end. Default 100 KiB.
    pub kept_bytes: usize,
    /// Bytes of both streams after which the command is killed. Default 128 MiB, all of which can be had later
    /// ([`super::spill::QUOTA_BYTES`]).
    pub total_bytes: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            kept_bytes: 100 * 1024,
            total_bytes: 128 * 1024 * 1024,
        }
    }
}

/// Why a command came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended<R> {
    /// By itself.
    Exited,
    /// It was stopped; the value is what the `stop` future gave.
    Stopped(R),
    /// It wrote more than [`Caps::total_bytes`].
    Flooded,
}

/// All there is to say about a command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output<R> {
    /// What was kept of standard output.
    pub stdout: Captured,
    /// What was kept of standard error. The order between the two streams is not known.
    pub stderr: Captured,
    /// How the program ended.
    pub exit: Exit,
    /// Why.
    pub ended: Ended<R>,
}

/// Reads a command's output until it ends, and stops it when `stop` completes (a time-out, a cancellation): asked to
/// end first, killed two seconds later. What was read until then is kept.
///
/// `on_chunk` gets every piece in order and must not block. Dropping the future leaves the command to whoever owns it.
pub async fn collect<R>(
    process: &mut Process,
    caps: Caps,
    stop: impl Future<Output = R>,
    mut on_chunk: impl FnMut(Chunk<'_>),
) -> Output<R> {
    let mut stop = pin!(stop);
    let mut stdout = Reader::new(Stream::Stdout, process.stdout.take(), caps);
    let mut stderr = Reader::new(Stream::Stderr, process.stderr.take(), caps);
    let mut ended = Ended::Exited;
    let mut kill_at: Option<Instant> = None;
    let exit = loop {
        tokio::select! {
            count = stdout.fill(), if stdout.is_open() => stdout.accept(count, &mut on_chunk).await,
            count = stderr.fill(), if stderr.is_open() => stderr.accept(count, &mut on_chunk).await,
            exit = process.wait() => break exit,
            reason = &mut stop, if matches!(ended, Ended::Exited) => {
                process.terminate();
                kill_at = Some(Instant::now() + terminate_grace());
                ended = Ended::Stopped(reason);
            }
            () = reached(kill_at) => {
                process.kill();
                kill_at = None;
            }
        }
        if !matches!(ended, Ended::Flooded) && stdout.total() + stderr.total() > caps.total_bytes {
            process.kill();
            ended = Ended::Flooded;
        }
    };
    drain(&mut stdout, &mut stderr, &mut on_chunk).await;
    Output {
        stdout: stdout.finish(&mut on_chunk),
        stderr: stderr.finish(&mut on_chunk),
        exit,
        ended,
    }
}

/// Shortens a text that is there as a whole as a stream would be: its head and its tail.
pub fn shorten(text: &str, kept_bytes: usize) -> Captured {
    let mut kept = HeadAndTail::new(kept_bytes);
    kept.push(text.as_bytes());
    kept.finish()
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Reads what is buffered. The pipes usually end at once; one that a stranger holds open does not keep us.
async fn drain(
    stdout: &mut Reader<impl AsyncRead + Unpin>,
    stderr: &mut Reader<impl AsyncRead + Unpin>,
    on_chunk: &mut impl FnMut(Chunk<'_>),
) {
    let limit = Instant::now() + DRAIN_LIMIT;
    while stdout.is_open() || stderr.is_open() {
        let idle = Instant::now() + IDLE_GRACE;
        tokio::select! {
            count = stdout.fill(), if stdout.is_open() => stdout.accept(count, on_chunk).await,
            count = stderr.fill(), if stderr.is_open() => stderr.accept(count, on_chunk).await,
            () = sleep_until(idle.min(limit)) => return,
        }
        if Instant::now() >= limit {
            return;
        }
    }
}

struct Reader<P> {
    stream: Stream,
    pipe: Option<P>,
    buffer: Vec<u8>,
    decoder: Decoder,
    text: String,
    kept: HeadAndTail,
}

impl<P: AsyncRead + Unpin> Reader<P> {
    fn new(stream: Stream, pipe: Option<P>, caps: Caps) -> Self {
        Self {
            stream,
            pipe,
            buffer: vec![0; READ_BYTES],
            decoder: UTF_8.new_decoder_without_bom_handling(),
            text: String::new(),
            kept: HeadAndTail::new(caps.kept_bytes),
        }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    fn total(&self) -> u64 {
        self.kept.total()
    }

    /// Reads once into the buffer and returns how much; nothing when the stream has ended.
    ///
    /// Cancel-safe: nothing is taken from the pipe before the read completes.
    async fn fill(&mut self) -> usize {
        match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.buffer).await.unwrap_or_default(),
            None => 0,
        }
    }

    /// Takes in what [`fill`](Self::fill) read, and lets everybody else have a turn: the pipe of a command that writes
    /// without pause is always ready, and what a chunk costs is spent for nobody but it.
    async fn accept(&mut self, count: usize, on_chunk: &mut impl FnMut(Chunk<'_>)) {
        if count == 0 {
            self.pipe = None;
            return;
        }
        self.hand_on(count, false, on_chunk);
        tokio::task::yield_now().await;
    }

    fn finish(mut self, on_chunk: &mut impl FnMut(Chunk<'_>)) -> Captured {
        self.hand_on(0, true, on_chunk);
        self.kept.finish()
    }

    fn hand_on(&mut self, count: usize, last: bool, on_chunk: &mut impl FnMut(Chunk<'_>)) {
        let bytes = self.buffer.get(..count).unwrap_or_default();
        self.kept.push(bytes);
        decode(&mut self.decoder, bytes, last, &mut self.text);
        if !self.text.is_empty() {
            on_chunk(Chunk {
                stream: self.stream,
                text: &self.text,
            });
        }
    }
}

fn decode(decoder: &mut Decoder, bytes: &[u8], last: bool, text: &mut String) {
    text.clear();
    // Enough for any input of this length, or nothing if that overflows, when nothing could be decoded anyway.
    let needed = decoder.max_utf8_buffer_length(bytes.len());
    text.reserve(needed.unwrap_or_default());
    let (_, _, _) = decoder.decode_to_string(bytes, text, last);
}

#[cfg(test)]
mod tests;
