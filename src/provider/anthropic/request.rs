//! The body of one request.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::amends::Amends;
use super::cache;
use super::capabilities::{Capabilities, effort_word};
use super::content::{self, Images};
use super::history::{self, Rules};
use super::thinking::Plan;
use crate::message::{Message, Notice};
use crate::provider::compat::images_left_out;
use crate::provider::schema::{self, Wire, wire_name};
use crate::provider::{Request, ToolChoice};

/// All that a body is made from besides the request itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    /// The provider instance.
    pub(super) provider: &'a str,
    /// Whether the vendor itself is asked.
    pub(super) vendor: bool,
    /// Whether the API version in use has done away with sampling parameters.
    pub(super) no_sampling: bool,
    /// What the model accepts.
    pub(super) capabilities: &'a Capabilities,
    /// What was learnt from a refusal, for this request only.
    pub(super) amends: Amends,
}

/// A body, and what is to be known of it when the answer comes.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The JSON to send.
    pub(super) body: Map<String, Value>,
    /// Digest of all that the reply is produced from; empty where nothing depends on it.
    pub(super) prefix: String,
    /// Most tokens of the answer that were asked for.
    pub(super) max_tokens: u64,
    /// What the user should know of tools that are not as they were.
    pub(super) notices: Vec<Notice>,
}

/// Builds the body of a request: the same bytes for the same input.
pub(super) fn prepare(request: &Request<'_>, setting: Setting<'_>) -> Prepared {
    let capabilities = setting.capabilities;
    let cap = capabilities.max_tokens;
    let cap = setting.amends.max_tokens.map_or(cap, |most| most.min(cap));
    let max_tokens = request
        .max_tokens
        .map_or(cap, |most| cap.min(most.into()))
        .max(1);

    let system = system(request.system);
    let (tools, mut notices) = tools(request);
    let prefix = capabilities.binds_thinking.then(|| {
        let mut digest = Sha256::new();
        digest.update(request.system.trim());
        // The vendor compares tools as a set.
        let mut texts: Vec<_> = tools.iter().map(Value::to_string).collect();
        texts.sort_unstable();
        texts.iter().for_each(|text| digest.update(text));
        digest
    });
    let history = history::build(
        request.messages,
        prefix,
        Rules {
            provider: setting.provider,
            model: request.model,
            images: if capabilities.images {
                Images::Seen
            } else {
                Images::Unseen
            },
            vendor: setting.vendor,
            thinking: !setting.amends.no_thinking,
        },
    );
    let mut plan = Plan::new(request.thinking, capabilities, max_tokens);
    if history.thoughtless_loop {
        plan = plan.without_budget(capabilities);
    }

    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("model", Value::from(request.model));
    put("max_tokens", Value::from(max_tokens));
    if let Some(system) = system {
        put("system", system);
    }
    if !tools.is_empty() {
        put("tools", Value::Array(tools));
        // Newer models refuse any other choice than these two.
        if request.tool_choice == ToolChoice::None || request.tools.is_empty() {
            put("tool_choice", json!({"type": "none"}));
        } else {
            put("tool_choice", json!({"type": "auto"}));
        }
    }
    put("messages", Value::Array(history.messages));
    if let Some(thinking) = plan.field() {
        put("thinking", thinking);
    }
    if let Some(effort) = plan.effort {
        put("output_config", json!({"effort": effort_word(effort)}));
    }
    if let Some(temperature) = request.temperature
        && capabilities.sampling
        && !setting.no_sampling
        && !plan.thinks()
    {
        put("temperature", Value::from(temperature.clamp(0.0, 1.0)));
    }
    put("stream", Value::Bool(true));
    cache::mark(&mut body);
    if !capabilities.images {
        notices.extend(images_left_out(request));
    }
    Prepared {
        body,
        prefix: history.prefix,
        max_tokens,
        notices,
    }
}

fn system(prompt: &str) -> Option<Value> {
    (!prompt.trim().is_empty()).then(|| json!([content::text(prompt)]))
}

/// Tells the tools. A history with calls needs some, so that those called in it stand in where the
/// request has none.
fn tools(request: &Request<'_>) -> (Vec<Value>, Vec<Notice>) {
    if request.tools.is_empty() {
        return (called(request.messages), Vec::new());
    }
    let mut notices = Vec::new();
    let told = request.tools.iter().map(|tool| {
        let (input_schema, notice) = schema::of_tool(tool, Wire::Anthropic);
        notices.extend(notice);
        let name = wire_name(&tool.name);
        let mut told = json!({"name": name});
        if let Some(fields) = told.as_object_mut() {
            if !tool.description.trim().is_empty() {
                fields.insert("description".to_owned(), Value::from(&*tool.description));
            }
            fields.insert("input_schema".to_owned(), input_schema);
        }
        told
    });
    (told.collect(), notices)
}

fn called(messages: &[Message]) -> Vec<Value> {
    let calls = messages.iter().filter_map(|message| match message {
        Message::Reply(reply) => Some(&reply.calls),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    let mut names: Vec<_> = calls.flatten().map(|call| wire_name(&call.name)).collect();
    names.sort_unstable();
    names.dedup();
    let told = names.into_iter().map(|name| {
        json!({"name": name, "description": "Not available any more.",
            "input_schema": {"type": "object", "properties": {}}})
    });
    told.collect()
}

#[cfg(test)]
mod tests;
