//! Builds the body of a Responses request, stateless: nothing is stored, everything is sent.
//!
//! Output items of the same provider and model go back as they came and in order, reasoning with its
//! `encrypted_content` and empty `summary`, messages with their `phase` (`docs/providers.md`,
//! "Responses: requests").

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::decode::WIRE;
use crate::message::{Document, Message, Notice, PDF, Part, Reply, ToolId, ToolResult};
use crate::provider::json::string;
use crate::provider::output;
use crate::provider::quirks::{Quirks, Summaries, ThinkingDialect};
use crate::provider::request::{
    Body, CallIds, IMAGE_OMITTED, WriteDocument, cache_key, offered_tools, own_items, parts, raw,
    result_text, set, split, temperature, without_nulls,
};
use crate::provider::schema::{self, Dialect, wire_name};
use crate::provider::{Request, ToolChoice};

/// Builds the body for the instance `provider`, whose own replies go back as they came. Adds to `notices`.
pub(in crate::provider) fn body(
    request: &Request<'_>,
    quirks: &Quirks,
    provider: &str,
    notices: &mut Vec<Notice>,
) -> Body {
    let tools = offered_tools(request, quirks, |spec| {
        schema::of_tool(spec, Dialect::Responses, notices)
    });
    let may_not_call = !tools.is_empty() && request.tool_choice == ToolChoice::None;
    let (tools, tool_choice) = match output::by_tool(request, quirks) {
        Some(schema) => {
            let choice = json!({"type": "function", "name": output::NAME});
            (vec![raw(&answer_tool(schema))], Some(choice))
        }
        None => (tools, may_not_call.then(|| json!("none"))),
    };
    let plain = quirks
        .stream_options
        .then(|| json!({"include_obfuscation": false}));
    let mut body = json!({
        "model": request.model,
        "instructions": Some(request.system).filter(|system| !system.trim().is_empty()),
        "input": null,
        "tools": null,
        "tool_choice": tool_choice,
        "store": false,
        "text": request.output.filter(|_| quirks.output).map(form),
        "response_format": request.output.filter(|_| quirks.output && quirks.chat_form).map(output::response_format),
        "include": quirks.include.then_some(["reasoning.encrypted_content"]),
        // The vendor says itself how long its compaction is.
        "max_output_tokens": request.max_tokens.filter(|_| request.compact.is_none()),
        "reasoning": reasoning(request, quirks),
        "temperature": temperature(request, quirks),
        "prompt_cache_key": cache_key(request, quirks),
        "stream": true,
        "stream_options": plain,
    });
    set(&mut body, "input", input(request, quirks, provider));
    Body::new(body, tools)
}

/// The form of an answer by the wire's own field.
fn form(schema: &Value) -> Value {
    let mut format = output::json_schema(schema);
    set(&mut format, "type", json!("json_schema"));
    json!({ "format": format })
}

/// Returns the tool by which the model gives its answer.
fn answer_tool(schema: &Value) -> Value {
    json!({
        "type": "function",
        "name": output::NAME,
        "description": output::DESCRIPTION,
        "parameters": schema,
        "strict": false,
    })
}

fn reasoning(request: &Request<'_>, quirks: &Quirks) -> Option<Value> {
    if quirks.thinking == ThinkingDialect::None {
        return None;
    }
    let enabled = request.thinking.is_none_or(|thinking| thinking.enabled);
    let effort = request.thinking.and_then(|thinking| thinking.effort);
    let effort = if enabled {
        json!(effort)
    } else {
        json!("none")
    };
    let summary = match quirks.summaries {
        Summaries::Never => false,
        Summaries::WithThinking => request.thinking.is_some(),
        Summaries::Always => true,
    };
    let summary = (enabled && summary).then_some("auto");
    let reasoning = without_nulls(json!({"effort": effort, "summary": summary}));
    (reasoning != json!({})).then_some(reasoning)
}

fn input(request: &Request<'_>, quirks: &Quirks, provider: &str) -> Value {
    let mut input = Input::default();
    for message in request.messages {
        match message {
            Message::User(parts) => {
                let said = request.said(message, parts);
                input.items.extend(user(&said, quirks));
            }
            Message::Reply(reply) => {
                let own = own_items(reply, WIRE, provider, request);
                let own = own.filter(|items| has_all_calls(reply, items));
                input.reply(reply, own, quirks);
            }
            Message::ToolResult(result) => input.answer(result, quirks),
        }
    }
    if request.compact.is_some() {
        input.items.push(json!({"type": "compaction_trigger"}));
    }
    Value::Array(input.items)
}

fn user(content: &[Part], quirks: &Quirks) -> Option<Value> {
    let omitted = (!quirks.images).then_some(IMAGE_OMITTED);
    let document = quirks.documents.then_some(document_part as WriteDocument);
    let content = parts(content, omitted, text_part, image_part, document);
    (!content.is_empty()).then(|| json!({"type": "message", "role": "user", "content": content}))
}

fn text_part(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn image_part(media_type: &str, data: &str) -> Value {
    let url = format!("data:{media_type};base64,{data}");
    json!({"type": "input_image", "image_url": url})
}

/// Text files go as text: of tables the server would show the model no more than the first 1,000 rows.
fn document_part(document: &Document) -> Option<Value> {
    let data = format!("data:{PDF};base64,{}", document.pdf()?);
    Some(json!({"type": "input_file", "filename": document.file_name(), "file_data": data}))
}

/// Whether the reply has each call among the items: one that the conversation dropped would be refused
/// for want of an output, so that the reply is written anew.
fn has_all_calls(reply: &Reply, items: &[Value]) -> bool {
    let has = |item: &Value| {
        let ids = reply
            .calls
            .iter()
            .map(|call| call.provider_call_id.as_deref());
        ids.into_iter().any(|id| id == id_of(item))
    };
    items.iter().filter(|item| is_call(item)).all(has)
}

#[derive(Default)]
struct Input<'a> {
    items: Vec<Value>,
    /// How a call's result is to be sent: its `call_id` and the type of the item.
    answers: BTreeMap<&'a ToolId, (String, &'static str)>,
    used: CallIds,
}

impl<'a> Input<'a> {
    fn reply(&mut self, reply: &'a Reply, own: Option<&Vec<Value>>, quirks: &Quirks) {
        let own_ids = own.into_iter().flatten().filter_map(id_of);
        own_ids.for_each(|id| self.used.take(id));
        match own {
            Some(own) => self.items.extend(sendable(own, quirks)),
            None if reply.text.trim().is_empty() => {}
            None => self.items.push(json!({
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
            let id = match sent {
                Some(_) => sent_id.unwrap_or_default().to_owned(),
                None => {
                    let id = self.used.assign(None, &call.id, str::to_owned);
                    self.items.push(json!({
                        "type": "function_call",
                        "call_id": id,
                        "name": wire_name(&call.name),
                        "arguments": json!(call.input).to_string(),
                    }));
                    id
                }
            };
            let kind = match sent {
                Some(item) if string(item, "type") == "custom_tool_call" => {
                    "custom_tool_call_output"
                }
                _ => "function_call_output",
            };
            self.answers.insert(&call.id, (id, kind));
        }
    }

    fn answer(&mut self, result: &ToolResult, quirks: &Quirks) {
        let (id, kind) = match self.answers.get(&result.id) {
            Some((id, kind)) => (id.clone(), *kind),
            None => (format!("call_{}", result.id), "function_call_output"),
        };
        let (texts, images) = split(&result.content, quirks.images);
        let text = result_text(&texts, result.is_error, !images.is_empty());
        let output = if images.is_empty() {
            json!(text)
        } else {
            let images = images
                .into_iter()
                .map(|(kind, data)| image_part(kind, data));
            std::iter::once(text_part(&text)).chain(images).collect()
        };
        self.items
            .push(json!({"type": kind, "call_id": id, "output": output}));
    }
}

/// The items that may go back: reasoning only with what it led to, which is missing where the answer
/// was cut, and for other servers than OpenAI's only if it says anything.
fn sendable<'a>(own: &'a [Value], quirks: &Quirks) -> impl Iterator<Item = Value> + 'a {
    let is_reasoning = |item: &Value| string(item, "type") == "reasoning";
    let end = own.iter().rposition(|item| !is_reasoning(item));
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
        .take(end.map_or(0, |last| last + 1))
        .filter(move |item| keep_empty || !(is_reasoning(item) && says_nothing(item)))
        .cloned()
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
