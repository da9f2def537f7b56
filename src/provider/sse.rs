//! Server-sent events out of bytes.
//!
//! `eventsource-stream` makes events of lines. Version 0.2.3 panics on a byte order mark, withholds what follows
//! invalid UTF-8, drops a last event that no blank line follows, has no bound, and copies all that it has not read
//! yet for each line of it. So it is given whole lines of valid UTF-8 one by one, and an event's only once all of
//! them are here ([`WholeEvents`]). There too is what servers send that the format does not know: `error: {...}` and
//! bare `{...}` lines, and events with no blank line between them. Event ids and `retry` are passed over: an answer
//! cannot be resumed. Silence is timed on the bytes, in `http`, for a comment is a sign of life.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use eventsource_stream::{EventStream, EventStreamError};
use futures::stream::{Fuse, Stream, StreamExt};

use super::body::Frame;
use super::lines::{LineEnd, Lines, MAX_EVENT_BYTES, too_long};
use super::{ErrorKind, ProviderError};

/// What a line costs besides its bytes while its event is gathered, so that many short ones are bounded too.
const LINE_COST: usize = 64;

/// A first line that says nothing: a byte order mark is looked for in the first line alone, and there it panics.
const NOTHING: &str = ":\n";

/// The name of an event that has none.
const UNNAMED: &str = "message";

/// The events of a body, in order. The last one comes too where no blank line follows it, unless
/// its data was cut.
pub(crate) struct Events<S> {
    events: EventStream<WholeEvents<S>>,
}

impl<S> Events<S>
where
    S: Stream<Item = Result<Bytes, ProviderError>>,
{
    /// Reads a body from its beginning.
    pub(crate) fn new(bytes: S) -> Self {
        Self {
            events: EventStream::new(WholeEvents::new(bytes)),
        }
    }
}

impl<S> Stream for Events<S>
where
    S: Stream<Item = Result<Bytes, ProviderError>> + Unpin,
{
    type Item = Result<Frame, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let event = match ready!(self.events.poll_next_unpin(cx)) {
                Some(Ok(event)) => event,
                Some(Err(EventStreamError::Transport(error))) => {
                    return Poll::Ready(Some(Err(error)));
                }
                Some(Err(error)) => {
                    let message =
                        format!("the provider sent an event that cannot be read: {error}");
                    let error = ProviderError::new(ErrorKind::Protocol, message);
                    return Poll::Ready(Some(Err(error)));
                }
                None => return Poll::Ready(None),
            };
            if !event.data.is_empty() {
                let is_unnamed = event.event == UNNAMED;
                return Poll::Ready(Some(Ok(Frame {
                    event: if is_unnamed {
                        String::new()
                    } else {
                        event.event
                    },
                    data: without_prefix(event.data),
                })));
            }
        }
    }
}

/// The lines of whole events, one at a time, each with its end.
struct WholeEvents<S> {
    bytes: Fuse<S>,
    lines: Lines,
    /// The event that has not ended yet.
    event: Gathered,
    /// Lines of events that have ended.
    ready: VecDeque<String>,
    ended: bool,
}

/// The lines of an event as far as they have come; those that say nothing to anybody are left out.
#[derive(Default)]
struct Gathered {
    lines: Vec<String>,
    data_lines: usize,
    bytes: usize,
}

impl Gathered {
    fn push(&mut self, mut line: String) -> Result<(), ProviderError> {
        line.push('\n');
        self.bytes += line.len() + LINE_COST;
        if self.bytes > MAX_EVENT_BYTES {
            return Err(too_long());
        }
        self.lines.push(line);
        Ok(())
    }

    fn push_data(&mut self, line: String) -> Result<(), ProviderError> {
        self.data_lines += 1;
        self.push(line)
    }

    /// Whether its data arrived whole.
    fn is_whole(&self) -> bool {
        let lines = self.lines.iter();
        let mut data = lines.filter_map(|line| line.strip_prefix("data"));
        match (self.data_lines, data.next()) {
            (0, _) | (_, None) => false,
            (1, Some(line)) => is_whole(value(line)),
            (_, Some(first)) => {
                is_whole(&data.fold(value(first).to_owned(), |data, line| data + value(line)))
            }
        }
    }
}

/// What stands behind the name of a field.
fn value(line: &str) -> &str {
    let value = line.strip_prefix(':').unwrap_or(line);
    value.strip_prefix(' ').unwrap_or(value)
}

impl<S> WholeEvents<S>
where
    S: Stream<Item = Result<Bytes, ProviderError>>,
{
    fn new(bytes: S) -> Self {
        Self {
            bytes: bytes.fuse(),
            lines: Lines::new(LineEnd::Any),
            event: Gathered::default(),
            ready: VecDeque::from([NOTHING.to_owned()]),
            ended: false,
        }
    }

    fn take_line(&mut self, line: String) -> Result<(), ProviderError> {
        if line.is_empty() {
            self.end_event();
            return Ok(());
        }
        let is_bare = line.starts_with('{');
        match line.split_once(':').map_or(line.as_str(), |(name, _)| name) {
            name if is_bare || name == "data" => {
                // Data after data that is whole by itself is that of the next event.
                if self.event.data_lines == 1 && self.event.is_whole() {
                    self.end_event();
                }
                let data = if is_bare {
                    format!("data:{line}")
                } else {
                    line
                };
                self.event.push_data(data)
            }
            "event" => self.event.push(line),
            "error" => {
                let data = line.strip_prefix("error").map_or("", value).trim_start();
                if !data.starts_with('{') {
                    return Ok(());
                }
                self.end_event();
                self.event.push("event:error".to_owned())?;
                self.event.push_data(format!("data:{data}"))
            }
            _ => Ok(()),
        }
    }

    /// Passes an event on; one without data is none.
    fn end_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        if event.data_lines > 0 {
            self.ready.extend(event.lines);
            self.ready.push_back("\n".to_owned());
        }
    }

    /// Passes the last event on where its data arrived whole. Bytes cut inside a line are no event.
    fn end(&mut self) -> Result<(), ProviderError> {
        self.ended = true;
        // Of a line without an end only data shows whether it was cut.
        if let Some(rest) = self.lines.take_rest().filter(|rest| is_data(rest)) {
            self.take_line(rest)?;
        }
        if self.event.is_whole() {
            self.end_event();
        }
        Ok(())
    }
}

impl<S> Stream for WholeEvents<S>
where
    S: Stream<Item = Result<Bytes, ProviderError>> + Unpin,
{
    type Item = Result<String, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(line) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(line)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            while this.ready.is_empty()
                && let Some(line) = this.lines.next_line()?
            {
                this.take_line(line)?;
            }
            if this.ready.is_empty() {
                match ready!(this.bytes.poll_next_unpin(cx)) {
                    Some(bytes) => this.lines.push(bytes?),
                    None => this.end()?,
                }
            }
        }
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

#[cfg(test)]
mod tests;
