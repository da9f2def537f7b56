//! Server-sent events out of bytes: lines from [`Lines`], put together into events.
//!
//! Also here is what servers send that the format does not know: `error: {...}` and bare `{...}` lines, events with no
//! blank line between them, and a last event that no blank line follows. Event ids and `retry` are passed over: an
//! answer cannot be resumed.
//!
//! No crate, since the lines were cut here already: `eventsource-stream` (0.2.3) panics on a byte order mark, drops
//! a last event, stalls on invalid UTF-8 and copies what it has not parsed again for each line, and given one whole event
//! at a time it has nothing left to do but to split a line at its colon, at 0.4 µs an event.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::stream::{Fuse, Stream, StreamExt};

use super::ProviderError;
use super::body::Frame;
use super::lines::{LineEnd, Lines, MAX_EVENT_BYTES, too_long};

/// The events of a body, in order. The last one comes too where no blank line follows it, unless
/// its data was cut.
pub(crate) struct Events<S> {
    bytes: Fuse<S>,
    lines: Lines,
    event: Event,
    /// A field read while the event before it was given away.
    held: Option<Field>,
}

/// What a line says.
enum Field {
    Data(String),
    Name(String),
    /// The data of an event named `error` that is a line by itself.
    Error(String),
}

/// An event as far as it has come.
#[derive(Default)]
struct Event {
    name: String,
    data: String,
    data_lines: usize,
}

impl Field {
    /// Reads a line that is not empty; `None` for what carries nothing.
    fn read(mut line: String) -> Option<Self> {
        if line.starts_with('{') {
            return Some(Self::Data(line));
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let start = line.len() - value.strip_prefix(' ').unwrap_or(value).len();
        match name {
            "data" => {
                line.drain(..start);
                Some(Self::Data(line))
            }
            "event" => {
                line.drain(..start);
                Some(Self::Name(line))
            }
            "error" => {
                let value = value.trim_start();
                value
                    .starts_with('{')
                    .then(|| Self::Error(value.to_owned()))
            }
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        let (Self::Data(value) | Self::Name(value) | Self::Error(value)) = self;
        value.len()
    }
}

impl Event {
    /// Whether a field belongs to the next event although no blank line came: an error line, or data
    /// after data that is whole JSON by itself.
    fn is_over_at(&self, field: &Field) -> bool {
        match field {
            Field::Error(_) => self.data_lines > 0 || !self.name.is_empty(),
            Field::Data(_) => self.data_lines == 1 && is_whole(&self.data),
            Field::Name(_) => false,
        }
    }

    fn add(&mut self, field: Field) -> Result<(), ProviderError> {
        if self.name.len() + self.data.len() + field.bytes() > MAX_EVENT_BYTES {
            return Err(too_long());
        }
        match field {
            Field::Name(name) => self.name = name,
            Field::Data(data) => self.add_data(data),
            Field::Error(data) => {
                "error".clone_into(&mut self.name);
                self.add_data(data);
            }
        }
        Ok(())
    }

    fn add_data(&mut self, data: String) {
        if self.data_lines == 0 {
            self.data = data;
        } else {
            self.data.push('\n');
            self.data.push_str(&data);
        }
        self.data_lines += 1;
    }

    /// Ends the event and begins the next; `None` where it has no data.
    fn take(&mut self) -> Option<Frame> {
        let Self { name, data, .. } = std::mem::take(self);
        (!data.is_empty()).then(|| Frame {
            event: name,
            data: without_prefix(data),
        })
    }
}

impl<S> Events<S>
where
    S: Stream<Item = Result<Bytes, ProviderError>>,
{
    /// Reads a body from its beginning.
    pub(crate) fn new(bytes: S) -> Self {
        Self {
            bytes: bytes.fuse(),
            lines: Lines::new(LineEnd::Any),
            event: Event::default(),
            held: None,
        }
    }

    /// Takes a line; returns the event that it ends.
    fn take_line(&mut self, line: String) -> Result<Option<Frame>, ProviderError> {
        if line.is_empty() {
            return Ok(self.event.take());
        }
        let Some(field) = Field::read(line) else {
            return Ok(None);
        };
        if self.event.is_over_at(&field)
            && let Some(frame) = self.event.take()
        {
            self.held = Some(field);
            return Ok(Some(frame));
        }
        self.event.add(field).map(|()| None)
    }

    /// Takes the lines that are there, up to the end of an event.
    fn next_event(&mut self) -> Result<Option<Frame>, ProviderError> {
        if let Some(held) = self.held.take() {
            self.event.add(held)?;
        }
        while let Some(line) = self.lines.next_line()? {
            if let Some(frame) = self.take_line(line)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Returns the last event where its data arrived whole. Bytes cut inside a line are no event.
    fn last_event(&mut self) -> Result<Option<Frame>, ProviderError> {
        // Of a line without an end only data shows whether it was cut.
        let rest = self.lines.take_rest();
        if let Some(rest) = rest.filter(|rest| is_data(rest))
            && let Some(frame) = self.take_line(rest)?
        {
            return Ok(Some(frame));
        }
        if let Some(held) = self.held.take() {
            self.event.add(held)?;
        }
        Ok(self.event.take().filter(|last| is_whole(&last.data)))
    }
}

/// Whether a line is data, of an error or not.
fn is_data(line: &str) -> bool {
    ["data:", "error:", "{"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// Takes off a second `data:`, which proxies that wrap a stream once more leave there.
fn without_prefix(data: String) -> String {
    match data.strip_prefix("data:") {
        Some(rest) => rest.trim_start().to_owned(),
        None => data,
    }
}

/// Whether the data of an event arrived whole: `[DONE]`, or complete JSON.
pub(crate) fn is_whole(data: &str) -> bool {
    let data = data.trim();
    data.starts_with("[DONE]") || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}

impl<S> Stream for Events<S>
where
    S: Stream<Item = Result<Bytes, ProviderError>> + Unpin,
{
    type Item = Result<Frame, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(frame) = this.next_event()? {
                return Poll::Ready(Some(Ok(frame)));
            }
            match ready!(this.bytes.poll_next_unpin(cx)) {
                Some(bytes) => this.lines.push(bytes?),
                None => return Poll::Ready(this.last_event().transpose()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
