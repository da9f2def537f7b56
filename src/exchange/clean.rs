//! The two streams of a running call, clean of secrets, as a client sees them.

use crate::telemetry::{Redactor, Stream, Unit};
use crate::tool::OutputStream;

/// The two streams of a running call, as a client sees them.
#[derive(Debug)]
pub(super) struct Live {
    redactor: Redactor,
    stdout: Stream,
    stderr: Stream,
}

impl Live {
    pub(super) fn new(redactor: &Redactor) -> Self {
        Self {
            redactor: redactor.clone(),
            stdout: Stream::new(redactor, Unit::Word),
            stderr: Stream::new(redactor, Unit::Word),
        }
    }

    /// Takes a piece and returns what can be shown of the stream by now, perhaps nothing.
    pub(super) fn push(&mut self, stream: OutputStream, chunk: &str) -> String {
        match stream {
            OutputStream::Stdout => self.stdout.push(chunk),
            OutputStream::Stderr => self.stderr.push(chunk),
            // Whole texts of the tool's own.
            OutputStream::Progress => self.redactor.redact(chunk).into_owned(),
        }
    }

    /// Returns what was held back, at the end.
    pub(super) fn finish(&mut self) -> [(OutputStream, String); 2] {
        [
            (OutputStream::Stdout, self.stdout.finish()),
            (OutputStream::Stderr, self.stderr.finish()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_pieces_is_never_shown() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let mut live = Live::new(&redactor);
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
