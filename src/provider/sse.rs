//! Server-sent events out of lines.
//!
//! Read beside what the format knows: `error: {...}` and bare `{...}` lines, and events with no blank line between
//! them, which servers send. Event ids and `retry` are passed over: an answer cannot be resumed. Silence is timed on
//! the bytes, in `http`, for a comment is a sign of life.

use super::ProviderError;
use super::frames::{Frame, is_whole};
use super::lines::{MAX_EVENT_BYTES, too_long};

/// An event as far as its lines have come.
#[derive(Debug, Default)]
pub(super) struct Event {
    name: String,
    /// Its lines of data, with a line feed between them; at most [`MAX_EVENT_BYTES`].
    data: String,
    data_lines: usize,
}

impl Event {
    /// Takes the next line. Returns the event before it, where that ends with it.
    pub(super) fn take_line(&mut self, line: &str) -> Result<Option<Frame>, ProviderError> {
        if line.is_empty() {
            return Ok(self.end());
        }
        let (name, value) = if line.starts_with('{') {
            ("data", line)
        } else {
            line.split_once(':').unwrap_or((line, ""))
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        let mut ended = None;
        match name {
            "data" => {
                // Data after data that is whole by itself is that of the next event.
                if self.data_lines == 1 && self.is_whole() {
                    ended = self.end();
                }
                self.push(value)?;
            }
            "event" => value.clone_into(&mut self.name),
            "error" if value.trim_start().starts_with('{') => {
                ended = self.end();
                "error".clone_into(&mut self.name);
                self.push(value.trim_start())?;
            }
            _ => {}
        }
        Ok(ended)
    }

    fn push(&mut self, data: &str) -> Result<(), ProviderError> {
        if self.data.len() + data.len() >= MAX_EVENT_BYTES {
            return Err(too_long());
        }
        if self.data_lines > 0 {
            self.data.push('\n');
        }
        self.data.push_str(data);
        self.data_lines += 1;
        Ok(())
    }

    pub(super) fn is_whole(&self) -> bool {
        is_whole(&self.data)
    }

    /// Ends the event; one without data is none.
    pub(super) fn end(&mut self) -> Option<Frame> {
        let event = std::mem::take(self);
        (!event.data.is_empty()).then(|| Frame {
            event: event.name,
            data: without_prefix(event.data),
        })
    }
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
