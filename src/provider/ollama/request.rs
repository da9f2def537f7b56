//! Requests to `/api/chat`.
//!
//! Fields: `docs/providers.md`, "Ollama: requests". Pure, and the same bytes for the same request, so
//! that the server can use what it read before.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::decode::WIRE;
use super::models::Facts;
use crate::message::{Effort, Message, Notice, Part, Reply, Thinking, ToolCall, ToolResult};
use crate::provider::notices::{documents_left_out, images_left_out, no_tools};
use crate::provider::request::{Body, own_items, result_text, set, split, without_nulls};
use crate::provider::schema::{self, Dialect, wire_name};
use crate::provider::{Request, ToolChoice};

#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    pub(super) provider: &'a str,
    pub(super) num_ctx: Option<u64>,
    pub(super) facts: Facts,
}

impl Target<'_> {
    /// Whether the request carries tools. Ollama has no tool choice: none means no tools.
    pub(super) fn has_tools(&self, request: &Request<'_>) -> bool {
        self.facts.tools != Some(false) && wants_tools(request)
    }

    pub(super) fn body(&self, request: &Request<'_>) -> (Body, Vec<Notice>) {
        let mut notices = Vec::new();
        let mut tools = Vec::new();
        if self.has_tools(request) {
            let offered = request.tools.iter();
            tools.extend(offered.map(|spec| schema::of_tool(spec, Dialect::Ollama, &mut notices)));
        } else if wants_tools(request) {
            notices.push(no_tools(request.model));
        }
        if self.facts.vision == Some(false) {
            notices.extend(images_left_out(request));
        }
        notices.extend(documents_left_out(request));
        let mut body = json!({
            "model": request.model,
            "messages": null,
            "tools": null,
            "think": request.thinking.and_then(|thinking| self.think(thinking)),
            "format": request.output,
            "stream": true,
            // Without these the server drops the oldest messages without a word.
            "truncate": false,
            "shift": false,
            "options": without_nulls(json!({
                "num_ctx": self.facts.num_ctx(self.num_ctx),
                "num_predict": request.max_tokens,
                "temperature": request.temperature,
            })),
        });
        set(&mut body, "messages", Value::Array(self.messages(request)));
        (Body::new(body, tools), notices)
    }

    /// A model without the capability answers 400 to any word about thinking but "no".
    fn think(&self, thinking: Thinking) -> Option<Value> {
        if self.facts.thinking != Some(true) {
            return None;
        }
        Some(match (thinking.enabled, thinking.effort) {
            (true, None) => json!(true),
            (true, Some(effort)) => json!(effort),
            (false, _) if self.facts.thinks_in_levels => json!(Effort::Low),
            (false, _) => json!(false),
        })
    }

    fn messages(&self, request: &Request<'_>) -> Vec<Value> {
        let mut messages = Vec::with_capacity(request.messages.len() + 1);
        if !request.system.is_empty() {
            messages.push(json!({"role": "system", "content": request.system}));
        }
        let mut calls: &[ToolCall] = &[];
        let mut native = false;
        for message in request.messages {
            match message {
                Message::User(parts) => {
                    let said = request.said(message, parts);
                    let (texts, images) = self.split(&said);
                    messages.push(content("user", &texts.join("\n"), images));
                }
                Message::Reply(reply) => {
                    let items = self.native(request, reply);
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
    fn native<'r>(&self, request: &Request<'_>, reply: &'r Reply) -> Option<&'r Vec<Value>> {
        let items = own_items(reply, WIRE, self.provider, request)?;
        let calls = items
            .iter()
            .filter_map(|item| item.get("tool_calls")?.as_array());
        (calls.map(Vec::len).sum::<usize>() == reply.calls.len()).then_some(items)
    }

    fn result(&self, result: &ToolResult, call_id: Option<&str>) -> Value {
        let (texts, images) = self.split(&result.content);
        // There is no field that says a call failed.
        let text = result_text(&texts, result.is_error, !images.is_empty());
        let mut message = content("tool", &text, images);
        // Most templates know the name and the order only, newer ones the id.
        set(&mut message, "tool_name", json!(wire_name(&result.name)));
        if let Some(id) = call_id {
            set(&mut message, "tool_call_id", json!(id));
        }
        message
    }

    fn split<'p>(&self, parts: &'p [Part]) -> (Vec<Cow<'p, str>>, Vec<(&'p str, &'p str)>) {
        split(parts, self.facts.vision != Some(false))
    }
}

fn content(role: &str, text: &str, images: Vec<(&str, &str)>) -> Value {
    let images: Vec<&str> = images.into_iter().map(|(_, data)| data).collect();
    let images = (!images.is_empty()).then_some(images);
    without_nulls(json!({"role": role, "content": text, "images": images}))
}

fn wants_tools(request: &Request<'_>) -> bool {
    request.tool_choice == ToolChoice::Auto && !request.tools.is_empty()
}

/// Estimates how many tokens a body's prompt has, rather too few than too many: runs of white
/// space count as one character and images not at all.
pub(super) fn estimate(body: &Body) -> u64 {
    let messages = body.fields.get("messages").and_then(Value::as_array);
    let fields = messages.into_iter().flatten().flat_map(|message| {
        ["content", "thinking", "tool_calls"]
            .into_iter()
            .filter_map(|field| message.get(field))
    });
    let tools: u64 = body.tools.iter().map(|tool| count(tool.get())).sum();
    let characters = fields.map(characters).sum::<u64>() + tools;
    // 3.5 characters to a token (`docs/providers.md`, "Ollama: the context trap").
    characters.saturating_mul(2) / 7
}

fn characters(value: &Value) -> u64 {
    match value {
        Value::String(text) => count(text),
        other => count(&other.to_string()),
    }
}

fn count(text: &str) -> u64 {
    let words = text.split_whitespace();
    words.fold(0_u64, |sum, word| sum + 1 + word.chars().count() as u64)
}

/// The neutral form, without thinking: that of another model is of no use to this one.
fn rebuilt(reply: &Reply) -> Option<Value> {
    if reply.text.is_empty() && reply.calls.is_empty() {
        return None;
    }
    let calls = reply.calls.iter().enumerate().map(|(index, call)| {
        json!({
            "id": call.id,
            "function": {"index": index, "name": wire_name(&call.name), "arguments": call.input},
        })
    });
    let calls = (!reply.calls.is_empty()).then(|| calls.collect::<Vec<_>>());
    let message = json!({"role": "assistant", "content": reply.text, "tool_calls": calls});
    Some(without_nulls(message))
}

/// The id in the call that this result answers, as it stands in the request.
fn call_id<'r>(result: &'r ToolResult, calls: &'r [ToolCall], native: bool) -> Option<&'r str> {
    if !native {
        return Some(result.id.as_str());
    }
    let call = calls.iter().find(|call| call.id == result.id)?;
    call.provider_call_id.as_deref()
}

#[cfg(test)]
mod tests;
