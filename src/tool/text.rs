//! Text of files: its encoding, byte order mark and line ends, found on reading and kept on writing.
//! Pure.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding as Legacy;

/// A file's content as text, with what is needed to write it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) content: String,
    pub(crate) form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) encoding: Encoding,
    pub(crate) mark: bool,
    pub(crate) line_end: LineEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16 { little: bool },
    Utf32 { little: bool },
    Legacy(&'static Legacy),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    Lf,
    CrLf,
    Mixed,
}

/// Byte order marks, the longer ones first: UTF-32's little one begins like UTF-16's.
const MARKS: &[(&[u8], Encoding)] = &[
    (b"\xEF\xBB\xBF", Encoding::Utf8),
    (b"\xFF\xFE\0\0", Encoding::Utf32 { little: true }),
    (b"\0\0\xFE\xFF", Encoding::Utf32 { little: false }),
    (b"\xFF\xFE", Encoding::Utf16 { little: true }),
    (b"\xFE\xFF", Encoding::Utf16 { little: false }),
];

/// First bytes of common formats that are no text.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF container (WebP, WAV, AVI)"),
    (b"\x7fELF", "an ELF program"),
    (b"MZ", "a Windows program"),
    (b"\xca\xfe\xba\xbe", "a Java class or macOS program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\0asm", "a WebAssembly module"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"BZh", "a bzip2 archive"),
    (b"7z\xbc\xaf", "a 7-Zip archive"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\0\0\x01\0", "an icon"),
    (b"OggS", "an Ogg file"),
    (b"ID3", "an MP3 file"),
    (b"wOF", "a font"),
];

/// How much of a file without a known encoding is looked at for control characters, in bytes.
const SAMPLE: usize = 8192;

/// One control character in this many bytes makes a file binary.
const CONTROL_SHARE: usize = 32;

/// Takes bytes for text; an error is the word for what they look like.
///
/// A byte order mark decides; else valid UTF-8 without NUL is text; else the encoding is guessed,
/// and accepted only where it gives the same bytes back.
pub(crate) fn decode(bytes: &[u8]) -> Result<Text, &'static str> {
    let binary = || {
        let mut signatures = SIGNATURES.iter();
        let found = signatures.find(|(signature, _)| bytes.starts_with(signature));
        found.map_or("binary data", |(_, word)| *word)
    };
    let mark = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark));
    if let Some((mark, encoding)) = mark {
        let rest = bytes.get(mark.len()..).unwrap_or_default();
        let content = encoding.decode(rest).ok_or_else(binary)?;
        return Ok(Text::new(content, *encoding, true));
    }
    if bytes.contains(&0) {
        return Err(binary());
    }
    if let Ok(content) = std::str::from_utf8(bytes) {
        return Ok(Text::new(content.to_owned(), Encoding::Utf8, false));
    }
    let sample = bytes.get(..SAMPLE).unwrap_or(bytes);
    let controls = sample.iter().filter(|byte| is_control(**byte)).count();
    if controls * CONTROL_SHARE > sample.len() {
        return Err(binary());
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let encoding = Encoding::Legacy(detector.guess(None, Utf8Detection::Deny));
    let content = encoding.decode(bytes).ok_or_else(binary)?;
    let text = Text::new(content, encoding, false);
    let again = text.form.encode(&text.content);
    (again.as_deref() == Ok(bytes))
        .then_some(text)
        .ok_or_else(binary)
}

impl Text {
    fn new(content: String, encoding: Encoding, mark: bool) -> Self {
        let line_end = LineEnd::of(&content);
        Self {
            content,
            form: Form {
                encoding,
                mark,
                line_end,
            },
        }
    }
}

impl Form {
    pub(crate) const NEW: Self = Self {
        encoding: Encoding::Utf8,
        mark: false,
        line_end: LineEnd::Lf,
    };

    /// Writes text in this form; line ends stay as they are in it. An error is the first character that the encoding has
    /// no bytes for.
    pub(crate) fn encode(&self, content: &str) -> Result<Vec<u8>, char> {
        let mut bytes = Vec::new();
        if self.mark && !content.starts_with('\u{feff}') {
            let mark = MARKS
                .iter()
                .find(|(_, encoding)| *encoding == self.encoding);
            bytes.extend(mark.into_iter().flat_map(|(mark, _)| mark.iter()));
        }
        match self.encoding {
            Encoding::Utf8 => bytes.extend(content.as_bytes()),
            Encoding::Utf16 { little } => {
                let of = match little {
                    true => u16::to_le_bytes,
                    false => u16::to_be_bytes,
                };
                bytes.extend(content.encode_utf16().flat_map(of));
            }
            Encoding::Utf32 { little } => {
                let of = match little {
                    true => u32::to_le_bytes,
                    false => u32::to_be_bytes,
                };
                bytes.extend(content.chars().map(u32::from).flat_map(of));
            }
            Encoding::Legacy(legacy) => {
                let (encoded, _, unencodable) = legacy.encode(content);
                if unencodable {
                    return Err(first_unencodable(legacy, content));
                }
                bytes.extend_from_slice(&encoded);
            }
        }
        Ok(bytes)
    }

    pub(crate) fn with_line_ends(&self, content: &str) -> String {
        match self.line_end {
            LineEnd::CrLf => content.replace("\r\n", "\n").replace('\n', "\r\n"),
            LineEnd::Lf | LineEnd::Mixed => content.to_owned(),
        }
    }
}

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16 { .. } => "UTF-16",
            Self::Utf32 { .. } => "UTF-32",
            Self::Legacy(legacy) => legacy.name(),
        }
    }

    fn decode(self, bytes: &[u8]) -> Option<String> {
        let known = match self {
            Self::Utf8 => encoding_rs::UTF_8,
            Self::Utf16 { little: true } => encoding_rs::UTF_16LE,
            Self::Utf16 { little: false } => encoding_rs::UTF_16BE,
            Self::Legacy(legacy) => legacy,
            Self::Utf32 { little } => {
                let of = match little {
                    true => u32::from_le_bytes,
                    false => u32::from_be_bytes,
                };
                let (units, rest) = bytes.as_chunks::<4>();
                let letters = units.iter().map(|unit| char::from_u32(of(*unit)));
                return letters.collect::<Option<_>>().filter(|_| rest.is_empty());
            }
        };
        known
            .decode_without_bom_handling_and_without_replacement(bytes)
            .map(std::borrow::Cow::into_owned)
    }
}

impl LineEnd {
    fn of(content: &str) -> Self {
        let all = content.matches('\n').count();
        match content.matches("\r\n").count() {
            0 => Self::Lf,
            with_return if with_return == all => Self::CrLf,
            _ => Self::Mixed,
        }
    }
}

fn first_unencodable(legacy: &'static Legacy, content: &str) -> char {
    let mut buffer = [0; 4];
    let letter = content
        .chars()
        .find(|letter| legacy.encode(letter.encode_utf8(&mut buffer)).2);
    letter.unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Control characters that text does not have; escape is in logs with colours.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127)
}

#[cfg(test)]
mod tests;
