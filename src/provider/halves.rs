//! Surrogate pairs of which a server sent one half with one piece of text and the other with the next.
//!
//! A half alone fits no string, so what reads JSON puts a mark in its place ([`mark`]). The marks of two halves
//! are joined where pieces come together: in the chunks of an answer, and in what was kept of it to go back. What
//! has no other half becomes U+FFFD. Pure.

use serde_json::{Map, Value};

use super::{CallInput, Chunk, ProviderError};

/// Begins the mark of a half: no character, so that it stands in no text.
const MARK: char = '\u{fdd1}';

/// The character after it is the half and this. Together they are two units of UTF-16.
const SHIFT: u16 = 0x800;

/// Returns what stands for a half.
pub(super) fn mark(half: u16) -> [char; 2] {
    let shifted = char::from_u32(u32::from(half) + u32::from(SHIFT));
    [MARK, shifted.unwrap_or(char::REPLACEMENT_CHARACTER)]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Text,
    Thinking,
    Call(usize),
}

/// The first halves at the end of the pieces so far. No more than one for each call that is open, and two.
#[derive(Debug, Default)]
pub(super) struct Halves(Vec<(Of, String)>);

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
            Chunk::Start { model: Some(name) } | Chunk::ToolCallStart { name, .. } => {
                join(name);
                return out.extend([chunk]);
            }
            Chunk::Start { .. } | Chunk::Notice(_) => return out.extend([chunk]),
        };
        if let Some(held) = self.0.iter().position(|(whose, _)| *whose == of) {
            piece.insert_str(0, &self.0.swap_remove(held).1);
        }
        let mut last = piece.chars().rev();
        if let (Some('\u{e000}'..='\u{e3ff}'), Some(MARK)) = (last.next(), last.next()) {
            let held = [piece.pop(), piece.pop()].into_iter().rev().flatten();
            self.0.push((of, held.collect()));
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

    /// The same for an error, which ends an answer. Its message may have been cut within a mark.
    pub(super) fn error(mut error: ProviderError) -> ProviderError {
        let named = [&mut error.error_type, &mut error.code];
        for text in named.into_iter().flatten().chain([&mut error.message]) {
            join(text);
            text.retain(|c| c != MARK);
        }
        error
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
    if !text.contains(MARK) {
        return;
    }
    let mut units = Vec::with_capacity(text.len());
    for unit in text.encode_utf16() {
        match (units.last_mut(), unit) {
            (Some(last), 0xe000..=0xe7ff) if u32::from(*last) == u32::from(MARK) => {
                *last = unit - SHIFT;
            }
            _ => units.push(unit),
        }
    }
    *text = String::from_utf16_lossy(&units);
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
    if map.keys().any(|key| key.contains(MARK)) {
        let fields = std::mem::take(map).into_iter();
        let joined = |(mut key, value)| {
            join(&mut key);
            (key, value)
        };
        *map = fields.map(joined).collect();
    }
}

#[cfg(test)]
mod tests;
