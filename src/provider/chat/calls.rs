//! Puts the fragments of Chat Completions tool calls together, whatever a server makes of the format.
//!
//! Servers leave `index` out, send 0 for every parallel call, repeat id and name in each fragment or
//! send the id late, and send whole calls, objects and `null` where text belongs (`docs/providers.md`,
//! "Chat Completions: stream"). The rules: a known id wins; a new id is a new call even at an index in use;
//! without id the index decides; without either it is the call opened last. Whatever they say, a new
//! name on top of whole JSON is a new call.

use serde_json::{Map, Value, json};

use crate::provider::schema::ToolNames;
use crate::provider::{CallInput, Chunk, MAX_CALLS, arguments};

/// The calls of one answer, in the order in which they were opened.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    announced: Announced,
}

/// What is needed to tell of a call.
#[derive(Debug, Default)]
struct Announced {
    count: usize,
    names: ToolNames,
}

#[derive(Debug, Default)]
struct Call {
    slot: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Fields beside id, type and function, to be sent back, e.g. `extra_content` (Gemini).
    extra: Map<String, Value>,
    /// The call's index in the chunks, once it was announced.
    index: Option<usize>,
    /// Counts deltas: which one touched the call last.
    touched: u64,
}

/// One fragment as a server sent it, every field optional.
struct Fragment<'a> {
    id: &'a str,
    slot: Option<u64>,
    name: &'a str,
    arguments: String,
    value: &'a Value,
}

impl<'a> Fragment<'a> {
    fn read(value: &'a Value) -> Self {
        let function = value.get("function").unwrap_or(value);
        Self {
            id: text(value, "id"),
            slot: value.get("index").and_then(Value::as_u64),
            name: text(function, "name"),
            arguments: match function.get("arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(object @ Value::Object(_)) => object.to_string(),
                _ => String::new(),
            },
            value,
        }
    }
}

impl Calls {
    /// No calls yet; `names` leads from the names on the wire to the tools' own.
    pub(super) fn new(names: ToolNames) -> Self {
        Self {
            calls: Vec::new(),
            announced: Announced { count: 0, names },
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes the `tool_calls` of one delta; `delta` counts deltas, so that two entries of one array
    /// are never taken for one call.
    ///
    /// Returns the bytes that are kept from now on, or `None` where there are too many calls.
    pub(super) fn feed(
        &mut self,
        entries: &[Value],
        delta: u64,
        chunks: &mut Vec<Chunk>,
    ) -> Option<usize> {
        let mut kept = 0;
        for entry in entries.iter().filter(|entry| entry.is_object()) {
            let fragment = Fragment::read(entry);
            let position = match self.locate(&fragment, delta) {
                Some(position) => position,
                None if self.calls.len() >= MAX_CALLS => return None,
                None => self.open(&fragment, chunks),
            };
            kept += self.append(position, fragment, delta, chunks);
        }
        Some(kept)
    }

    /// Finds the call that a fragment continues.
    fn locate(&self, fragment: &Fragment<'_>, delta: u64) -> Option<usize> {
        let last_where = |wanted: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(wanted);
        let found = if fragment.id.is_empty() {
            match fragment.slot {
                Some(_) => last_where(&|call| call.slot == fragment.slot).or_else(|| {
                    // A rest whose index was never heard of belongs to what is amid its input: some
                    // servers count on within one call.
                    let last = self.calls.len().checked_sub(1)?;
                    self.calls.get(last)?.awaits(fragment).then_some(last)
                }),
                None => self.calls.len().checked_sub(1),
            }
        } else {
            last_where(&|call| call.id == fragment.id).or_else(|| {
                // The id may come late, for a call that was opened without one, or change under way.
                last_where(&|call| {
                    (call.id.is_empty() || call.is_amid(fragment))
                        && match fragment.slot {
                            Some(_) => call.slot == fragment.slot,
                            None => fragment.name.is_empty() || call.name.is_empty(),
                        }
                })
            })
        };
        found.filter(|&position| {
            self.calls
                .get(position)
                .is_some_and(|call| !call.is_followed_by(fragment, delta))
        })
    }

    fn open(&mut self, fragment: &Fragment<'_>, chunks: &mut Vec<Chunk>) -> usize {
        // Announced in the order in which they were opened, as far as their names are known.
        for call in &mut self.calls {
            call.announce(&mut self.announced, chunks);
        }
        self.calls.push(Call {
            slot: fragment.slot,
            ..Call::default()
        });
        self.calls.len() - 1
    }

    fn append(
        &mut self,
        position: usize,
        fragment: Fragment<'_>,
        delta: u64,
        chunks: &mut Vec<Chunk>,
    ) -> usize {
        let Some(call) = self.calls.get_mut(position) else {
            return 0;
        };
        call.touched = delta;
        let kept = call.adopt(&fragment);
        if fragment.arguments.is_empty() || call.repeats(&fragment) {
            return kept;
        }
        call.arguments.push_str(&fragment.arguments);
        let kept = kept + fragment.arguments.len();
        match call.index {
            Some(index) => chunks.push(Chunk::ToolCallDelta {
                index,
                fragment: fragment.arguments,
            }),
            None => call.announce(&mut self.announced, chunks),
        }
        kept
    }

    /// Closes all calls and returns them in the form they are sent back in.
    ///
    /// `cut`: the answer was cut off, so that the call opened last may lack its rest. Input that is
    /// no object goes back as `{}`, for servers refuse a history with broken JSON.
    pub(super) fn close(&mut self, cut: bool, chunks: &mut Vec<Chunk>) -> Vec<Value> {
        let mut calls = std::mem::take(&mut self.calls);
        calls.retain(|call| !call.is_phantom());
        let last = calls.len().saturating_sub(1);
        let mut native = Vec::with_capacity(calls.len());
        for (position, mut call) in calls.into_iter().enumerate() {
            let index = call.announce_anyway(&mut self.announced, chunks);
            let raw = std::mem::take(&mut call.arguments);
            let empty = raw.trim().is_empty();
            let input = if cut && (position == last || !empty) {
                arguments::parse_cut(&raw)
            } else {
                arguments::parse(&raw)
            };
            let arguments = match &input {
                CallInput::Object(_) if !empty => raw.as_str(),
                _ => "{}",
            };
            chunks.push(Chunk::ToolCallEnd {
                index,
                provider_call_id: call.provider_id(),
                input,
            });
            native.push(call.into_native(arguments));
        }
        native
    }
}

impl Call {
    /// A call of which nothing ever came.
    fn is_phantom(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.is_empty()
    }

    fn provider_id(&self) -> Option<String> {
        (!self.id.is_empty()).then(|| self.id.clone())
    }

    /// Whether a nameless fragment can only be the rest of this call's input.
    fn is_amid(&self, fragment: &Fragment<'_>) -> bool {
        fragment.name.is_empty()
            && !fragment.arguments.is_empty()
            && !self.arguments.is_empty()
            && !is_object(&self.arguments)
    }

    /// Whether a fragment without name and id can only be more of this call's input.
    fn awaits(&self, fragment: &Fragment<'_>) -> bool {
        fragment.name.is_empty() && !self.name.is_empty() && !is_object(&self.arguments)
    }

    /// Whether a fragment that would continue this call begins another one.
    fn is_followed_by(&self, fragment: &Fragment<'_>, delta: u64) -> bool {
        if fragment.name.is_empty() || self.name.is_empty() {
            return false;
        }
        if self.touched == delta {
            return true;
        }
        // The same id at another index, with a name once more: ids that are not unique.
        if fragment.slot.is_some()
            && self.slot.is_some()
            && fragment.slot != self.slot
            && is_object(&self.arguments)
        {
            return true;
        }
        let same_id = !fragment.id.is_empty() && fragment.id == self.id;
        if !same_id && !fragment.name.starts_with(&self.name) {
            return true;
        }
        fragment.arguments.trim_start().starts_with('{')
            && !(same_id && fragment.arguments == self.arguments)
            && is_object(&self.arguments)
    }

    /// Whether a fragment sends the whole call a second time.
    fn repeats(&self, fragment: &Fragment<'_>) -> bool {
        !fragment.name.is_empty()
            && fragment.id == self.id
            && fragment.arguments == self.arguments
            && is_object(&self.arguments)
    }

    /// Takes all of a fragment but its input. Returns the bytes kept.
    fn adopt(&mut self, fragment: &Fragment<'_>) -> usize {
        if self.id.is_empty() {
            fragment.id.clone_into(&mut self.id);
        }
        if self.slot.is_none() {
            self.slot = fragment.slot;
        }
        // A name that grows replaces, it is never appended: most servers repeat it whole.
        if self.index.is_none() && fragment.name.starts_with(&self.name) {
            fragment.name.clone_into(&mut self.name);
        }
        let mut kept = fragment.id.len() + fragment.name.len();
        for (key, value) in fragment.value.as_object().into_iter().flatten() {
            let known = ["id", "index", "type", "function", "name", "arguments"];
            if !value.is_null() && !known.contains(&key.as_str()) {
                kept += key.len() + value.to_string().len();
                self.extra.insert(key.clone(), value.clone());
            }
        }
        kept
    }

    /// Says that the call began, as soon as its name is known.
    fn announce(&mut self, announced: &mut Announced, chunks: &mut Vec<Chunk>) {
        if self.index.is_none() && !self.name.is_empty() {
            self.announce_anyway(announced, chunks);
        }
    }

    fn announce_anyway(&mut self, announced: &mut Announced, chunks: &mut Vec<Chunk>) -> usize {
        if let Some(index) = self.index {
            return index;
        }
        let index = announced.count;
        announced.count += 1;
        self.index = Some(index);
        chunks.push(Chunk::ToolCallStart {
            index,
            provider_call_id: self.provider_id(),
            name: announced.names.internal(&self.name).to_owned(),
        });
        if !self.arguments.is_empty() {
            chunks.push(Chunk::ToolCallDelta {
                index,
                fragment: self.arguments.clone(),
            });
        }
        index
    }

    fn into_native(self, arguments: &str) -> Value {
        let mut call = Map::new();
        if !self.id.is_empty() {
            call.insert("id".to_owned(), Value::String(self.id));
        }
        call.insert("type".to_owned(), json!("function"));
        call.insert(
            "function".to_owned(),
            json!({"name": self.name, "arguments": arguments}),
        );
        call.extend(self.extra);
        Value::Object(call)
    }
}

/// Whether the text is one whole JSON object.
fn is_object(raw: &str) -> bool {
    raw.trim_start().starts_with('{')
        && raw.trim_end().ends_with('}')
        && serde_json::from_str::<serde::de::IgnoredAny>(raw).is_ok()
}

/// Reads a string field; empty where it is missing or no string.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
