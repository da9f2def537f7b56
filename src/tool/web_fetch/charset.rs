//! Bytes of an answer as text: by its byte order mark, its header, the page's own word, or a guess. Pure.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memmem;

/// How much of a page is looked through for its own word about its encoding, in bytes; the standard has it there.
const HEAD: usize = 1_024;

/// How much of an answer an encoding is guessed from, in bytes.
const SAMPLE: usize = 64 * 1_024;

/// Text, and what it was read as.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) encoding: &'static str,
    /// Whether some bytes are none of that encoding.
    pub(super) has_errors: bool,
}

/// Reads bytes as text; `header` is the charset of the answer's header. `is_cut` where the end is missing.
pub(super) fn decode(bytes: &[u8], header: Option<&str>, is_page: bool, is_cut: bool) -> Decoded {
    let said = header.and_then(|label| Encoding::for_label(label.as_bytes()));
    let said = said.or_else(|| is_page.then(|| of_page(bytes)).flatten());
    let encoding = said.unwrap_or_else(|| guess(bytes, is_cut));
    // A byte order mark decides.
    let (text, encoding, has_errors) = encoding.decode(bytes);
    let mut text = text.into_owned();
    let mut has_errors = has_errors;
    if is_cut && text.ends_with(char::REPLACEMENT_CHARACTER) {
        text.pop();
        has_errors = text.contains(char::REPLACEMENT_CHARACTER);
    }
    Decoded {
        text,
        encoding: encoding.name(),
        has_errors,
    }
}

/// Returns the encoding that a page names in a `meta`.
fn of_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..HEAD).unwrap_or(bytes).to_ascii_lowercase();
    let mut rest = head.as_slice();
    while let Some(at) = memmem::find(rest, b"<meta") {
        let (_, tag) = rest.split_at(at);
        let (_, after) = tag.split_at("<meta".len());
        let end = memchr::memchr(b'>', after).unwrap_or(after.len());
        let (tag, later) = after.split_at(end);
        if let Some(at) = memmem::find(tag, b"charset") {
            let (_, value) = tag.split_at(at + "charset".len());
            let is_around = |byte: u8| byte.is_ascii_whitespace() || b"=\"'".contains(&byte);
            let start = value.iter().position(|byte| !is_around(*byte));
            let (_, value) = value.split_at(start.unwrap_or(value.len()));
            let is_end = |byte: u8| is_around(byte) || b";/>".contains(&byte);
            let end = value.iter().position(|byte| is_end(*byte));
            let (label, _) = value.split_at(end.unwrap_or(value.len()));
            if let Some(encoding) = Encoding::for_label(label) {
                // What could be read so far is not UTF-16: so says the standard.
                let is_wide = encoding == UTF_16LE || encoding == UTF_16BE;
                return Some(if is_wide { UTF_8 } else { encoding });
            }
        }
        rest = later;
    }
    None
}

fn guess(bytes: &[u8], is_cut: bool) -> &'static Encoding {
    match std::str::from_utf8(bytes) {
        Ok(_) => return UTF_8,
        Err(error) if is_cut && error.error_len().is_none() => return UTF_8,
        Err(_) => {}
    }
    let sample = bytes.get(..SAMPLE).unwrap_or(bytes);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, sample.len() == bytes.len());
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_says_something_is_believed() {
        let meta =
            |label: &str| format!("<html><meta name=a><META CharSet={label}><p>").into_bytes();
        let with = |mut head: Vec<u8>, rest: &[u8]| {
            head.extend(rest);
            head
        };
        let late = vec![b' '; HEAD];
        for (bytes, header, expected) in [
            (b"\xe9".to_vec(), Some("iso-8859-1"), "é"),
            (b"\xe9".to_vec(), Some("\u{e9}no such"), "é"),
            ("é".as_bytes().to_vec(), Some("utf-8"), "é"),
            ("é".as_bytes().to_vec(), None, "é"),
            (b"\xef\xbb\xbf\xc3\xa9".to_vec(), Some("iso-8859-1"), "é"),
            (b"\xff\xfee\0".to_vec(), None, "e"),
            (with(meta("\"windows-1251\""), b"\xef"), None, "п"),
            (with(meta("'windows-1251' /"), b"\xef"), None, "п"),
            (with(meta("windows-1251"), b"\xef"), Some("iso-8859-1"), "ï"),
            (with(meta("utf-16"), "é".as_bytes()), None, "é"),
            (with(meta("nonsense"), "é".as_bytes()), None, "é"),
            (
                with(
                    b"<meta http-equiv=Content-Type content=\"text/html; charset=koi8-r\">"
                        .to_vec(),
                    b"\xd0",
                ),
                None,
                "п",
            ),
            (with(late, &meta("koi8-r")), None, "<p>"),
        ] {
            let decoded = decode(&bytes, header, true, false);
            assert!(decoded.text.ends_with(expected), "{header:?}: {decoded:?}");
            assert!(!decoded.has_errors, "{decoded:?}");
        }
        // A text's own words are none about its encoding.
        let decoded = decode(
            &with(meta("windows-1251"), "é".as_bytes()),
            None,
            false,
            false,
        );
        assert!(decoded.text.ends_with('é'), "{decoded:?}");
    }

    #[test]
    fn a_wrong_word_gives_text_all_the_same() {
        let decoded = decode(b"caf\xe9 au lait", Some("utf-8"), true, false);
        assert_eq!(decoded.text, "caf\u{fffd} au lait");
        assert!(decoded.has_errors);
        // What is cut is no error.
        let decoded = decode(b"caf\xc3", Some("utf-8"), true, true);
        assert_eq!((&*decoded.text, decoded.has_errors), ("caf", false));
    }
}
