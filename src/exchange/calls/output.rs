//! The output of a running call: streamed to the client as it comes, and kept whole for `tool:output`.

use std::sync::Arc;

use parking_lot::Mutex;

use super::settle::text_of;
use crate::exchange::Exchange;
use crate::exchange::recording::{CleanOutput, Recorder};
use crate::message::ToolId;
use crate::protocol::event::{Event, ToolDelta};
use crate::telemetry::Unit;
use crate::tool::{Output, OutputStream};

pub(super) struct CallOutput<'a> {
    exchange: &'a Exchange<'a>,
    tool_id: &'a ToolId,
    /// What is kept, and what the client is shown. Held for one piece of output, never across an await.
    streams: Mutex<(Recorder, CleanOutput)>,
}

impl<'a> CallOutput<'a> {
    pub(super) fn new(exchange: &'a Exchange<'a>, tool_id: &'a ToolId) -> Self {
        let services = &exchange.context.services;
        let recorder = Recorder::new(&services.spill, &services.redactor);
        let executions = &exchange.context.session.executions;
        executions.keep(tool_id, Arc::clone(&recorder.recording));
        let live = CleanOutput::new(&services.redactor, Unit::Word);
        Self {
            exchange,
            tool_id,
            streams: Mutex::new((recorder, live)),
        }
    }

    pub(super) fn push(&self, stream: OutputStream, chunk: &str) {
        let mut streams = self.streams.lock();
        let (recorder, live) = &mut *streams;
        recorder.push(stream, chunk);
        self.show(stream, live.push(stream, chunk));
    }

    /// Shows what was held back, and ends the recording of what came to `output`.
    pub(super) fn finish(self, output: &Output) {
        let rest = self.streams.lock().1.finish();
        for (stream, chunk) in rest {
            self.show(stream, chunk);
        }
        // A command that wrote nothing has no output, whatever the result says of that.
        let text = text_of(&output.content);
        let result = (output.metadata.total_bytes != Some(0)).then_some(&*text);
        let (recorder, _) = self.streams.into_inner();
        recorder.finish(result);
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
