//! Whether a pattern forbids a command, by what the command may come to and not only by how it is written. Pure.
//!
//! An allowing pattern stands for exactly its words. A forbidding one must not be got round by another spelling of the
//! same command: a path to the program, options before the word that matters, a word that is known only when the command runs.

use super::{Pattern, PatternWord};
use crate::Word;
use crate::table::{TABLE, has};

/// What a forbidding pattern says of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// It is another command.
    No,
    /// It may be this command: that is known only when it runs, or only to its program.
    Possible,
    /// It is this command.
    Certain,
}

impl Pattern {
    /// Says whether the command is one that this pattern forbids.
    ///
    /// A program that the pattern names without a folder is known in every folder. Options before the next word of the
    /// pattern are passed over, and what follows such an option may be its value. Git's own options are known.
    pub fn denies(&self, command: &[Word]) -> Denial {
        let Some(git) = git_words(command) else {
            return self.follow(command, 1);
        };
        let named = self.follow(command, usize::MAX).max(self.follow(&git, 2));
        // A subcommand that is none of git's own is an alias, of which only its repository knows the meaning.
        match git.get(1) {
            Some(Word::Literal(name)) if named == Denial::No && !has(&TABLE.git.own, name) => {
                let alias = [Word::Literal("git".to_owned()), Word::Dynamic(name.clone())];
                self.follow(&alias, 2)
            }
            _ => named,
        }
    }

    /// Goes through both word by word; `exact` words of the pattern stand at the beginning with nothing between them.
    fn follow(&self, words: &[Word], exact: usize) -> Denial {
        let mut words = words.iter();
        let mut certain = true;
        for (index, wanted) in self.words.iter().enumerate() {
            let mut after_option = false;
            loop {
                let text = match words.next() {
                    Some(Word::Literal(text)) => text,
                    Some(Word::Dynamic(text)) if index == 0 && is_one_word(text) => {
                        certain = false;
                        break;
                    }
                    Some(Word::Dynamic(_)) => return Denial::Possible,
                    None => return Denial::No,
                };
                if wanted.is(text, index == 0) {
                    break;
                }
                if index >= exact && text.starts_with(['-', '+']) {
                    after_option = !text.contains('=');
                } else if after_option {
                    (after_option, certain) = (false, false);
                } else {
                    return Denial::No;
                }
            }
        }
        let mut rest = words.peekable();
        match (self.open || rest.peek().is_none(), certain) {
            (true, true) => Denial::Certain,
            (true, false) => Denial::Possible,
            // Words that are only known when it runs may be none.
            (false, _) if rest.all(|word| matches!(word, Word::Dynamic(_))) => Denial::Possible,
            (false, _) => Denial::No,
        }
    }
}

impl PatternWord {
    fn is(&self, text: &str, program: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Literal(wanted) if program && !wanted.contains('/') => wanted == file_name(text),
            Self::Literal(wanted) => wanted == text,
        }
    }
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether the shell makes one word of a word that it expands, whatever comes out: `"$NAME"`.
fn is_one_word(source: &str) -> bool {
    let inner = source
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.contains(['"', '@']))
}

/// The words of a git command without git's own options before the subcommand; `None` for another program.
///
/// Where a word that is not known may end or be one of these options, it is the subcommand.
fn git_words(words: &[Word]) -> Option<Vec<Word>> {
    let (Word::Literal(program), rest) = words.split_first()? else {
        return None;
    };
    let git = Word::Literal("git".to_owned());
    let mut rest = match file_name(program) {
        "git" => rest,
        name => {
            let subcommand = Word::Literal(name.strip_prefix("git-")?.to_owned());
            return Some([&[git, subcommand], rest].concat());
        }
    };
    while let [Word::Literal(option), after @ ..] = rest
        && option.starts_with('-')
    {
        let takes_value = has(&TABLE.git.global_values, option);
        rest = match after {
            [Word::Dynamic(value), ..] if !is_one_word(value) => after,
            [_, after @ ..] if takes_value => after,
            _ => after,
        };
    }
    Some([&[git], rest].concat())
}

#[cfg(test)]
mod tests;
