//! Builds the body of a Responses request, stateless: nothing is stored, everything is sent.
//!
//! Output items of the same provider and model go back as they came and in order, reasoning with its
//! `encrypted_content` and empty `summary`, messages with their `phase` (`docs/providers.md`,
//! "Responses: requests").

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::decode::WIRE;
use crate::message::{Message, Notice, Part, Reply, ToolId, ToolResult, ToolSpec};
use crate::provider::chat::history::{IMAGE_OMITTED, mint, result_text};
use crate::provider::chat::request::effort_word;
use crate::provider::json::string;
use crate::provider::quirks::{Quirks, Summaries, ThinkingDialect};
use crate::provider::schema::{self, Wire, wire_name};
use crate::provider::{Request, ToolChoice};

/// Builds the body; `provider` is the instance, whose own replies go back as they came.
///
/// Adds to `notices` what the client should know of it.
pub(in crate::provider) fn body(
    request: &Request<'_>,
    quirks: &Quirks,
    provider: &str,
    notices: &mut Vec<Notice>,
) -> Value {
    let mut body = Map::new();
    let mut set = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    set("model", json!(request.model));
    if !request.system.trim().is_empty() {
        set("instructions", json!(request.system));
    }
    set("input", input(request, quirks, provider));
    let may_call = request.tool_choice == ToolChoice::Auto || quirks.tool_choice;
    if quirks.tools && may_call && !request.tools.is_empty() {
        let tools = request.tools.iter();
        set("tools", tools.map(|spec| tool(spec, notices)).collect());
        if request.tool_choice == ToolChoice::None {
            set("tool_choice", json!("none"));
        }
    }
    set("store", json!(false));
    if quirks.include {
        set("include", json!(["reasoning.encrypted_content"]));
    }
    if let Some(most) = request.max_tokens {
        set("max_output_tokens", json!(most));
    }
    let reasoning = reasoning(request, quirks);
    if !reasoning.is_empty() {
        set("reasoning", Value::Object(reasoning));
    }
    let thinks = request.thinking.is_none_or(|thinking| thinking.enabled);
    if let Some(temperature) = request
        .temperature
        .filter(|_| quirks.temperature || !thinks)
    {
        set("temperature", json!(temperature));
    }
    if quirks.prompt_cache_key && !request.cache_key.is_empty() {
        set("prompt_cache_key", json!(request.cache_key));
    }
    set("stream", json!(true));
    if quirks.stream_options {
        set("stream_options", json!({"include_obfuscation": false}));
    }
    Value::Object(body)
}

/// A tool, never strict: schemas of any origin do not keep to the strict subset.
fn tool(tool: &ToolSpec, notices: &mut Vec<Notice>) -> Value {
    let (schema, notice) = schema::of_tool(tool, Wire::Responses);
    notices.extend(notice);
    json!({
        "type": "function",
        "name": wire_name(&tool.name),
        "description": tool.description,
        "parameters": schema,
        "strict": false,
    })
}

fn reasoning(request: &Request<'_>, quirks: &Quirks) -> Map<String, Value> {
    let mut reasoning = Map::new();
    if quirks.thinking == ThinkingDialect::None {
        return reasoning;
    }
    let enabled = request.thinking.is_none_or(|thinking| thinking.enabled);
    if let Some(thinking) = request.thinking {
        let effort = match (thinking.enabled, thinking.effort) {
            (false, _) => Some("none"),
            (true, effort) => effort.map(effort_word),
        };
        reasoning.extend(effort.map(|word| ("effort".to_owned(), json!(word))));
    }
    let summary = match quirks.summaries {
        Summaries::Never => false,
        Summaries::WithThinking => request.thinking.is_some(),
        Summaries::Always => true,
    };
    if enabled && summary {
        reasoning.insert("summary".to_owned(), json!("auto"));
    }
    reasoning
}

fn input(request: &Request<'_>, quirks: &Quirks, provider: &str) -> Value {
    let mut items = Vec::new();
    let (mut answers, mut used) = (BTreeMap::new(), BTreeSet::new());
    for message in request.messages {
        match message {
            Message::User(parts) => items.extend(user(parts, quirks)),
            Message::Reply(reply) => {
                let own = own_items(reply, request.model, provider);
                used.extend(
                    own.into_iter()
                        .flatten()
                        .filter_map(id_of)
                        .map(str::to_owned),
                );
                add_reply(reply, own, quirks, &mut items, &mut answers, &mut used);
            }
            Message::ToolResult(result) => items.push(answer(result, quirks, &answers)),
        }
    }
    Value::Array(items)
}

fn user(parts: &[Part], quirks: &Quirks) -> Option<Value> {
    let content: Vec<Value> = parts
        .iter()
        .filter_map(|part| input_part(part, quirks))
        .collect();
    (!content.is_empty()).then(|| json!({"type": "message", "role": "user", "content": content}))
}

fn input_part(part: &Part, quirks: &Quirks) -> Option<Value> {
    match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(json!({"type": "input_text", "text": text})),
        Part::Image { .. } if !quirks.images => {
            Some(json!({"type": "input_text", "text": IMAGE_OMITTED}))
        }
        Part::Image { media_type, data } => {
            let url = format!("data:{media_type};base64,{data}");
            Some(json!({"type": "input_image", "image_url": url}))
        }
    }
}

/// The output items of a reply that this provider and model made, if they have all that is needed.
///
/// A call that the conversation dropped would be refused for want of an output; then the reply is
/// written anew.
fn own_items<'a>(reply: &'a Reply, model: &str, provider: &str) -> Option<&'a [Value]> {
    let native = reply.native.as_ref()?;
    let is_own = native.wire == WIRE && native.provider == provider && native.model == model;
    let items = native.items.as_array().filter(|_| is_own)?;
    let mut calls = items.iter().filter(|item| is_call(item));
    calls
        .all(|item| {
            reply
                .calls
                .iter()
                .any(|call| call.provider_call_id.as_deref() == id_of(item))
        })
        .then_some(items)
}

/// How a call's result is to be sent: its `call_id` and the type of the item.
type Answers<'a> = BTreeMap<&'a ToolId, (String, &'static str)>;

fn add_reply<'a>(
    reply: &'a Reply,
    own: Option<&[Value]>,
    quirks: &Quirks,
    items: &mut Vec<Value>,
    answers: &mut Answers<'a>,
    used: &mut BTreeSet<String>,
) {
    match own {
        Some(own) => items.extend(sendable(own, quirks)),
        None if reply.text.trim().is_empty() => {}
        None => items.push(json!({
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": reply.text}],
        })),
    }
    for call in &reply.calls {
        let sent_id = call.provider_call_id.as_deref();
        let sent = own
            .into_iter()
            .flatten()
            .find(|item| is_call(item) && id_of(item) == sent_id);
        let (id, kind) = match sent {
            Some(item) if string(item, "type") == "custom_tool_call" => (
                sent_id.unwrap_or_default().to_owned(),
                "custom_tool_call_output",
            ),
            Some(_) => (
                sent_id.unwrap_or_default().to_owned(),
                "function_call_output",
            ),
            None => {
                let id = mint(&call.id, used, str::to_owned);
                used.insert(id.clone());
                items.push(json!({
                    "type": "function_call",
                    "call_id": id,
                    "name": wire_name(&call.name),
                    "arguments": Value::Object(call.input.clone()).to_string(),
                }));
                (id, "function_call_output")
            }
        };
        answers.insert(&call.id, (id, kind));
    }
}

/// The items that may go back: reasoning only with what it led to, which is missing where the answer
/// was cut, and for other servers than OpenAI's only if it says anything.
fn sendable<'a>(own: &'a [Value], quirks: &Quirks) -> impl Iterator<Item = Value> + 'a {
    let is_reasoning = |item: &Value| string(item, "type") == "reasoning";
    let end = own
        .iter()
        .rposition(|item| !is_reasoning(item))
        .map_or(0, |last| last + 1);
    let keep_empty = quirks.empty_reasoning;
    let says_nothing = |item: &Value| {
        ["summary", "content", "encrypted_content"]
            .into_iter()
            .all(|key| match item.get(key) {
                Some(Value::Array(parts)) => parts.is_empty(),
                Some(Value::String(content)) => content.is_empty(),
                _ => true,
            })
    };
    own.iter()
        .take(end)
        .filter(move |item| keep_empty || !(is_reasoning(item) && says_nothing(item)))
        .cloned()
}

fn answer(result: &ToolResult, quirks: &Quirks, answers: &Answers<'_>) -> Value {
    let (id, kind) = match answers.get(&result.id) {
        Some((id, kind)) => (id.clone(), *kind),
        None => (format!("call_{}", result.id), "function_call_output"),
    };
    let has_images = |part: &Part| matches!(part, Part::Image { .. });
    let texts: Vec<&str> = result
        .content
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Image { .. } => (!quirks.images).then_some(IMAGE_OMITTED),
        })
        .collect();
    let has_images = quirks.images && result.content.iter().any(has_images);
    let told = result_text(&texts, result.is_error, has_images);
    let output = if has_images {
        let images = result
            .content
            .iter()
            .filter(|part| matches!(part, Part::Image { .. }));
        let mut parts = vec![json!({"type": "input_text", "text": told})];
        parts.extend(images.filter_map(|part| input_part(part, quirks)));
        Value::Array(parts)
    } else {
        json!(told)
    };
    json!({"type": kind, "call_id": id, "output": output})
}

fn is_call(item: &Value) -> bool {
    matches!(string(item, "type"), "function_call" | "custom_tool_call")
}

/// The id that a call's output names. `call_id`, never `id`, unless there is no other.
fn id_of(item: &Value) -> Option<&str> {
    ["call_id", "id"]
        .into_iter()
        .map(|key| string(item, key))
        .find(|id| !id.is_empty())
}

#[cfg(test)]
mod tests;
