//! Finds an error's words in whatever JSON or text a vendor wrapped them in. Forms as of 2026-11-20.

use std::num::NonZeroU32;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use super::{delay, safe_message};
use crate::provider::json;

/// Most bytes of text that signatures are looked for in.
const MAX_SEARCHED_BYTES: usize = 8192;

/// What an error says of itself.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) error_type: Option<String>,
    /// Numbers as text.
    pub(super) code: Option<String>,
    /// A code deeper inside that tells more than the outer one; for classification only.
    pub(super) inner_code: Option<String>,
    pub(super) message: Option<String>,
    /// The HTTP status that the object names, 300 to 599.
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    /// The tokens of the window that a request did not fit (llama.cpp).
    pub(super) window: Option<NonZeroU32>,
    /// All text that may hold a signature, in lower case.
    pub(super) searched: String,
}

impl Said {
    /// Reads what is no JSON: plain text, a page, nothing.
    pub(super) fn of_text(text: &str, headers: &HeaderMap, status: u16) -> Self {
        let text = text.trim();
        let is_page = text.starts_with('<')
            || headers
                .get(CONTENT_TYPE)
                .is_some_and(|value| value.as_bytes().starts_with(b"text/html"));
        let message = if is_page {
            let title = title(text).unwrap_or("without a title");
            format!("a page of HTML instead of the API: {title}")
        } else if safe_message(text).is_empty() {
            format!("the provider answered with status {status} and no message")
        } else {
            text.to_owned()
        };
        Self {
            searched: searched(&message),
            message: Some(message),
            ..Self::default()
        }
    }

    /// Reads an error object in any known form.
    pub(super) fn of_json(payload: &Value) -> Self {
        let payload = match payload {
            Value::Array(items) => items.first().unwrap_or(payload),
            _ => payload,
        };
        let body = find_body(payload);
        // xAI puts a code beside an `error` that is a string; its set of codes is not the error's own.
        let fields = if body.is_string() { &Value::Null } else { body };
        let message = message(body).or_else(|| message(payload));
        let inner_code = ["/details/error_code", "/innererror/code", "/error_code"]
            .iter()
            .find_map(|path| fields.pointer(path).and_then(Value::as_str))
            .or_else(|| payload.get("code").and_then(Value::as_str))
            .or_else(|| fields.get("status").and_then(Value::as_str));
        let raw = fields.pointer("/metadata/raw").and_then(Value::as_str);
        let texts = [message.as_deref(), raw].into_iter().flatten();
        Self {
            status: status(fields, payload),
            retry_after: delay::from_fields(fields).or_else(|| delay::from_fields(payload)),
            searched: searched(&texts.collect::<Vec<_>>().join("\n")),
            error_type: fields
                .get("type")
                .and_then(Value::as_str)
                .filter(|word| *word != "error")
                .map(str::to_owned),
            code: fields.get("code").and_then(plain),
            window: fields
                .get("n_ctx")
                .and_then(Value::as_u64)
                .and_then(|tokens| NonZeroU32::new(u32::try_from(tokens).ok()?)),
            inner_code: inner_code.map(str::to_owned),
            message,
        }
    }

    /// Returns the message, safe to show, or what stands for it where nobody wrote one.
    pub(super) fn shown(&self) -> String {
        let safe = safe_message(self.message.as_deref().unwrap_or_default());
        if !safe.is_empty() {
            return safe;
        }
        safe_message(&match self.code.as_deref().or(self.error_type.as_deref()) {
            Some(word) => format!("the provider reported {word} without a message"),
            None => "the provider reported an error without a message".to_owned(),
        })
    }
}

/// Finds the JSON of a body: all of it, or its first line that is some, alone or as an event's data.
pub(super) fn find(body: &str) -> Option<Value> {
    let parse = |text: &str| {
        let value = json::read::<Value>(text.trim()).ok()?;
        (value.is_object() || value.is_array()).then_some(value)
    };
    let by_line = || {
        body.lines()
            .map(|line| line.trim_start_matches('\u{feff}').trim())
            .map(|line| line.strip_prefix("data:").unwrap_or(line).trim_start())
            .filter(|line| line.starts_with(['{', '[']))
            .find_map(parse)
    };
    parse(body).or_else(by_line)
}

/// Goes down to the object, or the string, that holds the error's own fields.
fn find_body(payload: &Value) -> &Value {
    const PATHS: [&str; 5] = [
        "/response/error",
        "/error",
        "/error/0",
        "/errors/0",
        "/base_resp",
    ];
    let mut found = PATHS.iter().filter_map(|path| payload.pointer(path));
    found
        .find(|found| found.is_object() || found.is_string())
        .unwrap_or(payload)
}

fn message(body: &Value) -> Option<String> {
    const KEYS: [&str; 8] = [
        "message",
        "detail",
        "details",
        "msg",
        "error_msg",
        "status_msg",
        "error_description",
        "title",
    ];
    if let Value::String(text) = body {
        return Some(text.clone());
    }
    let mut values = KEYS.iter().filter_map(|key| body.get(key));
    values.find_map(|found| match found {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        // FastAPI's list of what is wrong with a request.
        Value::Array(items) => listed(items),
        Value::Object(_) => message(found),
        _ => None,
    })
}

fn listed(items: &[Value]) -> Option<String> {
    let texts: Vec<String> = items
        .iter()
        .filter_map(|item| {
            let text = item.get("msg").or_else(|| item.get("message"))?.as_str()?;
            let Some(Value::Array(path)) = item.get("loc") else {
                return Some(text.to_owned());
            };
            let path: Vec<String> = path.iter().filter_map(plain).collect();
            Some(format!("{}: {text}", path.join(".")))
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn status(fields: &Value, payload: &Value) -> Option<u16> {
    const KEYS: [&str; 6] = [
        "code",
        "status",
        "status_code",
        "raw_status_code",
        "http_status_code",
        "http_code",
    ];
    [fields, payload]
        .iter()
        .flat_map(|object| KEYS.iter().filter_map(|key| object.get(key)))
        .filter_map(|value| plain(value)?.parse().ok())
        .find(|status| (300..600).contains(status))
}

/// Returns a string or a number as text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn searched(text: &str) -> String {
    let text: String = text.chars().take(MAX_SEARCHED_BYTES).collect();
    text.to_lowercase()
}

fn title(page: &str) -> Option<&str> {
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find('<')?;
    page.get(start..end).map(str::trim)
}
