//! One call's whole output, clean of secrets, kept for `tool:output`.
//!
//! What a program writes is kept line by line, since a secret may come in two pieces; of a tool that writes nothing
//! while it runs, its result is its output. Where it is kept is [`crate::sandbox::spill`]'s business.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use crate::message::ToolId;
use crate::protocol::answer::OutputRange;
use crate::protocol::record::ExecutionRecord;
use crate::sandbox::output::Stream as Pipe;
use crate::sandbox::spill::{Gone, Range, Recorded, Spill};
use crate::telemetry::{Redactor, Stream, Unit};
use crate::tool::OutputStream;
use crate::units::millis;

/// The output of one call. It outlives the call, so what cleans it is the [`Recorder`]'s.
#[derive(Debug)]
pub(crate) struct Recording {
    recorded: Recorded,
    began: Instant,
    /// Bytes that came so far.
    stdout_bytes: AtomicU64,
    stderr_bytes: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    pub recording: Arc<Recording>,
    lines: CleanOutput,
}

/// The two streams of a running call, clean of secrets.
#[derive(Debug)]
pub(crate) struct CleanOutput {
    redactor: Redactor,
    stdout: Stream,
    stderr: Stream,
}

impl CleanOutput {
    /// Returns the streams of a call that has written nothing; `unit` says how much is held back.
    pub(crate) fn new(redactor: &Redactor, unit: Unit) -> Self {
        Self {
            redactor: redactor.clone(),
            stdout: Stream::new(redactor, unit),
            stderr: Stream::new(redactor, unit),
        }
    }

    /// Takes a piece and returns what is clean of the stream by now, perhaps nothing.
    pub(crate) fn push(&mut self, stream: OutputStream, chunk: &str) -> String {
        match stream {
            OutputStream::Stdout => self.stdout.push(chunk),
            OutputStream::Stderr => self.stderr.push(chunk),
            // Whole texts of the tool's own.
            OutputStream::Progress => self.redactor.redact(chunk).into_owned(),
        }
    }

    pub(crate) fn finish(&mut self) -> [(OutputStream, String); 2] {
        [
            (OutputStream::Stdout, self.stdout.finish()),
            (OutputStream::Stderr, self.stderr.finish()),
        ]
    }
}

impl Recorder {
    pub(crate) fn new(spill: &Spill, redactor: &Redactor) -> Self {
        Self::with(spill.record(), redactor)
    }

    /// Returns one that keeps the last bytes of what comes, so many at least.
    pub(crate) fn of_last(spill: &Spill, redactor: &Redactor, most: u64) -> Self {
        Self::with(spill.record_last(most), redactor)
    }

    fn with(recorded: Recorded, redactor: &Redactor) -> Self {
        Self {
            recording: Arc::new(Recording {
                recorded,
                began: Instant::now(),
                stdout_bytes: AtomicU64::new(0),
                stderr_bytes: AtomicU64::new(0),
            }),
            lines: CleanOutput::new(redactor, Unit::Line),
        }
    }

    /// Takes a piece of output as it comes; progress is none.
    pub(crate) fn push(&mut self, stream: OutputStream, chunk: &str) {
        let bytes = match stream {
            OutputStream::Stdout => &self.recording.stdout_bytes,
            OutputStream::Stderr => &self.recording.stderr_bytes,
            OutputStream::Progress => return,
        };
        bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        let clean = self.lines.push(stream, chunk);
        self.recording.keep(stream, &clean);
    }

    /// Ends it; `result` is the output of a tool that wrote nothing while it ran.
    pub(crate) fn finish(mut self, result: Option<&str>) {
        for (stream, rest) in self.lines.finish() {
            self.recording.keep(stream, &rest);
        }
        if let (true, Some(result)) = (self.recording.is_empty(), result) {
            let clean = self.lines.redactor.redact(result);
            self.recording.keep(OutputStream::Stdout, &clean);
        }
        self.recording.recorded.finish();
    }
}

impl Recording {
    /// Notes in the record of the call, which still runs, what it has come to.
    pub(crate) fn so_far(&self, record: &mut ExecutionRecord) {
        record.duration_ms = millis(self.began.elapsed());
        self.bytes(record);
    }

    /// Notes in the record of the call how much it has written.
    pub(crate) fn bytes(&self, record: &mut ExecutionRecord) {
        record.stdout_bytes = self.stdout_bytes.load(Ordering::Relaxed);
        record.stderr_bytes = self.stderr_bytes.load(Ordering::Relaxed);
    }

    /// Returns a range as `tool:output` answers with it. Blocks until the disk has answered.
    /// Fails where newer outputs needed the room.
    pub(crate) fn range(
        &self,
        tool_id: &ToolId,
        offset: u64,
        limit: usize,
    ) -> Result<OutputRange, Gone> {
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

    /// Returns a range of both streams, as they came; see [`Self::range`].
    pub(crate) fn read(&self, offset: u64, limit: usize) -> Result<Range, Gone> {
        self.recorded.read_both(offset, limit)
    }

    fn is_empty(&self) -> bool {
        let bytes = [&self.stdout_bytes, &self.stderr_bytes];
        bytes.iter().all(|bytes| bytes.load(Ordering::Relaxed) == 0)
    }

    fn keep(&self, stream: OutputStream, clean: &str) {
        let pipe = match stream {
            OutputStream::Stderr => Pipe::Stderr,
            OutputStream::Stdout | OutputStream::Progress => Pipe::Stdout,
        };
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
        let mut recorder = Recorder::new(&spill, redactor);
        let recording = Arc::clone(&recorder.recording);
        for chunk in chunks {
            recorder.push(OutputStream::Stdout, chunk);
        }
        recorder.finish(Some("the result"));
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
    fn the_output_of_a_tool_that_only_had_progress_is_its_result() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(folder.path().to_owned(), 1 << 20);
        let mut recorder = Recorder::new(&spill, &Redactor::default());
        let recording = Arc::clone(&recorder.recording);
        recorder.push(OutputStream::Progress, "half of it");
        recorder.finish(Some("the result"));
        let range = recording.range(&ToolId::new("t1"), 0, 100).unwrap();
        assert_eq!(range.text, "the result");
    }

    #[test]
    fn a_secret_in_pieces_is_never_shown() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let mut live = CleanOutput::new(&redactor, Unit::Word);
        let shown = [
            live.push(OutputStream::Stdout, "a hunter2-"),
            live.push(OutputStream::Stderr, "hunter2-"),
            live.push(OutputStream::Progress, "1/2 hunter2-hunter2"),
            live.push(OutputStream::Stdout, "hunter2 b"),
        ];
        assert_eq!(shown, ["a ", "", "1/2 [redacted]", "[redacted] "]);
        let rest = live.finish().map(|(_, rest)| rest);
        assert_eq!(rest, ["b", "hunter2-"]);
    }
}
