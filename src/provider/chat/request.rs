//! Builds the body of a Chat Completions request.
//!
//! Pure and deterministic: the same request and flags give the same bytes, which prompt caches live on.
//! The messages are in [`super::history`]; what differs between servers comes in as [`Quirks`].

use serde_json::{Map, Value, json};

use super::history;
use crate::message::{Effort, Notice, Thinking, ToolSpec};
use crate::provider::quirks::{OutputCap, Quirks, ThinkingDialect};
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
    set("messages", history::messages(request, quirks, provider));
    if offers_tools(request, quirks) {
        let tools = request.tools.iter();
        set(
            "tools",
            tools
                .map(|spec| tool(spec, quirks.schemas, notices))
                .collect(),
        );
        if request.tool_choice == ToolChoice::None {
            set("tool_choice", json!("none"));
        }
        if quirks.routed {
            set("provider", json!({"require_parameters": true}));
        }
    }
    if let Some(most) = request.max_tokens {
        let field = match quirks.output_cap {
            OutputCap::MaxTokens => "max_tokens",
            OutputCap::MaxCompletionTokens => "max_completion_tokens",
        };
        set(field, json!(most));
    }
    let thinks = request.thinking.is_none_or(|thinking| thinking.enabled);
    if let Some(temperature) = request
        .temperature
        .filter(|_| quirks.temperature || !thinks)
    {
        set("temperature", json!(temperature));
    }
    if let Some(thinking) = request.thinking {
        for (key, value) in asked_thinking(quirks.thinking, thinking) {
            set(key, value);
        }
    }
    if quirks.prompt_cache_key && !request.cache_key.is_empty() {
        set("prompt_cache_key", json!(request.cache_key));
    }
    set("stream", json!(true));
    if quirks.stream_options {
        set("stream_options", json!({"include_usage": true}));
    }
    Value::Object(body)
}

/// Whether tools go with the request.
///
/// A server that passes over `tool_choice` can only be kept from calls by showing it no tools.
fn offers_tools(request: &Request<'_>, quirks: &Quirks) -> bool {
    let may_call = request.tool_choice == ToolChoice::Auto || quirks.tool_choice;
    quirks.tools && may_call && !request.tools.is_empty()
}

fn tool(tool: &ToolSpec, wire: Wire, notices: &mut Vec<Notice>) -> Value {
    let (schema, notice) = schema::of_tool(tool, wire);
    notices.extend(notice);
    json!({
        "type": "function",
        "function": {
            "name": wire_name(&tool.name),
            "description": tool.description,
            "parameters": schema,
        },
    })
}

/// The word for an effort.
pub(in crate::provider) fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

/// The fields that ask for thinking or for none.
fn asked_thinking(dialect: ThinkingDialect, thinking: Thinking) -> Vec<(&'static str, Value)> {
    let effort = thinking
        .effort
        .filter(|_| thinking.enabled)
        .map(|effort| json!(effort_word(effort)));
    let with_effort = |mut fields: Vec<(&'static str, Value)>| {
        fields.extend(effort.clone().map(|word| ("reasoning_effort", word)));
        fields
    };
    match (dialect, thinking.enabled) {
        (ThinkingDialect::None, _) => Vec::new(),
        (ThinkingDialect::Effort, true) => with_effort(Vec::new()),
        (ThinkingDialect::Effort | ThinkingDialect::Mistral, false) => {
            vec![("reasoning_effort", json!("none"))]
        }
        // Knows `none` and `high` alone.
        (ThinkingDialect::Mistral, true) => vec![("reasoning_effort", json!("high"))],
        (ThinkingDialect::DeepSeek, enabled) => {
            let word = if enabled { "enabled" } else { "disabled" };
            with_effort(vec![("thinking", json!({"type": word}))])
        }
        (ThinkingDialect::OpenRouter, false) => vec![("reasoning", json!({"enabled": false}))],
        (ThinkingDialect::OpenRouter, true) => {
            let amount = match (effort, thinking.budget_tokens) {
                (_, Some(tokens)) => json!({"max_tokens": tokens}),
                (Some(word), None) => json!({"effort": word}),
                (None, None) => json!({"enabled": true}),
            };
            vec![("reasoning", amount)]
        }
        (ThinkingDialect::Template, enabled) => with_effort(vec![(
            "chat_template_kwargs",
            json!({"enable_thinking": enabled}),
        )]),
    }
}

#[cfg(test)]
mod tests;
