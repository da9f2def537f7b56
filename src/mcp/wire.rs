//! Between a program's output and the SDK: lines that the SDK drops without a word are made into ones that it takes.
//!
//! The SDK throws away a line that is too long, nested too deep, or holds one thing that it does not know, and the
//! request waits until its time is over. Here a call gets an error that says so, what is nested too deep is cut, and
//! of content and tools that are not understood only these are lost. Over HTTP the SDK's own limits hold.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use futures::stream;
use rmcp::model::{ContentBlock, Tool};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio_util::bytes::Bytes;
use tokio_util::io::StreamReader;

use super::intake::Intake;

/// The longest line passed on, in bytes: below the SDK's own 16 MiB, for words put into a line may make it longer.
const MAX_LINE: usize = 15 * 1024 * 1024;

/// How much of both ends of a longer line is kept, in bytes, to find out what it answers.
const END: usize = 4_096;

/// Deepest nesting passed on: the parser's own limit is 128.
const MAX_DEPTH: usize = 100;

/// Marks a tool whose definition could not be read, with why.
const UNFIT: &str = "x-outrigger-unfit";

/// What is read by the SDK instead of a program's output.
pub(super) fn follow<R>(output: R, intake: Arc<Intake>) -> impl AsyncRead + Send + Unpin + 'static
where
    R: AsyncRead + Send + Unpin + 'static,
{
    let source = (BufReader::new(output), intake);
    let lines = stream::unfold(source, async |(mut output, intake)| {
        loop {
            let line = match next(&mut output, MAX_LINE, &intake).await {
                Ok(line) => line?,
                Err(error) => return Some((Err::<Bytes, io::Error>(error), (output, intake))),
            };
            if intake.admit(&line).await {
                return Some((Ok(Bytes::from(line)), (output, intake)));
            }
        }
    });
    let lines: Pin<Box<dyn futures::Stream<Item = io::Result<Bytes>> + Send>> = Box::pin(lines);
    StreamReader::new(lines)
}

/// Why a tool that the SDK was given is not the server's own; `None` where it is.
pub(super) fn unfit(schema: &serde_json::Map<String, Value>) -> Option<&str> {
    schema.get(UNFIT).and_then(Value::as_str)
}

/// Reads a line, end included, as the SDK shall see it; `None` at the end.
async fn next(
    output: &mut (impl AsyncBufReadExt + Unpin),
    most: usize,
    intake: &Intake,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut long: Option<Long> = None;
    loop {
        let available = output.fill_buf().await?;
        if available.is_empty() {
            // An unfinished line is no message.
            return Ok(None);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        let piece = available.get(..taken).unwrap_or_default();
        match &mut long {
            Some(long) => long.add(piece),
            None => line.extend_from_slice(piece),
        }
        output.consume(taken);
        // What is kept is paid for when it is passed on.
        let mut wasted = if long.is_some() { taken } else { 0 };
        if long.is_none() && line.len() > most {
            wasted = line.len();
            long = Some(Long::of(&std::mem::take(&mut line)));
        }
        if wasted > 0 {
            intake.waste(wasted).await;
        }
        if end.is_some() {
            return Ok(Some(match long {
                Some(long) => long.answer(most),
                None => fit(line),
            }));
        }
    }
}

/// A line that is not kept.
struct Long {
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: usize,
}

impl Long {
    fn of(line: &[u8]) -> Self {
        let mut long = Self {
            head: line.get(..END).unwrap_or(line).to_owned(),
            tail: Vec::new(),
            bytes: 0,
        };
        long.add(line);
        long
    }

    fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        self.tail.extend_from_slice(piece);
        let extra = self.tail.len().saturating_sub(END);
        self.tail.drain(..extra);
    }

    /// An error in its place; an empty line where what it answers is unknown.
    fn answer(&self, most: usize) -> Vec<u8> {
        let Some(id) = self.id() else {
            tracing::warn!(
                bytes = self.bytes,
                "an MCP server sent a message that is too long"
            );
            return b"\n".to_vec();
        };
        let message = format!(
            "the answer has {} bytes, more than the {most} that are taken; ask for less",
            self.bytes
        );
        let error = json!({ "code": -32603, "message": message });
        line_of(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
    }

    /// The number of the request: before the result, or behind it, where other SDKs write it.
    fn id(&self) -> Option<u64> {
        const KEY: &str = "\"id\"";
        let head = String::from_utf8_lossy(&self.head);
        let before = ["\"result\"", "\"error\"", "\"method\""]
            .iter()
            .filter_map(|key| head.find(key))
            .min()?;
        let in_head = head.get(..before)?.split_once(KEY);
        let tail = String::from_utf8_lossy(&self.tail);
        let in_tail = || tail.rsplit_once(KEY).filter(|(_, rest)| is_an_end(rest));
        let (_, rest) = in_head.or_else(in_tail)?;
        let number = rest.trim_start().strip_prefix(':')?.trim_start();
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }
}

/// Whether what follows a key is its value and the end of the message, but for its version.
fn is_an_end(rest: &str) -> bool {
    let plain: String = rest.chars().filter(|c| !c.is_whitespace()).collect();
    let after = plain
        .trim_start_matches(':')
        .trim_start_matches(|c: char| c.is_ascii_digit());
    matches!(after, "}" | ",\"jsonrpc\":\"2.0\"}")
}

/// A line with what the SDK would not take out of it; as it is where that is all of it.
fn fit(line: Vec<u8>) -> Vec<u8> {
    let line = match depth(&line) > MAX_DEPTH {
        true => cut(&line),
        false => line,
    };
    let holds = |word: &[u8]| line.windows(word.len()).any(|piece| piece == word);
    if !holds(b"\"result\"") || !(holds(b"\"content\"") || holds(b"\"tools\"")) {
        return line;
    }
    let Ok(mut message) = serde_json::from_slice::<Value>(&line) else {
        return line;
    };
    let Some(result) = message.get_mut("result") else {
        return line;
    };
    let content = replace(result, "content", |block| {
        let kind = block.get("type").and_then(Value::as_str);
        ContentBlock::deserialize(block).is_err().then(|| {
            let kind = super::connection::bounded(kind.unwrap_or("no said type"));
            let text = format!("[content of {kind:?} that is not understood here, left out]");
            json!({ "type": "text", "text": text })
        })
    });
    let tools = replace(result, "tools", |tool| {
        let error = Tool::deserialize(tool).err()?;
        let name = tool.get("name").and_then(Value::as_str).unwrap_or("?");
        let why = format!("its definition is not understood: {error}");
        Some(json!({ "name": name, "inputSchema": { "type": "object", UNFIT: why } }))
    });
    match content || tools {
        true => line_of(&message),
        false => line,
    }
}

/// Replaces the entries of a list for which there is something else; whether there was any.
fn replace(result: &mut Value, list: &str, other: impl Fn(&Value) -> Option<Value>) -> bool {
    let mut changed = false;
    let entries = result.get_mut(list).and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if let Some(other) = other(entry) {
            *entry = other;
            changed = true;
        }
    }
    changed
}

fn line_of(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

/// How a walk over the bytes of JSON stands; what is no JSON the parser refuses later.
#[derive(Default)]
struct Walk {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Walk {
    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_text => self.escaped = true,
            b'"' => self.in_text = !self.in_text,
            _ if self.in_text => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

fn depth(line: &[u8]) -> usize {
    let mut walk = Walk::default();
    let depths = line.iter().map(|byte| {
        walk.step(*byte);
        walk.depth
    });
    depths.max().unwrap_or_default()
}

/// Puts words in the place of what is nested too deep.
fn cut(line: &[u8]) -> Vec<u8> {
    let mut walk = Walk::default();
    let mut kept = Vec::new();
    for byte in line {
        let before = walk.depth;
        walk.step(*byte);
        if before <= MAX_DEPTH && walk.depth > MAX_DEPTH {
            kept.extend_from_slice(b"\"[nested too deep, left out]\"");
        } else if before <= MAX_DEPTH {
            kept.push(*byte);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
