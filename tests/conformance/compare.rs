//! What an answer came to against what it had to come to.

use outrigger::message::{NativeReply, Usage};
use outrigger::provider::{CallInput, End, ErrorKind, ProviderError, Stop};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::manifest::{Call, Expect, ExpectedError, Text};
use crate::outcome::{self, Outcome};

/// Most bytes of an error's message that are kept; see `ProviderError::message`.
const MAX_MESSAGE_BYTES: usize = 2048;

/// Returns each difference in words; empty where there is none.
pub(crate) fn mismatches(api: &str, expect: &Expect, outcome: &Outcome) -> Vec<String> {
    let mut found = outcome.disorder.clone();
    compare_texts(expect, outcome, &mut found);
    compare_calls(&expect.tool_calls, &outcome.calls, &mut found);
    match (&expect.error, &outcome.error) {
        (None, None) => {}
        (Some(error), Some(read)) => found.extend(error_mismatches(error, read)),
        (expected, read) => found.push(format!(
            "error {:?}, expected {:?}",
            read,
            expected.as_ref().map(|error| &error.category)
        )),
    }
    let cut = outcome
        .error
        .as_ref()
        .is_some_and(|error| error.kind == ErrorKind::IncompleteStream);
    if cut && expect.complete {
        found.push("taken for cut off".into());
    }
    if let Some(end) = &outcome.end {
        compare_end(api, expect, end, &mut found);
    } else if expect.error.is_none() {
        found.push("no end".into());
    }
    found
}

/// Compares an error alone.
pub(crate) fn error_mismatches(expect: &ExpectedError, read: &ProviderError) -> Vec<String> {
    let mut found = Vec::new();
    let code = match &expect.code {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    differ(
        "error type",
        &expect.error_type,
        &read.error_type,
        &mut found,
    );
    differ("error code", &code, &read.code, &mut found);
    if let Some(message) = expect
        .message
        .as_ref()
        .filter(|text| text.len() <= MAX_MESSAGE_BYTES)
    {
        differ("error message", message, &read.message, &mut found);
    }
    if !categories(read.kind).contains(&expect.category.as_str()) {
        found.push(format!(
            "kind {:?}, expected {}",
            read.kind, expect.category
        ));
    }
    found
}

/// The recordings' words for a kind. They have none for a model without tools.
fn categories(kind: ErrorKind) -> &'static [&'static str] {
    match kind {
        ErrorKind::Connect | ErrorKind::Protocol | ErrorKind::NotConfigured => &[],
        ErrorKind::Timeout => &["timeout"],
        ErrorKind::RateLimit => &["rate_limit"],
        ErrorKind::Overloaded => &["overloaded"],
        ErrorKind::Server => &["server"],
        ErrorKind::IncompleteStream => &["incomplete_stream"],
        ErrorKind::InvalidRequest | ErrorKind::Compaction => &["invalid_request"],
        ErrorKind::Authentication => &["authentication"],
        ErrorKind::Permission => &["permission"],
        ErrorKind::Quota => &["quota"],
        ErrorKind::NotFound => &["not_found"],
        ErrorKind::TooLarge => &["too_large"],
        ErrorKind::ContextLength => &["context_length"],
        ErrorKind::ContentFilter => &["content_filter"],
        ErrorKind::Conflict => &["conflict"],
        ErrorKind::NoTools => &["invalid_request", "not_found"],
        ErrorKind::Unknown => &["unknown"],
    }
}

fn differ<T: PartialEq + std::fmt::Debug>(
    what: &str,
    expect: &T,
    read: &T,
    found: &mut Vec<String>,
) {
    if expect != read {
        found.push(format!("{what} {read:?}, expected {expect:?}"));
    }
}

fn compare_texts(expect: &Expect, outcome: &Outcome, found: &mut Vec<String>) {
    // A refusal is passed on as text, alone in its answer.
    let text = expect.text.as_ref().or(expect.refusal.as_ref());
    for (what, expect, read) in [
        ("text", text, &outcome.text),
        ("thinking", expect.thinking.as_ref(), &outcome.thinking),
    ] {
        if !is_text(expect, read) {
            let head: String = read.chars().take(80).collect();
            let expected = expect.map(|text| (text.bytes, text.chars, text.head.as_str()));
            found.push(format!(
                "{what} of {} bytes {head:?}, expected {expected:?}",
                read.len()
            ));
        }
    }
}

fn is_text(expect: Option<&Text>, read: &str) -> bool {
    expect.map_or(read.is_empty(), |text| text.sha256 == hash(read))
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn compare_calls(expect: &[Call], read: &[outcome::Call], found: &mut Vec<String>) {
    differ("number of calls", &expect.len(), &read.len(), found);
    for (expect, read) in expect.iter().zip(read) {
        differ("call id", &expect.id, &read.id, found);
        differ("call name", &expect.name, &read.name, found);
        match (&read.input, expect.valid) {
            (Some(CallInput::Object(input)), true) => {
                let arguments = expect.arguments.clone().unwrap_or_default();
                differ("arguments", &arguments, input, found);
                let joined: Value = serde_json::from_str(&read.fragments).unwrap_or(json!({}));
                if joined != Value::Object(arguments) && !read.fragments.is_empty() {
                    found.push(format!(
                        "fragments {:?} are not the arguments",
                        read.fragments
                    ));
                }
            }
            (Some(CallInput::Truncated { raw } | CallInput::Invalid { raw, .. }), false) => {
                let expected = expect.arguments_raw.as_deref().unwrap_or_default();
                differ("cut arguments", &expected, &raw.as_str(), found);
            }
            (input, valid) => found.push(format!("input {input:?}, expected valid: {valid}")),
        }
    }
}

fn compare_end(api: &str, expect: &Expect, end: &End, found: &mut Vec<String>) {
    if !expect.complete {
        found.push("taken for complete".into());
    }
    differ("raw stop", &expect.stop.raw, &end.raw_stop, found);
    let stop = match end.stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::StopSequence => "stop_sequence",
        Stop::Refusal | Stop::ContentFilter => "refusal",
        Stop::Pause => "pause_turn",
    };
    differ("stop", &expect.stop.normalised.as_str(), &stop, found);
    compare_usage(expect, end.usage, found);
    compare_native(api, expect, end.native.as_ref(), found);
}

fn compare_usage(expect: &Expect, read: Usage, found: &mut Vec<String>) {
    let expected = |key: &str| {
        expect
            .usage
            .as_ref()
            .and_then(|usage| usage.get(key).copied())
    };
    for (key, read) in [
        ("input_total", read.input),
        ("output", read.output),
        ("cache_read", read.cache_read),
        ("cache_write", read.cache_write),
        ("reasoning", read.reasoning),
    ] {
        // A figure that the manifest leaves out may be left out or nothing.
        let expected = expected(key);
        if expected != read && (expected.is_some() || read != Some(0)) {
            found.push(format!("usage {key} {read:?}, expected {expected:?}"));
        }
    }
}

fn compare_native(
    api: &str,
    expect: &Expect,
    native: Option<&NativeReply>,
    found: &mut Vec<String>,
) {
    let items = native
        .and_then(|native| native.items.as_array())
        .map_or(&[][..], Vec::as_slice);
    let (tools, thinking, citations) = match api {
        "anthropic-messages" => anthropic(items),
        "openai-responses" => responses(items),
        _ => return,
    };
    differ("server tools", &expect.server_tools, &tools, found);
    differ("thinking blocks", &expect.thinking_blocks, &thinking, found);
    // Without anything that has to go back the reply need not be kept.
    if native.is_some() || expect.citations > 0 {
        differ("citations", &expect.citations, &citations, found);
    }
}

fn anthropic(items: &[Value]) -> (Vec<Value>, Vec<Value>, usize) {
    let (mut tools, mut thinking, mut citations) = (Vec::new(), Vec::new(), 0);
    for item in items {
        match item["type"].as_str().unwrap_or_default() {
            "text" => citations += item["citations"].as_array().map_or(0, Vec::len),
            kind @ "thinking" => thinking.push(signed(kind, "signature", &item["signature"])),
            kind @ "redacted_thinking" => thinking.push(signed(kind, "data", &item["data"])),
            // Calls, and the daemon's own note of what stood before the reply.
            "tool_use" | "outrigger_prefix" => {}
            kind => tools.push(json!({"type": kind, "name": item["name"]})),
        }
    }
    (tools, thinking, citations)
}

fn responses(items: &[Value]) -> (Vec<Value>, Vec<Value>, usize) {
    let (mut tools, mut thinking, mut citations) = (Vec::new(), Vec::new(), 0);
    for item in items {
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let parts = item["content"].as_array().into_iter().flatten();
                citations += parts
                    .map(|part| part["annotations"].as_array().map_or(0, Vec::len))
                    .sum::<usize>();
            }
            kind @ "reasoning" => {
                thinking.push(signed(kind, "signature", &item["encrypted_content"]));
            }
            "function_call" | "custom_tool_call" => {}
            kind => tools.push(json!({"type": kind, "name": item["name"]})),
        }
    }
    (tools, thinking, citations)
}

fn signed(kind: &str, key: &str, secret: &Value) -> Value {
    let digest = secret
        .as_str()
        .map(|text| hash(text).chars().take(16).collect::<String>());
    json!({"type": kind, key: digest})
}
