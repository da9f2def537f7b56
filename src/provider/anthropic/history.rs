//! The conversation as `messages` of a request, in the one form the API accepts.
//!
//! A reply of the same provider and model goes back block by block as it came; any other goes as
//! text and calls, without thinking. What is refused anywhere (empty text, calls without result,
//! results out of order) is put right here (`docs/providers.md`, "Anthropic: messages").

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::content;
use super::decode::{PREFIX_ITEM, WIRE};
use super::request::Setting;
use crate::message::{Message, NativeReply, Reply, ToolId};
use crate::provider::Request;
use crate::provider::compaction::is_item;
use crate::provider::json::string;
use crate::provider::request::{CallIds, IMAGE_OMITTED, own_items, set};
use crate::provider::schema::wire_name;

/// What stands where the API wants a user's word and there is none.
const CONTINUE: &str = "Continue.";

/// The messages, and what is to be known of them.
#[derive(Debug)]
pub(super) struct History {
    pub(super) messages: Vec<Value>,
    /// Digest of all that a reply to this request is produced from; empty where nothing depends on it.
    pub(super) prefix: String,
    /// Whether the last reply is inside a tool loop and does not begin with thinking.
    pub(super) loop_without_thinking: bool,
    /// Whether it begins with a compaction of the vendor's own.
    pub(super) begins_compacted: bool,
}

/// Builds `messages`. `prefix` has digested what stands before them, where thinking is bound to it.
pub(super) fn build(
    request: &Request<'_>,
    setting: Setting<'_>,
    prefix: Option<Sha256>,
) -> History {
    let mut writer = Writer {
        request,
        setting,
        messages: Vec::with_capacity(request.messages.len() + 1),
        prefix,
        ids: CallIds::default(),
        pending: Vec::new(),
        parts: Vec::new(),
        loop_without_thinking: false,
    };
    let omitted = (!setting.capabilities.images).then_some(IMAGE_OMITTED);
    for message in request.messages {
        match message {
            Message::User(parts) => {
                let said = request.said(message, parts);
                writer
                    .parts
                    .extend(content::blocks(&said, omitted, setting.takes_documents()));
            }
            Message::ToolResult(result) => {
                let mut pending = writer.pending.iter_mut();
                if let Some((_, wire_id, answer)) = pending.find(|(id, ..)| *id == result.id) {
                    *answer = Some(content::result(result, wire_id, omitted));
                }
            }
            Message::Reply(reply) => writer.reply(reply),
        }
    }
    writer.finish()
}

struct Writer<'a> {
    request: &'a Request<'a>,
    setting: Setting<'a>,
    messages: Vec<Value>,
    prefix: Option<Sha256>,
    ids: CallIds,
    /// The last reply's calls, in its order: id, id on the wire, result.
    pending: Vec<(ToolId, String, Option<Value>)>,
    /// What the user said since the last reply.
    parts: Vec<Value>,
    loop_without_thinking: bool,
}

impl Writer<'_> {
    fn reply(&mut self, reply: &Reply) {
        let blocks = self.native(reply).unwrap_or_else(|| neutral(reply));
        if blocks.is_empty() {
            // Nothing was said. The API refuses an empty message, and merges its neighbours itself.
            return;
        }
        self.user();
        // A compaction stands first, in the place of the messages that it was made of.
        if self.messages.is_empty() && !blocks.first().is_some_and(is_item) {
            self.push("user", vec![content::text(CONTINUE)]);
        }
        let follows = |native: &NativeReply| self.follows(native);
        let keep_thinking =
            !self.setting.amends.no_thinking && reply.native.as_ref().is_some_and(follows);
        let mut blocks: Vec<_> = blocks
            .into_iter()
            .filter(|block| self.accepted(block, keep_thinking))
            .collect();
        self.name_calls(reply, &mut blocks);
        if blocks.is_empty() {
            return;
        }
        self.loop_without_thinking = !blocks.first().is_some_and(is_thinking);
        self.push("assistant", blocks);
    }

    /// Returns the blocks of a reply that this very model made, if its calls are those of the reply.
    fn native(&self, reply: &Reply) -> Option<Vec<Value>> {
        let items = own_items(reply, WIRE, self.setting.provider, self.request)?;
        let calls = items.iter().filter(|item| is_call(item)).count();
        let blocks = items.iter().filter(|item| kind(item) != PREFIX_ITEM);
        (calls == reply.calls.len()).then(|| blocks.cloned().collect())
    }

    /// Whether everything before a reply is as it was when the model made it.
    fn follows(&self, native: &NativeReply) -> bool {
        match (&self.prefix, prefix_of(native)) {
            (Some(prefix), Some(made_after)) => digest(prefix) == made_after,
            _ => true,
        }
    }

    fn accepted(&self, block: &Value, keep_thinking: bool) -> bool {
        match kind(block) {
            "text" => !string(block, "text").trim().is_empty(),
            "thinking" if self.setting.vendor && string(block, "signature").is_empty() => false,
            "thinking" | "redacted_thinking" => keep_thinking,
            // Allowed inside of results only, since API version 2026-10-21.
            "document" => !self.setting.vendor,
            _ => true,
        }
    }

    /// Gives the calls among the blocks their ids on the wire, and notes that they await results.
    fn name_calls(&mut self, reply: &Reply, blocks: &mut [Value]) {
        let calls = blocks.iter_mut().filter(|block| is_call(block));
        for (block, call) in calls.zip(&reply.calls) {
            let own = call.provider_call_id.as_deref();
            let own = own.filter(|id| wire_name(id) == *id);
            let fit = |id: &str| wire_name(id).into_owned();
            let wire_id = self.ids.assign(own, &call.id, fit);
            if let Some(block) = block.as_object_mut() {
                block.insert("id".to_owned(), json!(wire_id));
                if !block.get("input").is_some_and(Value::is_object) {
                    block.insert("input".to_owned(), json!(call.input));
                }
            }
            self.pending.push((call.id.clone(), wire_id, None));
        }
    }

    /// Writes what was said since the last reply: results first, each call's exactly one.
    fn user(&mut self) {
        let results = self.pending.drain(..);
        let results = results.map(|(_, id, result)| result.unwrap_or_else(|| content::lost(&id)));
        let blocks: Vec<_> = results.chain(self.parts.drain(..)).collect();
        if !blocks.is_empty() {
            self.push("user", blocks);
        }
    }

    fn push(&mut self, role: &str, content: Vec<Value>) {
        let mut message = json!({"role": role});
        set(&mut message, "content", Value::Array(content));
        if let Some(prefix) = &mut self.prefix {
            prefix.update(message.to_string());
        }
        self.messages.push(message);
    }

    fn finish(mut self) -> History {
        let in_loop = !self.pending.is_empty();
        self.user();
        let is_whole = self.request.compact.is_some();
        if !is_whole && !self.messages.last().is_some_and(may_be_last) {
            self.push("user", vec![content::text(CONTINUE)]);
        }
        let prefix = self.prefix.as_ref().map(digest).unwrap_or_default();
        if let Some(last) = self.messages.last_mut() {
            trim_end(last);
        }
        let first = self
            .messages
            .first()
            .and_then(|first| first.get("content")?.get(0));
        History {
            begins_compacted: first.is_some_and(is_item),
            messages: self.messages,
            prefix,
            loop_without_thinking: in_loop && self.loop_without_thinking,
        }
    }
}

fn neutral(reply: &Reply) -> Vec<Value> {
    let text = (!reply.text.trim().is_empty()).then(|| content::text(&reply.text));
    let calls = reply.calls.iter().map(|call| {
        json!({"type": "tool_use", "id": "", "name": wire_name(&call.name), "input": call.input})
    });
    text.into_iter().chain(calls).collect()
}

pub(super) fn is_thinking(block: &Value) -> bool {
    matches!(kind(block), "thinking" | "redacted_thinking")
}

fn is_call(block: &Value) -> bool {
    kind(block) == "tool_use"
}

fn kind(block: &Value) -> &str {
    string(block, "type")
}

fn prefix_of(native: &NativeReply) -> Option<&str> {
    let items = native.items.as_array()?;
    let item = items.iter().find(|item| kind(item) == PREFIX_ITEM)?;
    item.get("sha256")?.as_str()
}

/// Whether the history may end here: with the user's word, or with a reply the vendor paused, which
/// is one with a tool of its own in it.
fn may_be_last(message: &Value) -> bool {
    let blocks = message.get("content").and_then(Value::as_array);
    let paused = |block: &Value| {
        let kind = kind(block);
        matches!(kind, "server_tool_use" | "mcp_tool_use" | "compaction")
            || kind.ends_with("_tool_result")
    };
    string(message, "role") == "user" || blocks.is_some_and(|blocks| blocks.iter().any(paused))
}

/// Takes the white space off the end of a reply that is to be continued.
fn trim_end(message: &mut Value) {
    if string(message, "role") != "assistant" {
        return;
    }
    let last = message
        .get_mut("content")
        .and_then(|content| content.as_array_mut()?.last_mut());
    if let Some(Value::String(text)) = last.and_then(|block| block.get_mut("text")) {
        text.truncate(text.trim_end().len());
    }
}

fn digest(prefix: &Sha256) -> String {
    HEXLOWER.encode(&prefix.clone().finalize())
}
