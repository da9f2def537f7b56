//! The output of a running call: streamed to the client as it comes, and kept whole for `tool:output`.

use std::sync::Arc;

use parking_lot::Mutex;

use super::settle::text_of;
use crate::exchange::Exchange;
use crate::exchange::clean::Live;
use crate::exchange::recording::Recording;
use crate::message::ToolId;
use crate::protocol::event::{Event, ToolDelta};
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
