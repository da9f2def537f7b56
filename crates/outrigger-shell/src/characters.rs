//! Characters that make a line read differently from what the shell runs.

use super::types::{Atom, Token};

/// Whether the character is a control other than tab and newline, or cannot be seen, or reorders text.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether the character looks like a blank and is none to the shell: U+2800 is a pattern of Braille without dots.
pub(super) fn is_false_blank(c: char) -> bool {
    !c.is_ascii() && (c.is_whitespace() || c == '\u{2800}')
}

/// Whether the character cannot be told from nothing or from a blank, or reorders text: what is shown
/// to somebody who approves has an escape in its place. The console page has the same list, which a test compares.
pub fn is_hidden(c: char) -> bool {
    is_invisible(c) || is_false_blank(c)
}

/// Returns a deceptive blank that stands outside quotes.
pub(super) fn deceptive_blank(token: &Token) -> Option<char> {
    let mut bare = token.atoms.iter().filter_map(Atom::bare);
    bare.find(|c| is_false_blank(*c))
}

/// Longest piece of a line that a finding shows, in characters.
const MAX_SHOWN: usize = 200;

pub(super) fn visible(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(MAX_SHOWN) {
        if is_hidden(c) || matches!(c, '\n' | '\t') {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown.extend(text.chars().nth(MAX_SHOWN).map(|_| '…'));
    shown
}
