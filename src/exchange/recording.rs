//! One call's whole output, clean of secrets, kept for `tool:output`.
//!
//! What a program writes is kept line by line, since a secret may come in two pieces; of a tool that writes nothing
//! while it runs, its result is its output. Where it is kept is [`crate::sandbox::spill`]'s business.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::message::ToolId;
use crate::protocol::answer::OutputRange;
use crate::protocol::record::ExecutionRecord;
use crate::sandbox::output::Stream as Pipe;
use crate::sandbox::spill::{Gone, Recorded, Spill};
use crate::telemetry::{Redactor, Stream, Unit};
use crate::tool::OutputStream;

/// The output of one call.
#[derive(Debug)]
pub struct Recording {
    recorded: Recorded,
    redactor: Redactor,
    /// Held for one piece of output, never across an await.
    streams: Mutex<Streams>,
    began: Instant,
    /// Bytes that came so far.
    stdout_bytes: AtomicU64,
    stderr_bytes: AtomicU64,
}

/// What the program writes, clean of secrets.
#[derive(Debug)]
struct Streams {
    stdout: Stream,
    stderr: Stream,
    wrote: bool,
}

impl Recording {
    /// Begins to keep an output.
    pub fn new(spill: &Spill, redactor: &Redactor) -> Self {
        Self {
            recorded: spill.record(),
            redactor: redactor.clone(),
            streams: Mutex::new(Streams {
                stdout: Stream::new(redactor, Unit::Line),
                stderr: Stream::new(redactor, Unit::Line),
                wrote: false,
            }),
            began: Instant::now(),
            stdout_bytes: AtomicU64::new(0),
            stderr_bytes: AtomicU64::new(0),
        }
    }

    /// Takes a piece of output as it comes; progress is none.
    pub fn push(&self, stream: OutputStream, chunk: &str) {
        let mut streams = self.streams.lock();
        let streams = &mut *streams;
        let (pipe, stream, bytes) = match stream {
            OutputStream::Stdout => (Pipe::Stdout, &mut streams.stdout, &self.stdout_bytes),
            OutputStream::Stderr => (Pipe::Stderr, &mut streams.stderr, &self.stderr_bytes),
            OutputStream::Progress => return,
        };
        streams.wrote = true;
        bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        self.keep(pipe, &stream.push(chunk));
    }

    /// Notes in the record of the call, which still runs, what it has come to.
    pub fn so_far(&self, record: &mut ExecutionRecord) {
        record.duration_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        record.stdout_bytes = self.stdout_bytes.load(Ordering::Relaxed);
        record.stderr_bytes = self.stderr_bytes.load(Ordering::Relaxed);
    }

    /// Ends it; `result` is the output of a tool that wrote nothing while it ran.
    pub fn finish(&self, result: Option<&str>) {
        let mut streams = self.streams.lock();
        self.keep(Pipe::Stdout, &streams.stdout.finish());
        self.keep(Pipe::Stderr, &streams.stderr.finish());
        if let (false, Some(result)) = (streams.wrote, result) {
            self.keep(Pipe::Stdout, &self.redactor.redact(result));
        }
        self.recorded.finish();
    }

    /// Returns a range as `tool:output` answers with it. Blocks until the disk has answered.
    ///
    /// # Errors
    ///
    /// [`Gone`] where newer outputs needed the room.
    pub fn range(&self, tool_id: &ToolId, offset: u64, limit: usize) -> Result<OutputRange, Gone> {
        let range = self.recorded.read(offset, limit)?;
        Ok(OutputRange {
            tool_id: tool_id.clone(),
            stream: match range.stream {
                Pipe::Stdout => OutputStream::Stdout,
                Pipe::Stderr => OutputStream::Stderr,
            },
            text: range.text,
            offset: range.offset,
            next_offset: range.next,
            total_bytes: range.total,
        })
    }

    fn keep(&self, pipe: Pipe, clean: &str) {
        if !clean.is_empty() && self.recorded.push(pipe, clean).is_err() {
            crate::runtime::block_in_place(|| self.recorded.push_waiting(pipe, clean));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(redactor: &Redactor, chunks: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(folder.path().to_owned(), 1 << 20);
        let recording = Recording::new(&spill, redactor);
        for chunk in chunks {
            recording.push(OutputStream::Stdout, chunk);
        }
        recording.finish(Some("the result"));
        let range = recording.range(&ToolId::new("t1"), 0, 1 << 20).unwrap();
        assert_eq!(range.next_offset, None);
        range.text
    }

    #[test]
    fn a_secret_in_two_pieces_is_found() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n";
        let (first, second) = key.split_at(40);
        for (chunks, text) in [
            (vec!["a hunter2-", "hunter2 b\nc"], "a [redacted] b\nc"),
            (vec!["x\n", first, second, "y"], "x\n[redacted]\ny"),
            (vec![], "the result"),
            (vec!["one\ntwo\n"], "one\ntwo\n"),
        ] {
            assert_eq!(kept(&redactor, &chunks), text);
        }
    }

    #[test]
    fn the_output_of_a_tool_that_only_told_how_far_it_is_is_its_result() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(folder.path().to_owned(), 1 << 20);
        let recording = Recording::new(&spill, &Redactor::default());
        recording.push(OutputStream::Progress, "half of it");
        recording.finish(Some("the result"));
        let range = recording.range(&ToolId::new("t1"), 0, 100).unwrap();
        assert_eq!(range.text, "the result");
    }
}
