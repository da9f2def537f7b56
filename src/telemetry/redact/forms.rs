//! What a secret looks like where it is written, and whether a text has it at a place. Pure.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use data_encoding::{BASE32_NOPAD, HEXLOWER};

use crate::secret::SHORTEST;

/// Most bytes in a row that are passed over between two of an encoded secret: a line end and an indentation.
const LONGEST_GAP: usize = 8;

/// Fewest bytes of an encoded secret that a line or a piece of a text ends in.
const SHORTEST_LINE: usize = 4;

/// One way to write a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    text: Vec<u8>,
    /// Whether programs write it in lines or groups.
    is_encoded: bool,
}

/// What a text has at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The form, which ends before this byte.
    Whole(usize),
    /// Its beginning, at the text's end.
    Begun,
    Not,
}

/// Lists the forms of a secret, without escapes.
pub(super) fn of(secret: &str) -> BTreeSet<Form> {
    let mut encoded = BTreeSet::new();
    for padding in 0..3 {
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            encoded.insert(core(|bytes| engine.encode(bytes), 6, secret, padding));
        }
    }
    for padding in 0..5 {
        let upper = core(|bytes| BASE32_NOPAD.encode(bytes), 5, secret, padding);
        encoded.insert(upper.to_lowercase());
        encoded.insert(upper);
    }
    let hex = HEXLOWER.encode(secret.as_bytes());
    encoded.insert(hex.to_uppercase());
    encoded.insert(hex);
    let encoded = encoded.into_iter().map(|text| (text, true));
    encoded
        .chain([(secret.to_owned(), false)])
        .filter(|(text, _)| text.len() >= SHORTEST)
        .map(|(text, is_encoded)| Form {
            text: text.into_bytes(),
            is_encoded,
        })
        .collect()
}

/// Encodes a secret that `padding` other bytes stand before, and keeps the characters that depend
/// on nothing but the secret; each stands for `bits`.
fn core(encode: impl Fn(&[u8]) -> String, bits: usize, secret: &str, padding: usize) -> String {
    let mut bytes = vec![0; padding];
    bytes.extend_from_slice(secret.as_bytes());
    let encoded = encode(&bytes);
    let first = (padding * 8).div_ceil(bits);
    let end = bytes.len() * 8 / bits;
    encoded.get(first..end).unwrap_or_default().to_owned()
}

impl Form {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// Looks for the form at a place, each of its bytes as it is or escaped.
    pub(super) fn at(&self, bytes: &[u8], at: usize) -> Found {
        let found = self.read(bytes, at, true);
        let is_whole = matches!(found, Found::Whole(_));
        if is_whole || !self.text.iter().any(|byte| is_escape(*byte)) {
            return found;
        }
        // A secret may hold what reads as an escape: the text has all of it, and escaped it would only have begun.
        match self.read(bytes, at, false) {
            Found::Not => found,
            plain => plain,
        }
    }

    fn read(&self, bytes: &[u8], at: usize, unescape: bool) -> Found {
        let mut place = at;
        for (done, wanted) in self.text.iter().enumerate() {
            let gap = if self.is_encoded && done > 0 {
                gap(bytes, place)
            } else {
                0
            };
            place += gap;
            let Some(byte) = bytes.get(place) else {
                // One letter and the end of its line are no beginning worth waiting for.
                return match gap > 0 && done < SHORTEST_LINE {
                    true => Found::Not,
                    false => Found::Begun,
                };
            };
            if unescape
                && let Some((meant, length)) = escape(bytes, place)
                && meant == *wanted
            {
                place += length;
            } else if byte == wanted || (*byte == b'+' && *wanted == b' ') {
                place += 1;
            } else if escape_is_cut(bytes, place) {
                return Found::Begun;
            } else {
                return Found::Not;
            }
        }
        Found::Whole(place)
    }
}

/// Whether escapes begin with the byte.
pub(super) fn is_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\')
}

/// Whether the byte stands between groups of an encoded text.
pub(super) fn is_gap(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b':')
}

fn gap(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter()
        .take(LONGEST_GAP)
        .take_while(|byte| is_gap(**byte))
        .count()
}

/// Reads an escape: the byte that it stands for and how long it is.
pub(super) fn escape(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let rest = bytes.get(at..)?;
    match rest {
        [b'%', high, low, ..] => Some((hex(*high, *low)?, 3)),
        [b'\\', b'u', b'0', b'0', high, low, ..] => Some((hex(*high, *low)?, 6)),
        [b'\\', b'x', high, low, ..] => Some((hex(*high, *low)?, 4)),
        [b'\\', b'n', ..] => Some((b'\n', 2)),
        [b'\\', b'r', ..] => Some((b'\r', 2)),
        [b'\\', b't', ..] => Some((b'\t', 2)),
        [b'\\', byte, ..] if byte.is_ascii_punctuation() => Some((*byte, 2)),
        _ => None,
    }
}

/// Whether the text ends in what may become an escape.
pub(super) fn escape_is_cut(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at..).unwrap_or_default();
    let hex = |byte: &u8| byte.is_ascii_hexdigit();
    match rest {
        [b'%', rest @ ..] => rest.len() < 2 && rest.iter().all(hex),
        [b'\\'] => true,
        [b'\\', b'x', rest @ ..] => rest.len() < 2 && rest.iter().all(hex),
        [b'\\', b'u', rest @ ..] => rest.len() < 4 && rest.iter().all(hex),
        _ => false,
    }
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}
