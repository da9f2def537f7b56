//! Builds the body of a Chat Completions request.
//!
//! Pure and deterministic: the same request and flags give the same bytes, which prompt caches live on.
//! The messages are in [`super::history`]; what differs between servers comes in as [`Quirks`].

use serde_json::{Value, json};

use super::history;
use crate::message::{Notice, Thinking};
use crate::provider::output;
use crate::provider::quirks::{Quirks, ThinkingDialect};
use crate::provider::request::{Body, cache_key, offered_tools, raw, set, temperature};
use crate::provider::schema;
use crate::provider::{Request, ToolChoice};

/// Builds the body for the instance `provider`, whose own replies go back as they came. Adds to `notices`.
pub(in crate::provider) fn body(
    request: &Request<'_>,
    quirks: &Quirks,
    provider: &str,
    notices: &mut Vec<Notice>,
) -> Body {
    let tools = offered_tools(request, quirks, |spec| {
        schema::of_tool(spec, quirks.schemas, notices)
    });
    let (tools, tool_choice) = match output::by_tool(request, quirks) {
        Some(schema) => {
            let choice = || json!({"type": "function", "function": {"name": output::NAME}});
            (
                vec![raw(&answer_tool(schema))],
                quirks.tool_choice.then(choice),
            )
        }
        None => {
            let may_not = !tools.is_empty() && request.tool_choice == ToolChoice::None;
            (tools, may_not.then(|| json!("none")))
        }
    };
    let has_tools = !tools.is_empty();
    let form = request.output.filter(|_| quirks.output);
    let thinking = request
        .thinking
        .map(|thinking| thinking_fields(quirks.thinking, thinking));
    let thinking = thinking.unwrap_or_default();
    let includes_usage = quirks
        .stream_options
        .then(|| json!({"include_usage": true}));
    let mut body = json!({
        "model": request.model,
        "messages": null,
        "tools": null,
        "tool_choice": tool_choice,
        "response_format": form.map(output::response_format),
        "provider": (has_tools && quirks.routed).then(|| json!({"require_parameters": true})),
        quirks.output_cap: request.max_tokens,
        "temperature": temperature(request, quirks),
        "thinking": thinking.get("thinking"),
        "chat_template_kwargs": thinking.get("chat_template_kwargs"),
        "reasoning": thinking.get("reasoning"),
        "reasoning_effort": thinking.get("reasoning_effort"),
        "prompt_cache_key": cache_key(request, quirks),
        "stream": true,
        "stream_options": includes_usage,
    });
    set(
        &mut body,
        "messages",
        history::messages(request, quirks, provider),
    );
    Body::new(body, tools)
}

/// Returns the tool by which the model gives its answer.
fn answer_tool(schema: &Value) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": output::NAME,
            "description": output::DESCRIPTION,
            "parameters": schema,
        },
    })
}

fn thinking_fields(dialect: ThinkingDialect, thinking: Thinking) -> Value {
    let effort = thinking.effort.filter(|_| thinking.enabled);
    match (dialect, thinking.enabled) {
        (ThinkingDialect::None, _) => Value::Null,
        (ThinkingDialect::Effort, true) => json!({"reasoning_effort": effort}),
        (ThinkingDialect::Effort | ThinkingDialect::Mistral, false) => {
            json!({"reasoning_effort": "none"})
        }
        // Knows `none` and `high` alone.
        (ThinkingDialect::Mistral, true) => json!({"reasoning_effort": "high"}),
        (ThinkingDialect::DeepSeek, enabled) => {
            let kind = if enabled { "enabled" } else { "disabled" };
            json!({"thinking": {"type": kind}, "reasoning_effort": effort})
        }
        (ThinkingDialect::OpenRouter, false) => json!({"reasoning": {"enabled": false}}),
        (ThinkingDialect::OpenRouter, true) => match (effort, thinking.budget_tokens) {
            (_, Some(tokens)) => json!({"reasoning": {"max_tokens": tokens}}),
            (Some(effort), None) => json!({"reasoning": {"effort": effort}}),
            (None, None) => json!({"reasoning": {"enabled": true}}),
        },
        (ThinkingDialect::Template, enabled) => json!({
            "chat_template_kwargs": {"enable_thinking": enabled},
            "reasoning_effort": effort,
        }),
    }
}

#[cfg(test)]
mod tests;
