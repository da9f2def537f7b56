//! Surrogate pairs of which a server sent one half with one piece of text and the other with the next.
//!
//! A half alone fits no string, so what reads JSON puts a mark in its place ([`mark`]). The marks of two halves
//! are joined where pieces come together: in the chunks of an answer, and in what was kept of it to go back. What
//! has no other half becomes U+FFFD. Pure.

use serde_json::{Map, Value};

use super::{CallInput, Chunk};

/// The mark of U+0000, were it a half: those of halves are characters for private use, which no text has.
const MARKS: u32 = 0x10_0000;

/// The first byte of each mark; few other characters begin with it.
const FIRST_BYTE: u8 = 0xf4;

/// Returns the character that stands for a half.
pub(super) fn mark(half: u16) -> char {
    char::from_u32(MARKS + u32::from(half)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn half(mark: char) -> Option<u16> {
    let half = u16::try_from(u32::from(mark).checked_sub(MARKS)?).ok()?;
    matches!(half, 0xd800..=0xdfff).then_some(half)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Text,
    Thinking,
    Call(usize),
}

/// The first halves at the end of the pieces so far. No more than one for each call that is open, and two.
#[derive(Debug, Default)]
pub(super) struct Halves(Vec<(Of, char)>);

impl Halves {
    /// Joins what belongs together in the chunks of an answer, in order. A first half is held back until the next
    /// piece comes, or the end.
    pub(super) fn join(&mut self, mut chunk: Chunk, out: &mut impl Extend<Chunk>) {
        let (of, piece) = match &mut chunk {
            Chunk::Text(text) => (Of::Text, text),
            Chunk::Thinking(text) => (Of::Thinking, text),
            Chunk::ToolCallDelta { index, fragment } => (Of::Call(*index), fragment),
            Chunk::ToolCallEnd { index, input, .. } => {
                let index = *index;
                self.close(|of| of == Of::Call(index), out);
                match input {
                    CallInput::Object(input) => join_map(input),
                    CallInput::Invalid { raw, .. } | CallInput::Truncated { raw } => join(raw),
                }
                return out.extend([chunk]);
            }
            Chunk::End(end) => {
                self.finish(out);
                if let Some(native) = &mut end.native {
                    join_value(&mut native.items);
                }
                return out.extend([chunk]);
            }
            Chunk::Start { .. } | Chunk::ToolCallStart { .. } | Chunk::Notice(_) => {
                return out.extend([chunk]);
            }
        };
        if let Some(held) = self.0.iter().position(|(whose, _)| *whose == of) {
            piece.insert(0, self.0.swap_remove(held).1);
        }
        let is_first_half = |last: &char| matches!(half(*last), Some(0xd800..=0xdbff));
        if let Some(last) = piece.chars().next_back().filter(is_first_half) {
            piece.pop();
            self.0.push((of, last));
        }
        join(piece);
        if !piece.is_empty() {
            out.extend([chunk]);
        }
    }

    /// Returns what is held back: nothing more comes.
    pub(super) fn finish(&mut self, out: &mut impl Extend<Chunk>) {
        self.close(|_| true, out);
    }

    fn close(&mut self, which: impl Fn(Of) -> bool, out: &mut impl Extend<Chunk>) {
        for (of, _) in self.0.extract_if(.., |(of, _)| which(*of)) {
            let lost = char::REPLACEMENT_CHARACTER.to_string();
            out.extend([match of {
                Of::Text => Chunk::Text(lost),
                Of::Thinking => Chunk::Thinking(lost),
                Of::Call(index) => Chunk::ToolCallDelta {
                    index,
                    fragment: lost,
                },
            }]);
        }
    }
}

/// Puts characters in the place of marks.
fn join(text: &mut String) {
    if memchr::memchr(FIRST_BYTE, text.as_bytes()).is_none() {
        return;
    }
    let units = text.chars().flat_map(|c| match half(c) {
        Some(half) => vec![half],
        None => c.encode_utf16(&mut [0; 2]).to_vec(),
    });
    let joined = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
    *text = joined.collect();
}

/// What JSON was read from is nested no deeper than its reader allows, so this may recurse.
fn join_value(value: &mut Value) {
    match value {
        Value::String(text) => join(text),
        Value::Array(items) => items.iter_mut().for_each(join_value),
        Value::Object(map) => join_map(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn join_map(map: &mut Map<String, Value>) {
    map.values_mut().for_each(join_value);
}

#[cfg(test)]
mod tests;
