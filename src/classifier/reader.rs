//! Reads words as bash reads them: quotes, escapes, expansions, substitutions, here-documents.
//!
//! Whatever is outside the grammar that may be called safe is read all the same and noted as
//! [`Reader::irregular`]. Commands and statements are in [`super::grammar`].

use std::cell::OnceCell;
use std::rc::Rc;

use super::script::{Atom, Script, Token};

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

fn is_name(c: char) -> bool {
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

    fn single_quoted(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Unreadable> {
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

    fn double_quoted(&mut self, atoms: &mut Vec<Atom>) -> Result<(), Unreadable> {
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
    fn quoted_char(&mut self, atoms: &mut Vec<Atom>, in_quotes: bool) -> Result<(), Unreadable> {
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

    /// Reads what follows a `$`.
    fn dollar(&mut self, atoms: &mut Vec<Atom>, quoted: bool) -> Result<(), Unreadable> {
        match self.peek() {
            Some('\'') if !quoted => {
                self.position += 1;
                self.note("ANSI-C quoting");
                super::ansi::ansi_c_quoted(self, atoms)?;
            }
            Some('"') if !quoted => {
                self.position += 1;
                self.note("a translated string");
                self.double_quoted(atoms)?;
            }
            Some('(') => {
                self.position += 1;
                self.note("a substitution");
                if self.peek() == Some('(') && self.closes_as_arithmetic() {
                    self.position += 1;
                    let inner = self.arithmetic()?;
                    atoms.push(Atom::Opaque { inner, quoted });
                } else {
                    let script = self.script_until_paren()?;
                    atoms.push(Atom::Output { script, quoted });
                }
            }
            Some('[') => {
                self.position += 1;
                self.note("an arithmetic expansion");
                let inner = self.until_bracket()?;
                atoms.push(Atom::Opaque { inner, quoted });
            }
            Some('{') => {
                self.position += 1;
                let atom = self.braced_parameter(quoted)?;
                atoms.push(atom);
            }
            Some(c) if is_name(c) || matches!(c, '@' | '*' | '#' | '?' | '-' | '$' | '!') => {
                let name = self.parameter_name();
                atoms.push(Atom::Parameter {
                    name,
                    fallback: Vec::new(),
                    quoted,
                });
            }
            _ => atoms.push(Atom::Char {
                value: '$',
                quoted: true,
            }),
        }
        Ok(())
    }

    fn parameter_name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            let special = name.is_empty() && (!is_name(c) || c.is_ascii_digit());
            if !is_name(c) && !special {
                break;
            }
            self.position += 1;
            name.push(c);
            if special {
                break;
            }
        }
        name
    }

    /// Reads `${…}` after its brace.
    fn braced_parameter(&mut self, quoted: bool) -> Result<Atom, Unreadable> {
        if matches!(self.peek(), Some(' ' | '\t' | '\n' | '|')) {
            self.note("a substitution");
            self.position += 1;
            let script = self.script_until_brace()?;
            return Ok(Atom::Output { script, quoted });
        }
        let from = self.position;
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| is_name(*c)) {
            self.position += 1;
            name.push(c);
        }
        if self.peek() == Some('}') && !name.is_empty() {
            self.position += 1;
            return Ok(Atom::Parameter {
                name,
                fallback: Vec::new(),
                quoted,
            });
        }
        self.note("a parameter expansion with an operator");
        let colon = self.take(':');
        let fallback = matches!(self.peek(), Some('-' | '=' | '+')) && !name.is_empty();
        if fallback {
            self.position += 1;
            let fallback = self.until_brace(quoted)?;
            return Ok(Atom::Parameter {
                name,
                fallback,
                quoted,
            });
        }
        if colon && self.peek() == Some('?') {
            self.until_brace(quoted)?;
            return Ok(Atom::Parameter {
                name,
                fallback: Vec::new(),
                quoted,
            });
        }
        self.position = from;
        let inner = self.until_brace(quoted)?;
        Ok(Atom::Opaque { inner, quoted })
    }

    /// Reads the operand of a parameter expansion up to its closing brace.
    fn until_brace(&mut self, quoted: bool) -> Result<Vec<Atom>, Unreadable> {
        let mut atoms = Vec::new();
        loop {
            match self.peek() {
                Some('}') => {
                    self.position += 1;
                    return Ok(atoms);
                }
                Some('\'') if !quoted => {
                    self.position += 1;
                    self.single_quoted(&mut atoms)?;
                }
                Some('"') => {
                    self.position += 1;
                    self.double_quoted(&mut atoms)?;
                }
                Some('\\') => {
                    self.position += 1;
                    if let Some(value) = self.next_raw() {
                        atoms.push(Atom::Char {
                            value,
                            quoted: true,
                        });
                    }
                }
                Some('$' | '`') => self.quoted_char(&mut atoms, true)?,
                Some(value) => {
                    self.position += 1;
                    atoms.push(Atom::Char { value, quoted });
                }
                None => return Err(Unreadable::Syntax("an open `${`")),
            }
        }
    }

    /// Looks ahead from the second parenthesis of `((`: does it close as `))`?
    pub(super) fn closes_as_arithmetic(&self) -> bool {
        let mut depth = 1_usize;
        let mut quote = None;
        let mut rest = self.chars.iter().skip(self.position).peekable();
        while let Some(c) = rest.next() {
            match (quote, c) {
                (_, '\\') => {
                    rest.next();
                }
                (None, '\'' | '"') => quote = Some(*c),
                (Some(open), c) if open == *c => quote = None,
                (Some(_), _) => {}
                (None, '(') => depth += 1,
                (None, ')') => {
                    depth -= 1;
                    if depth <= 1 {
                        return rest.peek() == Some(&&')');
                    }
                }
                (None, _) => {}
            }
        }
        false
    }

    /// Reads an arithmetic expression up to its `))`, keeping only what is nested in it.
    pub(super) fn arithmetic(&mut self) -> Result<Vec<Atom>, Unreadable> {
        let mut atoms = Vec::new();
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some('(') => depth += 1,
                Some(')') if depth == 0 => {
                    self.position += 1;
                    if self.take(')') {
                        return Ok(atoms);
                    }
                    return Err(Unreadable::Syntax("an open `((`"));
                }
                Some(')') => depth -= 1,
                Some(_) => {}
                None => return Err(Unreadable::Syntax("an open `((`")),
            }
            self.quoted_char(&mut atoms, true)?;
        }
    }

    fn until_bracket(&mut self) -> Result<Vec<Atom>, Unreadable> {
        let mut atoms = Vec::new();
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some('[') => depth += 1,
                Some(']') if depth == 0 => {
                    self.position += 1;
                    return Ok(atoms);
                }
                Some(']') => depth -= 1,
                Some(_) => {}
                None => return Err(Unreadable::Syntax("an open `$[`")),
            }
            self.quoted_char(&mut atoms, true)?;
        }
    }

    /// Reads a backquoted script: its text is unescaped once and read as a script of its own.
    fn backquoted(&mut self, atoms: &mut Vec<Atom>, quoted: bool) -> Result<(), Unreadable> {
        self.note("a substitution");
        let mut text = String::new();
        loop {
            match self.next_raw() {
                Some('`') => break,
                Some('\\') => match self.next_raw() {
                    Some(c @ ('$' | '`' | '\\')) => text.push(c),
                    Some('"') if quoted => text.push('"'),
                    Some(c) => text.extend(['\\', c]),
                    None => return Err(Unreadable::Syntax("an open backquote")),
                },
                Some(c) => text.push(c),
                None => return Err(Unreadable::Syntax("an open backquote")),
            }
        }
        let script = self.nested(|reader| Self::new(&text, reader.depth).whole_script())?;
        atoms.push(Atom::Output { script, quoted });
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

    fn script_until_paren(&mut self) -> Result<Script, Unreadable> {
        let script = self.script(&[")"])?;
        if self.take(')') {
            Ok(script)
        } else {
            Err(Unreadable::Syntax("an open parenthesis"))
        }
    }

    fn script_until_brace(&mut self) -> Result<Script, Unreadable> {
        let script = self.script(&["}"])?;
        self.skip_blanks();
        if self.take('}') {
            Ok(script)
        } else {
            Err(Unreadable::Syntax("an open brace"))
        }
    }
}
