//! Content blocks of a reply, rebuilt from a stream exactly as the API would have sent them whole.
//!
//! Thinking with its signature, server tools and blocks nobody here has heard of go back unchanged
//! with the next request, so a block is kept as the JSON it is and only grows by its deltas.

use serde_json::{Map, Value};

use crate::provider::decode::{Answer, OpenCall, as_object};
use crate::provider::json::{Json, append, field, text};
use crate::provider::{CallInput, ProviderError, arguments};

#[derive(Debug)]
pub(super) struct Block {
    /// Its place in the message, where the server said it.
    index: Option<u64>,
    kind: Kind,
    raw: Map<String, Value>,
    /// Of a call, or of a tool that the server runs.
    call: OpenCall,
    closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
    /// A tool that the server runs: its input is streamed like a call's.
    ServerCall,
    /// Everything else, `redacted_thinking` and results of server tools among it.
    Other,
}

impl Block {
    /// Begins a block from its `content_block` and passes on what that shows.
    pub(super) fn open(
        index: Option<u64>,
        block: &Json<'_>,
        answer: &mut Answer,
    ) -> Result<Self, ProviderError> {
        let kind = match text(block, "type") {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "tool_use" => Kind::Call,
            "server_tool_use" | "mcp_tool_use" => Kind::ServerCall,
            _ => Kind::Other,
        };
        let mut call = OpenCall::new(text(block, "id"), text(block, "name"));
        match kind {
            Kind::Text => answer.text(text(block, "text")),
            Kind::Thinking => answer.thinking(text(block, "thinking")),
            Kind::Call => call.announce(answer)?,
            Kind::ServerCall | Kind::Other => {}
        }
        Ok(Self {
            index,
            kind,
            raw: block.as_object().map(Map::from).unwrap_or_default(),
            call,
            closed: false,
        })
    }

    /// Whether deltas for `index` are meant for this block; one without index is for any open one.
    pub(super) fn takes(&self, index: Option<u64>) -> bool {
        !self.closed && (index.is_none() || self.index == index)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn grow(&mut self, delta: &Json<'_>, answer: &mut Answer) {
        match text(delta, "type") {
            "text_delta" => {
                let more = text(delta, "text");
                append(&mut self.raw, "text", more);
                answer.text(more);
            }
            "thinking_delta" => {
                let more = text(delta, "thinking");
                append(&mut self.raw, "thinking", more);
                answer.thinking(more);
            }
            "input_json_delta" => self.call.push(text(delta, "partial_json"), answer),
            "signature_delta" => self.set("signature", text(delta, "signature")),
            "citations_delta" => self.cite(field(delta, "citation")),
            "compaction_delta" => self.replace(delta),
            _ => self.grow_unknown(delta),
        }
    }

    /// Ends the block, and a call where its input is certain by itself: whole, and not nothing.
    ///
    /// Without input, or with half of it, the call may yet turn out to have been cut off by the token
    /// limit, which is known only later.
    pub(super) fn close(&mut self, answer: &mut Answer) {
        self.closed = true;
        if self.kind == Kind::Call && self.call.input.trim().is_empty() {
            // Input that came with the start alone.
            let whole = self.raw.get("input").and_then(Value::as_object);
            if let Some(whole) = whole.filter(|whole| !whole.is_empty()) {
                let whole = Value::Object(whole.clone()).to_string();
                self.call.input.clear();
                self.call.push(&whole, answer);
            }
        }
        if let CallInput::Object(_) = arguments::parse(&self.call.input, true) {
            self.settle(false, answer);
        }
    }

    /// Ends a call that is pending. `cut` says that the reply was cut off here.
    pub(super) fn settle(&mut self, cut: bool, answer: &mut Answer) {
        if self.call.index.is_none() || self.call.closed {
            return;
        }
        self.settle_as(arguments::parse(&self.call.input, cut), answer);
    }

    /// Ends a call that cannot be trusted, whatever its input looks like.
    pub(super) fn cut(&mut self, answer: &mut Answer) {
        let raw = self.call.input.clone();
        self.settle_as(CallInput::Truncated { raw }, answer);
    }

    fn settle_as(&mut self, input: CallInput, answer: &mut Answer) {
        if self.kind == Kind::Call {
            self.raw
                .insert("input".to_owned(), Value::Object(as_object(input.clone())));
            self.call.close(input, answer);
        }
    }

    /// Returns the block as it goes back, or nothing where it did not arrive whole.
    ///
    /// A call always goes back, since it is answered in any case: without input where that was no
    /// object.
    pub(super) fn into_item(mut self) -> Option<Map<String, Value>> {
        let fragments = &self.call.input;
        match self.kind {
            Kind::Text | Kind::Call => {}
            Kind::ServerCall if !fragments.trim().is_empty() => {
                let CallInput::Object(input) = arguments::parse(fragments, false) else {
                    return None;
                };
                self.raw.insert("input".to_owned(), Value::Object(input));
            }
            Kind::Thinking | Kind::ServerCall | Kind::Other if !self.closed => return None,
            Kind::Thinking | Kind::ServerCall | Kind::Other => {}
        }
        Some(self.raw)
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.raw.insert(name.to_owned(), value.into());
    }

    fn cite(&mut self, citation: &Json<'_>) {
        match self.raw.get_mut("citations") {
            _ if citation.is_null() => {}
            Some(Value::Array(citations)) => citations.push(citation.into()),
            _ => self.set("citations", vec![Value::from(citation)]),
        }
    }

    /// Takes a delta that has its block's last word, and no piece of it: `null` for a compaction that failed.
    fn replace(&mut self, delta: &Json<'_>) {
        if self.kind == Kind::Other {
            let fields = delta.as_object().map(Map::from).unwrap_or_default();
            let fields = fields.into_iter().filter(|(name, _)| name != "type");
            self.raw.extend(fields);
        }
    }

    /// Every other delta known so far names a field of its block and carries more of that field's text.
    /// Blocks of a sort still unknown are grown by the same rule, so that they go back whole.
    fn grow_unknown(&mut self, delta: &Json<'_>) {
        if self.kind != Kind::Other {
            return;
        }
        for (name, value) in delta.as_object().map(Map::from).unwrap_or_default() {
            match value {
                Value::Null => {}
                Value::String(_) if name == "type" => {}
                Value::String(more) => append(&mut self.raw, &name, &more),
                value => self.set(&name, value),
            }
        }
    }
}

/// Whether a reply of these blocks is all there in the neutral form: one text, then calls, nothing
/// in them that the daemon does not keep elsewhere.
pub(super) fn is_plain(items: &[Value]) -> bool {
    items.iter().enumerate().all(|(place, item)| {
        let known: &[&str] = match item.get("type").and_then(Value::as_str) {
            Some("text") if place == 0 => &["type", "text", "citations"],
            Some("tool_use") => &["type", "id", "name", "input"],
            _ => return false,
        };
        let is_empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
        item.as_object().into_iter().flatten().all(|(name, value)| {
            known.contains(&name.as_str()) && (name != "citations" || is_empty(value))
        })
    })
}
