//! Reads words as bash reads them: quotes, escapes, expansions, substitutions, here-documents.
//!
//! Whatever is outside the grammar that may be called safe is read all the same and noted as
//! [`Reader::irregular`]. What a `$` begins is in [`super::dollar`], statements in [`super::grammar`].

use std::cell::OnceCell;
use std::rc::Rc;

use super::script::{Atom, Token};

/// Deepest nesting that is followed, in steps: a subshell is one, a substitution two, a wrapper one.
pub(super) const MAX_NESTING: usize = 64;

/// Why a text could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    Syntax(&'static str),
    TooDeep,
}

/// A here-document whose lines have not come yet.
pub(super) struct Pending {
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) strip_tabs: bool,
    pub(super) body: Rc<OnceCell<Token>>,
}

/// A position in a text.
pub(super) struct Reader {
    chars: Vec<char>,
    position: usize,
    pub(super) depth: usize,
    pub(super) pending: Vec<Pending>,
    /// The first construct met that is outside the grammar that may be called safe.
    pub(super) irregular: Option<&'static str>,
}

/// Whether the character ends a bare word.
pub(super) fn is_meta(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'
    )
}

pub(super) fn is_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

impl Reader {
    pub(super) fn new(text: &str, depth: usize) -> Self {
        Self {
            chars: text.chars().collect(),
            position: 0,
            depth,
            pending: Vec::new(),
            irregular: None,
        }
    }

    pub(super) fn note(&mut self, construct: &'static str) {
        self.irregular.get_or_insert(construct);
    }

    fn raw(&self, offset: usize) -> Option<char> {
        self.chars.get(self.position + offset).copied()
    }

    /// Steps over line continuations, which bash removes before it looks for words.
    fn join_lines(&mut self) {
        while self.raw(0) == Some('\\') && self.raw(1) == Some('\n') {
            self.position += 2;
        }
    }

    pub(super) fn peek(&mut self) -> Option<char> {
        self.join_lines();
        self.raw(0)
    }

    /// Returns the character after the next one; line continuations between the two are not there.
    pub(super) fn peek_second(&mut self) -> Option<char> {
        self.join_lines();
        let mut offset = 1;
        while self.raw(offset) == Some('\\') && self.raw(offset + 1) == Some('\n') {
            offset += 2;
        }
        self.raw(offset)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        self.join_lines();
        self.next_raw()
    }

    fn next_raw(&mut self) -> Option<char> {
        let c = self.raw(0)?;
        self.position += 1;
        Some(c)
    }

    /// Takes the next character if it is this one.
    pub(super) fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.position += 1;
        }
        found
    }

    /// Steps over the character that was peeked at.
    pub(super) fn advance(&mut self) {
        self.position += 1;
    }

    /// Returns the characters that are left, line continuations included.
    pub(super) fn rest(&self) -> impl Iterator<Item = &char> {
        self.chars.iter().skip(self.position)
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn rewind(&mut self, position: usize) {
        self.position = position;
    }

    fn source(&self, from: usize) -> String {
        self.chars
            .get(from..self.position)
            .unwrap_or_default()
            .iter()
            .collect()
    }

    /// Runs a reading step one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        if self.depth >= MAX_NESTING {
            return Err(Unreadable::TooDeep);
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Steps over blanks and a comment, but not over the end of the line.
    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.position += 1;
        }
        if self.peek() == Some('#') {
            // No continuation here: a backslash does not carry a comment to the next line.
            while self.raw(0).is_some_and(|c| c != '\n') {
                self.position += 1;
            }
        }
    }

    /// Reads one word; `None` where an operator or the end comes first.
    pub(super) fn word(&mut self) -> Result<Option<Token>, Unreadable> {
        self.join_lines();
        let from = self.position;
        let mut atoms = Vec::new();
        while let Some(c) = self.peek() {
            let stream = matches!(c, '<' | '>') && self.peek_second() == Some('(');
            if is_meta(c) && !stream {
                break;
            }
            self.position += 1;
            match c {
                '<' | '>' => {
                    self.next();
                    self.note("a process substitution");
                    let script = self.nested(|reader| reader.script_until_paren())?;
                    let receives = c == '>';
                    atoms.push(Atom::Stream { script, receives });
                }
                '\\' => match self.next_raw() {
                    Some(value) => atoms.push(Atom::Char {
                        value,
                        quoted: true,
                    }),
                    None => return Err(Unreadable::Syntax("a backslash at the end")),
                },
                '\'' => self.single_quoted(&mut atoms)?,
                '"' => self.double_quoted(&mut atoms)?,
                '$' => self.nested(|reader| reader.dollar(&mut atoms, false))?,
                '`' => self.backquoted(&mut atoms, false)?,
                value => atoms.push(Atom::Char {
                    value,
                    quoted: false,
                }),
            }
        }
        let source = self.source(from);
        Ok((!atoms.is_empty()).then_some(Token { atoms, source }))
    }

    pub(super) fn single_quoted(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Unreadable> {
        atoms.push(Atom::Empty);
        loop {
            match self.next_raw() {
                Some('\'') => return Ok(()),
                Some(value) => atoms.push(Atom::Char {
                    value,
                    quoted: true,
                }),
                None => return Err(Unreadable::Syntax("an open single quote")),
            }
        }
    }

    pub(super) fn double_quoted(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Unreadable> {
        atoms.push(Atom::Empty);
        loop {
            match self.peek() {
                Some('"') => {
                    self.position += 1;
                    return Ok(());
                }
                Some(_) => self.quoted_char(atoms, true)?,
                None => return Err(Unreadable::Syntax("an open double quote")),
            }
        }
    }

    /// Reads one part of text in which only `$`, backquote and backslash are special.
    pub(super) fn quoted_char(
        &mut self,
        atoms: &mut Vec<Atom>,
        in_quotes: bool,
    ) -> Result<(), Unreadable> {
        let literal = |value| Atom::Char {
            value,
            quoted: true,
        };
        match self.next() {
            Some('$') => self.nested(|reader| reader.dollar(atoms, true))?,
            Some('`') => self.backquoted(atoms, true)?,
            Some('\\') => match self.raw(0) {
                Some(c @ ('$' | '`' | '\\')) => {
                    self.position += 1;
                    atoms.push(literal(c));
                }
                Some('"') if in_quotes => {
                    self.position += 1;
                    atoms.push(literal('"'));
                }
                _ => atoms.push(literal('\\')),
            },
            Some(c) => atoms.push(literal(c)),
            None => {}
        }
        Ok(())
    }

    /// Reads one raw character of an ANSI-C string.
    pub(super) fn next_in_quotes(&mut self) -> Option<char> {
        self.next_raw()
    }

    /// Reads the bodies of the here-documents that began on the line just ended.
    pub(super) fn here_documents(&mut self) -> Result<(), Unreadable> {
        for document in std::mem::take(&mut self.pending) {
            let mut text = String::new();
            let mut closed = false;
            while let Some(line) = self.line() {
                let line = if document.strip_tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line == document.delimiter {
                    closed = true;
                    break;
                }
                text.push_str(line);
                text.push('\n');
            }
            if !closed {
                self.note("a here-document without its end");
            }
            let token = self.here_body(&text, document.quoted)?;
            // The cell belongs to this document alone and is still empty.
            drop(document.body.set(token));
        }
        Ok(())
    }

    fn line(&mut self) -> Option<String> {
        self.raw(0)?;
        let mut line = String::new();
        while let Some(c) = self.next_raw().filter(|c| *c != '\n') {
            line.push(c);
        }
        Some(line)
    }

    fn here_body(&mut self, text: &str, quoted: bool) -> Result<Token, Unreadable> {
        let mut atoms = vec![Atom::Empty];
        if quoted {
            atoms.extend(text.chars().map(|value| Atom::Char {
                value,
                quoted: true,
            }));
        } else {
            self.note("a here-document that expands");
            let mut body = Self::new(text, self.depth);
            while body.peek().is_some() {
                body.quoted_char(&mut atoms, false)?;
            }
        }
        Ok(Token {
            atoms,
            source: text.to_owned(),
        })
    }
}
