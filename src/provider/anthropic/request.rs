//! The body of one request.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::amends::Amends;
use super::cache;
use super::capabilities::Capabilities;
use super::content;
use super::history;
use super::thinking::Plan;
use crate::message::{Message, Notice, Part};
use crate::provider::notices::{documents_left_out, images_left_out};
use crate::provider::output;
use crate::provider::request::{Body, raw, set, without_nulls};
use crate::provider::schema::{self, Dialect, wire_name};
use crate::provider::{Request, ToolChoice};

/// All that a body is made from besides the request itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    pub(super) provider: &'a str,
    /// Whether the vendor itself is asked, who refuses more than those who copy its API.
    pub(super) vendor: bool,
    /// Whether the API version in use has done away with sampling parameters.
    pub(super) no_sampling: bool,
    pub(super) capabilities: &'a Capabilities,
    /// What was learnt from a refusal, for this request only.
    pub(super) amends: Amends,
}

impl Setting<'_> {
    pub(super) fn takes_documents(&self) -> bool {
        self.capabilities.documents && !self.amends.no_documents
    }
}

/// A body, and what is to be known of it when the answer comes.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) body: Body,
    /// Digest of all that the reply is produced from; empty where nothing depends on it.
    pub(super) prefix: String,
    pub(super) max_tokens: u64,
    /// Whether it has to do with a compaction of the vendor's own, which is a beta: asks for one, or begins with one.
    pub(super) compacts: bool,
    /// Whether documents go along as such.
    pub(super) has_documents: bool,
    /// Whether the answer is held to a form.
    pub(super) has_form: bool,
    /// What the user should know of tools that are not as they were.
    pub(super) notices: Vec<Notice>,
}

pub(super) fn prepare(request: &Request<'_>, setting: Setting<'_>) -> Prepared {
    let capabilities = setting.capabilities;
    let cap = capabilities.max_tokens;
    let cap = setting.amends.max_tokens.map_or(cap, |most| most.min(cap));
    let max_tokens = request
        .max_tokens
        .map_or(cap, |most| cap.min(most.into()))
        .max(1);

    let (mut tools, mut notices) = tools(request);
    let form = request.output.filter(|_| !setting.amends.no_form);
    let by_tool = form.filter(|_| !setting.vendor);
    tools.extend(by_tool.map(|schema| {
        let name = output::NAME;
        raw(&json!({"name": name, "description": output::DESCRIPTION, "input_schema": schema}))
    }));
    let prefix = capabilities.binds_thinking.then(|| {
        let mut digest = Sha256::new();
        digest.update(request.system.trim());
        // The vendor compares tools as a set.
        let mut texts: Vec<_> = tools.iter().map(|tool| tool.get()).collect();
        texts.sort_unstable();
        texts.iter().for_each(|text| digest.update(text));
        digest
    });
    let history = history::build(request, setting, prefix);
    let mut plan = Plan::new(request.thinking, capabilities, max_tokens);
    if history.loop_without_thinking {
        plan = plan.without_budget(capabilities);
    }
    // Newer models refuse any other choice than these two.
    let may_call = request.tool_choice == ToolChoice::Auto && !request.tools.is_empty();
    let tool_choice = match by_tool {
        Some(_) => json!({"type": "tool", "name": output::NAME}),
        None => json!({"type": if may_call { "auto" } else { "none" }}),
    };
    let format = form.filter(|_| setting.vendor);
    let format = format.map(|schema| json!({"type": "json_schema", "schema": closed(schema)}));
    let output_config = without_nulls(json!({"effort": plan.effort, "format": format}));
    let takes_temperature = capabilities.sampling && !setting.no_sampling && !plan.thinks();
    let temperature = request.temperature.filter(|_| takes_temperature);
    let has_system = !request.system.trim().is_empty();
    let has_tools = !tools.is_empty();
    let mut body = json!({
        "model": request.model,
        "max_tokens": max_tokens,
        "system": has_system.then(|| [content::text(request.system)]),
        "tools": null,
        "tool_choice": has_tools.then_some(tool_choice),
        "messages": null,
        "thinking": plan.field(),
        "output_config": Some(output_config).filter(|config| *config != json!({})),
        "temperature": temperature.map(|degree| degree.clamp(0.0, 1.0)),
        "compaction": request.compact.map(compaction),
        "stream": true,
    });
    let compacts = request.compact.is_some() || history.begins_compacted;
    set(&mut body, "messages", Value::Array(history.messages));
    let mut body = Body::new(body, tools);
    cache::mark(&mut body);
    if !capabilities.images {
        notices.extend(images_left_out(request));
    }
    let takes_documents = setting.takes_documents();
    if !takes_documents {
        notices.extend(documents_left_out(request));
    }
    Prepared {
        body,
        prefix: history.prefix,
        max_tokens,
        compacts,
        has_documents: takes_documents && has_documents(request),
        has_form: form.is_some(),
        notices,
    }
}

/// Returns a schema whose objects have what it names and nothing else, which the vendor insists on.
fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut fields: Map<String, Value> = fields
                .iter()
                .map(|(key, value)| (key.clone(), closed(value)))
                .collect();
            let is_object = fields.get("type").is_some_and(|it| it == "object");
            if is_object && !fields.contains_key("additionalProperties") {
                fields.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(closed).collect(),
        other => other.clone(),
    }
}

fn has_documents(request: &Request<'_>) -> bool {
    let is_document = |part: &Part| matches!(part, Part::Document(_));
    request.messages.iter().any(|message| match message {
        Message::User(parts) => parts.iter().any(is_document),
        Message::ToolResult(_) | Message::Reply(_) => false,
    })
}

fn compaction(instructions: &str) -> Value {
    let instructions = Some(instructions).filter(|text| !text.trim().is_empty());
    without_nulls(json!({"type": "summarize", "instructions": instructions}))
}

/// Lists the tools. A history with calls needs some, so that those called in it stand in where the
/// request has none.
fn tools(request: &Request<'_>) -> (Vec<Arc<RawValue>>, Vec<Notice>) {
    if request.tools.is_empty() {
        return (called(request.messages), Vec::new());
    }
    let mut notices = Vec::new();
    let described = |it| schema::of_tool(it, Dialect::Anthropic, &mut notices);
    let tools = request.tools.iter().map(described).collect();
    (tools, notices)
}

fn called(messages: &[Message]) -> Vec<Arc<RawValue>> {
    let calls = messages.iter().filter_map(|message| match message {
        Message::Reply(reply) => Some(&reply.calls),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    let names: BTreeSet<_> = calls.flatten().map(|call| wire_name(&call.name)).collect();
    let tools = names.into_iter().map(|name| {
        raw(
            &json!({"name": name, "description": "Not available any more.",
            "input_schema": {"type": "object", "properties": {}}}),
        )
    });
    tools.collect()
}

#[cfg(test)]
mod tests;
