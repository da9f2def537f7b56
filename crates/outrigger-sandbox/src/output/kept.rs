//! Keeps the start and the end of a stream of any length in bounded memory. Pure.

use std::collections::VecDeque;

/// What was kept of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The whole text, or its head, a line `… N bytes left out …`, and its tail.
    pub text: String,
    /// Bytes of the stream that are not in `text`.
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

    /// Takes a piece.
    pub fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
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
                left_out_bytes: 0,
            };
        }
        // Of a character that was cut, at either end, nothing stays.
        let head = head.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let is_continuation = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let cut = tail.iter().take_while(|byte| is_continuation(byte)).count();
        let tail = String::from_utf8_lossy(tail.split_at(cut).1);
        let left_out_bytes = self.total - (head.len() + tail.len()) as u64;
        let line_end = if head.is_empty() || head.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        Captured {
            text: format!("{head}{line_end}… {left_out_bytes} bytes left out …\n{tail}"),
            left_out_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(limit: usize, pieces: &[&str]) -> Captured {
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
            let result = captured(limit, &pieces);
            assert_eq!(result.text, text);
            assert_eq!(result.left_out_bytes, left_out);
        }
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_every_byte_is_counted(
            pieces in prop::collection::vec(".{0,25}", 0..20),
            limit in 0_usize..60,
        ) {
            let mut kept = HeadAndTail::new(limit);
            for piece in &pieces {
                kept.push(piece);
                prop_assert!(kept.head.len() + kept.tail.len() <= limit);
            }
            let all = pieces.concat();
            let result = kept.finish();
            if result.left_out_bytes > 0 {
                let said = format!("… {} bytes left out …\n", result.left_out_bytes);
                let (head, tail) = result.text.split_once(&said).unwrap();
                let left_out = usize::try_from(result.left_out_bytes).unwrap();
                let (head, line_end) = head.split_at(all.len() - left_out - tail.len());
                prop_assert!(all.starts_with(head) && all.ends_with(tail));
                prop_assert!(line_end.is_empty() || line_end == "\n");
            }
            if all.len() <= limit {
                prop_assert_eq!(result.left_out_bytes, 0);
                prop_assert_eq!(result.text, all);
            }
        }
    }
}
