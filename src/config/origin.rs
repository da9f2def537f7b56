//! Where a value came from, and how a value is shown without its secrets.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

/// What stands in the place of a secret.
pub(crate) const MASK: &str = "***";
/// Longest text of a value in an error message, in characters.
const SHOWN_CHARACTERS: usize = 80;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Compiled in.
    Default,
    /// A configuration file.
    File(PathBuf),
    /// An environment variable, by its name.
    Variable(String),
    /// A flag of the command line, e.g. `--port`.
    Flag(String),
    /// Nobody set it: it follows from other values, for the reason given.
    Derived(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
            Self::Derived(reason) => f.write_str(reason),
        }
    }
}

/// Whether the value at this path must never be shown.
pub(crate) fn is_secret(path: &[&str]) -> bool {
    match path {
        // Whether a value is one.
        ["providers", _, "headers", _, "secret"]
        | ["mcp", "servers", _, "env" | "headers", _, "secret"]
        | ["telemetry", "otlp", "headers", _, "secret"] => false,
        [.., "api_key" | "brave_api_key"]
        | ["webhooks" | "cluster", "secret"]
        | ["store", "url"]
        // It has no headers, so a key of it is in there.
        | ["hooks", _, "url"]
        | ["server", "approver_token" | "observer_token"]
        | ["providers", _, "headers", ..]
        | ["telemetry", "otlp", "headers", ..]
        | ["mcp", "servers", _, "env" | "headers", ..]
        | ["mcp", "servers", _, "auth", "client_secret"] => true,
        _ => false,
    }
}

/// Writes a value for people on one line: secrets masked, long texts cut.
pub(crate) fn shown(path: &[&str], value: &Value) -> String {
    let text = shown_json(path, value).to_string();
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// Returns a value with its secrets masked.
pub(crate) fn shown_json(path: &[&str], value: &Value) -> Value {
    match value {
        Value::Object(table) => table
            .iter()
            .map(|(key, value)| {
                let inner: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
                (key.clone(), shown_json(&inner, value))
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(values) => values.iter().map(|value| shown_json(path, value)).collect(),
        Value::String(text) if text.is_empty() => "".into(),
        _ if is_secret(path) => MASK.into(),
        Value::String(text) => without_password(text).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Masks the user and password of a URL (`://user:password@`).
pub(crate) fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{MASK}@{host}{tail}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_empty_ones_shown_as_empty() {
        let cases: [(&[&str], &str, &str); 9] = [
            (&["hooks", "a", "url"], "https://a/h?key=b", "\"***\""),
            (&["providers", "a", "api_key"], "sk-1", "\"***\""),
            (&["providers", "a", "api_key"], "", "\"\""),
            (&["providers", "a", "headers", "X"], "v", "\"***\""),
            (&["mcp", "servers", "s", "env", "TOKEN"], "v", "\"***\""),
            (&["tools", "web_search", "brave_api_key"], "v", "\"***\""),
            (&["providers", "api_key", "model"], "m", "\"m\""),
            (
                &["tools", "web_search", "searxng_url"],
                "http://u:p@host/x",
                "\"http://***@host/x\"",
            ),
            (&["chat", "model"], "a@b://c", "\"a@b://c\""),
        ];
        for (path, value, expected) in cases {
            assert_eq!(shown(path, &Value::from(value)), expected, "{path:?}");
        }
    }

    #[test]
    fn a_table_masks_what_is_secret_inside() {
        let json = r#"{"a": {"api_key": "sk-1", "headers": {"X": "v"}, "model": "m"}}"#;
        let value: Value = serde_json::from_str(json).expect("valid JSON");
        assert_eq!(
            shown(&["providers"], &value),
            r#"{"a":{"api_key":"***","headers":{"X":"***"},"model":"m"}}"#
        );
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let value = Value::from("é".repeat(200));
        assert_eq!(shown(&["chat", "model"], &value).chars().count(), 81);
    }
}
