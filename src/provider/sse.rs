//! Server-sent events out of lines.
//!
//! `eventsource-stream` makes an event of its lines. Version 0.2.3 panics on a byte order mark, withholds what
//! follows invalid UTF-8, drops a last event that no blank line follows, has no bound, and copies all that it has
//! not read yet for each line of it. So it is given whole lines of valid UTF-8 one by one, and an event's only once
//! all of them are here. Here too is what servers send that the format does not know: `error: {...}` and bare
//! `{...}` lines, and events with no blank line between them. Event ids and `retry` are passed over: an answer
//! cannot be resumed. Silence is timed on the bytes, in `http`, for a comment is a sign of life.

use std::convert::Infallible;

use eventsource_stream::EventStream;
use futures::{FutureExt, StreamExt, stream};

use super::ProviderError;
use super::frames::{Frame, is_whole};
use super::lines::{MAX_EVENT_BYTES, too_long};

/// What a line costs besides its bytes while its event is gathered, so that many short ones are bounded too.
const LINE_COST: usize = 64;

/// A first line that says nothing: a byte order mark is looked for in the first line alone, and there it panics.
const NOTHING: &str = ":\n";

const UNNAMED: &str = "message";

/// An event as far as its lines have come; those that say nothing to anybody are left out.
#[derive(Debug, Default)]
pub(super) struct Event {
    lines: Vec<String>,
    data_lines: usize,
    bytes: usize,
}

impl Event {
    /// Takes the next line. Returns the event before it, where that ends with it.
    pub(super) fn take_line(&mut self, line: String) -> Result<Option<Frame>, ProviderError> {
        let name = line.split_once(':').map_or(line.as_str(), |(name, _)| name);
        let is_bare = line.starts_with('{');
        match name {
            "" if line.is_empty() => Ok(self.end()),
            name if is_bare || name == "data" => {
                // Data after data that is whole by itself is that of the next event.
                let is_next = self.data_lines == 1 && self.is_whole();
                let ended = if is_next { self.end() } else { None };
                self.data_lines += 1;
                self.push(if is_bare {
                    format!("data:{line}")
                } else {
                    line
                })?;
                Ok(ended)
            }
            "event" => self.push(line).map(|()| None),
            "error" => {
                let data = line.strip_prefix("error").map_or("", value).trim_start();
                if !data.starts_with('{') {
                    return Ok(None);
                }
                let ended = self.end();
                self.data_lines += 1;
                self.push("event:error".to_owned())?;
                self.push(format!("data:{data}"))?;
                Ok(ended)
            }
            _ => Ok(None),
        }
    }

    fn push(&mut self, mut line: String) -> Result<(), ProviderError> {
        line.push('\n');
        self.bytes += line.len() + LINE_COST;
        if self.bytes > MAX_EVENT_BYTES {
            return Err(too_long());
        }
        self.lines.push(line);
        Ok(())
    }

    pub(super) fn is_whole(&self) -> bool {
        let data = self
            .lines
            .iter()
            .filter_map(|line| line.strip_prefix("data"));
        let data: Vec<&str> = data.map(value).collect();
        !data.is_empty() && is_whole(&data.concat())
    }

    /// Ends the event; one without data is none.
    pub(super) fn end(&mut self) -> Option<Frame> {
        let event = std::mem::take(self);
        if event.data_lines == 0 {
            return None;
        }
        let lines = event.lines.iter().map(String::as_str);
        let lines = [NOTHING].into_iter().chain(lines).chain(["\n"]);
        let mut events = EventStream::new(stream::iter(lines.map(Ok::<_, Infallible>)));
        // Lines of valid UTF-8 that are all there are neither waited for nor an error.
        let event = events.next().now_or_never().flatten()?.ok()?;
        if event.data.is_empty() {
            return None;
        }
        let name = Some(event.event).filter(|name| name != UNNAMED);
        Some(Frame {
            event: name.unwrap_or_default(),
            data: without_prefix(event.data),
        })
    }
}

fn value(line: &str) -> &str {
    let value = line.strip_prefix(':').unwrap_or(line);
    value.strip_prefix(' ').unwrap_or(value)
}

/// Whether a line is data, of an error or not: only of data it shows whether the line was cut.
pub(super) fn is_data(line: &str) -> bool {
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

#[cfg(test)]
mod tests;
