//! Makes a provider's words safe to show: bounded, and without anything that looks like a key.

/// Most bytes of a message; a longer one is a page or a stack trace.
const MAX_MESSAGE_BYTES: usize = 2048;

/// What stands where a secret stood.
pub(crate) const REDACTED: &str = "[redacted]";

/// Beginnings of keys of the vendors known on 2026-11-20.
const KEY_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "rk_",
    "gsk_",
    "xai-",
    "csk-",
    "pplx-",
    "hf_",
    "nvapi-",
    "AIza",
    "ya29.",
    "ghp_",
    "gho_",
    "ghu_",
    "github_pat_",
    "AKIA",
    "r8_",
    "fw_",
    "tgp_",
    "eyJ",
];

/// Shortest word with such a beginning that counts as a key: vendors show shorter, masked ones.
const MIN_KEY_BYTES: usize = 16;

/// Returns `text` without keys, control characters and surrounding space, cut to 2 KiB.
pub(crate) fn safe_message(text: &str) -> String {
    let mut safe = String::new();
    let mut after_bearer = false;
    for piece in text.trim().split_inclusive(|c: char| !is_key_char(c)) {
        if safe.len() > MAX_MESSAGE_BYTES {
            break;
        }
        let word = piece.trim_end_matches(|c: char| !is_key_char(c));
        let rest = piece.get(word.len()..).unwrap_or_default();
        let is_key = word.len() >= MIN_KEY_BYTES
            && (after_bearer || KEY_PREFIXES.iter().any(|prefix| word.starts_with(prefix)));
        safe.push_str(if is_key { REDACTED } else { word });
        safe.extend(rest.chars().filter(|c| !c.is_control() || *c == '\n'));
        if !word.is_empty() {
            after_bearer = word.eq_ignore_ascii_case("bearer");
        }
    }
    cut(safe, MAX_MESSAGE_BYTES)
}

fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes.saturating_sub('…'.len_utf8())));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_and_words_stay() {
        let cases = [
            ("Invalid API Key", "Invalid API Key"),
            (
                "Incorrect API key provided: sk-inval**************-key. You",
                "Incorrect API key provided: sk-inval**************-key. You",
            ),
            (
                "key sk-ant-api03-abcdefghijkl is bad",
                "key [redacted] is bad",
            ),
            ("\"sk-proj-0123456789abcdef\"", "\"[redacted]\""),
            (
                "Authorization: Bearer abcdef0123456789.x",
                "Authorization: Bearer [redacted]",
            ),
            (
                "bearer of bad news and misunderstandings",
                "bearer of bad news and misunderstandings",
            ),
            ("a\u{7}b", "ab"),
            ("  task-list-of-things-to-do ", "task-list-of-things-to-do"),
        ];
        for (text, expected) in cases {
            assert_eq!(safe_message(text), expected);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        for text in [
            "ä".repeat(5000),
            "a ".repeat(5000),
            format!("a{}", "€".repeat(3000)),
        ] {
            let safe = safe_message(&text);
            assert!(
                safe.len() <= MAX_MESSAGE_BYTES && safe.ends_with('…'),
                "{}",
                safe.len()
            );
        }
    }
}
