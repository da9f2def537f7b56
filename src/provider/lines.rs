//! Bytes to whole lines of valid UTF-8, however the bytes were cut.
//!
//! Pure. A byte order mark in front is dropped; invalid UTF-8 becomes replacement characters, one
//! line at a time, so that a broken character never holds back the lines after it. What a line
//! means is `sse`'s and `ndjson`'s affair.

use bytes::{Buf, Bytes};

use super::{ErrorKind, ProviderError};

/// Longest line, and largest event: a `response.completed` repeats a whole answer, images included,
/// and stays below this; what is longer is an attack or an endless line.
pub(crate) const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// Which bytes end a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// LF, CR or CRLF: server-sent events.
    Any,
    /// LF only: NDJSON, in which a CR may stand between two tokens.
    Lf,
}

/// Cuts bytes into lines: feed with [`Lines::push`], then take with [`Lines::next_line`] until `None`.
#[derive(Debug)]
pub(crate) struct Lines {
    end: LineEnd,
    chunk: Bytes,
    partial: Vec<u8>,
    /// The last line ended in CR at the end of the bytes, so that an LF to come belongs to it.
    after_cr: bool,
    started: bool,
}

impl Lines {
    /// Starts at the beginning of a body.
    pub(crate) fn new(end: LineEnd) -> Self {
        Self {
            end,
            chunk: Bytes::new(),
            partial: Vec::new(),
            after_cr: false,
            started: false,
        }
    }

    /// Adds bytes. All lines of the bytes before must have been taken.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        debug_assert!(self.chunk.is_empty(), "lines left untaken");
        self.chunk = bytes;
    }

    /// Returns the next whole line without its end, or `None` when more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Protocol`] when a line exceeds [`MAX_EVENT_BYTES`].
    pub(crate) fn next_line(&mut self) -> Result<Option<String>, ProviderError> {
        if self.after_cr && !self.chunk.is_empty() {
            self.after_cr = false;
            if self.chunk.first() == Some(&b'\n') {
                self.chunk.advance(1);
            }
        }
        let found = match self.end {
            LineEnd::Any => memchr::memchr2(b'\n', b'\r', &self.chunk),
            LineEnd::Lf => memchr::memchr(b'\n', &self.chunk),
        };
        let taken = found.unwrap_or(self.chunk.len());
        if self.partial.len() + taken > MAX_EVENT_BYTES {
            return Err(too_long());
        }
        let head = self.chunk.split_to(taken);
        if found.is_none() {
            self.partial.extend_from_slice(&head);
            return Ok(None);
        }
        self.after_cr = self.chunk.first() == Some(&b'\r');
        self.chunk.advance(1);
        if self.partial.is_empty() {
            return Ok(Some(self.text(head.into())));
        }
        self.partial.extend_from_slice(&head);
        let line = std::mem::take(&mut self.partial);
        Ok(Some(self.text(line)))
    }

    /// Returns what came after the last line end; `None` where nothing did.
    pub(crate) fn take_rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.partial);
        (!rest.is_empty()).then(|| self.text(rest))
    }

    fn text(&mut self, bytes: Vec<u8>) -> String {
        let mut text = String::from_utf8(bytes)
            .unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned());
        if !self.started {
            self.started = true;
            if text.starts_with('\u{feff}') {
                text.remove(0);
            }
        }
        text
    }
}

/// The error for a line or an event that does not end.
pub(crate) fn too_long() -> ProviderError {
    ProviderError::new(
        ErrorKind::Protocol,
        format!(
            "the provider sent a line or an event of more than {} MiB",
            MAX_EVENT_BYTES / (1024 * 1024)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(end: LineEnd, pieces: &[&[u8]]) -> (Vec<String>, Option<String>) {
        let mut lines = Lines::new(end);
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(Bytes::copy_from_slice(piece));
            while let Some(line) = lines.next_line().unwrap() {
                found.push(line);
            }
        }
        let rest = lines.take_rest();
        (found, rest)
    }

    #[test]
    fn ends_marks_and_broken_characters() {
        let cases: &[(&[u8], &[&str], Option<&str>)] = &[
            (b"", &[], None),
            (b"a\nb", &["a"], Some("b")),
            (b"a\r\nb\rc\n\n", &["a", "b", "c", ""], None),
            (b"a\r\r\nb\n", &["a", "", "b"], None),
            (
                b"\xef\xbb\xbfdata\n\xef\xbb\xbfx\n",
                &["data", "\u{feff}x"],
                None,
            ),
            (b"\xef\xbb\xbf", &[], Some("")),
            (b"a\xffb\nc\xc3\n", &["a\u{fffd}b", "c\u{fffd}"], None),
            ("käse\n".as_bytes(), &["käse"], None),
        ];
        for (bytes, expected, rest) in cases {
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            for pieces in [vec![*bytes], single] {
                let (found, left) = lines(LineEnd::Any, &pieces);
                assert_eq!(found, *expected, "{bytes:?}");
                assert_eq!(left.as_deref(), *rest, "{bytes:?}");
            }
        }
    }

    #[test]
    fn a_carriage_return_inside_ndjson_stays() {
        let (found, rest) = lines(LineEnd::Lf, &[b"{\"a\":\r1}\r\n{}"]);
        assert_eq!(found, ["{\"a\":\r1}\r"]);
        assert_eq!(rest.as_deref(), Some("{}"));
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::new(LineEnd::Any);
        let piece = Bytes::from(vec![b'a'; 1024 * 1024]);
        for _ in 0..32 {
            lines.push(piece.clone());
            assert_eq!(lines.next_line().unwrap(), None);
        }
        lines.push(piece);
        assert_eq!(lines.next_line().unwrap_err().kind, ErrorKind::Protocol);
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
            for end in [LineEnd::Any, LineEnd::Lf] {
                let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
                prop_assert_eq!(lines(end, &[&bytes]), lines(end, &pieces));
            }
        }
    }
}
