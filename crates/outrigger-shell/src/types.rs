//! A shell script as the classifier sees it: order, pipes, words; nothing of it is run or expanded.
//!
//! The branches of `if` and `case` and the parts of lists are kept as plain sequences: any of them
//! may run, so each of them counts. Read [`super::tree`] next, which builds these.

use std::rc::Rc;

use super::Word;

pub(super) type Script = Vec<Statement>;

/// One pipeline; a command that stands alone is a pipeline of one stage.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) stages: Vec<Stage>,
    pub(super) background: bool,
}

/// A simple command, or a compound one in the place of its words.
#[derive(Debug, Default)]
pub(super) struct Stage {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Token>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) compound: Option<Compound>,
}

/// A group, subshell, loop, conditional, `case` or function.
#[derive(Debug)]
pub(super) struct Compound {
    pub(super) kind: CompoundKind,
    pub(super) body: Rc<Script>,
}

#[derive(Debug)]
pub(super) enum CompoundKind {
    /// Changes of variables and directory stay inside.
    Subshell,
    /// Braces, `if`, `case`.
    Group,
    /// `while`, `until`, arithmetic `for`.
    Loop,
    /// `for` and `select` with their words.
    Each { variable: String, words: Vec<Token> },
    /// The definition of a function, by its name.
    Function(String),
}

/// `name=value`, also `name+=value` and `name[subscript]=value`.
#[derive(Debug, Default)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// `+=`: what the variable held stays in front.
    pub(super) appends: bool,
    pub(super) value: Token,
}

#[derive(Debug)]
pub(super) enum Redirect {
    /// `<file`.
    Read(Token),
    /// `>file` and its kin, `<>` included.
    Write(Token),
    /// `N>&M`.
    Duplicate,
    /// `<&N`, whatever is open there.
    Descriptor(Token),
    Text(Token),
}

/// One word before expansion, with the text it was written as.
#[derive(Debug, Default)]
pub(super) struct Token {
    pub(super) atoms: Vec<Atom>,
    pub(super) source: String,
}

#[derive(Debug)]
pub(super) enum Atom {
    /// A character that nothing quotes.
    Bare(char),
    /// Text that stands for itself; `''` is none, but a word.
    Quoted(String),
    /// `$name`, `${name}`, `${name:-inner}`; of an array `name[]` is any element.
    Parameter {
        name: String,
        operator: Operator,
        inner: Vec<Self>,
        quoted: bool,
    },
    /// `$(script)` and backquotes.
    Output { script: Script, quoted: bool },
    /// `<(script)`, or `>(script)` where `receives`.
    Stream { script: Script, receives: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// `-`, or no inner word at all.
    Otherwise,
    /// `=`: the parameter keeps it.
    Assigns,
    /// `+`: it is used instead of what the parameter holds.
    Instead,
    /// Any other expansion, which is not followed.
    Opaque,
}

impl Statement {
    pub(super) fn of(stages: impl Into<Vec<Stage>>) -> Self {
        Self {
            stages: stages.into(),
            background: false,
        }
    }
}

impl Stage {
    pub(super) fn compound(kind: CompoundKind, body: Script) -> Self {
        let body = Rc::new(body);
        Self {
            compound: Some(Compound { kind, body }),
            ..Self::default()
        }
    }

    /// Whether it defines a function, whose body is not run there.
    pub(super) fn defines(&self) -> bool {
        let compound = self.compound.as_ref();
        compound.is_some_and(|it| matches!(it.kind, CompoundKind::Function(_)))
    }
}

impl Atom {
    pub(super) fn quote(c: char, atoms: &mut Vec<Self>) {
        match atoms.last_mut() {
            Some(Self::Quoted(text)) => text.push(c),
            _ => atoms.push(Self::Quoted(c.into())),
        }
    }

    pub(super) fn parameter(name: impl Into<String>, quoted: bool) -> Self {
        Self::Parameter {
            name: name.into(),
            operator: Operator::Otherwise,
            inner: Vec::new(),
            quoted,
        }
    }

    /// Returns an expansion that is not followed, with what is nested in it.
    pub(super) fn opaque(inner: Vec<Self>, quoted: bool) -> Self {
        Self::Parameter {
            name: String::new(),
            operator: Operator::Opaque,
            inner,
            quoted,
        }
    }

    pub(super) fn bare(&self) -> Option<char> {
        match self {
            Self::Bare(c) => Some(*c),
            _ => None,
        }
    }
}

impl Token {
    pub(super) fn quoted(text: &str) -> Self {
        Self {
            atoms: vec![Atom::Quoted(text.to_owned())],
            source: text.to_owned(),
        }
    }

    /// Returns the word if it is written without quotes, escapes and expansions.
    pub(super) fn bare(&self) -> Option<String> {
        self.atoms.iter().map(Atom::bare).collect()
    }

    /// Returns the word as the shell would pass it, or its source where the shell would expand it.
    pub(super) fn word(&self) -> Word {
        match self.literal() {
            Some(text) => Word::Literal(text),
            None => Word::Dynamic(self.source.clone()),
        }
    }

    /// Returns the word as the shell would pass it, unless the shell would expand anything in it.
    pub(super) fn literal(&self) -> Option<String> {
        if has_tilde(&self.atoms) || globs(&self.atoms) || has_braces(&self.atoms) {
            return None;
        }
        let mut literal = String::new();
        for atom in &self.atoms {
            match atom {
                Atom::Bare(c) => literal.push(*c),
                Atom::Quoted(text) => literal.push_str(text),
                _ => return None,
            }
        }
        Some(literal)
    }
}

/// Whether the shell would put a home directory in the place of a `~`: at the beginning, and in a word that looks like an
/// assignment behind its `=` and each `:`, wherever in a command it stands.
fn has_tilde(atoms: &[Atom]) -> bool {
    let bare = |at: usize| atoms.get(at).and_then(Atom::bare);
    let value = value_of_assignment(atoms.iter());
    let follows = |at: usize| bare(at) == Some('~') && matches!(bare(at - 1), Some('=' | ':'));
    bare(0) == Some('~') || value.is_some_and(|value| (value..atoms.len()).any(follows))
}

/// Returns the place behind the `=` of a word that looks like an assignment.
pub(super) fn value_of_assignment<'a>(atoms: impl Iterator<Item = &'a Atom>) -> Option<usize> {
    let mut name = String::new();
    for (at, atom) in atoms.enumerate() {
        match atom.bare()? {
            '=' => {
                let name = name.strip_suffix('+').unwrap_or(&name);
                // What stands in a subscript is not looked at: with one it is an assignment at most.
                let name = name.split_once('[').map_or(name, |(name, _)| name);
                let begins = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
                let is_name = begins && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
                return is_name.then_some(at + 1);
            }
            c => name.push(c),
        }
    }
    None
}

/// Whether the shell would look for matching file names.
pub(super) fn globs(atoms: &[Atom]) -> bool {
    let mut opened = false;
    atoms.iter().filter_map(Atom::bare).any(|c| {
        opened |= c == '[';
        matches!(c, '*' | '?') || (opened && c == ']')
    })
}

/// Whether the shell might expand braces: an unquoted `{` with an unquoted `,` or `..` before its `}`.
pub(super) fn has_braces(atoms: &[Atom]) -> bool {
    let mut open = false;
    let mut parts = false;
    let mut last = None;
    for c in atoms.iter().map(Atom::bare) {
        match c {
            Some('{') => open = true,
            Some(',') if open => parts = true,
            Some('.') if open && last == Some('.') => parts = true,
            Some('}') if parts => return true,
            _ => {}
        }
        last = c;
    }
    false
}
