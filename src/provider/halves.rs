//! Surrogate pairs of which a server sent one half with one piece of text and the other with the next.
//!
//! A half alone fits no string, so what reads JSON puts a mark in its place ([`escaped`]). The marks of two halves
//! are joined where pieces come together: in the chunks of an answer, and in what was kept of it to go back. What
//! has no other half becomes U+FFFD. Pure.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{CallInput, Chunk, ProviderError};

/// Begins the mark of a half: a character that is none and stands in no text.
const MARK: char = '\u{fdd1}';

/// The character after it: this one for the first of the surrogates, and so on.
const FIRST: u16 = 0xe000;

/// The surrogates: first halves, then second ones.
const SURROGATES: std::ops::RangeInclusive<u16> = 0xd800..=0xdfff;

/// Returns the mark of a half as JSON text has it within a string.
pub(super) fn escaped(half: u16) -> String {
    let place = half.saturating_sub(*SURROGATES.start());
    format!("\\u{:04x}\\u{:04x}", u32::from(MARK), FIRST + place)
}

/// Whose pieces they are.
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
    pub(super) fn join(&mut self, chunk: Chunk, out: &mut impl Extend<Chunk>) {
        match chunk {
            Chunk::Text(text) => out.extend(self.piece(Of::Text, text).map(Chunk::Text)),
            Chunk::Thinking(text) => {
                out.extend(self.piece(Of::Thinking, text).map(Chunk::Thinking));
            }
            Chunk::ToolCallDelta { index, fragment } => {
                let fragment = self.piece(Of::Call(index), fragment);
                out.extend(fragment.map(|fragment| Chunk::ToolCallDelta { index, fragment }));
            }
            Chunk::ToolCallStart {
                index,
                provider_call_id,
                name,
            } => out.extend([Chunk::ToolCallStart {
                index,
                provider_call_id: provider_call_id.map(joined),
                name: joined(name),
            }]),
            Chunk::ToolCallEnd {
                index,
                provider_call_id,
                input,
            } => {
                self.close(|of| of == Of::Call(index), out);
                out.extend([Chunk::ToolCallEnd {
                    index,
                    provider_call_id: provider_call_id.map(joined),
                    input: joined_input(input),
                }]);
            }
            Chunk::End(mut end) => {
                self.finish(out);
                end.raw_stop = end.raw_stop.map(joined);
                if let Some(native) = &mut end.native {
                    join_value(&mut native.items);
                }
                out.extend([Chunk::End(end)]);
            }
            Chunk::Start { model } => out.extend([Chunk::Start {
                model: model.map(joined),
            }]),
            Chunk::Notice(notice) => out.extend([Chunk::Notice(notice)]),
        }
    }

    /// Returns what is held back: nothing more comes.
    pub(super) fn finish(&mut self, out: &mut impl Extend<Chunk>) {
        self.close(|_| true, out);
    }

    /// The same for an error, which ends an answer.
    pub(super) fn error(error: ProviderError) -> ProviderError {
        ProviderError {
            message: joined(error.message),
            error_type: error.error_type.map(joined),
            code: error.code.map(joined),
            ..error
        }
    }

    /// Takes a piece; returns what can be said by now, `None` for nothing.
    fn piece(&mut self, of: Of, piece: String) -> Option<String> {
        if self.0.is_empty() && !piece.contains(MARK) {
            return Some(piece);
        }
        let held = self.0.iter().position(|(whose, _)| *whose == of);
        let mut text = held.map_or_else(String::new, |at| self.0.swap_remove(at).1);
        text.push_str(&piece);
        if let Some(at) = text.rfind(MARK) {
            let last = text.get(at..).unwrap_or_default();
            if matches!(half(last), Some((0xd800..=0xdbff, rest)) if rest.is_empty()) {
                self.0.push((of, text.split_off(at)));
            }
        }
        Some(joined(text)).filter(|text| !text.is_empty())
    }

    fn close(&mut self, which: impl Fn(Of) -> bool, out: &mut impl Extend<Chunk>) {
        for (of, text) in self.0.extract_if(.., |(of, _)| which(*of)) {
            let text = joined(text);
            out.extend([match of {
                Of::Text => Chunk::Text(text),
                Of::Thinking => Chunk::Thinking(text),
                Of::Call(index) => Chunk::ToolCallDelta {
                    index,
                    fragment: text,
                },
            }]);
        }
    }
}

/// Reads the mark of a half at the beginning of text; returns the half, and what comes after it.
fn half(text: &str) -> Option<(u16, &str)> {
    let mut rest = text.strip_prefix(MARK)?.chars();
    let place = u16::try_from(u32::from(rest.next()?))
        .ok()?
        .checked_sub(FIRST)?;
    let half = SURROGATES.start().checked_add(place)?;
    SURROGATES.contains(&half).then_some((half, rest.as_str()))
}

/// Returns text with characters in the place of marks.
fn joined(text: String) -> String {
    match join(&text) {
        Cow::Owned(joined) => joined,
        Cow::Borrowed(_) => text,
    }
}

fn join(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        let (before, marked) = rest.split_at(at);
        joined.push_str(before);
        rest = match half(marked) {
            Some((first, after)) => {
                let pair = half(after).and_then(|(second, after)| {
                    let pair = char::decode_utf16([first, second]).next()?.ok()?;
                    Some((pair, after))
                });
                let (character, after) = pair.unwrap_or((char::REPLACEMENT_CHARACTER, after));
                joined.push(character);
                after
            }
            None => {
                joined.push(MARK);
                marked.get(MARK.len_utf8()..).unwrap_or_default()
            }
        };
    }
    joined.push_str(rest);
    Cow::Owned(joined)
}

fn joined_input(input: CallInput) -> CallInput {
    match input {
        CallInput::Object(mut input) => {
            join_map(&mut input);
            CallInput::Object(input)
        }
        CallInput::Invalid { raw, reason } => CallInput::Invalid {
            raw: joined(raw),
            reason: joined(reason),
        },
        CallInput::Truncated { raw } => CallInput::Truncated { raw: joined(raw) },
    }
}

/// What JSON was read from is nested no deeper than its reader allows, so this may recurse.
fn join_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(joined) = join(text) {
                *text = joined;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(join_value),
        Value::Object(map) => join_map(map),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn join_map(map: &mut Map<String, Value>) {
    map.values_mut().for_each(join_value);
    if map.keys().any(|key| key.contains(MARK)) {
        let entries = std::mem::take(map).into_iter();
        *map = entries.map(|(key, value)| (joined(key), value)).collect();
    }
}

#[cfg(test)]
mod tests;
