//! JSON as servers write it: where strict reading fails for something harmless, that is mended.
//!
//! Mended are halves of surrogate pairs: a server that cuts its text into pieces by UTF-16 units sends
//! `"\ud83d"` alone, which no UTF-8 can hold. In a piece of an answer it is marked, for its other half may come with
//! the next piece ([`super::halves`]); elsewhere it becomes U+FFFD, as in every lenient decoder.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::halves;

/// Reads JSON, with halves of surrogate pairs replaced.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(&mended(text, |_| [char::REPLACEMENT_CHARACTER]))
}

/// Reads a piece of an answer, with halves of surrogate pairs marked; see [`halves`].
pub(crate) fn read_piece<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(&pieces(text))
}

/// The same for what is still to be read.
pub(crate) fn pieces(text: &str) -> Cow<'_, str> {
    mended(text, halves::mark)
}

/// A value as it stands in the text it was read from.
pub(crate) use serde_json_borrow::Value as Json;

/// Returns a field of an object, the last of those with its name; [`Json::Null`] where there is none.
pub(crate) fn field<'a>(value: &'a Json<'a>, key: &str) -> &'a Json<'a> {
    let fields = value.as_object().map(|fields| fields.as_vec().iter());
    let mut fields = fields.into_iter().flatten().rev();
    let found = fields.find(|(name, _)| *name == key);
    found.map_or(&Json::Null, |(_, value)| value)
}

/// Returns a string field; empty where it is missing or no string.
pub(crate) fn text<'a>(value: &'a Json<'a>, key: &str) -> &'a str {
    field(value, key).as_str().unwrap_or_default()
}

/// Returns a field that is an array; empty where it is missing or none.
pub(crate) fn array<'a>(value: &'a Json<'a>, key: &str) -> &'a [Json<'a>] {
    field(value, key).as_array().unwrap_or_default()
}

/// Returns a string field of a value that is kept; empty where it is missing or no string.
pub(crate) fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Appends to a text that may not be there yet.
pub(crate) fn append(object: &mut Map<String, Value>, key: &str, more: &str) {
    match object.get_mut(key) {
        Some(Value::String(whole)) => whole.push_str(more),
        _ => {
            object.insert(key.to_owned(), Value::from(more));
        }
    }
}

/// Returns JSON text in which every escaped surrogate has its other half, or else what `replace` makes of it.
fn mended<const N: usize>(text: &str, replace: impl Fn(u16) -> [char; N]) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        match unit(text, at) {
            Some(0xd800..=0xdbff) if matches!(unit(text, at + 6), Some(0xdc00..=0xdfff)) => {
                at += 12;
            }
            Some(half @ 0xd800..=0xdfff) => {
                mended.push_str(text.get(copied..at).unwrap_or_default());
                mended.extend(replace(half));
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            // Any other escape; what is escaped may be a backslash itself.
            None => at += 2,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    mended.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(mended)
}

fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
    let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| all_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_pairs_stay() {
        let cases = [
            (r#""plain""#, Some("plain")),
            (r#""\ud83d\ude00""#, Some("😀")),
            (r#""\uD83D\uDE00 \u00e4""#, Some("😀 ä")),
            (r#""\ud83d""#, Some("\u{fffd}")),
            (r#""\ude00x""#, Some("\u{fffd}x")),
            (r#""\ud83d\ud83d\ude00""#, Some("\u{fffd}😀")),
            (r#""\ude00\ud83d""#, Some("\u{fffd}\u{fffd}")),
            (r#""a\\ud83d""#, Some("a\\ud83d")),
            (r#""\\\ud83d\n\"""#, Some("\\\u{fffd}\n\"")),
            (r#""\ud83d\u0041""#, Some("\u{fffd}A")),
            ("\"\\\u{e4}\\ud83d\"", None),
            (r#""\ud8""#, None),
            (r#""\ud83g""#, None),
            (r#"\ud83d\"#, None),
            ("\\", None),
        ];
        for (text, expected) in cases {
            let read = read::<String>(text).ok();
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
