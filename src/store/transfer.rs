//! A session as a file: JSON lines, of which one can be made again, or Markdown, for people.
//!
//! The file of JSON lines begins with what it is and ends with how many lines stand before. Between them are calls,
//! exchanges that ended, and the messages of each conversation. What a message has attached stands once, on a line before
//! the first message that has it. A further kind of line is a variant of `Line`, written in `export` and read in `import`.
//!
//! What waits, what was configured and what was allowed stays where it is: a file must not bring leave to do anything.

mod export;
mod import;
mod markdown;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::Timestamp;
use outrigger_store::{Each, Piece};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::body::Place;
use crate::message::{ConversationId, MessageId};
use crate::protocol::command::SessionFormat;
use crate::protocol::content::WireMessage;
use crate::protocol::event::StreamEnd;
use crate::protocol::record::ExecutionRecord;
use export::JsonLines;
pub(crate) use import::{Import, MAX_BYTES};
use markdown::Markdown;

/// What the first line says of the file.
const FORMAT: &str = "outrigger-session";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Line {
    /// What the file is, and what is known of the session.
    Session {
        format: String,
        version: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Whether the user gave it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_named: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        labels: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        created_at: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        archived_at: Option<String>,
    },
    Call {
        began: bool,
        record: Box<ExecutionRecord>,
    },
    Exchange {
        began_at: String,
        end: Box<StreamEnd>,
    },
    /// Bytes in base64 that later messages name by their SHA-256.
    Attachment { hash: String, data: String },
    Message {
        conversation_id: ConversationId,
        message_id: MessageId,
        at: String,
        message: Box<WireMessage>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attached: Vec<Place>,
    },
    /// Nothing follows.
    End { lines: u64 },
}

/// Writes a session to a file, piece by piece.
trait Writer: Send {
    fn take(&mut self, piece: Piece) -> io::Result<()>;
    fn end(&mut self) -> io::Result<()>;
}

/// A session on its way into a file. Clones share it.
#[derive(Clone)]
pub(crate) struct Export(Arc<Mutex<State>>);

struct State {
    writer: Box<dyn Writer>,
    failed: Option<io::Error>,
}

impl Export {
    pub(crate) fn new(format: SessionFormat, file: File) -> Self {
        let out = BufWriter::new(file);
        let writer: Box<dyn Writer> = match format {
            SessionFormat::Jsonl => Box::new(JsonLines::new(out)),
            SessionFormat::Markdown => Box::new(Markdown::new(out)),
        };
        let failed = None;
        Self(Arc::new(Mutex::new(State { writer, failed })))
    }

    /// Returns what a store gives the pieces of the session to.
    pub(crate) fn each(&self) -> Each {
        let state = Arc::clone(&self.0);
        Box::new(move |piece| {
            let mut state = state.lock();
            match state.writer.take(piece) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    state.failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    }

    /// Ends the file; fails where it could not be written.
    pub(crate) fn end(self) -> io::Result<()> {
        let mut state = self.0.lock();
        match state.failed.take() {
            Some(error) => Err(error),
            None => state.writer.end(),
        }
    }
}

fn time(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    format!("{time:.3}")
}

/// Writes a line of text.
fn line(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests;
