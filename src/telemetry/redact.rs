//! Takes secrets out of text: those that are known, and what looks like one.
//!
//! Known secrets are found as they are and encoded: in base64 and base32 (at any alignment, so also inside a Basic
//! header), in hexadecimal, and each of these with any of its characters escaped as URLs or JSON do it. Patterns are
//! the second net: keys of well-known vendors, JSON web tokens, private keys in PEM, passwords in URLs. One pass over
//! the bytes; two bytes that begin nothing cost two looks into tables.

mod forms;
mod stream;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

use crate::secret;
use forms::{Form, Found};
pub use stream::{Stream, Unit};

/// What stands in the place of a secret.
pub const MASK: &str = "[redacted]";
/// Most texts that are looked for; each secret has up to 19 forms.
const MOST_FORMS: usize = 8192;
/// The most bytes that one byte of a secret is written as: `\u0041`.
const LONGEST_ESCAPE: usize = 6;

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
    /// By their first byte; longest first, so that the whole of a secret goes and not a shorter one inside it.
    forms: Vec<Vec<Wanted>>,
    count: usize,
    longest: usize,
    /// Whether forms start with a pair of bytes: a look at one rules out nearly every place in a text.
    pairs: Vec<bool>,
}

/// A text that is looked for.
struct Wanted {
    form: Form,
    /// By how many: two secrets may share a form, and one secret may be known from two places.
    times: usize,
}

/// Has a secret looked for as long as this is held, such as a token that is renewed.
#[must_use]
pub struct Hidden {
    redactor: Redactor,
    secret: String,
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.redactor.known.write().remove(&self.secret);
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Adds a secret to look for from now on; one of fewer than 8 bytes is left to the patterns.
    ///
    /// What of a configured value is secret, [`secret::in_value`] knows.
    pub fn add(&self, secret: &str) {
        self.known.write().add(secret.trim());
    }

    /// Adds a secret that is over one day: it is looked for until what this returns is dropped, and then on where it was
    /// added by others as well. `None` where it is not looked for, as [`Self::add`] has it.
    #[must_use]
    pub fn hide(&self, secret: &str) -> Option<Hidden> {
        let secret = secret.trim();
        self.known.write().add(secret).then(|| Hidden {
            redactor: self.clone(),
            secret: secret.to_owned(),
        })
    }

    /// Returns the text with each secret replaced by `[redacted]`; borrowed where there is none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redact_counted(text).0
    }

    /// The same, with the number of places that were replaced.
    pub fn redact_counted<'a>(&self, text: &'a str) -> (Cow<'a, str>, u64) {
        self.redact_part(text, 0..text.len())
    }

    /// Returns a part of a text, in bytes, without what is a secret in the whole of it; one that goes on outside of the
    /// part is replaced in it. And the number of places that were replaced.
    pub fn redact_part<'a>(&self, text: &'a str, part: Range<usize>) -> (Cow<'a, str>, u64) {
        let known = self.known.read();
        let bytes = text.as_bytes();
        let mut clean = String::new();
        let (mut at, mut copied, mut count) = (0, part.start, 0);
        while at < part.end
            && let Some(byte) = bytes.get(at)
        {
            let Some(found) = known
                .at(*byte, bytes, at)
                .or_else(|| secret::looked_like(*byte, bytes, at))
            else {
                at += 1;
                continue;
            };
            // A key without end may be cut within a character.
            at = text.ceil_char_boundary(found.end.max(at + 1));
            // Where a password in a URL was taken out before, the mask looks like one.
            let is_done = text.get(found.start..at) == Some(MASK);
            if is_done || at <= part.start || found.start >= part.end {
                continue;
            }
            clean.push_str(text.get(copied..found.start).unwrap_or_default());
            clean.push_str(MASK);
            count += 1;
            copied = at;
        }
        if count == 0 {
            return (Cow::Borrowed(text.get(part).unwrap_or_default()), 0);
        }
        clean.push_str(text.get(copied..part.end).unwrap_or_default());
        (Cow::Owned(clean), count)
    }

    /// Takes the secrets out of all texts of a value, names of fields included; returns how many places that were.
    pub fn redact_value(&self, value: &mut Value) -> u64 {
        match value {
            Value::String(text) => match self.redact_counted(text) {
                (Cow::Owned(clean), count) => {
                    *text = clean;
                    count
                }
                (Cow::Borrowed(_), _) => 0,
            },
            Value::Array(items) => items.iter_mut().map(|item| self.redact_value(item)).sum(),
            Value::Object(fields) => {
                let names: u64 = fields.keys().map(|name| self.redact_counted(name).1).sum();
                if names > 0 {
                    let clean =
                        |(name, value): (String, _)| (self.redact(&name).into_owned(), value);
                    *fields = std::mem::take(fields).into_iter().map(clean).collect();
                }
                let values = fields.values_mut().map(|value| self.redact_value(value));
                names + values.sum::<u64>()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }

    /// Returns a text as it may be put on record: also without what it gives away by where it stands, such as
    /// `PASSWORD=…` ([`secret::written`]). A model has to see such a line as it is, or it could not work on the file.
    pub fn redact_for_record<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = self.redact(text);
        for found in secret::written(&clean).into_iter().rev() {
            clean.to_mut().replace_range(found, MASK);
        }
        clean
    }

    /// The same for all texts of a value, names of fields included. What a field's name says of its value counts too.
    pub fn redact_value_for_record(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.redact_for_record(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.redact_value_for_record(item);
                }
            }
            Value::Object(fields) => {
                let clean = |(name, mut value): (String, Value)| {
                    self.redact_value_for_record(&mut value);
                    let named = value.as_str().map(|text| format!("\"{name}\": \"{text}\""));
                    if named.is_some_and(|named| !secret::written(&named).is_empty()) {
                        value = Value::from(MASK);
                    }
                    (self.redact_for_record(&name).into_owned(), value)
                };
                *fields = std::mem::take(fields).into_iter().map(clean).collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns where before `cut` a known secret begins that goes on behind it, or may, its rest being still to come;
    /// `cut` where none does.
    ///
    /// Says nothing of what only looks like a secret: but for private keys, such have no blanks in them.
    pub fn uncut(&self, text: &str, cut: usize) -> usize {
        let known = self.known.read();
        let bytes = text.as_bytes();
        let from = cut.saturating_sub(known.longest * LONGEST_ESCAPE);
        (from..cut)
            .filter(|at| text.is_char_boundary(*at))
            .find(|at| known.goes_beyond(bytes, *at, cut))
            .unwrap_or(cut)
    }
}

impl Known {
    /// Returns whether it is looked for.
    fn add(&mut self, secret: &str) -> bool {
        if secret.len() < secret::SHORTEST {
            return false;
        }
        if self.count >= MOST_FORMS {
            tracing::warn!("more secrets than are looked for in texts; the last ones are not");
            return false;
        }
        if self.forms.is_empty() {
            self.forms.resize_with(1 << 8, Vec::new);
            // Memory that is zero already: `resize` would write each byte.
            self.pairs = vec![false; 1 << 16];
        }
        for form in forms::of(secret) {
            let [first, second, ..] = *form.bytes() else {
                continue;
            };
            let Some(same) = self.forms.get_mut(usize::from(first)) else {
                continue;
            };
            if let Some(wanted) = same.iter_mut().find(|wanted| wanted.form == form) {
                wanted.times += 1;
                continue;
            }
            // A blank also as forms on web pages write it.
            let plus = (second == b' ').then_some(b'+');
            for second in [second].into_iter().chain(plus) {
                if let Some(starts) = self.pairs.get_mut(pair(first, second)) {
                    *starts = true;
                }
            }
            self.longest = self.longest.max(form.bytes().len());
            self.count += 1;
            same.push(Wanted { form, times: 1 });
            same.sort_by_key(|wanted| std::cmp::Reverse(wanted.form.bytes().len()));
        }
        true
    }

    fn remove(&mut self, secret: &str) {
        for form in forms::of(secret) {
            let first = form.bytes().first().copied().map(usize::from);
            let Some(same) = first.and_then(|first| self.forms.get_mut(first)) else {
                continue;
            };
            let before = same.len();
            same.retain_mut(|wanted| {
                wanted.times -= usize::from(wanted.form == form);
                wanted.times > 0
            });
            self.count -= before - same.len();
        }
    }

    /// The forms that a place may begin.
    fn candidates(&self, byte: u8, bytes: &[u8], at: usize) -> impl Iterator<Item = &Form> {
        let escaped = forms::escape(bytes, at).map(|(byte, _)| byte);
        let with = |byte: Option<u8>| byte.and_then(|byte| self.forms.get(usize::from(byte)));
        let by_itself = with(Some(byte)).into_iter();
        let wanted = by_itself.chain(with(escaped)).flatten();
        wanted.map(|wanted| &wanted.form)
    }

    fn at(&self, byte: u8, bytes: &[u8], at: usize) -> Option<Range<usize>> {
        if self.count == 0 {
            return None;
        }
        // Whatever is not written as it is begins with one of these.
        let second = *bytes.get(at + 1)?;
        if !forms::is_escape(byte)
            && !forms::is_escape(second)
            && !forms::is_gap(second)
            && self.pairs.get(pair(byte, second)) != Some(&true)
        {
            return None;
        }
        self.candidates(byte, bytes, at)
            .find_map(|form| match form.at(bytes, at) {
                Found::Whole(end) => Some(at..end),
                Found::Begun | Found::Not => None,
            })
    }

    /// Whether a form begins here that goes on behind the cut.
    fn goes_beyond(&self, bytes: &[u8], at: usize, cut: usize) -> bool {
        let Some(byte) = bytes.get(at) else {
            return false;
        };
        if forms::escape_is_cut(bytes, at) {
            return self.count > 0;
        }
        self.candidates(*byte, bytes, at)
            .any(|form| match form.at(bytes, at) {
                Found::Whole(end) => end > cut,
                Found::Begun => true,
                Found::Not => false,
            })
    }
}

/// The number of a pair of bytes.
fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

#[cfg(test)]
mod tests;
