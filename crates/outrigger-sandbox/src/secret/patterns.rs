//! What looks like a secret although nobody told that it is one.

use std::ops::Range;

/// Longest user and password in a URL that are looked for, in bytes.
const MAX_USERINFO: usize = 256;
/// Shortest of the three parts of a JSON web token, in bytes.
const SHORTEST_JWT_PART: usize = 10;

/// Longest private key in PEM, in bytes: one of RSA with 16,384 bits has 12,700. What has no end by then is none.
pub const LONGEST_KEY: usize = 64 * 1024;

/// How the marks of a private key end.
const KEY_MARK: &[u8] = b"PRIVATE KEY-----";

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn dashed(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

/// A prefix, which bytes follow, and how many of them at least.
type Prefix = (&'static str, fn(u8) -> bool, usize);

/// Vendors' own prefixes, from their documentation of key formats.
static PREFIXES: [Prefix; 19] = [
    ("npm_", alphanumeric, 30),
    ("rk_live_", alphanumeric, 20),
    ("sk_live_", alphanumeric, 20),
    ("xoxp-", dashed, 20),
    ("sk-", dashed, 20),
    ("ghp_", alphanumeric, 30),
    ("gho_", alphanumeric, 30),
    ("ghu_", alphanumeric, 30),
    ("ghs_", alphanumeric, 30),
    ("ghr_", alphanumeric, 30),
    ("github_pat_", word, 22),
    ("glpat-", dashed, 20),
    ("gsk_", alphanumeric, 20),
    ("xai-", alphanumeric, 20),
    ("hf_", alphanumeric, 30),
    ("AIza", dashed, 35),
    ("AKIA", upper, 16),
    ("ASIA", upper, 16),
    ("xoxb-", dashed, 20),
];

pub(super) fn prefixes() -> impl Iterator<Item = &'static str> {
    PREFIXES.iter().map(|(prefix, ..)| *prefix)
}

/// Finds what looks like a secret and starts at this byte of a text, or whose mark (`://`) does.
pub fn looked_like(byte: u8, bytes: &[u8], at: usize) -> Option<Range<usize>> {
    match byte {
        b'-' => private_key(bytes, at),
        b':' => password(bytes, at),
        b'e' if starts_word(bytes, at) => json_web_token(bytes, at),
        b's' | b'g' | b'x' | b'h' | b'A' | b'n' | b'r' if starts_word(bytes, at) => {
            vendor_key(bytes, at)
        }
        _ => None,
    }
}

/// Whether no letter or digit stands before: `task-…` is no `sk-…`.
fn starts_word(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    !before.is_some_and(|byte| dashed(*byte))
}

fn length(bytes: &[u8], from: usize, is_body: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.iter().take_while(|byte| is_body(**byte)).count()
}

fn vendor_key(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = bytes.get(at..)?;
    let mut prefixes = PREFIXES.iter();
    let (prefix, body, least) = prefixes.find(|it| rest.starts_with(it.0.as_bytes()))?;
    let from = at + prefix.len();
    let length = length(bytes, from, body);
    let body = bytes.get(from..from + length)?;
    // Names of things have no digits in them, keys of this length do.
    let is_key = length >= *least && body.iter().any(u8::is_ascii_digit);
    is_key.then_some(at..from + length)
}

fn json_web_token(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if !bytes.get(at..)?.starts_with(b"eyJ") {
        return None;
    }
    // No part is measured behind one that is too short: `eyJ.eyJ.…` would be measured to its end at each of them.
    let part = |from| {
        let length = length(bytes, from, dashed);
        (length >= SHORTEST_JWT_PART).then_some(from + length)
    };
    let behind_dot = |end| (bytes.get(end) == Some(&b'.')).then_some(end + 1);
    let claims = behind_dot(part(at)?)?;
    let signature = behind_dot(part(claims)?)?;
    Some(at..part(signature)?)
}

/// Where a private key's own text begins whose mark, `-----BEGIN … PRIVATE KEY-----`, is here.
fn private_key_text(bytes: &[u8], at: usize) -> Option<usize> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let label = bytes.get(at..)?.strip_prefix(BEGIN)?;
    let words = label
        .iter()
        .take(32)
        .take_while(|byte| byte.is_ascii_uppercase() || **byte == b' ')
        .count();
    let key = find(label.get(..words + 5)?, KEY_MARK)?;
    Some(at + BEGIN.len() + key + KEY_MARK.len())
}

/// From a private key's mark to its end mark; where there is none, as far as a key goes at most, or to another key that
/// goes on behind that.
fn private_key(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    const END: &[u8] = b"-----END ";
    let from = private_key_text(bytes, at)?;
    let most = bytes.len().min(at + LONGEST_KEY);
    let Some(end) = find(bytes.get(from..most)?, END) else {
        let next = (from..most).rfind(|place| private_key_text(bytes, *place).is_some());
        return Some(at..next.unwrap_or(most));
    };
    let end = from + end;
    let rest = bytes.get(end..)?;
    let close = find(rest, KEY_MARK).map_or(END.len(), |close| close + KEY_MARK.len());
    Some(at..end + close)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn password(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = bytes.get(at..)?.strip_prefix(b"://")?;
    let end = rest
        .iter()
        .take(MAX_USERINFO)
        .position(|byte| byte.is_ascii_whitespace() || b"/?#\"'<>\\".contains(byte))
        .unwrap_or(rest.len().min(MAX_USERINFO));
    let authority = rest.get(..end)?;
    let stop = authority.iter().rposition(|byte| *byte == b'@')?;
    let userinfo = authority.get(..stop)?;
    let colon = userinfo.iter().position(|byte| *byte == b':')?;
    let start = at + b"://".len() + colon + 1;
    let end = at + b"://".len() + stop;
    (start < end).then_some(start..end)
}
