//! Puts the fragments of Chat Completions tool calls together, whatever a server makes of the format.
//!
//! Servers leave `index` out, send 0 for every parallel call, repeat id and name in each fragment or
//! send the id late, and send whole calls, objects and `null` where text belongs (`docs/providers.md`,
//! "Chat Completions: stream"). The rules: a known id wins; a new id is a new call even at an index in use;
//! without id the index decides; without either it is the call opened last. Whatever they say, a new
//! name on top of whole JSON is a new call.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use serde_json_borrow::ObjectAsVec;

use crate::provider::decode::{Answer, OpenCall};
use crate::provider::json::{Json, field, text};
use crate::provider::{CallInput, MAX_CALLS, ProviderError, arguments};

#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// Counts deltas, so that two entries of one array are never taken for one call.
    delta: u64,
}

#[derive(Debug, Default)]
struct Call {
    open: OpenCall,
    slot: Option<u64>,
    /// Fields beside id, type and function, to be sent back, e.g. `extra_content` (Gemini).
    extra: Map<String, Value>,
    touched: u64,
}

/// One fragment as a server sent it, every field optional.
struct Fragment<'a> {
    id: &'a str,
    slot: Option<u64>,
    name: &'a str,
    input: Cow<'a, str>,
    entry: &'a Json<'a>,
}

impl<'a> Fragment<'a> {
    fn read(entry: &'a Json<'a>) -> Self {
        let function = match field(entry, "function") {
            Json::Null => entry,
            function => function,
        };
        Self {
            id: text(entry, "id"),
            slot: field(entry, "index").as_u64(),
            name: text(function, "name"),
            input: match field(function, "arguments") {
                Json::Str(text) => Cow::Borrowed(text),
                object @ Json::Object(_) => Cow::Owned(object.to_string()),
                _ => Cow::Borrowed(""),
            },
            entry,
        }
    }
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn feed(
        &mut self,
        entries: &[Json<'_>],
        answer: &mut Answer,
    ) -> Result<(), ProviderError> {
        self.delta += 1;
        for entry in entries.iter().filter(|entry| entry.is_object()) {
            let fragment = Fragment::read(entry);
            let position = match self.locate(&fragment) {
                Some(position) => position,
                None if self.calls.len() >= MAX_CALLS => {
                    return Err(ProviderError::too_many_calls());
                }
                None => self.open(&fragment, answer)?,
            };
            if let Some(call) = self.calls.get_mut(position) {
                call.touched = self.delta;
                call.take(&fragment, answer)?;
            }
        }
        Ok(())
    }

    fn locate(&self, fragment: &Fragment<'_>) -> Option<usize> {
        let last_where = |wanted: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(wanted);
        let last = self.calls.len().checked_sub(1);
        let found = match (fragment.id, fragment.slot) {
            ("", None) => last,
            ("", slot) => last_where(&|call| call.slot == slot).or_else(|| {
                // A rest whose index was never heard of belongs to what is amid its input: some
                // servers count on within one call.
                last.filter(|_| self.calls.last().is_some_and(|call| call.awaits(fragment)))
            }),
            (id, slot) => last_where(&|call| call.open.id == id).or_else(|| {
                // The id may come late, for a call that was opened without one, or change under way.
                last_where(&|call| {
                    (call.open.id.is_empty() || call.is_amid(fragment))
                        && match slot {
                            Some(_) => call.slot == slot,
                            None => fragment.name.is_empty() || call.open.name.is_empty(),
                        }
                })
            }),
        };
        found.filter(|&position| {
            let call = self.calls.get(position);
            call.is_some_and(|call| !call.is_followed_by(fragment, self.delta))
        })
    }

    fn open(
        &mut self,
        fragment: &Fragment<'_>,
        answer: &mut Answer,
    ) -> Result<usize, ProviderError> {
        // Announced in the order in which they were opened, as far as their names are known.
        for call in &mut self.calls {
            call.announce(answer)?;
        }
        self.calls.push(Call {
            slot: fragment.slot,
            ..Call::default()
        });
        Ok(self.calls.len() - 1)
    }

    /// Closes all calls and returns them in the form they are sent back in.
    ///
    /// `cut`: the answer was cut off, so that the call opened last may lack its rest. Input that is
    /// no object goes back as `{}`, for servers refuse a history with broken JSON.
    pub(super) fn close(&mut self, cut: bool, answer: &mut Answer) -> Vec<Value> {
        let mut calls = std::mem::take(&mut self.calls);
        calls.retain(|call| !call.is_phantom());
        let last = calls.len().saturating_sub(1);
        let mut native = Vec::with_capacity(calls.len());
        for (position, mut call) in calls.into_iter().enumerate() {
            // No more of them were opened than may be announced.
            let announced = call.open.announce(answer);
            debug_assert!(announced.is_ok(), "{announced:?}");
            let empty = call.open.input.trim().is_empty();
            let cut = cut && (position == last || !empty);
            let input = arguments::parse(&call.open.input, cut);
            if empty || !matches!(input, CallInput::Object(_)) {
                call.open.input = "{}".to_owned();
            }
            call.open.close(input, answer);
            native.push(call.into_native());
        }
        native
    }
}

impl Call {
    /// A call of which nothing ever came.
    fn is_phantom(&self) -> bool {
        self.open.id.is_empty() && self.open.name.is_empty() && self.open.input.is_empty()
    }

    /// Whether a nameless fragment can only be the rest of this call's input.
    fn is_amid(&self, fragment: &Fragment<'_>) -> bool {
        fragment.name.is_empty()
            && !fragment.input.is_empty()
            && !self.open.input.is_empty()
            && !is_object(&self.open.input)
    }

    /// Whether a fragment without name and id can only be more of this call's input.
    fn awaits(&self, fragment: &Fragment<'_>) -> bool {
        fragment.name.is_empty() && !self.open.name.is_empty() && !is_object(&self.open.input)
    }

    /// Whether a fragment that would continue this call begins another one.
    fn is_followed_by(&self, fragment: &Fragment<'_>, delta: u64) -> bool {
        if fragment.name.is_empty() || self.open.name.is_empty() {
            return false;
        }
        let same_id = !fragment.id.is_empty() && fragment.id == self.open.id;
        let at_another_index =
            fragment.slot.is_some() && self.slot.is_some() && fragment.slot != self.slot;
        let is_repeat = same_id && fragment.input == self.open.input;
        let begins_input = fragment.input.trim_start().starts_with('{') && !is_repeat;
        self.touched == delta
            || (!same_id && !fragment.name.starts_with(&self.open.name))
            // The same id at another index, with a name once more: ids that are not unique.
            || ((at_another_index || begins_input) && is_object(&self.open.input))
    }

    /// Whether a fragment sends the whole call a second time.
    fn is_repeated_by(&self, fragment: &Fragment<'_>) -> bool {
        !fragment.name.is_empty()
            && fragment.id == self.open.id
            && fragment.input == self.open.input
            && is_object(&self.open.input)
    }

    fn take(&mut self, fragment: &Fragment<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        if self.open.id.is_empty() {
            fragment.id.clone_into(&mut self.open.id);
        }
        self.slot = self.slot.or(fragment.slot);
        // A name that grows replaces, it is never appended: most servers repeat it whole.
        if self.open.index.is_none() && fragment.name.starts_with(&self.open.name) {
            fragment.name.clone_into(&mut self.open.name);
        }
        let fields = fragment.entry.as_object();
        for (key, value) in fields.into_iter().flat_map(ObjectAsVec::iter) {
            let known = ["id", "index", "type", "function", "name", "arguments"];
            if !value.is_null() && !known.contains(&key) {
                self.extra.insert(key.to_owned(), value.into());
            }
        }
        if fragment.input.is_empty() || self.is_repeated_by(fragment) {
            return Ok(());
        }
        self.open.push(&fragment.input, answer);
        self.announce(answer)
    }

    /// Says that the call began, as soon as its name is known.
    fn announce(&mut self, answer: &mut Answer) -> Result<(), ProviderError> {
        if self.open.name.is_empty() {
            return Ok(());
        }
        self.open.announce(answer)
    }

    fn into_native(self) -> Value {
        let mut call = Map::new();
        if !self.open.id.is_empty() {
            call.insert("id".to_owned(), Value::String(self.open.id));
        }
        call.insert("type".to_owned(), json!("function"));
        call.insert(
            "function".to_owned(),
            json!({"name": self.open.name, "arguments": self.open.input}),
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

#[cfg(test)]
mod tests;
