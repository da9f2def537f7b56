//! Characters that are not seen for what they are.

/// Whether the character is a control other than tab and newline, or cannot be seen, or reorders text.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether the character looks like a blank and is none to the shell: U+2800 is a pattern of Braille without dots.
pub(crate) fn is_false_blank(c: char) -> bool {
    !c.is_ascii() && (c.is_whitespace() || c == '\u{2800}')
}

/// Whether the character cannot be told from nothing or from a blank, or reorders text: what is shown
/// to somebody who approves has an escape in its place. The console page has the same list.
pub(crate) fn is_hidden(c: char) -> bool {
    is_invisible(c) || is_false_blank(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_page_has_the_same_list() {
        let list = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/clients/console/src/visible.js"
        ));
        let (_, list) = list.split_once("const RANGES = [").unwrap();
        let (list, _) = list.split_once("];").unwrap();
        let numbers: Vec<u32> = list
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter_map(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok())
            .collect();
        let ranges: Vec<(u32, u32)> = numbers.chunks_exact(2).map(|it| (it[0], it[1])).collect();
        for c in '\0'..=char::MAX {
            let code = u32::from(c);
            let shown = ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&code));
            assert_eq!(shown, is_hidden(c), "U+{code:04X}");
        }
    }
}
