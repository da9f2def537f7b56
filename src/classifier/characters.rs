//! Characters that make a line read differently from what the shell runs.

use super::script::{Atom, Token};
use crate::terminal_text::{is_false_blank, is_hidden, is_invisible};

/// Returns the first deceptive character that is wrong anywhere (controls, bidi) in the line.
pub(super) fn deceptive(line: &str) -> Option<char> {
    line.chars().find(|c| is_invisible(*c))
}

/// Returns a deceptive blank that stands outside quotes.
pub(super) fn deceptive_blank(token: &Token) -> Option<char> {
    token
        .atoms
        .iter()
        .filter_map(Atom::bare)
        .find(|c| is_false_blank(*c))
}

/// Longest piece of a line that a finding shows, in characters.
const MAX_SHOWN: usize = 200;

/// Writes a text so that what is seen is what is there.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == MAX_SHOWN {
            shown.push('…');
            break;
        }
        if is_hidden(c) || matches!(c, '\n' | '\t') {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}
