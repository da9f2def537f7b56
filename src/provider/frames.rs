//! The bytes of a body to frames: finds out what the body really is, and cuts it.
//!
//! Servers answer a request for a stream with JSON, with a page of HTML, or with the right bytes under the wrong
//! content type, so the first line decides and the content type only helps.

use std::collections::VecDeque;

use bytes::Bytes;

use super::ProviderError;
use super::decode::protocol;
use super::lines::{Lines, MAX_EVENT_BYTES, too_long};
use super::sse::{Event, is_data};

/// Most white space before the first byte of an answer, or after its first line, and most names of events and the like
/// before the next data: servers that keep a connection awake with such send some bytes a minute. Comments are free.
const MAX_BLANK_BYTES: usize = 1024 * 1024;

/// Bytes shown of a body that is no answer.
pub(super) const SHOWN_BYTES: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// The event's name; empty where it has none.
    pub(super) event: String,
    /// Its data; never empty.
    pub(super) data: String,
}

#[derive(Debug)]
pub(super) enum Piece {
    Frame(Frame),
    Whole(String),
}

/// What a body turned out to be.
#[derive(Debug)]
enum Form {
    /// Nothing but white space came.
    Blank,
    Events(Event),
    Rows,
    /// JSON in one line, where events were said to come: the first of several rows, or all of it.
    OneRow(String),
    /// JSON in several lines.
    Whole(String),
    /// No answer of a model: what it is, and its beginning.
    Refused(&'static str, String),
}

/// Cuts one body. The pieces come to a queue.
#[derive(Debug)]
pub(super) struct Frames {
    is_ndjson: bool,
    is_event_stream: bool,
    lines: Lines,
    form: Form,
    blank: usize,
    pub(super) pieces: VecDeque<Piece>,
}

impl Frames {
    /// `is_ndjson` is what the wire format says, `content_type` the header's value, empty where there was none.
    pub(super) fn new(is_ndjson: bool, content_type: &str) -> Self {
        let content_type = content_type.to_ascii_lowercase();
        Self {
            is_ndjson: is_ndjson || content_type.contains("ndjson"),
            is_event_stream: content_type.contains("event-stream"),
            lines: Lines {
                cr_ends: !is_ndjson,
                ..Lines::default()
            },
            form: Form::Blank,
            blank: 0,
            pieces: VecDeque::new(),
        }
    }

    pub(super) fn push(&mut self, mut bytes: Bytes) -> Result<(), ProviderError> {
        while let Some(line) = self.lines.next(&mut bytes)? {
            self.take_line(line, true)?;
        }
        self.judge(SHOWN_BYTES)
    }

    /// Takes what need not wait for the end of its line: white space, which is not kept, and what is no answer of a
    /// model, once there is `enough` of it to show. That is 0 where the bytes broke off.
    pub(super) fn judge(&mut self, enough: usize) -> Result<(), ProviderError> {
        let part = self.lines.partial.trim_ascii_start();
        let part = part.strip_prefix(b"\xef\xbb\xbf").unwrap_or(part);
        let size = match &self.form {
            Form::Blank | Form::OneRow(_) if part.is_empty() => {
                let blank = std::mem::take(&mut self.lines.partial).len();
                return self.count_blank(blank);
            }
            Form::Blank if self.refusal(part).is_some() => part.len(),
            Form::Refused(_, head) => head.len() + part.len(),
            _ => return Ok(()),
        };
        if size >= enough {
            let line = self.lines.take_rest();
            self.take_line(line, false)?;
            if let Form::Refused(what, head) = &self.form {
                return Err(not_a_stream(what, head));
            }
        }
        Ok(())
    }

    /// The bytes ended. A last line or event comes too, unless it was cut.
    pub(super) fn end(&mut self) -> Result<(), ProviderError> {
        let rest = self.lines.take_rest();
        if !matches!(self.form, Form::Events(_)) || is_data(&rest) {
            self.take_line(rest, false)?;
        }
        match std::mem::replace(&mut self.form, Form::Blank) {
            Form::Events(mut event) if event.is_whole() => {
                self.pieces.extend(event.end().map(Piece::Frame));
            }
            Form::Blank | Form::Rows | Form::Events(_) => {}
            Form::OneRow(body) | Form::Whole(body) if is_whole(&body) => {
                self.pieces.push_back(Piece::Whole(body));
            }
            Form::OneRow(body) | Form::Whole(body) => {
                return Err(not_a_stream("broken JSON", &body));
            }
            Form::Refused(what, head) => return Err(not_a_stream(what, &head)),
        }
        Ok(())
    }

    /// Takes a line; `ended` says that its end came too.
    fn take_line(&mut self, line: String, ended: bool) -> Result<(), ProviderError> {
        match &mut self.form {
            Form::Blank => return self.take_first(&line, ended),
            Form::Events(event) => {
                let frame = event.take_line(&line)?;
                if !is_data(&line) && !line.starts_with(':') {
                    self.count_blank(line.len() + 1)?;
                }
                if let Some(frame) = frame {
                    self.blank = 0;
                    self.pieces.push_back(Piece::Frame(frame));
                }
            }
            Form::Rows => self.push_row(line, ended),
            Form::OneRow(first) => {
                let first = std::mem::take(first);
                return self.take_second(first, &line, ended);
            }
            Form::Whole(body) => {
                let more = 1 + line.len();
                if body.len() + more > MAX_EVENT_BYTES {
                    return Err(too_long());
                }
                body.push('\n');
                body.push_str(&line);
            }
            Form::Refused(what, head) => {
                head.push('\n');
                head.push_str(&line);
                if head.len() >= SHOWN_BYTES {
                    return Err(not_a_stream(what, head));
                }
            }
        }
        Ok(())
    }

    /// Finds out what the body is by its first line that says something.
    fn take_first(&mut self, line: &str, ended: bool) -> Result<(), ProviderError> {
        let first = without_blank_start(line).to_owned();
        self.count_blank(line.len() - first.len() + 1)?;
        self.form = match first.bytes().next() {
            None => return Ok(()),
            Some(b'{' | b'[') if self.is_ndjson => match (ended, is_whole(&first)) {
                (true, true) => {
                    self.push_row(first, true);
                    Form::Rows
                }
                // The beginning of a row: the bytes broke off.
                (false, false) => Form::Rows,
                // The whole answer without a line feed at its end, or the first line of it.
                (false, true) | (true, false) => Form::Whole(first),
            },
            Some(b'{') if self.is_event_stream && is_whole(&first) => Form::OneRow(first),
            Some(b'{' | b'[') => Form::Whole(first),
            Some(_) => match self.refusal(first.as_bytes()) {
                Some(what) => Form::Refused(what, first),
                None => {
                    let mut event = Event::default();
                    event.take_line(&first)?;
                    Form::Events(event)
                }
            },
        };
        Ok(())
    }

    /// Takes a line after a first row of JSON. Its white space in front is dropped: it may have come alone, and then it
    /// was dropped by [`Self::judge`].
    fn take_second(&mut self, first: String, line: &str, ended: bool) -> Result<(), ProviderError> {
        let second = without_blank_start(line);
        self.count_blank(line.len() - second.len() + 1)?;
        self.form = if second.trim().is_empty() {
            Form::OneRow(first)
        } else if second.starts_with('{') {
            self.push_row(first, true);
            self.push_row(second.to_owned(), ended);
            Form::Rows
        } else if first.len() + 1 + second.len() > MAX_EVENT_BYTES {
            return Err(too_long());
        } else {
            Form::Whole(first + "\n" + second)
        };
        Ok(())
    }

    /// What a body is that begins so, where it is no answer of a model.
    fn refusal(&self, start: &[u8]) -> Option<&'static str> {
        match start.first() {
            Some(b'<') => Some("a page of HTML"),
            None | Some(b'{' | b'[' | b'd' | b'e' | b'i' | b'r' | b':') => None,
            Some(_) => (!self.is_event_stream).then_some("text"),
        }
    }

    fn push_row(&mut self, line: String, ended: bool) {
        if !line.trim().is_empty() && (ended || is_whole(&line)) {
            let event = String::new();
            self.pieces
                .push_back(Piece::Frame(Frame { event, data: line }));
        }
    }

    fn count_blank(&mut self, more: usize) -> Result<(), ProviderError> {
        self.blank += more;
        if self.blank <= MAX_BLANK_BYTES {
            return Ok(());
        }
        Err(protocol(format!(
            "the provider sent more than {} MiB of white space or empty events in the place of an answer",
            MAX_BLANK_BYTES / (1024 * 1024)
        )))
    }
}

/// A line from its first character that says something.
fn without_blank_start(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{feff}')
}

fn not_a_stream(what: &str, head: &str) -> ProviderError {
    let end = head.floor_char_boundary(SHOWN_BYTES);
    let start = super::error::safe_message(head.get(..end).unwrap_or(head));
    protocol(format!(
        "the provider answered with {what} instead of a stream, check base_url: {start}"
    ))
}

/// Whether the data of an event arrived whole: `[DONE]`, or complete JSON.
pub(super) fn is_whole(data: &str) -> bool {
    let data = data.trim();
    data.starts_with("[DONE]") || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}
