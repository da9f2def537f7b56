//! Escapes as in `$'…'`, `printf` formats and `echo -e`.

use std::iter::Peekable;
use std::str::Chars;

/// Replaces backslash escapes by the characters they stand for; an unknown escape stays as it is.
///
/// `after_zero` is how many octal digits may follow `\0`: 2 in `$'…'`, 3 with `echo -e` and `%b`.
pub(super) fn unescape(text: &str, after_zero: usize) -> String {
    let mut bytes = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(&mut bytes, c);
            continue;
        }
        let Some(escape) = chars.next() else {
            push(&mut bytes, '\\');
            break;
        };
        match escape {
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            'e' | 'E' => bytes.push(27),
            'f' => bytes.push(12),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(11),
            '\\' | '\'' | '"' | '?' => push(&mut bytes, escape),
            'c' => bytes.extend(chars.next().map(|c| (c as u32 & 0x1f) as u8)),
            'x' => match digits(&mut chars, None, 16, 2) {
                Some(code) => bytes.push((code & 0xff) as u8),
                None => bytes.extend(*b"\\x"),
            },
            'u' | 'U' => {
                let width = if escape == 'u' { 4 } else { 8 };
                let c = digits(&mut chars, None, 16, width).and_then(char::from_u32);
                push(&mut bytes, c.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            '0'..='7' => {
                let more = if escape == '0' { after_zero } else { 2 };
                let code = digits(&mut chars, escape.to_digit(8), 8, more);
                bytes.extend(code.map(|code| (code & 0xff) as u8));
            }
            other => {
                bytes.push(b'\\');
                push(&mut bytes, other);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn push(bytes: &mut Vec<u8>, c: char) {
    bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Reads up to `width` more digits behind those that are read; `None` where there are none at all.
fn digits(
    chars: &mut Peekable<Chars<'_>>,
    read: Option<u32>,
    radix: u32,
    width: usize,
) -> Option<u32> {
    let mut code = read;
    for _ in 0..width {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else {
            break;
        };
        chars.next();
        let more = code.unwrap_or(0).wrapping_mul(radix);
        code = Some(more.wrapping_add(digit));
    }
    code
}
