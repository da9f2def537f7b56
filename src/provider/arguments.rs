//! What the text of a call's input comes to, by the same rules for every wire format.
//!
//! Whether an answer was cut off is its decoder's to know; here is only text.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::CallInput;

/// Reads the input of a call: a JSON object, or nothing at all for a call without arguments. `cut` says that its end
/// was not seen: it is then whole only where its JSON is.
///
/// Text that is no JSON is tried once more with raw control characters escaped, which some servers
/// send inside strings. JSON that only ends too early was cut off, even where the server says that the
/// call is whole (`docs/providers.md`, "Call arguments").
pub(crate) fn parse(raw: &str, cut: bool) -> CallInput {
    if raw.trim().is_empty() && !cut {
        return CallInput::Object(Map::new());
    }
    let read = serde_json::from_str(raw).or_else(|error| {
        serde_json::from_str(&escape_controls(raw)).map_err(|again| (error, again))
    });
    let raw = raw.to_owned();
    match read {
        Ok(Value::Object(input)) => CallInput::Object(input),
        _ if cut => CallInput::Truncated { raw },
        Ok(_) => {
            let reason = "the input is no JSON object".to_owned();
            CallInput::Invalid { raw, reason }
        }
        Err((_, again)) if again.is_eof() && raw.trim_start().starts_with('{') => {
            CallInput::Truncated { raw }
        }
        Err((error, _)) => {
            let reason = error.to_string();
            CallInput::Invalid { raw, reason }
        }
    }
}

fn escape_controls(raw: &str) -> Cow<'_, str> {
    if !raw.contains(|c: char| c.is_ascii_control()) {
        return Cow::Borrowed(raw);
    }
    let mut escaped = String::with_capacity(raw.len() + 16);
    let (mut quoted, mut after_backslash) = (false, false);
    for c in raw.chars() {
        if quoted && c < ' ' {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            after_backslash = false;
            continue;
        }
        escaped.push(c);
        quoted ^= c == '"' && !after_backslash;
        after_backslash = quoted && c == '\\' && !after_backslash;
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_input() {
        let cases = [
            ("", Some(json!({}))),
            (" \n", Some(json!({}))),
            (r#"{"a": 1}"#, Some(json!({"a": 1}))),
            ("{\"a\": \"x\ny\t\"}", Some(json!({"a": "x\ny\t"}))),
            ("{\n\"a\": \"\\\"\n\"}", Some(json!({"a": "\"\n"}))),
            ("[1]", None),
            ("null", None),
            (r#"{"a": 1}{"b": 2}"#, None),
        ];
        for (raw, expected) in cases {
            let input = match parse(raw, false) {
                CallInput::Object(input) => Some(Value::Object(input)),
                CallInput::Invalid { raw: kept, .. } => {
                    assert_eq!(kept, raw);
                    None
                }
                CallInput::Truncated { .. } => panic!("{raw:?} was not cut"),
            };
            assert_eq!(input, expected, "{raw:?}");
        }
        for raw in ["{", r#"{"a": "#, "{\"a\": \"x\ny", "  {\"a\": [1, "] {
            let cut = CallInput::Truncated {
                raw: raw.to_owned(),
            };
            assert_eq!(parse(raw, false), cut);
        }
    }

    #[test]
    fn input_of_a_cut_call_counts_only_where_it_is_whole() {
        for raw in ["", "  ", r#"{"a""#, r#"{"a": "b"#] {
            let expected = CallInput::Truncated {
                raw: raw.to_owned(),
            };
            assert_eq!(parse(raw, true), expected);
        }
        let whole = parse(r#"{"a": 1}"#, true);
        assert!(matches!(whole, CallInput::Object(_)));
    }
}
