//! The output items of one Responses answer while they are being written.
//!
//! Several may be open at once. Events name theirs by `output_index`; ids are the second choice, for some
//! gateways change them from event to event (`docs/providers.md`, "Responses: stream").

use serde_json::{Map, Value, json};

use crate::provider::schema::ToolNames;
use crate::provider::{CallInput, Chunk, arguments};

/// Most items of one answer. More is a server that loops.
const MAX_ITEMS: usize = 4096;

/// The items, in the order in which they were first heard of.
#[derive(Debug, Default)]
pub(super) struct Items {
    items: Vec<Item>,
    announced: Announced,
}

/// What is needed to tell of a call.
#[derive(Debug, Default)]
struct Announced {
    count: usize,
    names: ToolNames,
}

/// One item.
#[derive(Debug, Default)]
pub(super) struct Item {
    place: Option<u64>,
    id: String,
    /// Whether text or thinking of it was passed on already.
    pub(super) told: bool,
    /// Set for the client's calls only.
    call: Option<Call>,
    /// The item as it ended.
    done: Option<Value>,
}

/// A call that the client has to answer.
#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    arguments: String,
    /// Whether the input is free text instead of JSON.
    free_text: bool,
    /// The index in the chunks, once announced.
    index: Option<usize>,
    /// Whether the server said that the arguments are whole.
    whole: bool,
    closed: bool,
}

impl Items {
    /// No items yet; `names` leads from the names on the wire to the tools' own.
    pub(super) fn new(names: ToolNames) -> Self {
        Self {
            items: Vec::new(),
            announced: Announced { count: 0, names },
        }
    }

    /// Finds the item an event is about; the last one where it does not say.
    pub(super) fn of(&mut self, event: &Value) -> Option<&mut Item> {
        let place = event.get("output_index").and_then(Value::as_u64);
        let id = text(event, "item_id");
        let found = match place {
            Some(_) => self.items.iter().rposition(|item| item.place == place),
            None if id.is_empty() => self.items.len().checked_sub(1),
            None => self.items.iter().rposition(|item| item.id == id),
        };
        self.items.get_mut(found?)
    }

    /// Takes an item that begins. `None`: there are too many.
    pub(super) fn add(
        &mut self,
        place: Option<u64>,
        item: &Value,
        chunks: &mut Vec<Chunk>,
    ) -> Option<&mut Item> {
        if self.items.len() >= MAX_ITEMS {
            return None;
        }
        let mut added = Item {
            place,
            id: text(item, "id").to_owned(),
            ..Item::default()
        };
        if let free_text @ Some(_) = is_call(item) {
            let mut call = Call {
                id: call_id(item),
                free_text: free_text.unwrap_or(false),
                ..Call::default()
            };
            call.announce(text(item, "name"), &mut self.announced, chunks);
            added.call = Some(call);
        }
        self.items.push(added);
        self.items.last_mut()
    }

    /// Takes an item that ended. Returns whether its text is still to be told, or `None` where there
    /// are too many items.
    pub(super) fn end(
        &mut self,
        place: Option<u64>,
        item: &Value,
        chunks: &mut Vec<Chunk>,
    ) -> Option<bool> {
        let known = self.find(place, text(item, "id"));
        if known.is_none() {
            self.add(place, item, chunks)?;
        }
        let announced = &mut self.announced;
        let position = known.unwrap_or_else(|| self.items.len().saturating_sub(1));
        let ended = self.items.get_mut(position)?;
        if ended.done.is_some() {
            return Some(false);
        }
        let mut item = item.clone();
        if let Some(call) = &mut ended.call {
            call.announce(text(&item, "name"), announced, chunks);
            call.take_rest(&item, chunks);
            let cut = text(&item, "status") == "incomplete";
            if !call.close(cut, chunks) {
                call.mend(&mut item);
            }
        }
        ended.done = Some(item);
        Some(!std::mem::replace(&mut ended.told, true))
    }

    /// Finds an item that ended: by its place, else by its id or order among those without place.
    fn find(&self, place: Option<u64>, id: &str) -> Option<usize> {
        let unplaced = |known: &&Item| place.is_none() || known.place.is_none();
        let by_place = || {
            place?;
            self.items.iter().rposition(|known| known.place == place)
        };
        let by_id = || {
            let wanted = |known: &Item| !id.is_empty() && known.id == id && unplaced(&known);
            self.items.iter().rposition(wanted)
        };
        let by_order = || {
            let position = usize::try_from(place?).ok()?;
            self.items.get(position).filter(unplaced)?;
            Some(position)
        };
        by_place().or_else(by_id).or_else(by_order)
    }

    /// Closes the calls that never ended. `cut`: the answer was cut off.
    pub(super) fn close(&mut self, cut: bool, chunks: &mut Vec<Chunk>) {
        for item in &mut self.items {
            if let Some(call) = &mut item.call {
                call.announce_anyway("", &mut self.announced, chunks);
                call.close(cut && !call.whole, chunks);
            }
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether the model made calls for the client to answer.
    pub(super) fn have_calls(&self) -> bool {
        self.items.iter().any(|item| item.call.is_some())
    }

    /// Returns the items that ended, in the order of the answer.
    pub(super) fn take(&mut self) -> Vec<Value> {
        let mut items = std::mem::take(&mut self.items);
        // Stable: items that were never numbered stay where they are.
        items.sort_by_key(|item| item.place.unwrap_or(u64::MAX));
        items.into_iter().filter_map(|item| item.done).collect()
    }
}

impl Item {
    /// Takes more of a call's input. Returns the bytes kept.
    pub(super) fn append(&mut self, fragment: &str, chunks: &mut Vec<Chunk>) -> usize {
        match &mut self.call {
            Some(call) if !call.closed => call.append(fragment, chunks),
            _ => 0,
        }
    }

    /// Takes a call's whole input, as far as it did not come in pieces.
    pub(super) fn complete(&mut self, whole: &str, chunks: &mut Vec<Chunk>) {
        if let Some(call) = self.call.as_mut().filter(|call| !call.closed) {
            call.set(whole, chunks);
            call.whole = true;
        }
    }
}

impl Call {
    fn append(&mut self, fragment: &str, chunks: &mut Vec<Chunk>) -> usize {
        if fragment.is_empty() {
            return 0;
        }
        self.arguments.push_str(fragment);
        match self.index {
            // Free text is no piece of JSON; it is told once it is whole.
            Some(index) if !self.free_text => chunks.push(Chunk::ToolCallDelta {
                index,
                fragment: fragment.to_owned(),
            }),
            _ => {}
        }
        fragment.len()
    }

    /// Takes the server's own last word on the input.
    fn set(&mut self, whole: &str, chunks: &mut Vec<Chunk>) {
        if self.arguments.is_empty() {
            self.append(whole, chunks);
        } else if !whole.is_empty() {
            whole.clone_into(&mut self.arguments);
        }
    }

    fn take_rest(&mut self, item: &Value, chunks: &mut Vec<Chunk>) {
        self.id = call_id(item).or(self.id.take());
        let field = if self.free_text { "input" } else { "arguments" };
        match item.get(field) {
            Some(Value::String(whole)) => self.set(whole, chunks),
            Some(object @ Value::Object(_)) => self.set(&object.to_string(), chunks),
            _ => {}
        }
    }

    fn announce(&mut self, name: &str, announced: &mut Announced, chunks: &mut Vec<Chunk>) {
        if !name.is_empty() {
            self.announce_anyway(name, announced, chunks);
        }
    }

    fn announce_anyway(&mut self, name: &str, announced: &mut Announced, chunks: &mut Vec<Chunk>) {
        if self.index.is_some() {
            return;
        }
        let index = announced.count;
        announced.count += 1;
        self.index = Some(index);
        chunks.push(Chunk::ToolCallStart {
            index,
            provider_call_id: self.id.clone(),
            name: announced.names.internal(name).to_owned(),
        });
        if !self.arguments.is_empty() && !self.free_text {
            chunks.push(Chunk::ToolCallDelta {
                index,
                fragment: self.arguments.clone(),
            });
        }
    }

    /// Ends the call. Returns whether its input is an object.
    fn close(&mut self, cut: bool, chunks: &mut Vec<Chunk>) -> bool {
        let Some(index) = self.index.filter(|_| !self.closed) else {
            return true;
        };
        self.closed = true;
        let raw = self.arguments.clone();
        let input = match (cut, self.free_text) {
            (true, _) => CallInput::Truncated { raw },
            (false, true) => {
                let input = Map::from_iter([("input".to_owned(), Value::String(raw))]);
                chunks.push(Chunk::ToolCallDelta {
                    index,
                    fragment: Value::Object(input.clone()).to_string(),
                });
                CallInput::Object(input)
            }
            (false, false) => arguments::parse(&raw),
        };
        let is_object = matches!(input, CallInput::Object(_));
        chunks.push(Chunk::ToolCallEnd {
            index,
            provider_call_id: self.id.clone(),
            input,
        });
        is_object
    }

    /// Makes a call without usable input fit to be sent back.
    fn mend(&self, item: &mut Value) {
        if let Value::Object(fields) = item {
            if !self.free_text {
                fields.insert("arguments".to_owned(), json!("{}"));
            }
            if fields.contains_key("status") {
                fields.insert("status".to_owned(), json!("completed"));
            }
        }
    }
}

/// Whether an item is a call for the client, and if so, whether its input is free text.
fn is_call(item: &Value) -> Option<bool> {
    match text(item, "type") {
        "function_call" => Some(false),
        "custom_tool_call" => Some(true),
        _ => None,
    }
}

fn call_id(item: &Value) -> Option<String> {
    ["call_id", "id"]
        .into_iter()
        .map(|key| text(item, key))
        .find(|id| !id.is_empty())
        .map(str::to_owned)
}

/// Reads a string field; empty where it is missing or no string.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
