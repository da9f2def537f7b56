//! A session as JSON lines.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_store::{Attachment, Exchange, Hash, Head, Message, Piece, TitleBy, ToolCall};

use super::super::body::{self, Kept};
use super::super::restored::{logged, read};
use super::{FORMAT, Line, VERSION, Writer, line, time};
use crate::message::{ConversationId, MessageId, Part, ToolId, ToolResult};
use crate::protocol::content::{Role, WireMessage};

/// The result of a call that has none yet.
const NO_RESULT: &str = "no result: this call had none when the session was exported; whether it had an effect is not known";

/// Writes JSON lines.
pub(super) struct JsonLines<W> {
    out: W,
    lines: u64,
    /// Attachments that were written.
    written: HashSet<Hash>,
    /// What calls came to that no message says yet.
    results: HashMap<ToolId, WireMessage>,
    /// The calls of the last reply that have no result yet, and where theirs belong.
    open: VecDeque<crate::message::ToolCall>,
    last: Option<At>,
}

/// Where a message belongs.
#[derive(Clone)]
struct At {
    conversation: ConversationId,
    exchange: MessageId,
    time: String,
}

impl<W: Write + Send> Writer for JsonLines<W> {
    fn take(&mut self, piece: Piece) -> io::Result<()> {
        match piece {
            Piece::Head(head) => self.head(head),
            Piece::Call(call) => self.call(call),
            Piece::Exchange(exchange) => self.exchange(&exchange),
            Piece::Message {
                conversation,
                message,
            } => self.message(conversation, &message),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.answer_all()?;
        self.write(&Line::End { lines: self.lines })?;
        self.out.flush()
    }
}

impl<W: Write> JsonLines<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            lines: 0,
            written: HashSet::new(),
            results: HashMap::new(),
            open: VecDeque::new(),
            last: None,
        }
    }

    fn write(&mut self, what: &Line) -> io::Result<()> {
        let text = serde_json::to_string(what).map_err(io::Error::other)?;
        self.lines += 1;
        line(&mut self.out, &text)
    }

    fn head(&mut self, head: Head) -> io::Result<()> {
        self.write(&Line::Session {
            format: FORMAT.to_owned(),
            version: VERSION,
            title: head.title,
            is_named: head.title_by == TitleBy::User,
            project: head.project,
            labels: head.labels,
            created_at: Some(time(head.created_ms)),
            archived_at: head.archived_ms.map(time),
        })
    }

    fn call(&mut self, call: ToolCall) -> io::Result<()> {
        if let Some(result) = call.result.and_then(|it| read(&it, "a result")) {
            self.results.insert(ToolId::new(call.id), result);
        }
        match read(&call.record, "a call") {
            Some(record) => self.write(&Line::Call {
                began: call.began,
                record,
            }),
            None => Ok(()),
        }
    }

    fn exchange(&mut self, exchange: &Exchange) -> io::Result<()> {
        let end = exchange.end.as_ref();
        match end.and_then(|(_, end)| read(end, "an end")) {
            Some(end) => self.write(&Line::Exchange {
                began_at: time(exchange.began_ms),
                end,
            }),
            None => Ok(()),
        }
    }

    fn message(&mut self, conversation: String, message: &Message) -> io::Result<()> {
        let Some(kept) = logged(body::kept(&message.body.text), "a message") else {
            return Ok(());
        };
        let at = At {
            conversation: ConversationId::new(conversation),
            exchange: MessageId::new(message.exchange.as_str()),
            time: time(message.at_ms),
        };
        let is_same = |last: &At| last.conversation == at.conversation;
        let is_result = kept.message.role == Role::Tool;
        if !is_result || !self.last.as_ref().is_some_and(is_same) {
            self.answer_all()?;
        }
        if is_result {
            let id = kept.message.tool_call_id.as_ref();
            let place = self.open.iter().position(|call| Some(&call.id) == id);
            let Some(place) = place else {
                tracing::error!("a result of the store belongs to no call");
                return Ok(());
            };
            for _ in 0..place {
                self.answer_first()?;
            }
            self.open.pop_front();
        }
        self.open.extend(kept.message.tool_calls.iter().cloned());
        self.last = Some(at.clone());
        self.said(at, kept, &message.body.attachments)
    }

    /// Writes a message, after what it has attached.
    fn said(&mut self, at: At, kept: Kept, attachments: &[Attachment]) -> io::Result<()> {
        for attachment in attachments {
            if self.written.insert(attachment.hash) {
                self.write(&Line::Attachment {
                    hash: data_encoding::HEXLOWER.encode(&attachment.hash),
                    data: STANDARD.encode(&attachment.bytes),
                })?;
            }
        }
        self.write(&Line::Message {
            conversation_id: at.conversation,
            message_id: at.exchange,
            at: at.time,
            message: Box::new(kept.message),
            attached: kept.attached,
        })
    }

    /// Answers the calls of the last reply that have no result, so that what is exported is a valid history.
    fn answer_all(&mut self) -> io::Result<()> {
        while !self.open.is_empty() {
            self.answer_first()?;
        }
        Ok(())
    }

    fn answer_first(&mut self) -> io::Result<()> {
        let (Some(call), Some(at)) = (self.open.pop_front(), self.last.clone()) else {
            return Ok(());
        };
        let result = match self.results.remove(&call.id) {
            Some(result) => crate::message::Message::from(result),
            None => crate::message::Message::ToolResult(ToolResult {
                id: call.id,
                name: call.name,
                content: vec![Part::text(NO_RESULT)],
                is_error: true,
            }),
        };
        let (kept, attachments) = body::split(&result);
        self.said(at, kept, &attachments)
    }
}
