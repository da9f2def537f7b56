//! From text to a command and from an event to text: the envelope, its short form, its limits.
//!
//! A frame is read once, into one tree, and acted on as read: nothing is checked on one reading and
//! done on another.

pub(crate) mod tree;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::code::SessionCode;
use super::command::{Command, examples};
use super::event::SessionError;
use super::roles::SocketId;

/// The requests that have no fields, so that whatever stands in their payload is ignored.
pub(super) const WITHOUT_FIELDS: &[&str] = &[
    "session:ping",
    "session:state",
    "session:status",
    "session:take-over",
    "skill:list",
    "provider:list",
    "workflow:list",
    "config:reload",
    "mcp:list",
];

/// A command with the id that its answer is to carry.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The client's own id; `None` where it does not want an answer matched.
    pub id: Option<RequestId>,
    /// What the client wants.
    pub command: Command,
}

/// A client's id of a request: a string or a number, given back as it came, so kept as JSON. Two are the same where a
/// client would take them for that, whatever socket they came from.
#[derive(Clone, Debug, Default)]
pub struct RequestId {
    /// Empty where the client gave none, and is answered all the same.
    json: String,
    /// The socket that asks, where it has a name.
    from: Option<SocketId>,
    /// Whether that one alone gets the answer.
    is_apart: bool,
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Eq for RequestId {}

impl std::hash::Hash for RequestId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.json.hash(state);
    }
}

impl RequestId {
    /// The most characters of an id: of its text, or of the number as it was written.
    pub const MAX_CHARS: usize = 256;

    /// Takes the id of a frame, whose text is needed for what no number type holds.
    fn read(value: &Value, frame: &str) -> Option<Self> {
        let id = match value {
            Value::String(text) if text.chars().count() <= Self::MAX_CHARS => value.to_string(),
            Value::Number(number) => as_written(frame).unwrap_or_else(|| number.to_string()),
            _ => return None,
        };
        let fits = value.is_string() || id.len() <= Self::MAX_CHARS;
        fits.then_some(Self::from_json(id))
    }

    /// Returns the id whose [`Display`](fmt::Display) this is.
    pub(crate) fn from_json(json: String) -> Self {
        Self {
            json,
            ..Self::default()
        }
    }

    /// Returns the id as one of this socket.
    pub(crate) fn of(self, socket: SocketId) -> Self {
        Self {
            from: Some(socket),
            ..self
        }
    }

    /// Returns what has an answer go to this socket alone; it names the request where that has an id.
    pub(crate) fn apart(id: Option<Self>, socket: SocketId) -> Self {
        Self {
            is_apart: true,
            ..id.unwrap_or_default().of(socket)
        }
    }

    /// Returns the socket that asks, where it has a name.
    pub(crate) fn socket(&self) -> Option<SocketId> {
        self.from
    }

    /// Whether the answer is for that socket alone.
    pub(crate) fn is_apart(&self) -> bool {
        self.is_apart
    }
}

/// The `id` of a frame as it was written: 1E2 is no 100.0 to who compares texts.
fn as_written(frame: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    let head: Head<'_> = serde_json::from_str(frame).ok()?;
    Some(head.id.get().to_owned())
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::from_json(Value::from(text).to_string())
    }
}

impl fmt::Display for RequestId {
    /// As JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}

/// Why a frame is no request, and whom to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// The id to answer with, where it could be read.
    pub reply_to: Option<RequestId>,
    /// What is wrong.
    pub error: SessionError,
}

/// Reads a text frame; `None` for one that is empty but for white space. An error names the field and shows a valid frame.
pub fn read(text: &str) -> Result<Option<Request>, Rejected> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let (mut object, twice) = object(text).map_err(|message| Rejected {
        reply_to: None,
        error: SessionError::new(SessionCode::InvalidJson, message),
    })?;
    let (id, id_problem) = match object.remove("id") {
        None | Some(Value::Null) => (None, None),
        Some(value) => match RequestId::read(&value, text) {
            Some(id) => (Some(id), None),
            None => (
                None,
                Some("`id` must be a number or a string of at most 256 characters"),
            ),
        },
    };
    let reject = |code, message: String| Rejected {
        reply_to: id.clone(),
        error: SessionError::new(code, message),
    };
    let kind = match object.remove("type") {
        Some(Value::String(kind)) => Ok(kind),
        Some(_) => Err("`type` must be a string"),
        None => Err("field `type` is missing"),
    };
    let kind = kind.map_err(|problem| {
        let message = format!("{problem}; for example {}", example("chat:send"));
        reject(SessionCode::InvalidPayload, message)
    })?;
    if let Some(key) = twice {
        return Err(reject(
            SessionCode::InvalidPayload,
            format!("the key {key:?} occurs twice in one object; give it once"),
        ));
    }
    if !examples().any(|(known, _)| known == kind) {
        return Err(reject(SessionCode::UnknownType, unknown(&kind)));
    }
    if let Some(problem) = id_problem {
        return Err(reject(SessionCode::InvalidPayload, problem.to_owned()));
    }
    let command =
        command(&kind, object).map_err(|message| reject(SessionCode::InvalidPayload, message))?;
    Ok(Some(Request { id, command }))
}

/// Reads an object, and the first key that occurs twice in it or in one within it.
fn object(text: &str) -> Result<(Map<String, Value>, Option<String>), String> {
    let problem = match tree::read(text) {
        Ok((Value::Object(object), twice)) => return Ok((object, twice)),
        Ok((other, _)) => format!("a frame is one JSON object, not {}", sort(&other)),
        Err(error) => format!("not valid JSON: {error}"),
    };
    Err(format!("{problem}; for example {}", example("chat:send")))
}

/// Brings the short form into the long one and reads the payload's fields.
fn command(kind: &str, mut object: Map<String, Value>) -> Result<Command, String> {
    let mut payload = match object.remove("payload") {
        Some(Value::Object(payload)) => payload,
        None | Some(Value::Null) => object,
        Some(_) if WITHOUT_FIELDS.contains(&kind) => Map::new(),
        Some(other) => {
            return Err(format!(
                "{kind}: `payload` must be an object, not {}; for example {}",
                sort(&other),
                example(kind)
            ));
        }
    };
    // What many writers say of a field that they leave out.
    payload.retain(|_, value| !value.is_null());
    let mut frame = Map::with_capacity(2);
    frame.insert("type".to_owned(), Value::String(kind.to_owned()));
    frame.insert("payload".to_owned(), Value::Object(payload));
    let mut unknown = Vec::new();
    let mut track = serde_path_to_error::Track::new();
    let deserializer = serde_path_to_error::Deserializer::new(Value::Object(frame), &mut track);
    let read = serde_ignored::deserialize(deserializer, |path| unknown.push(path.to_string()));
    for field in unknown {
        tracing::debug!(kind, field, "unknown field ignored");
    }
    read.map_err(|error| {
        let path = track.path().to_string();
        let field = path.strip_prefix("payload").unwrap_or(&path);
        let field = field.trim_start_matches('.');
        let place = match field {
            "" | "?" => String::new(),
            field => format!("field `{field}`: "),
        };
        format!("{kind}: {place}{error}; for example {}", example(kind))
    })
}

fn example(kind: &str) -> &'static str {
    let mut examples = examples();
    let found = examples.find(|(known, _)| *known == kind);
    found.map_or("", |(_, example)| example)
}

fn unknown(kind: &str) -> String {
    let shown: String = kind.chars().take(64).collect();
    let nearest = examples()
        .map(|(known, _)| (strsim::jaro_winkler(known, &shown), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.8);
    match nearest {
        Some((_, known)) => format!("unknown type `{shown}`; did you mean `{known}`?"),
        None => {
            let all: Vec<&str> = examples().map(|(known, _)| known).collect();
            format!("unknown type `{shown}`; known are {}", all.join(", "))
        }
    }
}

fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Number, time and addressee of a frame to the client.
#[derive(Clone, Debug, Default)]
pub struct Stamp<'a> {
    /// The event's number; absent only for the `session:ready` of a resumed socket.
    pub seq: Option<u64>,
    /// The id of the request that this answers.
    pub reply_to: Option<&'a RequestId>,
    /// When it was emitted.
    pub timestamp: Timestamp,
    /// The task that it is of.
    pub task: Option<&'a str>,
}

/// A moment; shown as the wire has it: RFC 3339, UTC, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// The time now.
    pub fn now() -> Self {
        Self(jiff::Timestamp::now())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Writes an event as one frame: `type` first, for people, then number and time, then the payload.
///
/// `event` is an [`Event`](super::event::Event), or what looks like one: tagged with `type` first, then `payload`.
pub fn write(event: &impl Serialize, stamp: &Stamp<'_>) -> String {
    let mut frame = serde_json::to_string(event).unwrap_or_else(|error| {
        tracing::error!(%error, "an event that cannot be written");
        r#"{"type":"session:error","payload":{"code":"internal","message":"an event could not be written"}}"#.to_owned()
    });
    let head = head(stamp);
    // The tag comes first and holds no quote, so the first match is the envelope's own field.
    match frame.find(r#","payload":"#) {
        Some(at) => frame.insert_str(at, &head),
        None => frame.insert_str(frame.len().saturating_sub(1), &head),
    }
    frame
}

fn head(stamp: &Stamp<'_>) -> String {
    use std::fmt::Write as _;

    let mut head = String::with_capacity(64);
    if let Some(seq) = stamp.seq {
        let _ = write!(head, r#","seq":{seq}"#);
    }
    if let Some(id) = stamp.reply_to.filter(|id| !id.json.is_empty()) {
        let _ = write!(head, r#","replyTo":{id}"#);
    }
    if let Some(task) = stamp.task {
        // A letter and digits: nothing to be escaped.
        let _ = write!(head, r#","taskId":"{task}""#);
    }
    let _ = write!(head, r#","timestamp":"{}""#, stamp.timestamp);
    head
}

#[cfg(test)]
mod tests;
