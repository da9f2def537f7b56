//! What the collected text of a call's input comes to, for the wires that stream it as text.

use serde_json::Value;
use serde_json::error::Category;

use super::CallInput;

/// Reads the input of a call that arrived whole.
///
/// Empty text is `{}`. Text that ends in the middle is [`CallInput::Truncated`]: a server that says
/// nothing of its limit cut it. Anything else but a JSON object is [`CallInput::Invalid`].
pub(super) fn whole(raw: String) -> CallInput {
    if raw.trim().is_empty() {
        return CallInput::Object(serde_json::Map::new());
    }
    match parse(&raw) {
        Ok(Value::Object(object)) => CallInput::Object(object),
        Ok(other) => CallInput::Invalid {
            reason: format!("expected a JSON object, got {}", sort_of(&other)),
            raw,
        },
        Err(error) if error.classify() == Category::Eof => CallInput::Truncated { raw },
        Err(error) => CallInput::Invalid {
            reason: error.to_string(),
            raw,
        },
    }
}

/// Reads the input of the call that was open when the answer was cut off.
///
/// A whole JSON object still counts; what is empty does not, for its text may have been to come.
pub(super) fn cut(raw: String) -> CallInput {
    match parse(&raw) {
        Ok(Value::Object(object)) => CallInput::Object(object),
        Ok(_) | Err(_) => CallInput::Truncated { raw },
    }
}

/// Whether the text is one whole JSON object.
pub(super) fn is_object(raw: &str) -> bool {
    raw.trim_start().starts_with('{')
        && raw.trim_end().ends_with('}')
        && serde_json::from_str::<serde::de::IgnoredAny>(raw).is_ok()
}

/// Parses JSON; where that fails, once more with control characters in strings escaped.
///
/// Some models write line ends and tabs into strings as they are.
///
/// # Errors
///
/// The first attempt's error.
pub(super) fn parse(raw: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(raw).or_else(|error| {
        if raw.chars().any(|c| c.is_ascii_control()) {
            serde_json::from_str(&escape_control(raw)).map_err(|_| error)
        } else {
            Err(error)
        }
    })
}

/// Escapes the ASCII control characters that stand inside of JSON strings.
fn escape_control(raw: &str) -> String {
    let mut escaped = String::with_capacity(raw.len() + 16);
    let mut inside = false;
    let mut after_backslash = false;
    for c in raw.chars() {
        if inside && c.is_ascii_control() {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
            after_backslash = false;
            continue;
        }
        match c {
            '"' if !after_backslash => inside = !inside,
            _ => {}
        }
        after_backslash = inside && c == '\\' && !after_backslash;
        escaped.push(c);
    }
    escaped
}

fn sort_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> CallInput {
        match value {
            Value::Object(map) => CallInput::Object(map),
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn whole_inputs() {
        let cases = [
            ("", object(json!({}))),
            (" \n", object(json!({}))),
            ("{}", object(json!({}))),
            ("{\"a\": \"x\ty\n\"}", object(json!({"a": "x\ty\n"}))),
            ("{\n\t\"a\": \"\\\\\tb\"\n}", object(json!({"a": "\\\tb"}))),
        ];
        for (raw, expected) in cases {
            assert_eq!(whole(raw.to_owned()), expected, "{raw:?}");
        }
    }

    #[test]
    fn broken_inputs_never_become_objects() {
        let cases = [
            ("{\"a\": ", false),
            ("{\"a\": \"b", false),
            ("[1]", true),
            ("\"{}\"", true),
            ("{} {}", true),
            ("{'a': 1}", true),
        ];
        for (raw, invalid) in cases {
            let input = whole(raw.to_owned());
            assert_eq!(matches!(input, CallInput::Invalid { .. }), invalid, "{raw}");
            assert_eq!(
                matches!(input, CallInput::Truncated { .. }),
                !invalid,
                "{raw}"
            );
        }
    }

    #[test]
    fn a_cut_leaves_only_whole_objects() {
        assert_eq!(cut("{\"a\":1}".to_owned()), object(json!({"a": 1})));
        for raw in ["", "{", "{\"a\":1", "[]"] {
            assert_eq!(
                cut(raw.to_owned()),
                CallInput::Truncated {
                    raw: raw.to_owned()
                }
            );
        }
    }
}
