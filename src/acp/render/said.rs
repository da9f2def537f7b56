//! How much of a message the client was told, so that what comes again is not told twice. Pure.

/// The message that was told last.
#[derive(Debug, Default)]
pub(super) struct Said {
    id: String,
    /// Bytes of it that were told.
    told: usize,
    /// Bytes that come once more.
    again: usize,
}

impl Said {
    /// Returns what of this piece of a message is new; `None` where nothing is.
    pub(super) fn new_of<'a>(&mut self, id: &str, piece: &'a str) -> Option<&'a str> {
        if self.id != id {
            *self = Self {
                id: id.to_owned(),
                ..Self::default()
            };
        }
        let known = piece.floor_char_boundary(self.again);
        self.again -= known;
        let (_, new) = piece.split_at_checked(known)?;
        self.told += new.len();
        (known == 0 || !new.is_empty()).then_some(new)
    }

    pub(super) fn begin_again(&mut self) {
        self.again = self.told;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_is_told_once() {
        let mut said = Said::default();
        assert_eq!(said.new_of("m1", "one "), Some("one "));
        assert_eq!(said.new_of("m1", "two "), Some("two "));
        said.begin_again();
        assert_eq!(said.new_of("m1", "one two three"), Some("three"));
        said.begin_again();
        assert_eq!(said.new_of("m1", "one "), None);
        assert_eq!(said.new_of("m2", "another"), Some("another"));
        assert_eq!(said.new_of("m2", ""), Some(""));
    }
}
