//! Keeps the start and the end of a stream of any length in bounded memory. Pure.

use std::collections::VecDeque;

/// What was kept of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The whole text, or its head, a line `… N bytes left out …`, and its tail.
    pub text: String,
    /// Bytes the stream brought.
    pub total_bytes: u64,
    /// Bytes of them that are not in `text`.
    pub left_out_bytes: u64,
}

/// The first and the last bytes of a stream.
#[derive(Debug, Default)]
pub struct HeadAndTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

impl HeadAndTail {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            head_limit: limit / 2,
            tail_limit: limit - limit / 2,
            ..Self::default()
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Takes a piece.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        // Of a long piece only the end can survive.
        let (_, rest) = rest.split_at(rest.len().saturating_sub(self.tail_limit));
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Returns what was kept, at the end.
    pub fn finish(self) -> Captured {
        let mut head = self.head;
        let mut tail = Vec::from(self.tail);
        if (head.len() + tail.len()) as u64 == self.total {
            head.append(&mut tail);
            return Captured {
                text: String::from_utf8_lossy(&head).into_owned(),
                total_bytes: self.total,
                left_out_bytes: 0,
            };
        }
        let head = without_cut_end(&head);
        let tail = without_cut_start(&tail);
        let left_out_bytes = self.total - (head.len() + tail.len()) as u64;
        let line_end = if head.is_empty() || head.ends_with(b"\n") {
            ""
        } else {
            "\n"
        };
        Captured {
            text: format!(
                "{}{line_end}… {left_out_bytes} bytes left out …\n{}",
                String::from_utf8_lossy(head),
                String::from_utf8_lossy(tail)
            ),
            total_bytes: self.total,
            left_out_bytes,
        }
    }
}

/// Leaves off the first bytes of a character whose last ones were cut off.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    let Some(last) = bytes.utf8_chunks().last() else {
        return bytes;
    };
    let unfinished = last.invalid();
    let could_go_on =
        std::str::from_utf8(unfinished).is_err_and(|error| error.error_len().is_none());
    if could_go_on {
        bytes.strip_suffix(unfinished).unwrap_or(bytes)
    } else {
        bytes
    }
}

/// Leaves off the last bytes of a character whose first ones were cut off.
fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let is_continuation = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    // A character has at most three of them; more are no text and stay as they are.
    let cut = bytes
        .iter()
        .take(3)
        .take_while(|byte| is_continuation(byte))
        .count();
    bytes.split_at(cut).1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(limit: usize, pieces: &[&[u8]]) -> Captured {
        let mut kept = HeadAndTail::new(limit);
        for piece in pieces {
            kept.push(piece);
        }
        kept.finish()
    }

    #[test]
    fn short_output_is_whole_and_long_output_has_head_and_tail() {
        for (limit, pieces, text, left_out) in [
            (8, vec![""], "", 0),
            (8, vec!["abcdefgh"], "abcdefgh", 0),
            (8, vec!["abcd", "efgh"], "abcdefgh", 0),
            (8, vec!["abcdefghi"], "abcd\n… 1 bytes left out …\nfghi", 1),
            (8, vec!["abc\nefghi"], "abc\n… 1 bytes left out …\nfghi", 1),
            (8, vec!["a"; 100], "aaaa\n… 92 bytes left out …\naaaa", 92),
            // Cut in the middle of a character, at either end.
            (
                8,
                vec!["abcä--------äbc"],
                "abc\n… 10 bytes left out …\näbc",
                10,
            ),
            (6, vec!["ab€--------€a"], "ab\n… 14 bytes left out …\na", 14),
            (0, vec!["abc"], "… 3 bytes left out …\n", 3),
        ] {
            let pieces: Vec<&[u8]> = pieces.into_iter().map(str::as_bytes).collect();
            let result = captured(limit, &pieces);
            assert_eq!(result.text, text);
            assert_eq!(result.left_out_bytes, left_out);
        }
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_every_byte_is_counted(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            limit in 0_usize..60,
        ) {
            let mut kept = HeadAndTail::new(limit);
            for piece in &pieces {
                kept.push(piece);
                prop_assert!(kept.head.len() + kept.tail.len() <= limit);
            }
            let all = pieces.concat();
            let result = kept.finish();
            prop_assert_eq!(result.total_bytes, all.len() as u64);
            prop_assert!(result.left_out_bytes <= result.total_bytes);
            if all.len() <= limit {
                prop_assert_eq!(result.left_out_bytes, 0);
                prop_assert_eq!(result.text, String::from_utf8_lossy(&all));
            }
        }
    }
}
