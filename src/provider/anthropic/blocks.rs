//! Content blocks of a reply, rebuilt from a stream exactly as the API would have sent them whole.
//!
//! Thinking with its signature, server tools and blocks nobody here has heard of go back unchanged
//! with the next request, so a block is kept as the JSON it is and only grows by its deltas.

use serde_json::{Map, Value};

use crate::provider::{CallInput, Chunk, arguments};

/// One content block, open or closed.
#[derive(Debug)]
pub(super) struct Block {
    /// Its place in the message, where the server said it.
    index: Option<u64>,
    kind: Kind,
    raw: Map<String, Value>,
    /// Input as text, of a call or of a tool that the server runs.
    fragments: String,
    closed: bool,
    /// Of a call: counts the calls of the reply from 0.
    call: Option<usize>,
    /// Of a call: what its input came to, once that is certain.
    input: Option<CallInput>,
}

/// What a block is to this daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text for the user.
    Text,
    /// Thinking that can be shown.
    Thinking,
    /// A call for the daemon.
    Call,
    /// A tool that the server runs: its input is streamed like a call's.
    ServerCall,
    /// Everything else, `redacted_thinking` and results of server tools among it.
    Other,
}

impl Block {
    /// Begins a block from its `content_block`.
    pub(super) fn new(index: Option<u64>, raw: Map<String, Value>) -> Self {
        let kind = match raw.get("type").and_then(Value::as_str) {
            Some("text") => Kind::Text,
            Some("thinking") => Kind::Thinking,
            Some("tool_use") => Kind::Call,
            Some("server_tool_use" | "mcp_tool_use") => Kind::ServerCall,
            _ => Kind::Other,
        };
        Self {
            index,
            kind,
            raw,
            fragments: String::new(),
            closed: false,
            call: None,
            input: None,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether deltas for `index` are meant for this block; one without index is for any open one.
    pub(super) fn takes(&self, index: Option<u64>) -> bool {
        !self.closed && (index.is_none() || self.index == index)
    }

    pub(super) fn call(&self) -> Option<usize> {
        self.call
    }

    /// Whether this is a call whose end was not told yet.
    pub(super) fn is_pending(&self) -> bool {
        self.call.is_some() && self.input.is_none()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Makes it the reply's call number `call` and returns the chunk that says so.
    pub(super) fn begin_call(&mut self, call: usize) -> Chunk {
        self.call = Some(call);
        Chunk::ToolCallStart {
            index: call,
            provider_call_id: self.text_field("id").map(str::to_owned),
            name: self.text_field("name").unwrap_or_default().to_owned(),
        }
    }

    /// Returns what a block shows by its start alone.
    pub(super) fn opening(&self) -> Option<Chunk> {
        match self.kind {
            Kind::Text => shown(self.text_field("text"), Chunk::Text),
            Kind::Thinking => shown(self.text_field("thinking"), Chunk::Thinking),
            Kind::Call | Kind::ServerCall | Kind::Other => None,
        }
    }

    /// Folds a delta in and returns what it shows.
    pub(super) fn grow(&mut self, delta: Map<String, Value>) -> Option<Chunk> {
        let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        match delta.get("type").and_then(Value::as_str).unwrap_or("") {
            "text_delta" => self.grow_text(text("text")),
            "thinking_delta" => {
                append(&mut self.raw, "thinking", text("thinking"));
                shown(Some(text("thinking")), Chunk::Thinking)
            }
            "signature_delta" => {
                self.raw
                    .insert("signature".to_owned(), Value::from(text("signature")));
                None
            }
            "citations_delta" => {
                self.cite(delta.get("citation").cloned());
                None
            }
            "input_json_delta" => {
                let fragment = text("partial_json");
                self.fragments.push_str(fragment);
                self.call
                    .and_then(|index| fragment_chunk(index, fragment.to_owned()))
            }
            _ => {
                self.grow_unknown(delta);
                None
            }
        }
    }

    /// Adds text and returns it as what it shows.
    pub(super) fn grow_text(&mut self, more: &str) -> Option<Chunk> {
        append(&mut self.raw, "text", more);
        shown(Some(more), Chunk::Text)
    }

    /// Ends the block. Input that came with the start alone is returned as a fragment.
    pub(super) fn close(&mut self) -> Option<Chunk> {
        self.closed = true;
        if !self.fragments.trim().is_empty() || self.kind != Kind::Call {
            return None;
        }
        let whole = self
            .raw
            .get("input")
            .filter(|input| input.as_object().is_some_and(|input| !input.is_empty()))?;
        self.fragments = whole.to_string();
        fragment_chunk(self.call?, self.fragments.clone())
    }

    /// Ends a pending call where its input is certain by itself: whole, and not nothing.
    pub(super) fn settle_if_whole(&mut self) -> Option<Chunk> {
        if !self.is_pending() {
            return None;
        }
        match arguments::parse_cut(&self.fragments) {
            CallInput::Truncated { .. } => None,
            whole => self.settle(whole),
        }
    }

    /// Ends a pending call. `cut` says that the reply was cut off here.
    pub(super) fn settle_as(&mut self, cut: bool) -> Option<Chunk> {
        if !self.is_pending() {
            return None;
        }
        let input = if cut {
            arguments::parse_cut(&self.fragments)
        } else {
            arguments::parse(&self.fragments)
        };
        self.settle(input)
    }

    /// Ends a pending call that cannot be trusted, whatever its input looks like.
    pub(super) fn settle_truncated(&mut self) -> Option<Chunk> {
        if !self.is_pending() {
            return None;
        }
        let raw = self.fragments.clone();
        self.settle(CallInput::Truncated { raw })
    }

    fn settle(&mut self, input: CallInput) -> Option<Chunk> {
        let index = self.call?;
        self.input = Some(input.clone());
        Some(Chunk::ToolCallEnd {
            index,
            provider_call_id: self.text_field("id").map(str::to_owned),
            input,
        })
    }

    /// Returns the block as it goes back, or nothing where it did not arrive whole.
    ///
    /// A call always goes back, since it is answered in any case: without input where that was no
    /// object.
    pub(super) fn into_item(mut self) -> Option<Map<String, Value>> {
        match self.kind {
            Kind::Text => {}
            Kind::Thinking | Kind::Other if !self.closed => return None,
            Kind::Thinking | Kind::Other => {}
            Kind::Call => {
                let input = match self.input {
                    Some(CallInput::Object(input)) => input,
                    _ => Map::new(),
                };
                self.raw.insert("input".to_owned(), Value::Object(input));
            }
            Kind::ServerCall => {
                if !self.fragments.trim().is_empty() {
                    let CallInput::Object(input) = arguments::parse(&self.fragments) else {
                        return None;
                    };
                    self.raw.insert("input".to_owned(), Value::Object(input));
                } else if !self.closed {
                    return None;
                }
            }
        }
        Some(self.raw)
    }

    fn text_field(&self, name: &str) -> Option<&str> {
        self.raw.get(name).and_then(Value::as_str)
    }

    fn cite(&mut self, citation: Option<Value>) {
        let Some(citation) = citation else { return };
        let slot = self.raw.entry("citations").or_insert(Value::Null);
        if !slot.is_array() {
            *slot = Value::Array(Vec::new());
        }
        if let Some(citations) = slot.as_array_mut() {
            citations.push(citation);
        }
    }

    /// Every delta known so far names a field of its block and carries more of that field's text.
    /// Blocks of a sort still unknown are grown by the same rule, so that they go back whole.
    fn grow_unknown(&mut self, delta: Map<String, Value>) {
        if self.kind != Kind::Other {
            return;
        }
        for (name, value) in delta {
            match value {
                Value::String(more) if name != "type" => append(&mut self.raw, &name, &more),
                Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_) => {
                    self.raw.insert(name, value);
                }
                Value::String(_) | Value::Null => {}
            }
        }
    }
}

/// Whether a reply of these blocks is all there in the neutral form: one text, then calls, nothing
/// in them that the daemon does not keep elsewhere.
pub(super) fn is_plain(items: &[Map<String, Value>]) -> bool {
    items.iter().enumerate().all(|(place, item)| {
        let known: &[&str] = match item.get("type").and_then(Value::as_str) {
            Some("text") if place == 0 => &["type", "text", "citations"],
            Some("tool_use") => &["type", "id", "name", "input"],
            _ => return false,
        };
        item.iter().all(|(name, value)| {
            known.contains(&name.as_str()) && (name != "citations" || is_empty(value))
        })
    })
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn append(raw: &mut Map<String, Value>, name: &str, more: &str) {
    match raw.get_mut(name) {
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            raw.insert(name.to_owned(), Value::from(more));
        }
    }
}

fn shown(text: Option<&str>, chunk: fn(String) -> Chunk) -> Option<Chunk> {
    text.filter(|text| !text.is_empty())
        .map(|text| chunk(text.to_owned()))
}

fn fragment_chunk(index: usize, fragment: String) -> Option<Chunk> {
    (!fragment.is_empty()).then_some(Chunk::ToolCallDelta { index, fragment })
}
