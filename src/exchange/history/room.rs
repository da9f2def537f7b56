//! How many bytes histories may have: each by itself, and all of the daemon together.

use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value};

use crate::message::{Message, Part, ToolCall};

/// Most bytes that one conversation remembers; no provider takes half of it in one request.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Most bytes that all conversations of the daemon remember together.
const MAX_TOTAL_BYTES: usize = 512 * 1024 * 1024;

/// What histories may have, and how much all of them do; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    of_each: usize,
    of_all: usize,
    used: Arc<AtomicUsize>,
}

/// Why nothing more is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// One history has what it may have.
    #[error("the history of this conversation has reached {} MiB, the most that it may have", mib(.0))]
    Conversation(usize),
    /// All together have what they may have.
    #[error("the histories of all conversations together have reached {} MiB, the most that they may have", mib(.0))]
    Daemon(usize),
}

impl Default for Room {
    fn default() -> Self {
        Self::new(MAX_BYTES, MAX_TOTAL_BYTES)
    }
}

impl Room {
    /// Room for so many bytes in each history, and in all together.
    pub(crate) fn new(of_each: usize, of_all: usize) -> Self {
        Self {
            of_each,
            of_all,
            used: Arc::default(),
        }
    }

    pub(super) fn changed(&self, from: usize, to: usize) {
        // Both orders come to the same: nothing is read between.
        self.used.fetch_add(to, Ordering::Relaxed);
        self.used.fetch_sub(from, Ordering::Relaxed);
    }

    /// Fails where a history of `from` bytes may not have `to`.
    pub(super) fn check(&self, from: usize, to: usize) -> Result<(), Full> {
        if to > self.of_each {
            return Err(Full::Conversation(self.of_each));
        }
        let others = self.used.load(Ordering::Relaxed).saturating_sub(from);
        if to > from && others.saturating_add(to) > self.of_all {
            return Err(Full::Daemon(self.of_all));
        }
        Ok(())
    }
}

fn mib(bytes: &usize) -> usize {
    bytes / (1024 * 1024)
}

/// Bytes that messages take, near enough.
pub(super) fn bytes(messages: &[Message]) -> usize {
    messages.iter().map(bytes_of).sum()
}

fn bytes_of(message: &Message) -> usize {
    let inner = match message {
        Message::User(parts) => bytes_of_parts(parts),
        Message::ToolResult(result) => {
            result.id.as_str().len() + result.name.len() + bytes_of_parts(&result.content)
        }
        Message::Reply(reply) => {
            let calls: usize = reply.calls.iter().map(bytes_of_call).sum();
            let native = reply.native.as_ref();
            reply.text.len()
                + reply.thinking.len()
                + calls
                + native.map_or(0, |native| bytes_of_value(&native.items))
        }
    };
    size_of::<Message>() + inner
}

pub(crate) fn bytes_of_parts(parts: &[Part]) -> usize {
    let inner = parts.iter().map(|part| match part {
        Part::Text { text } => text.len(),
        Part::Image { media_type, data } => media_type.len() + data.len(),
        Part::Document(document) => document.bytes(),
    });
    size_of_val(parts) + inner.sum::<usize>()
}

fn bytes_of_call(call: &ToolCall) -> usize {
    let id = call.provider_call_id.as_ref().map_or(0, String::len);
    size_of::<ToolCall>()
        + call.id.as_str().len()
        + id
        + call.name.len()
        + bytes_of_map(&call.input)
}

pub(in crate::exchange) fn bytes_of_map(map: &Map<String, Value>) -> usize {
    let entries = map.iter();
    entries
        .map(|(key, value)| size_of::<String>() + key.len() + bytes_of_value(value))
        .sum()
}

/// Returns the bytes of a value. JSON that was read is nested no deeper than its reader allows, so this may recurse.
fn bytes_of_value(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of_value).sum(),
        Value::Object(map) => bytes_of_map(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}
