//! Bytes to whole lines of valid UTF-8, however the bytes were cut.

use bytes::{Buf, Bytes};

use super::ProviderError;
use super::decode::protocol;

/// Longest line, and largest event: a `response.completed` repeats a whole answer, images included,
/// and stays below this; what is longer is an attack or an endless line.
pub(crate) const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// Cuts bytes into lines at each LF; a CR before it is no part of the line, and ends one by itself in server-sent
/// events, though not in NDJSON, where it may stand between two tokens. Invalid UTF-8 becomes
/// replacement characters, one line at a time, so that a broken character never holds back the lines
/// after it.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) partial: Vec<u8>,
    pub(super) cr_ends: bool,
    /// Whether the last line ended with a CR, so that an LF to come belongs to it.
    pub(super) after_cr: bool,
}

impl Lines {
    /// Takes the next whole line off the bytes, or all that is left of them and returns `None`.
    pub(super) fn next(&mut self, bytes: &mut Bytes) -> Result<Option<String>, ProviderError> {
        if !bytes.is_empty() && std::mem::take(&mut self.after_cr) && bytes.starts_with(b"\n") {
            bytes.advance(1);
        }
        let end = if self.cr_ends {
            memchr::memchr2(b'\n', b'\r', bytes)
        } else {
            memchr::memchr(b'\n', bytes)
        };
        let taken = bytes.split_to(end.unwrap_or(bytes.len()));
        if self.partial.len() + taken.len() > MAX_EVENT_BYTES {
            return Err(too_long());
        }
        self.partial.extend_from_slice(&taken);
        if end.is_none() {
            return Ok(None);
        }
        self.after_cr = bytes.starts_with(b"\r");
        bytes.advance(1);
        Ok(Some(self.take_rest()))
    }

    pub(super) fn take_rest(&mut self) -> String {
        let mut line = std::mem::take(&mut self.partial);
        line.pop_if(|last| *last == b'\r');
        String::from_utf8(line)
            .unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned())
    }
}

/// The error for a line, an event or a body that does not end.
pub(crate) fn too_long() -> ProviderError {
    protocol(format!(
        "the provider sent a line or an event of more than {} MiB",
        MAX_EVENT_BYTES / (1024 * 1024)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::ErrorKind;
    use proptest::prelude::*;

    fn lines(cr_ends: bool, pieces: &[&[u8]]) -> (Vec<String>, String) {
        let mut lines = Lines {
            cr_ends,
            ..Lines::default()
        };
        let mut found = Vec::new();
        for piece in pieces {
            let mut piece = Bytes::copy_from_slice(piece);
            while let Some(line) = lines.next(&mut piece).unwrap() {
                found.push(line);
            }
        }
        let rest = lines.take_rest();
        (found, rest)
    }

    #[test]
    fn ends_and_broken_characters() {
        let cases: &[(bool, &[u8], &[&str], &str)] = &[
            (true, b"", &[], ""),
            (true, b"a\nb", &["a"], "b"),
            (true, b"a\r\nb\rc\n\n", &["a", "b", "c", ""], ""),
            (true, b"a\r\r\nb\n", &["a", "", "b"], ""),
            (false, b"a\r\nb\rc\n\n", &["a", "b\rc", ""], ""),
            (true, b"a\xffb\nc\xc3\n", &["a\u{fffd}b", "c\u{fffd}"], ""),
            (false, "käse\n".as_bytes(), &["käse"], ""),
        ];
        for (cr_ends, bytes, expected, rest) in cases {
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            for pieces in [vec![*bytes], single] {
                let (found, left) = lines(*cr_ends, &pieces);
                assert_eq!(found, *expected, "{bytes:?}");
                assert_eq!(left, *rest, "{bytes:?}");
            }
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::default();
        let piece = Bytes::from(vec![b'a'; 1024 * 1024]);
        for _ in 0..32 {
            assert_eq!(lines.next(&mut piece.clone()).unwrap(), None);
        }
        let mut last = piece;
        let error = lines.next(&mut last).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol);
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'\r'), Just(b'\n'), Just(0xc3), Just(0xa4), Just(b'a'), any::<u8>()],
                0..64,
            ),
            cut in 1usize..7,
        ) {
            for cr_ends in [false, true] {
                let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
                prop_assert_eq!(lines(cr_ends, &[&bytes]), lines(cr_ends, &pieces));
            }
        }
    }
}
