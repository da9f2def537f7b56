//! Takes secrets out of text: those that are known, and what looks like one.
//!
//! Known secrets are found as they are, in base64 (at any alignment, so also inside a Basic
//! header), URL-encoded and as JSON writes them. Patterns are the second net: keys of well-known
//! vendors, JSON web tokens, private keys in PEM, passwords in URLs. One pass over the bytes; a
//! byte that starts nothing costs one look into a table.

mod patterns;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What stands in the place of a secret.
pub(super) const MASK: &str = "[redacted]";
/// Shortest secret that is looked for, in bytes: a shorter one is a part of ordinary words.
const SHORTEST_SECRET: usize = 8;
/// Bytes of a form that are looked at first; no form is shorter.
const HEAD_BYTES: usize = 4;
/// Most texts that are looked for; each secret has up to nine forms.
const MOST_FORMS: usize = 4096;

/// Takes secrets out of text. Clones share what they know.
#[derive(Clone, Default)]
pub struct Redactor {
    // Written when a key is set, read for each line: a lock is held for one pass over a text and
    // never across an await.
    known: Arc<RwLock<Known>>,
}

/// The texts that are looked for.
#[derive(Default)]
struct Known {
    /// Longest first, so that the whole of a secret goes and not a shorter one inside it.
    forms: Vec<String>,
    /// Whether some form starts with the byte.
    starts: ByteSet,
    /// The first bytes of each form, sorted: one search rules out nearly every place in a text.
    heads: Vec<[u8; HEAD_BYTES]>,
}

/// A set of bytes.
#[derive(Clone, Copy, Default)]
struct ByteSet([u64; 4]);

impl ByteSet {
    fn insert(&mut self, byte: u8) {
        if let Some(word) = self.0.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    fn contains(self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6));
        word.is_some_and(|word| word >> (byte & 63) & 1 == 1)
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Adds a secret to look for; one of fewer than 8 bytes is left to the patterns.
    ///
    /// Of a header's value such as `Bearer X`, `X` is a secret too.
    pub fn add(&self, secret: &str) {
        let secret = secret.trim();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.add(secret);
        if let Some((_, last)) = secret.rsplit_once(' ') {
            known.add(last);
        }
    }

    /// Returns the text with each secret replaced by `[redacted]`; borrowed where there is none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = text.as_bytes();
        let mut clean = String::new();
        let (mut at, mut copied) = (0, 0);
        while let Some(byte) = bytes.get(at) {
            let Some(found) = known
                .at(*byte, bytes, at)
                .or_else(|| patterns::at(*byte, bytes, at))
            else {
                at += 1;
                continue;
            };
            clean.push_str(text.get(copied..found.start).unwrap_or_default());
            clean.push_str(MASK);
            at = found.end.max(at + 1);
            copied = at;
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        clean.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(clean)
    }
}

impl Redactor {
    /// Returns where a known secret begins in the text's end whose rest may be still to come; the end where none does.
    ///
    /// Says nothing of what only looks like a secret: such have no blanks in them.
    pub fn unfinished(&self, text: &str) -> usize {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let longest = known.forms.first().map_or(0, String::len);
        let from = (text.len() + 1).saturating_sub(longest);
        (from..text.len())
            .filter(|at| text.is_char_boundary(*at))
            .find(|at| {
                let rest = text.as_bytes().get(*at..).unwrap_or_default();
                rest.first()
                    .is_some_and(|byte| known.starts.contains(*byte))
                    && known
                        .forms
                        .iter()
                        .any(|form| form.as_bytes().starts_with(rest))
            })
            .unwrap_or(text.len())
    }
}

impl Known {
    fn add(&mut self, secret: &str) {
        if secret.len() < SHORTEST_SECRET || self.forms.len() >= MOST_FORMS {
            return;
        }
        for form in forms(secret) {
            if let Some((head, _)) = form.as_bytes().split_first_chunk()
                && !self.forms.contains(&form)
            {
                self.starts.insert(head[0]);
                self.heads.push(*head);
                self.forms.push(form);
            }
        }
        self.heads.sort_unstable();
        self.forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }

    fn at(&self, byte: u8, bytes: &[u8], at: usize) -> Option<Range<usize>> {
        if !self.starts.contains(byte) {
            return None;
        }
        let rest = bytes.get(at..)?;
        let (head, _) = rest.split_first_chunk()?;
        self.heads.binary_search(head).ok()?;
        let form = self
            .forms
            .iter()
            .find(|form| rest.starts_with(form.as_bytes()))?;
        Some(at..at + form.len())
    }
}

/// Lists what a secret looks like where it is written.
fn forms(secret: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::from([secret.to_owned()]);
    for padding in 0..3 {
        forms.insert(base64_core(&STANDARD_NO_PAD, secret, padding));
        forms.insert(base64_core(&URL_SAFE_NO_PAD, secret, padding));
    }
    let upper = percent_encoded(secret);
    forms.insert(lower_escapes(&upper));
    forms.insert(upper);
    if let Ok(json) = serde_json::to_string(secret) {
        forms.insert(json.trim_matches('"').to_owned());
    }
    forms.retain(|form| form.len() >= SHORTEST_SECRET);
    forms
}

/// Encodes a secret that `padding` other bytes stand before, and keeps the characters that depend
/// on nothing but the secret.
fn base64_core(engine: &impl Engine, secret: &str, padding: usize) -> String {
    let mut bytes = vec![0; padding];
    bytes.extend_from_slice(secret.as_bytes());
    let encoded = engine.encode(&bytes);
    let first = (padding * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    encoded.get(first..end).unwrap_or_default().to_owned()
}

/// Encodes as in a query: all but letters, digits and `-._~`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn lower_escapes(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut lower = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (escape, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        lower.push('%');
        lower.push_str(&escape.to_lowercase());
        lower.push_str(rest);
    }
    lower
}

#[cfg(test)]
mod tests;
