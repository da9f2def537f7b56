//! Classifies bash commands by the harm they may do. Pure.

/// A simple command of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Its words, the program first.
    pub words: Vec<Word>,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Text known before the command runs, unquoted.
    Literal(String),
    /// Source text of a word whose value only the shell knows.
    Dynamic(String),
}

/// A pattern over the words of a command.
#[derive(Clone, Debug)]
pub struct Pattern;

/// Why a text is no pattern.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no pattern")]
pub struct PatternError;

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// Where the text is none.
    pub fn parse(_text: &str) -> Result<Self, PatternError> {
        Ok(Self)
    }

    /// Whether the command matches.
    pub fn matches(&self, _command: &SimpleCommand) -> bool {
        false
    }
}
