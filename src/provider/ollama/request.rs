//! Requests to `/api/chat`.
//!
//! Fields: `docs/providers.md`, "Ollama: requests". Pure, and the same bytes for the same request, so
//! that the server can use what it read before.

use serde_json::{Map, Value, json};

use super::WIRE;
use super::models::Facts;
use crate::message::{
    Effort, Message, Notice, Part, Reply, Severity, Thinking, ToolCall, ToolResult, ToolSpec,
};
use crate::provider::chat::history::result_text;
use crate::provider::compat::images_left_out;
use crate::provider::schema::{self, Wire};
use crate::provider::{Request, ToolChoice};

/// Stands where an image was, for a model that sees none.
const NO_IMAGE: &str = "[image left out: this model cannot see images]";

/// Whose request it is, and what is known of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    /// The provider instance.
    pub(super) provider: &'a str,
    /// The configured context, in tokens.
    pub(super) num_ctx: Option<u64>,
    /// What is known of the model.
    pub(super) facts: Facts,
}

impl Target<'_> {
    /// Whether the request carries tools. Ollama has no tool choice: none means no tools.
    pub(super) fn has_tools(&self, request: &Request<'_>) -> bool {
        self.facts.tools != Some(false) && wants_tools(request)
    }

    /// Builds the body of a request, and what the client should know of it.
    pub(super) fn body(&self, request: &Request<'_>) -> (Value, Vec<Notice>) {
        let mut notices = Vec::new();
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(request.model));
        body.insert("messages".to_owned(), Value::Array(self.messages(request)));
        if self.has_tools(request) {
            let tools = request.tools.iter().map(|spec| tool(spec, &mut notices));
            body.insert("tools".to_owned(), tools.collect());
        } else if wants_tools(request) {
            notices.push(no_tools(request.model));
        }
        if self.facts.vision == Some(false) {
            notices.extend(images_left_out(request));
        }
        if let Some(think) = request.thinking.and_then(|thinking| self.think(thinking)) {
            body.insert("think".to_owned(), think);
        }
        body.insert("stream".to_owned(), json!(true));
        // Without these the server drops the oldest messages without a word.
        body.insert("truncate".to_owned(), json!(false));
        body.insert("shift".to_owned(), json!(false));
        body.insert("options".to_owned(), self.options(request));
        (Value::Object(body), notices)
    }

    fn options(&self, request: &Request<'_>) -> Value {
        let mut options = Map::new();
        let num_ctx = self.facts.num_ctx(self.num_ctx);
        options.insert("num_ctx".to_owned(), json!(num_ctx));
        if let Some(most) = request.max_tokens {
            options.insert("num_predict".to_owned(), json!(most));
        }
        if let Some(temperature) = request.temperature {
            options.insert("temperature".to_owned(), json!(temperature));
        }
        Value::Object(options)
    }

    /// A model without the capability answers 400 to any word about thinking but "no".
    fn think(&self, thinking: Thinking) -> Option<Value> {
        if self.facts.thinking != Some(true) {
            return None;
        }
        let level = match thinking.effort {
            Some(Effort::Low) => "low",
            Some(Effort::Medium) => "medium",
            Some(Effort::High) => "high",
            None if thinking.enabled => return Some(json!(true)),
            None => "low",
        };
        match (thinking.enabled, self.facts.thinks_in_levels) {
            (true, _) => Some(json!(level)),
            (false, true) => Some(json!("low")),
            (false, false) => Some(json!(false)),
        }
    }

    fn messages(&self, request: &Request<'_>) -> Vec<Value> {
        let mut messages = Vec::with_capacity(request.messages.len() + 1);
        if !request.system.is_empty() {
            messages.push(json!({ "role": "system", "content": request.system }));
        }
        let mut calls: &[ToolCall] = &[];
        let mut native = false;
        for message in request.messages {
            match message {
                Message::User(parts) => messages.push(self.user(parts)),
                Message::Reply(reply) => {
                    let items = self.native(request.model, reply);
                    (calls, native) = (&reply.calls, items.is_some());
                    match items {
                        Some(items) => messages.extend(items.iter().cloned()),
                        None => messages.extend(rebuilt(reply)),
                    }
                }
                Message::ToolResult(result) => {
                    messages.push(self.result(result, call_id(result, calls, native)));
                }
            }
        }
        messages
    }

    /// The reply as the server sent it, where it was this one and nobody changed its calls since.
    fn native<'r>(&self, model: &str, reply: &'r Reply) -> Option<&'r Vec<Value>> {
        let native = reply.native.as_ref()?;
        let ours = native.wire == WIRE && native.provider == self.provider && native.model == model;
        let items = native.items.as_array().filter(|_| ours)?;
        let calls: usize = items
            .iter()
            .filter_map(|item| item.get("tool_calls")?.as_array())
            .map(Vec::len)
            .sum();
        (calls == reply.calls.len()).then_some(items)
    }

    fn result(&self, result: &ToolResult, call_id: Option<&str>) -> Value {
        let (texts, images) = self.split(&result.content);
        // There is no field that says a call failed.
        let text = result_text(&texts, result.is_error, !images.is_empty());
        let mut message = content("tool", text, &images);
        // Most templates know the name and the order only, newer ones the id.
        message.insert("tool_name".to_owned(), json!(result.name));
        if let Some(id) = call_id {
            message.insert("tool_call_id".to_owned(), json!(id));
        }
        Value::Object(message)
    }

    fn user(&self, parts: &[Part]) -> Value {
        let (texts, images) = self.split(parts);
        Value::Object(content("user", texts.join("\n"), &images))
    }

    /// Sorts parts into texts and images, in base64.
    fn split<'p>(&self, parts: &'p [Part]) -> (Vec<&'p str>, Vec<&'p str>) {
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Text { text } => texts.push(text.as_str()),
                Part::Image { .. } if self.facts.vision == Some(false) => texts.push(NO_IMAGE),
                Part::Image { data, .. } => images.push(data.as_str()),
            }
        }
        (texts, images)
    }
}

fn content(role: &str, text: String, images: &[&str]) -> Map<String, Value> {
    let mut message = Map::new();
    message.insert("role".to_owned(), json!(role));
    message.insert("content".to_owned(), Value::String(text));
    if !images.is_empty() {
        message.insert("images".to_owned(), json!(images));
    }
    message
}

/// Whether the model is to have tools, if it can.
fn wants_tools(request: &Request<'_>) -> bool {
    request.tool_choice == ToolChoice::Auto && !request.tools.is_empty()
}

/// Estimates how many tokens a body's prompt has, rather too few than too many: runs of white
/// space count as one character and images not at all.
pub(super) fn estimate(body: &Value) -> u64 {
    let messages = body.get("messages").and_then(Value::as_array);
    let fields = messages.into_iter().flatten().flat_map(|message| {
        ["content", "thinking", "tool_calls"]
            .into_iter()
            .filter_map(|field| message.get(field))
    });
    let characters: u64 = fields.chain(body.get("tools")).map(characters).sum();
    // 3.5 characters to a token (`docs/providers.md`, "Ollama: the context trap").
    characters.saturating_mul(2) / 7
}

fn characters(value: &Value) -> u64 {
    let count = |text: &str| {
        let words = text.split_whitespace();
        words.fold(0_u64, |sum, word| sum + 1 + word.chars().count() as u64)
    };
    match value {
        Value::String(text) => count(text),
        other => count(&other.to_string()),
    }
}

/// The neutral form, without thinking: that of another model is of no use to this one.
fn rebuilt(reply: &Reply) -> Option<Value> {
    if reply.text.is_empty() && reply.calls.is_empty() {
        return None;
    }
    let mut message = json!({ "role": "assistant", "content": reply.text });
    if let (false, Some(message)) = (reply.calls.is_empty(), message.as_object_mut()) {
        let calls = reply.calls.iter().enumerate().map(|(index, call)| {
            json!({
                "id": call.id,
                "function": { "index": index, "name": call.name, "arguments": call.input },
            })
        });
        message.insert("tool_calls".to_owned(), calls.collect());
    }
    Some(message)
}

/// The id in the call that this result answers, as it stands in the request.
fn call_id<'r>(result: &'r ToolResult, calls: &'r [ToolCall], native: bool) -> Option<&'r str> {
    if !native {
        return Some(result.id.as_str());
    }
    let call = calls.iter().find(|call| call.id == result.id)?;
    call.provider_call_id.as_deref()
}

fn tool(spec: &ToolSpec, notices: &mut Vec<Notice>) -> Value {
    let (parameters, notice) = schema::of_tool(spec, Wire::Ollama);
    notices.extend(notice);
    json!({
        "type": "function",
        "function": {
            "name": spec.name,
            "description": spec.description,
            "parameters": parameters,
        },
    })
}

fn no_tools(model: &str) -> Notice {
    Notice {
        severity: Severity::Warning,
        code: "model_no_tools".to_owned(),
        message: format!(
            "model {model:?} cannot call tools, so it got none; choose one that can to let it work on files"
        ),
    }
}

#[cfg(test)]
mod tests;
