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
