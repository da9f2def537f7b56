//! The four wire formats as a server writes them: an answer in pieces, each one frame or line.

use serde_json::{Value, json};

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wire {
    Anthropic,
    Chat,
    Responses,
    Ollama,
}

/// A part of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// Thinking, with the signature, or its like, that has to go back.
    Thinking(String, String),
    /// Text for the user.
    Text(String),
    /// A call: id, name, input.
    Call(String, String, Value),
    /// The vendor's own compaction, of Anthropic and Responses; empty where it failed.
    Compaction(String),
}

impl Block {
    pub(crate) fn thinking(text: &str, signature: &str) -> Self {
        Self::Thinking(text.to_owned(), signature.to_owned())
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn call(id: &str, name: &str, input: Value) -> Self {
        Self::Call(id.to_owned(), name.to_owned(), input)
    }
}

impl Wire {
    pub(crate) const ALL: [Self; 4] = [Self::Anthropic, Self::Chat, Self::Responses, Self::Ollama];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Ollama => "ollama",
        }
    }

    /// The settings of an instance that speaks it, without key.
    pub(crate) fn settings(self, base_url: &str) -> Value {
        match self {
            Self::Anthropic => json!({"kind": "anthropic", "base_url": base_url}),
            Self::Chat => json!({"kind": "openai", "wire": "chat", "base_url": base_url}),
            Self::Responses => json!({"kind": "openai", "wire": "responses", "base_url": base_url}),
            Self::Ollama => json!({"kind": "ollama", "base_url": base_url}),
        }
    }

    /// The content type of a streamed answer.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        }
    }

    /// A whole answer, one frame an item. Each text comes in two pieces, each input too where the
    /// format streams it.
    pub(crate) fn frames(self, blocks: &[Block]) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic(blocks),
            Self::Chat => chat(blocks),
            Self::Responses => responses(blocks),
            Self::Ollama => ollama(blocks),
        }
    }

    /// What is wrong with the calls and results of a request: each call needs one result, right after
    /// it and in its place.
    pub(crate) fn unpaired(self, request: &Value) -> Option<String> {
        let items = request.get("messages").or_else(|| request.get("input"))?;
        let mut owed: Vec<String> = Vec::new();
        for item in items.as_array()? {
            let (results, calls) = self.ids(item);
            let is_result = !results.is_empty();
            for id in results {
                if owed.first() != Some(&id) {
                    return Some(format!("result {id} where {owed:?} are owed"));
                }
                owed.remove(0);
            }
            if !is_result && !owed.is_empty() && (calls.is_empty() || self != Self::Responses) {
                return Some(format!("calls without a result: {owed:?}"));
            }
            owed.extend(calls);
        }
        (!owed.is_empty()).then(|| format!("calls without a result: {owed:?}"))
    }

    /// The ids of the results and of the calls in one message or item; names for Ollama.
    fn ids(self, item: &Value) -> (Vec<String>, Vec<String>) {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let parts = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let one = |when: bool, value: &Value| if when { vec![word(value)] } else { Vec::new() };
        match self {
            Self::Anthropic => {
                let of = |kind: &str, id: &str| {
                    parts(&item["content"])
                        .iter()
                        .filter(|block| block["type"] == kind)
                        .map(|block| word(&block[id]))
                        .collect()
                };
                (of("tool_result", "tool_use_id"), of("tool_use", "id"))
            }
            Self::Responses => (
                one(item["type"] == "function_call_output", &item["call_id"]),
                one(item["type"] == "function_call", &item["call_id"]),
            ),
            Self::Chat => (
                one(item["role"] == "tool", &item["tool_call_id"]),
                parts(&item["tool_calls"])
                    .iter()
                    .map(|call| word(&call["id"]))
                    .collect(),
            ),
            Self::Ollama => (
                one(item["role"] == "tool", &item["tool_name"]),
                parts(&item["tool_calls"])
                    .iter()
                    .map(|call| word(&call["function"]["name"]))
                    .collect(),
            ),
        }
    }
}

/// Cuts a text into two pieces.
fn halves(text: &str) -> [&str; 2] {
    let middle = (text.len() / 2..)
        .find(|at| text.is_char_boundary(*at))
        .unwrap();
    let (first, second) = text.split_at(middle);
    [first, second]
}

/// A server-sent event with the name of its type.
pub(crate) fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap()
    )
}

/// A server-sent event without a name.
pub(crate) fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn anthropic(blocks: &[Block]) -> Vec<String> {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "test-model", "content": [],
        "stop_reason": null, "usage": {"input_tokens": 10, "output_tokens": 1,
            "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}}})];
    let mut stop = "end_turn";
    for (index, block) in blocks.iter().enumerate() {
        let delta =
            |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let start = |block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        match block {
            Block::Thinking(text, signature) => {
                events.push(start(
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                ));
                events.extend(
                    halves(text)
                        .map(|half| delta(json!({"type": "thinking_delta", "thinking": half}))),
                );
                events.push(delta(
                    json!({"type": "signature_delta", "signature": signature}),
                ));
            }
            Block::Text(text) => {
                events.push(start(json!({"type": "text", "text": ""})));
                events.extend(
                    halves(text).map(|half| delta(json!({"type": "text_delta", "text": half}))),
                );
            }
            Block::Call(id, name, input) => {
                stop = "tool_use";
                events.push(start(
                    json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                ));
                let input = input.to_string();
                events.extend(
                    halves(&input).map(|half| {
                        delta(json!({"type": "input_json_delta", "partial_json": half}))
                    }),
                );
            }
            Block::Compaction(text) => {
                stop = "compaction";
                let content = Some(text).filter(|text| !text.is_empty());
                events.push(start(
                    json!({"type": "compaction", "content": null, "encrypted_content": null, "signature": "c2ln/w=="}),
                ));
                events.push(delta(
                    json!({"type": "compaction_delta", "content": content, "encrypted_content": content.map(|_| "gAAA")}),
                ));
            }
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": {"output_tokens": 5}}),
    );
    events.push(json!({"type": "message_stop"}));
    events.iter().map(event).collect()
}

fn chat(blocks: &[Block]) -> Vec<String> {
    let chunk = |delta: Value, finish: Option<&str>| {
        data(
            &json!({"id": "x", "object": "chat.completion.chunk", "model": "test-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
        )
    };
    let mut frames = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    let mut calls = 0;
    for block in blocks {
        match block {
            Block::Thinking(text, _) => frames
                .extend(halves(text).map(|half| chunk(json!({"reasoning_content": half}), None))),
            Block::Text(text) => {
                frames.extend(halves(text).map(|half| chunk(json!({"content": half}), None)));
            }
            Block::Call(id, name, input) => {
                let fragment = |call: Value| chunk(json!({"tool_calls": [call]}), None);
                let input = input.to_string();
                let [first, second] = halves(&input);
                frames.push(fragment(
                    json!({"index": calls, "id": id, "type": "function",
                    "function": {"name": name, "arguments": first}}),
                ));
                frames.push(fragment(
                    json!({"index": calls, "function": {"arguments": second}}),
                ));
                calls += 1;
            }
            // It has none.
            Block::Compaction(_) => {}
        }
    }
    let finish = if calls > 0 { "tool_calls" } else { "stop" };
    frames.push(chunk(json!({}), Some(finish)));
    frames.push(data(
        &json!({"id": "x", "choices": [], "usage": {"prompt_tokens": 16,
        "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}}),
    ));
    frames.push("data: [DONE]\n\n".to_owned());
    frames
}

fn responses(blocks: &[Block]) -> Vec<String> {
    let mut events = vec![json!({"type": "response.created", "response": {
        "id": "resp_1", "model": "test-model", "status": "in_progress", "output": []}})];
    let mut output = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let (item, deltas) = item(index, block);
        let mut begun = item.clone();
        for (field, empty) in [
            ("summary", json!([])),
            ("content", json!([])),
            ("arguments", json!("")),
        ] {
            if begun.get(field).is_some() {
                begun[field] = empty;
            }
        }
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
        );
        for (kind, delta) in deltas {
            events.push(
                json!({"type": kind, "output_index": index, "item_id": item["id"], "delta": delta}),
            );
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
        output.push(item);
    }
    events.push(
        json!({"type": "response.completed", "response": {"id": "resp_1", "model": "test-model",
        "status": "completed", "output": output, "usage": {"input_tokens": 16, "output_tokens": 5,
            "input_tokens_details": {"cached_tokens": 4}}}}),
    );
    events.iter().map(event).collect()
}

/// An output item as it ends, and the deltas it comes in.
fn item(index: usize, block: &Block) -> (Value, Vec<(&'static str, String)>) {
    let pieces =
        |kind: &'static str, text: &str| halves(text).map(|half| (kind, half.to_owned())).to_vec();
    match block {
        Block::Thinking(text, encrypted) => (
            json!({"type": "reasoning", "id": format!("rs_{index}"), "encrypted_content": encrypted,
                "summary": [{"type": "summary_text", "text": text}]}),
            pieces("response.reasoning_summary_text.delta", text),
        ),
        Block::Text(text) => (
            json!({"type": "message", "id": format!("msg_{index}"), "role": "assistant",
                "status": "completed", "phase": "commentary",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}),
            pieces("response.output_text.delta", text),
        ),
        Block::Call(id, name, input) => (
            json!({"type": "function_call", "id": format!("fc_{index}"), "call_id": id,
                "name": name, "arguments": input.to_string(), "status": "completed"}),
            pieces("response.function_call_arguments.delta", &input.to_string()),
        ),
        Block::Compaction(text) => (
            json!({"type": "compaction", "id": format!("cmp_{index}"), "encrypted_content": text}),
            Vec::new(),
        ),
    }
}

fn ollama(blocks: &[Block]) -> Vec<String> {
    let line = |message: Value| {
        format!(
            "{}\n",
            json!({"model": "test-model", "created_at": "2026-11-20T00:00:00Z",
            "message": message, "done": false})
        )
    };
    let mut lines = Vec::new();
    for block in blocks {
        match block {
            Block::Thinking(text, _) => lines.extend(
                halves(text).map(|half| line(json!({"role": "assistant", "content": "", "thinking": half}))),
            ),
            Block::Text(text) => lines.extend(
                halves(text).map(|half| line(json!({"role": "assistant", "content": half}))),
            ),
            Block::Call(id, name, input) => lines.push(line(json!({"role": "assistant", "content": "",
                "tool_calls": [{"id": id, "function": {"index": 0, "name": name, "arguments": input}}]}))),
            Block::Compaction(_) => {}
        }
    }
    lines.push(format!(
        "{}\n",
        json!({"model": "test-model", "message": {"role": "assistant", "content": ""},
        "done": true, "done_reason": "stop", "prompt_eval_count": 16, "eval_count": 5})
    ));
    lines
}
