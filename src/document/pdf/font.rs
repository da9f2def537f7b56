//! A font as far as text is taken of it: what its codes stand for, and how wide they are.

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Encoding, Object};

/// The most bytes that a font's table of characters is inflated to; the largest, of fonts with all of Unicode, have half
/// of it.
const MAX_CMAP: usize = 2 * 1024 * 1024;

/// The most widths that are kept of a font: a code has two bytes.
const MAX_WIDTHS: usize = 65_536;

/// The width of a character that the font does not tell, in thousandths of its size.
const COMMON_WIDTH: f32 = 500.0;

pub(super) struct Font<'a> {
    encoding: Encoding<'a>,
    widths: HashMap<u32, f32>,
    other_width: f32,
    bytes_per_code: usize,
}

impl<'a> Font<'a> {
    /// Returns a font; `None` where nothing can be read of it.
    pub(super) fn of(dictionary: &'a Dictionary, document: &'a Document) -> Option<Self> {
        let encoding = encoding(dictionary, document)?;
        let descendant = dictionary
            .get_deref(b"DescendantFonts", document)
            .and_then(Object::as_array)
            .ok()
            .and_then(|fonts| document.dereference(fonts.first()?).ok())
            .and_then(|(_, font)| font.as_dict().ok());
        Some(match descendant {
            Some(descendant) => Self {
                encoding,
                widths: composite_widths(descendant, document),
                other_width: number(descendant, b"DW", document).unwrap_or(1000.0),
                bytes_per_code: 2,
            },
            None => Self {
                encoding,
                widths: simple_widths(dictionary, document),
                other_width: COMMON_WIDTH,
                bytes_per_code: 1,
            },
        })
    }

    /// Adds what a string says to a text, and returns its width in thousandths of the font's size.
    pub(super) fn show(&self, string: &[u8], text: &mut String) -> f32 {
        // What a font has no word for is left out.
        self.encoding.write_to_string(string, text).ok();
        let codes = string.chunks(self.bytes_per_code);
        let width = |code: &[u8]| {
            let code = code
                .iter()
                .fold(0, |code, byte| code << 8 | u32::from(*byte));
            self.widths.get(&code).copied().unwrap_or(self.other_width)
        };
        codes.map(width).sum()
    }
}

/// Returns what the codes of a font stand for. What the file itself says is better than the name of an encoding, in which
/// a subset of a font may have other letters.
fn encoding<'a>(font: &'a Dictionary, document: &'a Document) -> Option<Encoding<'a>> {
    if let Ok(table) = font.get(b"ToUnicode") {
        let mut alone = Dictionary::new();
        alone.set("Type", Object::Name(b"Font".to_vec()));
        alone.set("ToUnicode", table.clone());
        let encoding = alone.get_font_encoding_with_limit(document, MAX_CMAP);
        if let Ok(Encoding::UnicodeMapEncoding(map)) = encoding {
            return Some(Encoding::UnicodeMapEncoding(map));
        }
    }
    font.get_font_encoding_with_limit(document, MAX_CMAP).ok()
}

fn simple_widths(font: &Dictionary, document: &Document) -> HashMap<u32, f32> {
    let first = font.get_deref(b"FirstChar", document);
    let first = first.and_then(Object::as_i64).ok();
    let first = first.and_then(|first| u32::try_from(first).ok());
    let widths = font.get_deref(b"Widths", document);
    let (Some(first), Ok(widths)) = (first, widths.and_then(Object::as_array)) else {
        return HashMap::new();
    };
    let widths = (first..).zip(widths.iter().take(256));
    widths
        .filter_map(|(code, width)| Some((code, value(width, document)?)))
        .collect()
}

/// `[1 [500 600] 10 20 700]`: each code from 1 on has a width of its own, those from 10 to 20 have one together.
fn composite_widths(font: &Dictionary, document: &Document) -> HashMap<u32, f32> {
    let mut found = HashMap::new();
    let listed = font.get_deref(b"W", document).and_then(Object::as_array);
    let mut listed = listed.into_iter().flatten();
    while let Some(first) = listed.next() {
        let (Some(first), Some(second)) = (code(first, document), listed.next()) else {
            break;
        };
        let Ok((_, second)) = document.dereference(second) else {
            break;
        };
        if let Ok(widths) = second.as_array() {
            let widths = (first..).zip(widths.iter().take(MAX_WIDTHS));
            found.extend(widths.filter_map(|(code, width)| Some((code, value(width, document)?))));
        } else if let (Some(last), Some(width)) = (code(second, document), listed.next())
            && let Some(width) = value(width, document)
        {
            found.extend((first..=last).take(MAX_WIDTHS).map(|code| (code, width)));
        }
        if found.len() > MAX_WIDTHS {
            break;
        }
    }
    found
}

fn code(object: &Object, document: &Document) -> Option<u32> {
    let (_, object) = document.dereference(object).ok()?;
    u32::try_from(object.as_i64().ok()?).ok()
}

fn value(object: &Object, document: &Document) -> Option<f32> {
    let (_, object) = document.dereference(object).ok()?;
    object.as_float().ok()
}

fn number(dictionary: &Dictionary, key: &[u8], document: &Document) -> Option<f32> {
    value(dictionary.get(key).ok()?, document)
}
