//! Permission patterns over the words of one command: `cargo test **`.

mod denial;

pub use self::denial::Denial;

use super::Word;
use super::plain::Reader;

/// A pattern over the words of one simple command.
///
/// Words are written as in the shell and compared as the shell would pass them. `*` stands for
/// exactly one word that is known, `**` at the end for any words or none, known or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    words: Vec<PatternWord>,
    open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternWord {
    Literal(String),
    Any,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is no word in it.
    #[error("a pattern needs at least the name of a program")]
    Empty,
    /// A word that the shell would expand, or an operator between commands.
    #[error(
        "pattern word `{0}` is not literal: quote it, or use `*` for one word and `**` for the rest"
    )]
    NotLiteral(String),
    /// `**` before the end.
    #[error("`**` may only be the last word of a pattern")]
    RestNotLast,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// [`PatternError`] where the text is empty, has a word that the shell would expand, or more after a `**`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let unreadable = || PatternError::NotLiteral(text.to_owned());
        let mut reader = Reader::new(text);
        let mut words = Vec::new();
        let mut open = false;
        loop {
            reader.skip_blanks();
            let Some(token) = reader.word().map_err(|_| unreadable())? else {
                break;
            };
            if open {
                return Err(PatternError::RestNotLast);
            }
            match token.bare().as_deref() {
                Some("**") => open = true,
                Some("*") => words.push(PatternWord::Any),
                _ => {
                    let literal = token.literal();
                    let literal = literal.ok_or(PatternError::NotLiteral(token.source))?;
                    words.push(PatternWord::Literal(literal));
                }
            }
        }
        if reader.peek().is_some() {
            return Err(unreadable());
        }
        if words.is_empty() && !open {
            return Err(PatternError::Empty);
        }
        Ok(Self { words, open })
    }

    /// Whether the command has these words.
    ///
    /// A word that is only known when it runs matches nothing but `**`.
    pub fn matches(&self, command: &[Word]) -> bool {
        let (given, wanted) = (command.len(), self.words.len());
        let is = |(pattern, word): (&PatternWord, &Word)| match (pattern, word) {
            (PatternWord::Literal(wanted), Word::Literal(given)) => wanted == given,
            (PatternWord::Any, Word::Literal(_)) => true,
            (_, Word::Dynamic(_)) => false,
        };
        (given == wanted || self.open && given > wanted) && self.words.iter().zip(command).all(is)
    }
}
