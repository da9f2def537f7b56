//! What the parsers of all wire formats share: frames in, chunks out.
//!
//! Pure: no clock, no socket. Frames come whole, whatever way the bytes were cut; who cuts them is
//! in the transport.

use serde_json::{Map, Value};

use super::json::{self, Json};
use super::{CallInput, Chunk, End, ErrorKind, MAX_CALLS, ProviderError, Stop};
use crate::message::{NativeReply, Notice, Usage};

/// Most bytes of the frames of one answer: 128,000 tokens of 600 bytes each, which the most talkative gateways send, and
/// all items once more at the end.
pub(super) const MAX_BYTES: usize = 128 * 1024 * 1024;

/// What is particular to one wire format. Nothing more is fed once the answer ended or a step failed.
pub(super) trait Wire: Send {
    /// Returns its name in [`NativeReply::wire`] and in recordings.
    fn name(&self) -> &'static str;

    /// Returns whether its streams are lines of JSON, and not server-sent events.
    fn is_ndjson(&self) -> bool {
        false
    }

    /// Returns what a frame is that ends too early: by a broken server, or by a broken connection.
    fn cut_frame(&self) -> ErrorKind {
        ErrorKind::Protocol
    }

    fn frame(&mut self, frame: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError>;

    /// Takes a whole answer, which ends with it.
    fn whole(&mut self, body: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError>;

    /// Takes `[DONE]`, which means nothing in most formats, though proxies add it to them.
    fn marker(&mut self, _answer: &mut Answer) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Takes that the bytes ended without an end marker; an answer may be whole all the same.
    fn finish(&mut self, answer: &mut Answer) -> Result<(), ProviderError>;

    /// Closes the calls that are open, for the answer broke off.
    fn close_calls(&mut self, _answer: &mut Answer) {}
}

/// Turns the frames of one answer into chunks. After an error, before which the calls still open are
/// closed as truncated, nothing more is fed.
pub(crate) struct Decoder {
    pub(super) wire: Box<dyn Wire>,
    answer: Answer,
    /// Bytes of the frames so far.
    pub(super) bytes: usize,
}

impl Decoder {
    /// Makes a decoder for an answer of `model` from the provider instance `provider`.
    ///
    /// `notices` are passed on as the answer begins.
    pub(super) fn new(
        wire: Box<dyn Wire>,
        provider: &str,
        model: &str,
        notices: Vec<Notice>,
    ) -> Self {
        let answer = Answer {
            wire: wire.name(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            notices,
            ..Answer::default()
        };
        Self {
            wire,
            answer,
            bytes: 0,
        }
    }

    /// Takes the data of a server-sent event with its event name (empty where it has none), or a line of
    /// NDJSON.
    pub(super) fn frame(
        &mut self,
        event: &str,
        data: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        let data = data.trim();
        if self.answer.done || data.is_empty() {
            return Ok(());
        }
        let outcome = if data.starts_with("[DONE]") {
            self.wire.marker(&mut self.answer)
        } else if event == "error" {
            let payload = json::read_piece(data).unwrap_or_else(|_| Value::from(data));
            Err(ProviderError::from_payload(&payload, None))
        } else {
            event.clone_into(&mut self.answer.event);
            self.read(data, |wire, frame, answer| wire.frame(frame, answer))
        };
        self.settle(outcome, chunks)
    }

    /// Takes a whole JSON body: the answer of a server that did not stream.
    pub(super) fn whole(
        &mut self,
        body: &str,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        let outcome = self.read(body, |wire, body, answer| wire.whole(body, answer));
        self.settle(outcome, chunks)
    }

    /// Takes that the bytes ended; pushes [`Chunk::End`] where it has not been pushed yet.
    pub(super) fn finish(&mut self, chunks: &mut Vec<Chunk>) -> Result<(), ProviderError> {
        if self.answer.done {
            return Ok(());
        }
        let outcome = self.wire.finish(&mut self.answer);
        self.settle(outcome, chunks)
    }

    /// Whether the end marker was seen, so that the rest of the bytes need not be waited for.
    pub(super) fn is_done(&self) -> bool {
        self.answer.done
    }

    fn read(
        &mut self,
        text: &str,
        take: impl FnOnce(&mut dyn Wire, &Json<'_>, &mut Answer) -> Result<(), ProviderError>,
    ) -> Result<(), ProviderError> {
        self.bytes = self.bytes.saturating_add(text.len());
        let text = json::pieces(text);
        let json: Json<'_> = serde_json::from_str(&text).map_err(|error| {
            let kind = if error.is_eof() {
                self.wire.cut_frame()
            } else {
                ErrorKind::Protocol
            };
            ProviderError::new(kind, format!("a frame of the answer is no JSON: {error}"))
        })?;
        take(&mut *self.wire, &json, &mut self.answer)?;
        if self.bytes > MAX_BYTES && !self.answer.done {
            return Err(ProviderError::too_large(MAX_BYTES));
        }
        Ok(())
    }

    /// Passes the chunks on, after those of the calls that an error leaves open.
    fn settle(
        &mut self,
        outcome: Result<(), ProviderError>,
        chunks: &mut Vec<Chunk>,
    ) -> Result<(), ProviderError> {
        if outcome.is_err() {
            self.wire.close_calls(&mut self.answer);
            self.answer.done = true;
        }
        chunks.append(&mut self.answer.chunks);
        outcome
    }
}

/// One answer as far as it has come: what is passed on of it, and what every format keeps.
#[derive(Debug, Default)]
pub(super) struct Answer {
    wire: &'static str,
    pub(super) provider: String,
    model: String,
    notices: Vec<Notice>,
    started: bool,
    pub(super) done: bool,
    /// The name of the event that the frame came in; empty where it has none.
    pub(super) event: String,
    pub(super) has_text: bool,
    calls: usize,
    pub(super) usage: Usage,
    pub(super) chunks: Vec<Chunk>,
}

impl Answer {
    /// Says that the answer began, at the latest when there is something of it; `model` is empty where the
    /// server names none.
    pub(super) fn begin(&mut self, model: &str) {
        if !self.started {
            self.started = true;
            let model = Some(model.to_owned()).filter(|model| !model.is_empty());
            self.chunks.push(Chunk::Start { model });
            let notices = self.notices.drain(..).map(Chunk::Notice);
            self.chunks.extend(notices);
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.begin("");
            self.has_text = true;
            self.chunks.push(Chunk::Text(text.to_owned()));
        }
    }

    pub(super) fn thinking(&mut self, text: &str) {
        if !text.is_empty() {
            self.begin("");
            self.chunks.push(Chunk::Thinking(text.to_owned()));
        }
    }

    pub(super) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    pub(super) fn end(&mut self, stop: Stop, raw_stop: Option<&str>, items: Option<Value>) {
        self.begin("");
        self.done = true;
        let native = items.map(|items| NativeReply {
            wire: self.wire.to_owned(),
            provider: self.provider.clone(),
            model: self.model.clone(),
            items,
        });
        self.chunks.push(Chunk::End(End {
            stop,
            raw_stop: raw_stop.map(str::to_owned),
            usage: self.usage,
            native,
        }));
    }
}

/// A call while its input comes.
#[derive(Debug, Default)]
pub(super) struct OpenCall {
    /// The provider's id; empty where it sent none.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: String,
    /// Whether the input is free text instead of JSON: it is passed on once it is whole.
    pub(super) free_text: bool,
    /// Its number among the chunks, once it was announced.
    pub(super) index: Option<usize>,
    pub(super) closed: bool,
}

impl OpenCall {
    pub(super) fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Says that the call began, with what came of its input; once.
    pub(super) fn announce(&mut self, answer: &mut Answer) -> Result<(), ProviderError> {
        if self.index.is_some() {
            return Ok(());
        }
        if answer.calls >= MAX_CALLS {
            return Err(ProviderError::too_many_calls());
        }
        answer.begin("");
        answer.chunks.push(Chunk::ToolCallStart {
            index: answer.calls,
            provider_call_id: self.provider_id(),
            name: self.name.clone(),
        });
        self.index = Some(answer.calls);
        answer.calls += 1;
        if !self.free_text {
            self.pass_on(self.input.clone(), answer);
        }
        Ok(())
    }

    pub(super) fn push(&mut self, fragment: &str, answer: &mut Answer) {
        self.input.push_str(fragment);
        self.pass_on(fragment.to_owned(), answer);
    }

    fn pass_on(&self, fragment: String, answer: &mut Answer) {
        if let Some(index) = self.index
            && !fragment.is_empty()
        {
            answer.chunks.push(Chunk::ToolCallDelta { index, fragment });
        }
    }

    /// Says what the input came to; once, and of a call that was announced.
    pub(super) fn close(&mut self, input: CallInput, answer: &mut Answer) {
        if let Some(index) = self.index
            && !std::mem::replace(&mut self.closed, true)
        {
            answer.chunks.push(Chunk::ToolCallEnd {
                index,
                provider_call_id: self.provider_id(),
                input,
            });
        }
    }

    fn provider_id(&self) -> Option<String> {
        (!self.id.is_empty()).then(|| self.id.clone())
    }
}

pub(super) fn protocol(message: impl Into<String>) -> ProviderError {
    ProviderError::new(ErrorKind::Protocol, message)
}

pub(super) fn incomplete(message: impl Into<String>) -> ProviderError {
    ProviderError::new(ErrorKind::IncompleteStream, message)
}

/// The input as an object, for a history that takes nothing else.
pub(super) fn as_object(input: CallInput) -> Map<String, Value> {
    match input {
        CallInput::Object(input) => input,
        CallInput::Invalid { .. } | CallInput::Truncated { .. } => Map::new(),
    }
}
