//! What a command in the background has of its conversation: its output is kept and shown, its begin and end are told.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Exchange;
use super::context::{Context, Ids};
use super::executions::Executions;
use super::recording::{CleanOutput, Recorder, Recording};
use super::transcript::Events;
use crate::message::{BackgroundCommand, BackgroundStatus, ConversationId, MessageId, ToolId};
use crate::protocol::envelope::Timestamp;
use crate::protocol::event::{BackgroundChanged, Event, PortOpened, ToolDelta};
use crate::sandbox::spill::{Gone, Range};
use crate::telemetry::Unit;
use crate::tool::OutputStream;
use crate::tool::background::Outlet;

/// Most bytes of its output that are kept of a command in the background: the last ones, since it may write for days.
const KEPT_BYTES: u64 = 8 * 1024 * 1024;

/// Most bytes of its line that are shown of a command, to whoever is told of it.
const SHOWN_LINE: usize = 1024;

/// The exchange that runs in a conversation, as what runs beside it may add to it. Nothing of an exchange follows its
/// end, and so what is added is emitted under the lock.
#[derive(Debug, Default)]
pub(crate) struct RunningExchange(Mutex<Option<MessageId>>);

impl RunningExchange {
    pub(super) fn begin(&self, id: &MessageId) {
        *self.0.lock() = Some(id.clone());
    }

    /// Nothing more is added to this exchange.
    pub(super) fn end(&self, id: &MessageId) {
        let mut running = self.0.lock();
        // A send may be dropped from the queue, and so end, while another one runs.
        if running.as_ref() == Some(id) {
            *running = None;
        }
    }

    fn add(&self, emit: impl FnOnce(&MessageId)) {
        if let Some(id) = &*self.0.lock() {
            emit(id);
        }
    }
}

/// The way of a command in the background to whoever follows its conversation.
pub(super) struct Detached {
    conversation_id: ConversationId,
    tool_id: ToolId,
    running: Arc<RunningExchange>,
    events: Events,
    executions: Arc<Executions>,
    ids: Arc<Ids>,
    recording: Arc<Recording>,
    /// What is kept, and what a client is shown; `None` at the end. Held for one piece of output, never across an await.
    streams: Mutex<Option<(Recorder, CleanOutput)>>,
}

impl Detached {
    pub(super) fn new(exchange: &Exchange<'_>, tool_id: &ToolId) -> Self {
        let Context {
            services,
            session,
            conversation,
        } = exchange.context;
        let recorder = Recorder::of_last(&services.spill, &services.redactor, KEPT_BYTES);
        let recording = Arc::clone(&recorder.recording);
        session.executions.keep(tool_id, Arc::clone(&recording));
        let live = CleanOutput::new(&services.redactor, Unit::Word);
        Self {
            conversation_id: conversation.id.clone(),
            tool_id: tool_id.clone(),
            running: Arc::clone(&conversation.running),
            events: session.events.clone(),
            executions: Arc::clone(&session.executions),
            ids: Arc::clone(&session.ids),
            recording,
            streams: Mutex::new(Some((recorder, live))),
        }
    }

    fn record(&self, command: &BackgroundCommand) {
        self.executions.update_kept(&self.tool_id, |record| {
            // What ended meanwhile does not run again.
            let known = record.background.as_ref();
            if known.is_none_or(|known| known.is_running()) {
                record.background = Some(Box::new(command.clone()));
            }
        });
    }

    fn show(&self, stream: OutputStream, chunk: String) {
        if chunk.is_empty() {
            return;
        }
        self.running.add(|message_id| {
            self.events.emit(Event::ChatToolDelta(ToolDelta {
                conversation_id: self.conversation_id.clone(),
                message_id: message_id.clone(),
                tool_id: self.tool_id.clone(),
                chunk,
                stream,
            }));
        });
    }
}

impl Outlet for Detached {
    fn describe(&self, line: &str) -> BackgroundCommand {
        let mut command = line.to_owned();
        if command.len() > SHOWN_LINE {
            command.truncate(command.floor_char_boundary(SHOWN_LINE));
            command.push('…');
        }
        BackgroundCommand {
            id: self.ids.background(),
            tool_id: self.tool_id.clone(),
            command,
            started_at: Timestamp::now().to_string(),
            status: BackgroundStatus::Running,
            ports: Vec::new(),
            exit_code: None,
            signal: None,
        }
    }

    fn push(&self, stream: OutputStream, chunk: &str) {
        if let Some((recorder, live)) = &mut *self.streams.lock() {
            recorder.push(stream, chunk);
            self.show(stream, live.push(stream, chunk));
        }
    }

    fn finish(&self) {
        let Some((recorder, mut live)) = self.streams.lock().take() else {
            return;
        };
        for (stream, chunk) in live.finish() {
            self.show(stream, chunk);
        }
        recorder.finish(None);
    }

    fn announce(&self, command: &BackgroundCommand) {
        self.record(command);
        self.events.emit(Event::ToolBackground(BackgroundChanged {
            conversation_id: self.conversation_id.clone(),
            background: command.clone(),
        }));
    }

    fn announce_port(&self, command: &BackgroundCommand, port: u16) {
        self.record(command);
        self.events.emit(Event::ToolPortOpen(PortOpened {
            conversation_id: self.conversation_id.clone(),
            background: command.clone(),
            port,
        }));
    }

    fn read(&self, offset: u64, limit: usize) -> Result<Range, Gone> {
        self.recording.read(offset, limit)
    }
}
