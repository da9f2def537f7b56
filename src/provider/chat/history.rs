//! The conversation as Chat Completions messages.
//!
//! A reply that this provider and model made goes back with its reasoning and its calls as they came;
//! one that another made is written anew, without thinking. What servers refuse is put right here, in
//! one place: empty messages, two user messages in a row, ids they do not take.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::decode::WIRE;
use super::message::REASONING_FIELDS;
use crate::message::{Document, Message, PDF, Part, Reply, ToolCall, ToolId, ToolResult};
use crate::provider::Request;
use crate::provider::json::string;
use crate::provider::quirks::{Quirks, ReasoningBack};
use crate::provider::request::{
    CallIds, IMAGE_OMITTED, WriteDocument, own_items, parts, result_text, set, split, without_nulls,
};
use crate::provider::schema::wire_name;

/// What Google documents for calls that another model made (ai.google.dev, thought signatures,
/// read 2026-11-20): the check of the signature is left out.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn messages(request: &Request<'_>, quirks: &Quirks, provider: &str) -> Value {
    let mut history = History {
        request,
        quirks,
        provider,
        messages: Vec::new(),
        wire_ids: BTreeMap::new(),
        used: CallIds::default(),
        images: Vec::new(),
    };
    if !request.system.trim().is_empty() {
        let system = json!({"role": quirks.system_role, "content": request.system});
        history.messages.push(system);
    }
    for message in request.messages {
        match message {
            Message::User(parts) => history.user(&request.said(message, parts)),
            Message::Reply(reply) => history.reply(reply),
            Message::ToolResult(result) => history.result(result),
        }
    }
    history.show_images();
    Value::Array(history.messages)
}

struct History<'a> {
    request: &'a Request<'a>,
    quirks: &'a Quirks,
    provider: &'a str,
    messages: Vec<Value>,
    wire_ids: BTreeMap<&'a ToolId, String>,
    used: CallIds,
    /// Images of tool results, for which tool messages have no place.
    images: Vec<Value>,
}

impl<'a> History<'a> {
    fn user(&mut self, content: &[Part]) {
        self.show_images();
        let omitted = (!self.quirks.images).then_some(IMAGE_OMITTED);
        let document = self.quirks.documents;
        let document = document.then_some(document_part as WriteDocument);
        let content = parts(content, omitted, text_part, image_part, document);
        self.push_user(content);
    }

    /// Adds a user message, or to the one before: many templates want the roles to take turns.
    fn push_user(&mut self, mut content: Vec<Value>) {
        if content.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(last) if string(last, "role") == "user" => {
                let mut before = match &last["content"] {
                    Value::Array(parts) => parts.clone(),
                    said => vec![json!({"type": "text", "text": said})],
                };
                before.append(&mut content);
                set(last, "content", content_of(before));
                return;
            }
            Some(last) if string(last, "role") == "tool" && !self.quirks.user_after_tool => {
                let between = json!({"role": "assistant", "content": "Understood."});
                self.messages.push(between);
            }
            _ => {}
        }
        self.messages
            .push(json!({"role": "user", "content": content_of(content)}));
    }

    /// Shows the images of the tool results before, once all of them are there.
    fn show_images(&mut self) {
        let images = std::mem::take(&mut self.images);
        self.push_user(images);
    }

    fn reply(&mut self, reply: &'a Reply) {
        self.show_images();
        let native = own_items(reply, WIRE, self.provider, self.request);
        let native = native.and_then(|items| items.first());
        let calls = if self.quirks.tools {
            self.calls(reply, native)
        } else {
            Vec::new()
        };
        let content = match native.and_then(|native| native.get("content")) {
            Some(parts @ Value::Array(_)) => parts.clone(),
            _ => self.reply_text(reply, calls.is_empty()),
        };
        if calls.is_empty() && (content.is_null() || content == json!("")) {
            return;
        }
        let mut message = json!({"role": "assistant", "content": content});
        if let Some((field, value)) = self.reasoning(reply, native) {
            set(&mut message, field, value);
        }
        for key in ["extra_content", "thought_signature"] {
            let value = native.and_then(|native| native.get(key));
            if let Some(value) = value.filter(|_| self.quirks.thought_signature) {
                set(&mut message, key, value.clone());
            }
        }
        if !calls.is_empty() {
            set(&mut message, "tool_calls", Value::Array(calls));
        }
        self.messages.push(message);
    }

    /// The text of a reply; for a model without tools, with its calls in words.
    fn reply_text(&self, reply: &Reply, alone: bool) -> Value {
        let mut text = reply.text.clone();
        if !self.quirks.tools {
            for call in &reply.calls {
                let input = json!(call.input);
                text.push_str(&format!("\n\n[called the tool {} with {input}]", call.name));
            }
        }
        if !text.trim().is_empty() {
            json!(text.trim_start_matches('\n'))
        } else if alone || !self.quirks.null_content {
            json!("")
        } else {
            Value::Null
        }
    }

    fn reasoning(&self, reply: &Reply, native: Option<&Value>) -> Option<(&'static str, Value)> {
        let sent = REASONING_FIELDS
            .into_iter()
            .filter_map(|field| Some((field, native?.get(field)?.clone())))
            .find(|(_, value)| value.is_string());
        match self.quirks.reasoning_back {
            ReasoningBack::Never => None,
            ReasoningBack::AsSent => sent.filter(|_| !reply.calls.is_empty()),
            ReasoningBack::As(field) => sent
                .filter(|_| !reply.calls.is_empty())
                .map(|(_, value)| (field, value)),
            ReasoningBack::Always(field) => {
                Some((field, sent.map_or_else(|| json!(""), |(_, value)| value)))
            }
            ReasoningBack::Details => native
                .and_then(|native| native.get("reasoning_details"))
                .map(|details| ("reasoning_details", details.clone()))
                .or_else(|| sent.map(|(_, value)| ("reasoning", value))),
        }
    }

    fn calls(&mut self, reply: &'a Reply, native: Option<&Value>) -> Vec<Value> {
        let sent = native
            .and_then(|native| native.get("tool_calls")?.as_array())
            .filter(|sent| sent.len() == reply.calls.len());
        let mut calls = Vec::with_capacity(reply.calls.len());
        for (position, call) in reply.calls.iter().enumerate() {
            let fit = |id: &str| match self.quirks.short_ids {
                true => nine_alphanumerics(id),
                false => id.to_owned(),
            };
            let own = call
                .provider_call_id
                .as_deref()
                .filter(|_| native.is_some());
            let id = self.used.assign(own, &call.id, fit);
            let is_signed = native.is_some() || position > 0;
            calls.push(match sent.and_then(|sent| sent.get(position)) {
                Some(sent) => with_id(sent, &id),
                None => call_entry(call, &id, self.quirks.thought_signature && !is_signed),
            });
            self.wire_ids.insert(&call.id, id);
        }
        calls
    }

    fn result(&mut self, result: &'a ToolResult) {
        let (texts, images) = split(&result.content, self.quirks.images);
        let content = result_text(&texts, result.is_error, !images.is_empty());
        if !images.is_empty() {
            let caption = format!("The image that {} returned:", result.name);
            self.images.push(text_part(&caption));
            let images = images
                .into_iter()
                .map(|(kind, data)| image_part(kind, data));
            self.images.extend(images);
        }
        if self.quirks.tools {
            let id = self.wire_ids.get(&result.id).cloned();
            let id = id.unwrap_or_else(|| format!("call_{}", result.id));
            self.messages
                .push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        } else {
            let text = format!("[the tool {} returned]\n{content}", result.name);
            self.push_user(vec![text_part(&text)]);
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image_part(media_type: &str, data: &str) -> Value {
    let url = format!("data:{media_type};base64,{data}");
    json!({"type": "image_url", "image_url": {"url": url}})
}

/// Text files have no form of their own here.
fn document_part(document: &Document) -> Option<Value> {
    let data = document.pdf()?;
    let data = format!("data:{PDF};base64,{data}");
    let file = json!({"filename": document.file_name(), "file_data": data});
    Some(json!({"type": "file", "file": file}))
}

/// Makes an id of nine letters or digits from any, always the same one from the same.
fn nine_alphanumerics(id: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    Sha256::digest(id)
        .iter()
        .filter_map(|byte| DIGITS.get(usize::from(*byte) % DIGITS.len()))
        .take(9)
        .map(|digit| char::from(*digit))
        .collect()
}

/// A call that another model made; `sign`: with the word that stands for its missing signature.
fn call_entry(call: &ToolCall, id: &str, sign: bool) -> Value {
    let arguments = json!(call.input).to_string();
    without_nulls(json!({
        "id": id,
        "type": "function",
        "function": {"name": wire_name(&call.name), "arguments": arguments},
        "extra_content": sign.then(|| json!({"google": {"thought_signature": FOREIGN_SIGNATURE}})),
    }))
}

/// A call as it came, with the id that its result will have.
fn with_id(sent: &Value, id: &str) -> Value {
    let mut entry = Map::from_iter([("id".to_owned(), json!(id))]);
    let others = sent
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| *key != "id");
    entry.extend(others.map(|(key, value)| (key.clone(), value.clone())));
    Value::Object(entry)
}

/// Content as one string where it is all text, which every server takes; as parts otherwise.
fn content_of(parts: Vec<Value>) -> Value {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| part.get("text").and_then(Value::as_str))
        .collect();
    match texts {
        Some(texts) => json!(texts.join("\n\n")),
        None => Value::Array(parts),
    }
}
