//! Names of files in text, one a line: a name with a line end in it must not pass for two. Pure.

use std::borrow::Cow;

use crate::terminal_text::is_invisible;

/// Returns a name as it stands in a list: as it is, or as a JSON string where it holds control characters, line or
/// paragraph separators, or what cannot be seen, or begins with a quote itself.
pub(super) fn listed(name: &str) -> Cow<'_, str> {
    let is_odd = |c: char| c.is_control() || is_invisible(c);
    if !name.starts_with('"') && !name.contains(is_odd) {
        return Cow::Borrowed(name);
    }
    let mut text = String::with_capacity(name.len() + 8);
    for c in serde_json::Value::from(name).to_string().chars() {
        if is_odd(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

/// Returns the name that a path argument means: what [`listed`] quoted is taken back as it was listed.
pub(super) fn named(argument: &str) -> Cow<'_, str> {
    let quoted = argument.len() > 2 && argument.starts_with('"') && argument.ends_with('"');
    match serde_json::from_str::<String>(argument) {
        Ok(name) if quoted => Cow::Owned(name),
        _ => Cow::Borrowed(argument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_quoted_on_one_line_and_read_back() {
        for (name, expected) in [
            ("src/a.rs", "src/a.rs"),
            ("with blank é 漢.txt", "with blank é 漢.txt"),
            ("back\\slash", "back\\slash"),
            ("a\nsrc/forged.rs", r#""a\nsrc/forged.rs""#),
            ("a\r\tb\u{7}", r#""a\r\tb\u0007""#),
            ("a\u{2028}b\u{85}c", r#""a\u2028b\u0085c""#),
            ("\u{202e}txt.exe", r#""\u202etxt.exe""#),
            ("\u{e0041}", r#""\udb40\udc41""#),
            ("\"quoted\"", r#""\"quoted\"""#),
            ("a\\\nb", r#""a\\\nb""#),
        ] {
            assert_eq!(listed(name), expected, "{name:?}");
            assert_eq!(named(&listed(name)), name);
        }
        for plain in ["a", "\"", "\"\"", "\"open", "\"bad \\x\""] {
            assert_eq!(named(plain), plain);
        }
    }
}
