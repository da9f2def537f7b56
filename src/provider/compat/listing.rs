//! Lists of models, in the forms of all vendors at once.
//!
//! Each says other things under other names, and none uses a name for two things, so every name is
//! looked for everywhere (`docs/providers.md`, "Lists of models"). Pure.

use serde_json::Value;

use crate::message::{Model, Pricing, Rates};
use crate::provider::models::{self, PRICED_TOKENS};

/// Most models taken of one list; the longest known, OpenRouter's, has some hundreds.
const MAX_MODELS: usize = 5000;

/// Parts of ids of what no conversation can be held with; OpenAI lists it all without a word on it.
const NOT_FOR_CHAT: [&str; 16] = [
    "embed",
    "whisper",
    "tts",
    "dall-e",
    "moderation",
    "gpt-image",
    "sora",
    "realtime",
    "transcribe",
    "-audio",
    "davinci",
    "babbage",
    "rerank",
    "-instruct-0914",
    "ocr",
    "imagen",
];

/// Where a list has a model's window.
const WINDOWS: [&str; 10] = [
    "/loaded_instances/0/config/context_length",
    "/loaded_context_length",
    "/top_provider/context_length",
    "/context_length",
    "/context_window",
    "/max_model_len",
    "/max_context_length",
    "/max_input_tokens",
    "/meta/n_ctx",
    "/meta/n_ctx_train",
];

/// Where it has the most tokens of an answer.
const OUTPUTS: [&str; 3] = [
    "/top_provider/max_completion_tokens",
    "/max_completion_tokens",
    "/max_output_tokens",
];

/// Where llama.cpp says whether its model has tools.
const TOOL_PROPS: [&str; 2] = [
    "/chat_template_caps/supports_tools",
    "/chat_template_caps/supports_tool_calls",
];

/// Reads a list; `props` is what llama.cpp says of the one model it runs.
pub(super) fn models(
    list: &Value,
    props: Option<&Value>,
    provider: &str,
    vendor: &str,
) -> Vec<Model> {
    let listed = ["data", "models"].map(|key| list.get(key).and_then(Value::as_array));
    let entries = listed.into_iter().flatten().next().or(list.as_array());
    let entries = entries.into_iter().flatten();
    entries
        .filter(|entry| is_for_chat(entry))
        .filter_map(|entry| model(entry, props, provider, vendor))
        .take(MAX_MODELS)
        .collect()
}

/// Returns the vendor whose server made a list, where the list says so.
///
/// llama.cpp puts `owned_by: "llamacpp"` on each of its models (recorded from its server, 2026-11-22).
pub(super) fn recognised(list: &Value) -> Option<&'static str> {
    let entries = list.get("data")?.as_array()?;
    let owner = |entry: &Value| entry.get("owned_by") == Some(&Value::from("llamacpp"));
    // All of them: a proxy lists the models of several servers.
    let is_own = !entries.is_empty() && entries.iter().all(owner);
    is_own.then_some("llamacpp")
}

fn is_for_chat(entry: &Value) -> bool {
    let is = |path: &str, value: bool| entry.pointer(path) == Some(&Value::Bool(value));
    if is("/active", false) || is("/capabilities/completion_chat", false) {
        return false;
    }
    // LM Studio: llm, vlm, embeddings. Others: model, chat, language, image, …
    if let Some("embedding" | "embeddings" | "image" | "audio" | "rerank" | "moderation") =
        entry.get("type").and_then(Value::as_str)
    {
        return false;
    }
    let id = id_of(entry).unwrap_or_default().to_ascii_lowercase();
    !NOT_FOR_CHAT.iter().any(|part| id.contains(part))
}

fn first_text<'a>(entry: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| entry.get(key)?.as_str())
}

fn id_of(entry: &Value) -> Option<&str> {
    // Google puts a folder in front that requests work without.
    let id = first_text(entry, &["id", "key", "name", "model"])?;
    Some(id.strip_prefix("models/").unwrap_or(id)).filter(|id| !id.is_empty())
}

fn model(entry: &Value, props: Option<&Value>, provider: &str, vendor: &str) -> Option<Model> {
    let id = id_of(entry)?;
    let name = first_text(entry, &["display_name", "name"])
        .filter(|name| !name.is_empty() && !name.starts_with("models/"));
    // What is allocated comes before what the model could do.
    let allocated =
        props.and_then(|it| figure(it, &["/default_generation_settings/n_ctx", "/n_ctx"]));
    let mut model = Model {
        display_name: name.unwrap_or(id).to_owned(),
        context_window: allocated.or_else(|| figure(entry, &WINDOWS)),
        max_output_tokens: figure(entry, &OUTPUTS),
        supports_thinking: thinking(entry),
        supports_vision: vision(entry, props),
        pricing: pricing(entry),
        ..models::describe(provider, vendor, id)
    };
    model.supports_tools = tools(entry, props).unwrap_or(model.supports_tools);
    models::complete(&mut model, vendor);
    Some(model)
}

fn figure(value: &Value, paths: &[&str]) -> Option<u64> {
    paths
        .iter()
        .filter_map(|path| value.pointer(path)?.as_u64())
        .find(|figure| *figure > 0)
}

fn flag(value: &Value, paths: &[&str]) -> Option<bool> {
    paths.iter().find_map(|path| value.pointer(path)?.as_bool())
}

/// Whether a list holds any of the words; `None` where there is no list.
fn lists(value: &Value, path: &str, words: &[&str]) -> Option<bool> {
    let listed = value.pointer(path)?.as_array()?;
    let has = |word: &Value| word.as_str().is_some_and(|word| words.contains(&word));
    Some(listed.iter().any(has))
}

fn tools(entry: &Value, props: Option<&Value>) -> Option<bool> {
    let trained = "/capabilities/trained_for_tool_use";
    props
        .and_then(|props| flag(props, &TOOL_PROPS))
        .or_else(|| lists(entry, "/supported_parameters", &["tools"]))
        .or_else(|| flag(entry, &["/capabilities/function_calling"]))
        // LM Studio says what a model was trained for; others still get tools, in words.
        .or_else(|| entry.pointer(trained).map(|_| true))
        .or_else(|| lists(entry, "/capabilities", &["tool_use", "tools"]).filter(|has| *has))
}

fn thinking(entry: &Value) -> Option<bool> {
    let words = ["reasoning", "include_reasoning"];
    lists(entry, "/supported_parameters", &words).or_else(|| {
        let reasoning = entry.pointer("/capabilities/reasoning")?;
        Some(reasoning.as_bool().unwrap_or(reasoning.is_object()))
    })
}

fn vision(entry: &Value, props: Option<&Value>) -> Option<bool> {
    props
        .and_then(|props| flag(props, &["/modalities/vision"]))
        .or_else(|| lists(entry, "/architecture/input_modalities", &["image"]))
        .or_else(|| flag(entry, &["/capabilities/vision"]))
        .or_else(|| (entry.get("type")?.as_str()? == "vlm").then_some(true))
}

/// OpenRouter's prices: decimal text, US dollars for one token, -1 where it depends.
fn pricing(entry: &Value) -> Option<Pricing> {
    let price = |key: &str| -> Option<f64> {
        let price: f64 = entry.get("pricing")?.get(key)?.as_str()?.parse().ok()?;
        (price.is_finite() && price >= 0.0).then_some(price * PRICED_TOKENS)
    };
    let rates = Rates {
        input: price("prompt")?,
        output: price("completion")?,
        cache_read: price("input_cache_read"),
        cache_write: price("input_cache_write"),
        cache_write_1h: None,
    };
    Some(Pricing { rates, long: None })
}

#[cfg(test)]
mod tests;
