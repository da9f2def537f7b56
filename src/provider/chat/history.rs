//! The conversation as Chat Completions messages.
//!
//! A reply that this provider and model made goes back with its reasoning and its calls as they came;
//! one that another made is written anew, without thinking. What servers refuse is put right here, in
//! one place: empty messages, two user messages in a row, ids they do not take.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::decode::WIRE;
use super::message::REASONING_FIELDS;
use crate::message::{Message, Part, Reply, ToolCall, ToolId, ToolResult};
use crate::provider::Request;
use crate::provider::json::string;
use crate::provider::quirks::{CallIds, Quirks, ReasoningBack, SystemRole};
use crate::provider::schema::wire_name;

/// What Google documents for calls that another model made (ai.google.dev, thought signatures,
/// read 2026-11-20): the check of the signature is left out.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// What stands for an image that the model cannot see.
pub(in crate::provider) const IMAGE_OMITTED: &str =
    "[image omitted: the model does not see images]";

/// Builds `messages`.
pub(super) fn messages(request: &Request<'_>, quirks: &Quirks, provider: &str) -> Value {
    let mut history = History {
        request,
        quirks,
        provider,
        messages: Vec::new(),
        ids: BTreeMap::new(),
        used: BTreeSet::new(),
        images: Vec::new(),
    };
    if !request.system.trim().is_empty() {
        let role = match quirks.system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
        };
        history
            .messages
            .push(json!({"role": role, "content": request.system}));
    }
    for message in request.messages {
        match message {
            Message::User(parts) => history.user(parts),
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
    /// The id on the wire of each call so far.
    ids: BTreeMap<&'a ToolId, String>,
    /// The ids on the wire so far: a client's own history may have an id of ours twice.
    used: BTreeSet<String>,
    /// Images of tool results, for which tool messages have no place.
    images: Vec<Value>,
}

impl<'a> History<'a> {
    fn user(&mut self, parts: &[Part]) {
        self.show_images();
        let content = parts.iter().filter_map(|part| self.part(part)).collect();
        self.push_user(content);
    }

    /// Adds a user message, or to the one before: many templates want the roles to take turns.
    fn push_user(&mut self, mut content: Vec<Value>) {
        if content.is_empty() {
            return;
        }
        if let Some(last) = self.messages.last_mut().filter(|m| role(m) == "user") {
            let mut before = parts_of(last);
            before.append(&mut content);
            last["content"] = content_of(before);
            return;
        }
        if !self.quirks.user_after_tool && self.messages.last().is_some_and(|m| role(m) == "tool") {
            self.messages
                .push(json!({"role": "assistant", "content": "Understood."}));
        }
        self.messages
            .push(json!({"role": "user", "content": content_of(content)}));
    }

    /// Shows the images of the tool results before, once all of them are there.
    fn show_images(&mut self) {
        let images = std::mem::take(&mut self.images);
        self.push_user(images);
    }

    fn part(&self, part: &Part) -> Option<Value> {
        match part {
            Part::Text { text } if text.trim().is_empty() => None,
            Part::Text { text } => Some(json!({"type": "text", "text": text})),
            Part::Image { .. } if !self.quirks.images => {
                Some(json!({"type": "text", "text": IMAGE_OMITTED}))
            }
            Part::Image { media_type, data } => {
                let url = format!("data:{media_type};base64,{data}");
                Some(json!({"type": "image_url", "image_url": {"url": url}}))
            }
        }
    }

    fn reply(&mut self, reply: &'a Reply) {
        self.show_images();
        let native = self.native(reply);
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
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        message.insert("content".to_owned(), content);
        self.add_reasoning(reply, native, &mut message);
        for key in ["extra_content", "thought_signature"] {
            let value = native.and_then(|native| native.get(key));
            if let Some(value) = value.filter(|_| self.quirks.thought_signature) {
                message.insert(key.to_owned(), value.clone());
            }
        }
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        self.messages.push(Value::Object(message));
    }

    /// The text of a reply; for a model without tools, with its calls told in words.
    fn reply_text(&self, reply: &Reply, alone: bool) -> Value {
        let mut said = reply.text.clone();
        if !self.quirks.tools {
            for call in &reply.calls {
                let input = Value::Object(call.input.clone());
                said.push_str(&format!("\n\n[called the tool {} with {input}]", call.name));
            }
        }
        if !said.trim().is_empty() {
            json!(said.trim_start_matches('\n'))
        } else if alone || !self.quirks.null_content {
            json!("")
        } else {
            Value::Null
        }
    }

    /// The message as it came, where this provider and model made it.
    fn native(&self, reply: &'a Reply) -> Option<&'a Value> {
        let native = reply.native.as_ref()?;
        let is_own = native.wire == WIRE
            && native.provider == self.provider
            && native.model == self.request.model;
        native.items.get(0).filter(|_| is_own)
    }

    fn add_reasoning(
        &self,
        reply: &Reply,
        native: Option<&Value>,
        message: &mut Map<String, Value>,
    ) {
        let sent = REASONING_FIELDS
            .into_iter()
            .filter_map(|field| Some((field, native?.get(field)?)))
            .find(|(_, value)| value.is_string());
        let with_calls = !reply.calls.is_empty();
        let field = match (self.quirks.reasoning_back, sent) {
            (ReasoningBack::Never, _) => None,
            (ReasoningBack::AsSent, Some((field, value))) if with_calls => {
                Some((field, value.clone()))
            }
            (ReasoningBack::As(field), Some((_, value))) if with_calls => {
                Some((field, value.clone()))
            }
            (ReasoningBack::AsSent | ReasoningBack::As(_), _) => None,
            (ReasoningBack::Always(field), sent) => Some((
                field,
                sent.map_or_else(|| json!(""), |(_, value)| value.clone()),
            )),
            (ReasoningBack::Details, sent) => native
                .and_then(|native| native.get("reasoning_details"))
                .map(|details| ("reasoning_details", details.clone()))
                .or_else(|| sent.map(|(_, value)| ("reasoning", value.clone()))),
        };
        if let Some((field, value)) = field {
            message.insert(field.to_owned(), value);
        }
    }

    fn calls(&mut self, reply: &'a Reply, native: Option<&Value>) -> Vec<Value> {
        let sent = native
            .and_then(|native| native.get("tool_calls")?.as_array())
            .filter(|sent| sent.len() == reply.calls.len());
        let mut calls = Vec::with_capacity(reply.calls.len());
        for (position, call) in reply.calls.iter().enumerate() {
            let sent = sent.and_then(|sent| sent.get(position));
            let id = self.call_id(call, native.is_some());
            let is_signed = native.is_some() || position > 0;
            let entry = match sent {
                Some(sent) => with_id(sent, &id),
                None => call_entry(call, &id, self.quirks.thought_signature && !is_signed),
            };
            self.ids.insert(&call.id, id);
            calls.push(entry);
        }
        calls
    }

    /// The id of a call on the wire: the provider's own where it made the reply and no earlier call has the
    /// id, else one made from the daemon's.
    fn call_id(&mut self, call: &ToolCall, own: bool) -> String {
        let fit = |id: &str| match self.quirks.call_ids {
            CallIds::Any => id.to_owned(),
            CallIds::NineAlphanumerics => nine_alphanumerics(id),
        };
        let sent = call
            .provider_call_id
            .as_deref()
            .filter(|id| own && !id.is_empty())
            .map(fit)
            .filter(|id| !self.used.contains(id));
        let id = sent.unwrap_or_else(|| mint(&call.id, &self.used, fit));
        self.used.insert(id.clone());
        id
    }

    fn result(&mut self, result: &'a ToolResult) {
        let texts: Vec<&str> = result
            .content
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Image { .. } => (!self.quirks.images).then_some(IMAGE_OMITTED),
            })
            .collect();
        let images = |part: &&Part| matches!(part, Part::Image { .. }) && self.quirks.images;
        let images: Vec<Value> = result
            .content
            .iter()
            .filter(images)
            .filter_map(|part| self.part(part))
            .collect();
        let content = result_text(&texts, result.is_error, !images.is_empty());
        if !images.is_empty() {
            let caption = format!("The image that {} returned:", result.name);
            self.images.push(json!({"type": "text", "text": caption}));
            self.images.extend(images);
        }
        if self.quirks.tools {
            let id = self.ids.get(&result.id).cloned();
            let id = id.unwrap_or_else(|| format!("call_{}", result.id));
            self.messages
                .push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        } else {
            let told = format!("[the tool {} returned]\n{content}", result.name);
            self.push_user(vec![json!({"type": "text", "text": told})]);
        }
    }
}

/// An id on the wire that is made from the daemon's and that no call so far has; `fit` brings it into the
/// wire's form. A function of the calls before alone, so that a history keeps its ids from request to request.
pub(in crate::provider) fn mint(
    id: &ToolId,
    used: &BTreeSet<String>,
    fit: impl Fn(&str) -> String,
) -> String {
    let base = format!("call_{id}");
    let copies = (2_u64..).map(|copy| format!("{base}_{copy}"));
    std::iter::once(base.clone())
        .chain(copies)
        .map(|id| fit(&id))
        .find(|id| !used.contains(id))
        .unwrap_or(base)
}

/// The text of a tool result: neither OpenAI wire has a flag for errors, so the text says it.
pub(in crate::provider) fn result_text(texts: &[&str], is_error: bool, has_images: bool) -> String {
    let joined = texts.join("\n");
    let told = match (joined.trim().is_empty(), has_images) {
        (false, _) => joined,
        (true, true) => "(an image)".to_owned(),
        (true, false) => "(no output)".to_owned(),
    };
    if is_error {
        format!("Error: {told}")
    } else {
        told
    }
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
    let arguments = Value::Object(call.input.clone()).to_string();
    let function = json!({"name": wire_name(&call.name), "arguments": arguments});
    if sign {
        let signature = json!({"google": {"thought_signature": FOREIGN_SIGNATURE}});
        return json!({"id": id, "type": "function", "function": function, "extra_content": signature});
    }
    json!({"id": id, "type": "function", "function": function})
}

/// A call as it came, with the id that its result will have.
fn with_id(sent: &Value, id: &str) -> Value {
    if string(sent, "id") == id {
        return sent.clone();
    }
    let mut entry = Map::from_iter([("id".to_owned(), json!(id))]);
    for (key, value) in sent.as_object().into_iter().flatten() {
        if key != "id" {
            entry.insert(key.clone(), value.clone());
        }
    }
    Value::Object(entry)
}

fn role(message: &Value) -> &str {
    string(message, "role")
}

/// Content as parts, whichever form it has.
fn parts_of(message: &Value) -> Vec<Value> {
    match message.get("content") {
        Some(Value::Array(parts)) => parts.clone(),
        Some(Value::String(said)) => vec![json!({"type": "text", "text": said})],
        _ => Vec::new(),
    }
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
