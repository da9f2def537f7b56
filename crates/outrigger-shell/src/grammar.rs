//! Reads statements as bash reads them: lists, pipelines, simple commands.
//!
//! A text that is not a whole script is an error; what is then done with it is decided in
//! [`super::walk`]. Words are read in [`super::reader`], the rest in [`super::compound`] and
//! [`super::redirect`].

use super::reader::{Reader, Unreadable, is_meta};
use super::script::{
    Assignment, Atom, Compound, CompoundKind, Script, Simple, Stage, Statement, Token, has_braces,
};

const RESERVED: [&str; 21] = [
    "if", "then", "elif", "else", "fi", "for", "select", "while", "until", "do", "done", "case",
    "esac", "in", "function", "{", "}", "!", "[[", "]]", "coproc",
];

pub(super) type Read<T> = Result<T, Unreadable>;

impl Reader {
    /// Reads the text to its end.
    pub(super) fn whole_script(&mut self) -> Read<Script> {
        let mut script = Script::default();
        self.readable_part(&mut script)?;
        Ok(script)
    }

    /// Reads as far as the text can be read: bash runs the lines before the one with the error.
    pub(super) fn readable_part(&mut self, script: &mut Script) -> Read<()> {
        self.statements(&[], script)?;
        if !self.pending.is_empty() {
            self.here_documents()?;
        }
        Ok(())
    }

    /// Reads statements up to one of these words or operators, which is left where it is.
    pub(super) fn script(&mut self, ends: &[&str]) -> Read<Script> {
        let mut script = Script::default();
        self.statements(ends, &mut script)?;
        Ok(script)
    }

    fn statements(&mut self, ends: &[&str], script: &mut Script) -> Read<()> {
        loop {
            self.skip_lines()?;
            if self.at_end(ends) {
                return Ok(());
            }
            self.list(&mut script.statements)?;
            self.skip_blanks();
            match (self.peek(), self.peek_second()) {
                (Some(';'), Some(';' | '&')) if ends.contains(&";;") => return Ok(()),
                (Some(';'), Some(';' | '&')) => return Err(Unreadable::Syntax("a stray `;;`")),
                (Some('('), _) => return Err(Unreadable::Syntax("a stray parenthesis")),
                (Some(';'), _) => {
                    self.next();
                }
                (Some('&'), _) => {
                    self.next();
                    self.note("a background job");
                    if let Some(last) = script.statements.last_mut() {
                        last.background = true;
                    }
                }
                _ => {}
            }
        }
    }

    fn at_end(&mut self, ends: &[&str]) -> bool {
        match self.peek() {
            None => true,
            Some(')') => ends.contains(&")"),
            Some(';') => ends.contains(&";;") && matches!(self.peek_second(), Some(';' | '&')),
            Some(_) => self
                .peek_reserved()
                .is_some_and(|word| ends.contains(&word)),
        }
    }

    /// Steps over blanks, comments and ends of lines, reading here-documents as they come.
    pub(super) fn skip_lines(&mut self) -> Read<()> {
        self.skip_blanks();
        while self.take('\n') {
            self.here_documents()?;
            self.skip_blanks();
        }
        Ok(())
    }

    /// Returns the reserved word that comes next, without taking it.
    fn peek_reserved(&mut self) -> Option<&'static str> {
        let from = self.position();
        let mut text = String::new();
        while text.len() <= "function".len() {
            match self.peek() {
                Some(c) if !is_meta(c) => {
                    self.next();
                    text.push(c);
                }
                _ => break,
            }
        }
        self.rewind(from);
        RESERVED.into_iter().find(|word| *word == text)
    }

    pub(super) fn take_reserved(&mut self, word: &str) -> bool {
        let found = self.peek_reserved() == Some(word);
        if found {
            word.chars().for_each(|_| {
                self.next();
            });
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Read<()> {
        self.skip_lines()?;
        if self.take_reserved(word) {
            Ok(())
        } else {
            Err(Unreadable::Syntax("a compound command without its end"))
        }
    }

    /// Reads pipelines joined by `&&` and `||`.
    fn list(&mut self, statements: &mut Vec<Statement>) -> Read<()> {
        loop {
            statements.push(self.pipeline()?);
            self.skip_blanks();
            let next = (self.peek(), self.peek_second());
            if !matches!(next, (Some('&'), Some('&')) | (Some('|'), Some('|'))) {
                return Ok(());
            }
            self.next();
            self.next();
            self.skip_lines()?;
        }
    }

    fn pipeline(&mut self) -> Read<Statement> {
        self.skip_blanks();
        while self.take_reserved("!") {
            self.note("a negation");
            self.skip_blanks();
        }
        let mut stages = Vec::new();
        loop {
            stages.push(self.nested(Self::stage)?);
            self.skip_blanks();
            if self.peek() != Some('|') || self.peek_second() == Some('|') {
                return Ok(Statement {
                    stages,
                    background: false,
                });
            }
            self.next();
            if self.take('&') {
                self.note("a pipe that carries errors");
            }
            self.skip_lines()?;
        }
    }

    pub(super) fn stage(&mut self) -> Read<Stage> {
        self.skip_blanks();
        if self.peek() == Some('(') {
            self.note("a subshell");
            self.next();
            return self.parenthesised();
        }
        let Some(word) = self.peek_reserved() else {
            return self.simple();
        };
        self.note("control flow");
        match word {
            "{" => {
                self.take_reserved("{");
                let body = self.script(&["}"])?;
                self.expect("}")?;
                self.compound(CompoundKind::Group, body)
            }
            "if" => self.conditional(),
            "while" | "until" => {
                self.take_reserved(word);
                let mut body = self.script(&["do"])?;
                self.do_group(&mut body)?;
                self.compound(CompoundKind::Loop, body)
            }
            "for" | "select" => {
                self.take_reserved(word);
                self.each()
            }
            "case" => self.case(),
            "function" => {
                self.take_reserved("function");
                self.skip_blanks();
                let name = self.word()?.unwrap_or_default().source;
                self.function(name)
            }
            "[[" => self.condition(),
            "coproc" => {
                self.take_reserved("coproc");
                let stage = self.nested(Self::stage)?;
                let statements = vec![Statement {
                    stages: vec![stage],
                    background: true,
                }];
                Ok(Stage::Compound(Compound {
                    kind: CompoundKind::Coprocess,
                    body: Script { statements },
                    redirects: Vec::new(),
                }))
            }
            _ => Err(Unreadable::Syntax("a reserved word out of place")),
        }
    }

    fn simple(&mut self) -> Read<Stage> {
        let mut simple = Simple::default();
        let mut any = false;
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                any = true;
                continue;
            }
            let Some(mut word) = self.word()? else { break };
            any = true;
            if has_braces(&word.atoms) {
                self.note("a brace expansion");
            }
            if self.peek() == Some('(') && word.atoms.last().and_then(Atom::bare) == Some('=') {
                self.array(&mut word)?;
            }
            if simple.words.is_empty() {
                self.skip_blanks();
                if self.peek() == Some('(') && simple.assignments.is_empty() {
                    return match word.bare().as_deref() {
                        Some("time") => self.nested(Self::stage),
                        _ => self.function(word.source),
                    };
                }
                match assignment(word) {
                    Ok(assignment) => {
                        self.note("an assignment");
                        simple.assignments.push(assignment);
                        continue;
                    }
                    Err(other) => word = other,
                }
                // `time` may stand before any pipeline, a compound command included.
                if word.bare().as_deref() == Some("time") && self.peek_reserved().is_some() {
                    return self.nested(Self::stage);
                }
            }
            simple.words.push(word);
        }
        if any {
            Ok(Stage::Simple(simple))
        } else {
            Err(Unreadable::Syntax("an operator without its command"))
        }
    }

    /// Reads the elements of an array; they become one value, blanks between them.
    fn array(&mut self, word: &mut Token) -> Read<()> {
        self.note("an array");
        self.next();
        loop {
            self.skip_lines()?;
            if self.take(')') {
                return Ok(());
            }
            let Some(mut element) = self.word()? else {
                return Err(Unreadable::Syntax("an open array"));
            };
            word.atoms.append(&mut element.atoms);
            word.atoms.push(Atom::Char {
                value: ' ',
                quoted: true,
            });
        }
    }
}

/// Takes `name=value` apart; gives back any other word.
fn assignment(word: Token) -> Result<Assignment, Token> {
    let mut name = String::new();
    let mut subscript = 0_usize;
    let mut end = None;
    for (index, atom) in word.atoms.iter().enumerate() {
        match (subscript, atom.bare()) {
            (0, Some('=')) if !name.is_empty() => {
                end = Some(index);
                break;
            }
            (0, Some('+')) if !name.is_empty() && !name.ends_with('+') => name.push('+'),
            (_, Some('[')) if !name.is_empty() => subscript += 1,
            (1.., Some(']')) => subscript -= 1,
            (0, Some(c)) if c == '_' || c.is_ascii_alphabetic() => name.push(c),
            (0, Some(c)) if c.is_ascii_digit() && !name.is_empty() => name.push(c),
            (1.., _) => {}
            _ => return Err(word),
        }
    }
    let Some(end) = end else { return Err(word) };
    let mut atoms = word.atoms;
    let mut value = atoms.split_off(end + 1);
    if atoms.iter().any(|atom| !matches!(atom, Atom::Char { .. })) {
        // What is nested in a subscript runs as well.
        value.push(Atom::Opaque {
            inner: atoms,
            quoted: true,
        });
    }
    Ok(Assignment {
        appends: name.ends_with('+'),
        name: name.trim_end_matches('+').to_owned(),
        value: Token {
            source: word.source,
            atoms: value,
        },
    })
}
