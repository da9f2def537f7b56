//! The output of a running call: streamed to the client as it comes, and kept whole for `tool:output`.

use std::sync::Arc;

use parking_lot::Mutex;

use super::settle::text_of;
use crate::exchange::Exchange;
use crate::exchange::recording::Recording;
use crate::message::ToolId;
use crate::protocol::event::{Event, ToolDelta};
use crate::telemetry::{Redactor, Stream, Unit};
use crate::tool::{Output, OutputStream};

/// The output of one running call.
pub(super) struct CallOutput<'a> {
    exchange: &'a Exchange<'a>,
    tool_id: &'a ToolId,
    recording: Arc<Recording>,
    /// Held for one piece of output, never across an await.
    live: Mutex<Live>,
}

impl<'a> CallOutput<'a> {
    /// Begins to keep the call's output.
    pub(super) fn new(exchange: &'a Exchange<'a>, tool_id: &'a ToolId) -> Self {
        let services = &exchange.context.services;
        let recording = Arc::new(Recording::new(&services.spill, &services.redactor));
        let executions = &exchange.context.session.executions;
        executions.keep(tool_id, Arc::clone(&recording));
        Self {
            exchange,
            tool_id,
            recording,
            live: Mutex::new(Live::new(&services.redactor)),
        }
    }

    /// Takes a piece of output.
    pub(super) fn push(&self, stream: OutputStream, chunk: &str) {
        self.recording.push(stream, chunk);
        let mut live = self.live.lock();
        self.show(stream, live.push(stream, chunk));
    }

    /// Shows what was held back, and ends the recording of what came to `output`.
    pub(super) fn finish(self, output: &Output) {
        let rest = {
            let mut live = self.live.lock();
            live.finish()
        };
        for (stream, chunk) in rest {
            self.show(stream, chunk);
        }
        // A command that wrote nothing has no output, whatever the result says of that.
        let text = text_of(&output.content);
        let result = (output.metadata.total_bytes != Some(0)).then_some(&*text);
        self.recording.finish(result);
    }

    fn show(&self, stream: OutputStream, chunk: String) {
        if chunk.is_empty() {
            return;
        }
        let setup = self.exchange.setup;
        let delta = ToolDelta {
            conversation_id: setup.conversation_id.clone(),
            message_id: setup.message_id.clone(),
            tool_id: self.tool_id.clone(),
            chunk,
            stream,
        };
        self.exchange.emit(Event::ChatToolDelta(delta));
    }
}

/// The two streams of a running call, as a client sees them.
#[derive(Debug)]
struct Live {
    redactor: Redactor,
    stdout: Stream,
    stderr: Stream,
}

impl Live {
    fn new(redactor: &Redactor) -> Self {
        Self {
            redactor: redactor.clone(),
            stdout: Stream::new(redactor, Unit::Word),
            stderr: Stream::new(redactor, Unit::Word),
        }
    }

    /// Takes a piece and returns what can be shown of the stream by now, perhaps nothing.
    fn push(&mut self, stream: OutputStream, chunk: &str) -> String {
        match stream {
            OutputStream::Stdout => self.stdout.push(chunk),
            OutputStream::Stderr => self.stderr.push(chunk),
            // Whole texts of the tool's own.
            OutputStream::Progress => self.redactor.redact(chunk).into_owned(),
        }
    }

    /// Returns what was held back, at the end.
    fn finish(&mut self) -> [(OutputStream, String); 2] {
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
