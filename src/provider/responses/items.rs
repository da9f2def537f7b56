//! The output items of one Responses answer while they are being written.
//!
//! Several may be open at once. Events name theirs by `output_index`; ids are the second choice, for some
//! gateways change them from event to event (`docs/providers.md`, "Responses: stream").

use serde_json::{Map, Value, json};

use crate::provider::decode::{Answer, OpenCall, protocol};
use crate::provider::json::{Json, field, text};
use crate::provider::{CallInput, ProviderError, arguments};

/// Most items of one answer. More is a server that loops.
const MAX_ITEMS: usize = 4096;

/// The items, in the order in which they were first heard of.
#[derive(Debug, Default)]
pub(super) struct Items(Vec<Item>);

#[derive(Debug, Default)]
pub(super) struct Item {
    place: Option<u64>,
    id: String,
    /// Whether text or thinking of it was passed on already.
    pub(super) streamed: bool,
    /// Set for the client's calls only.
    call: Option<Call>,
    done: Option<Value>,
}

/// A call that the client has to answer.
#[derive(Debug, Default)]
pub(super) struct Call {
    open: OpenCall,
    pub(super) whole: bool,
}

impl Items {
    /// Finds the item an event is about; the last one where it does not say.
    pub(super) fn of(&mut self, event: &Json<'_>) -> Option<&mut Item> {
        let place = field(event, "output_index").as_u64();
        let id = text(event, "item_id");
        self.0.iter_mut().rfind(|item| match place {
            Some(_) => item.place == place,
            None => id.is_empty() || item.id == id,
        })
    }

    /// Finds the call an event is about, unless it has ended.
    pub(super) fn open_call(&mut self, event: &Json<'_>) -> Option<&mut Call> {
        let call = self.of(event)?.call.as_mut();
        call.filter(|call| !call.open.closed)
    }

    pub(super) fn add(
        &mut self,
        place: Option<u64>,
        item: &Json<'_>,
        answer: &mut Answer,
    ) -> Result<usize, ProviderError> {
        if self.0.len() >= MAX_ITEMS {
            return Err(protocol("the answer has too many output items"));
        }
        let free_text = match text(item, "type") {
            "function_call" => Some(false),
            "custom_tool_call" => Some(true),
            _ => None,
        };
        let mut call = free_text.map(|_| Call::default());
        if let Some(call) = &mut call {
            call.open.free_text = free_text == Some(true);
            call.name(item, answer)?;
        }
        self.0.push(Item {
            place,
            id: text(item, "id").to_owned(),
            call,
            ..Item::default()
        });
        Ok(self.0.len() - 1)
    }

    /// Takes an item that ended. Returns whether its text was not passed on yet.
    pub(super) fn end(
        &mut self,
        place: Option<u64>,
        item: &Json<'_>,
        answer: &mut Answer,
    ) -> Result<bool, ProviderError> {
        let position = match self.find(place, text(item, "id")) {
            Some(position) => position,
            None => self.add(place, item, answer)?,
        };
        let Some(ended) = self
            .0
            .get_mut(position)
            .filter(|known| known.done.is_none())
        else {
            return Ok(false);
        };
        let mut done = Value::from(item);
        if let Some(call) = &mut ended.call {
            call.name(item, answer)?;
            call.take_rest(item, answer);
            let cut = text(item, "status") == "incomplete";
            if !call.close(cut, answer) {
                call.mend(&mut done);
            }
        }
        ended.done = Some(done);
        Ok(!std::mem::replace(&mut ended.streamed, true))
    }

    /// Finds an item that ended: by its place, else by its id or order among those without place.
    fn find(&self, place: Option<u64>, id: &str) -> Option<usize> {
        let unplaced = |known: &&Item| place.is_none() || known.place.is_none();
        let last_where = |wanted: &dyn Fn(&Item) -> bool| self.0.iter().rposition(wanted);
        let by_order = || {
            let position = usize::try_from(place?).ok()?;
            self.0.get(position).filter(unplaced).map(|_| position)
        };
        place
            .and_then(|_| last_where(&|known| known.place == place))
            .or_else(|| last_where(&|known| !id.is_empty() && known.id == id && unplaced(&known)))
            .or_else(by_order)
    }

    /// Closes the calls that never ended. `cut`: the answer was cut off.
    pub(super) fn close(&mut self, cut: bool, answer: &mut Answer) {
        for call in self.0.iter_mut().filter_map(|item| item.call.as_mut()) {
            // Beyond the most calls of an answer none is announced, nor closed.
            if call.open.announce(answer).is_ok() {
                call.close(cut && !call.whole, answer);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the items that ended, in the order of the answer.
    pub(super) fn take(&mut self) -> Vec<Value> {
        let mut items = std::mem::take(&mut self.0);
        // Stable: items that were never numbered stay where they are.
        items.sort_by_key(|item| item.place.unwrap_or(u64::MAX));
        items.into_iter().filter_map(|item| item.done).collect()
    }
}

impl Call {
    /// Takes id and name, and says that the call began once it has a name.
    fn name(&mut self, item: &Json<'_>, answer: &mut Answer) -> Result<(), ProviderError> {
        let ids = ["call_id", "id"].map(|key| text(item, key));
        if let Some(id) = ids.into_iter().find(|id| !id.is_empty()) {
            id.clone_into(&mut self.open.id);
        }
        let name = text(item, "name");
        if name.is_empty() || self.open.index.is_some() {
            return Ok(());
        }
        name.clone_into(&mut self.open.name);
        self.open.announce(answer)
    }

    pub(super) fn append(&mut self, fragment: &str, answer: &mut Answer) {
        if self.open.free_text {
            self.open.input.push_str(fragment);
        } else {
            self.open.push(fragment, answer);
        }
    }

    /// Takes the server's own last word on the input.
    pub(super) fn set(&mut self, whole: &str, answer: &mut Answer) {
        if self.open.input.is_empty() {
            self.append(whole, answer);
        } else if !whole.is_empty() {
            whole.clone_into(&mut self.open.input);
        }
    }

    fn take_rest(&mut self, item: &Json<'_>, answer: &mut Answer) {
        let key = if self.open.free_text {
            "input"
        } else {
            "arguments"
        };
        match field(item, key) {
            Json::Str(whole) => self.set(whole, answer),
            object @ Json::Object(_) => self.set(&object.to_string(), answer),
            _ => {}
        }
    }

    /// Ends the call. Returns whether its input is an object.
    fn close(&mut self, cut: bool, answer: &mut Answer) -> bool {
        if self.open.index.is_none() || self.open.closed {
            return true;
        }
        let raw = self.open.input.clone();
        let input = match (cut, self.open.free_text) {
            (true, _) => CallInput::Truncated { raw },
            (false, true) => {
                let input = Map::from_iter([("input".to_owned(), Value::String(raw))]);
                let fragment = Value::Object(input.clone()).to_string();
                self.open.push(&fragment, answer);
                CallInput::Object(input)
            }
            (false, false) => arguments::parse(&raw, false),
        };
        let is_object = matches!(input, CallInput::Object(_));
        self.open.close(input, answer);
        is_object
    }

    /// Makes a call without usable input fit to be sent back.
    fn mend(&self, item: &mut Value) {
        if let Value::Object(fields) = item {
            if !self.open.free_text {
                fields.insert("arguments".to_owned(), json!("{}"));
            }
            if let Some(status) = fields.get_mut("status") {
                *status = json!("completed");
            }
        }
    }
}
