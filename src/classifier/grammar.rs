//! Reads statements as bash reads them: lists, pipelines, compound commands, redirections.
//!
//! A text that is not a whole script is an error; what is then done with it is decided in
//! [`super::walk`]. Words are read in [`super::reader`].

use std::cell::OnceCell;
use std::rc::Rc;

use super::reader::{Pending, Reader, Unreadable, is_meta};
use super::script::{
    Assignment, Atom, Compound, CompoundKind, Redirect, Script, Simple, Stage, Statement, Token,
    has_braces,
};

const RESERVED: [&str; 21] = [
    "if", "then", "elif", "else", "fi", "for", "select", "while", "until", "do", "done", "case",
    "esac", "in", "function", "{", "}", "!", "[[", "]]", "coproc",
];

type Read<T> = Result<T, Unreadable>;

impl Reader {
    /// Reads the text to its end.
    pub(super) fn whole_script(&mut self) -> Read<Script> {
        let script = self.script(&[])?;
        if !self.pending.is_empty() {
            self.here_documents()?;
        }
        Ok(script)
    }

    /// Reads statements up to one of these words or operators, which is left where it is.
    pub(super) fn script(&mut self, ends: &[&str]) -> Read<Script> {
        let mut script = Script::default();
        loop {
            self.skip_lines()?;
            if self.at_end(ends) {
                return Ok(script);
            }
            self.list(&mut script.statements)?;
            self.skip_blanks();
            match (self.peek(), self.peek_second()) {
                (Some(';'), Some(';' | '&')) if ends.contains(&";;") => return Ok(script),
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
    fn skip_lines(&mut self) -> Read<()> {
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

    fn take_reserved(&mut self, word: &str) -> bool {
        let found = self.peek_reserved() == Some(word);
        if found {
            word.chars().for_each(|_| {
                self.next();
            });
        }
        found
    }

    fn expect(&mut self, word: &str) -> Read<()> {
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
            let joined = match (self.peek(), self.peek_second()) {
                (Some('&'), Some('&')) => true,
                (Some('|'), Some('|')) => true,
                _ => false,
            };
            if !joined {
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

    fn stage(&mut self) -> Read<Stage> {
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
                self.stage()
            }
            _ => Err(Unreadable::Syntax("a reserved word out of place")),
        }
    }

    /// Reads a subshell or an arithmetic command after its first parenthesis.
    fn parenthesised(&mut self) -> Read<Stage> {
        if self.peek() == Some('(') && self.closes_as_arithmetic() {
            self.next();
            return Ok(opaque(self.arithmetic()?));
        }
        let body = self.script(&[")"])?;
        if body.statements.is_empty() || !self.take(')') {
            return Err(Unreadable::Syntax("an open parenthesis"));
        }
        self.compound(CompoundKind::Subshell, body)
    }

    fn compound(&mut self, kind: CompoundKind, body: Script) -> Read<Stage> {
        let mut redirects = Vec::new();
        self.skip_blanks();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
            self.skip_blanks();
        }
        Ok(Stage::Compound(Compound {
            kind,
            body,
            redirects,
        }))
    }

    fn conditional(&mut self) -> Read<Stage> {
        self.take_reserved("if");
        let mut body = self.script(&["then"])?;
        loop {
            self.expect("then")?;
            body.statements
                .append(&mut self.script(&["elif", "else", "fi"])?.statements);
            if !self.take_reserved("elif") {
                break;
            }
            body.statements
                .append(&mut self.script(&["then"])?.statements);
        }
        if self.take_reserved("else") {
            body.statements
                .append(&mut self.script(&["fi"])?.statements);
        }
        self.expect("fi")?;
        self.compound(CompoundKind::Group, body)
    }

    fn do_group(&mut self, body: &mut Script) -> Read<()> {
        self.skip_lines()?;
        let end = if self.take_reserved("{") { "}" } else { "done" };
        if end == "done" {
            self.expect("do")?;
        }
        body.statements.append(&mut self.script(&[end])?.statements);
        self.expect(end)
    }

    fn each(&mut self) -> Read<Stage> {
        self.skip_blanks();
        let mut body = Script::default();
        if self.peek() == Some('(') && self.peek_second() == Some('(') {
            self.next();
            self.next();
            body.statements.push(opaque_statement(self.arithmetic()?));
            self.skip_blanks();
            self.take(';');
            self.do_group(&mut body)?;
            return self.compound(CompoundKind::Loop, body);
        }
        let variable = self.word()?.unwrap_or_default().source;
        let mut words = Vec::new();
        self.skip_lines()?;
        if self.take_reserved("in") {
            self.skip_blanks();
            while let Some(word) = self.word()? {
                words.push(word);
                self.skip_blanks();
            }
        }
        self.take(';');
        self.do_group(&mut body)?;
        self.compound(CompoundKind::Each { variable, words }, body)
    }

    fn case(&mut self) -> Read<Stage> {
        self.take_reserved("case");
        self.skip_blanks();
        let mut nested = self.word()?.unwrap_or_default().atoms;
        self.expect("in")?;
        let mut body = Script::default();
        loop {
            self.skip_lines()?;
            if self.take_reserved("esac") {
                break;
            }
            self.take('(');
            loop {
                self.skip_blanks();
                nested.extend(self.word()?.unwrap_or_default().atoms);
                self.skip_blanks();
                if !self.take('|') {
                    break;
                }
            }
            if !self.take(')') {
                return Err(Unreadable::Syntax("a `case` without its pattern"));
            }
            body.statements
                .append(&mut self.script(&[";;", "esac"])?.statements);
            while matches!(self.peek(), Some(';' | '&')) {
                self.next();
            }
        }
        // The words are matched, not run; what is nested in them runs.
        body.statements.insert(0, opaque_statement(nested));
        self.compound(CompoundKind::Group, body)
    }

    /// Reads `[[ … ]]` as one command, its operators being words.
    fn condition(&mut self) -> Read<Stage> {
        self.take_reserved("[[");
        let mut words = vec![literal("[[")];
        loop {
            self.skip_lines()?;
            if self.take_reserved("]]") {
                words.push(literal("]]"));
                return Ok(Stage::Simple(Simple {
                    words,
                    ..Simple::default()
                }));
            }
            match self.word()? {
                Some(word) => words.push(word),
                None => match self.next() {
                    Some(c) => words.push(literal(&c.to_string())),
                    None => return Err(Unreadable::Syntax("an open `[[`")),
                },
            }
        }
    }

    fn function(&mut self, name: String) -> Read<Stage> {
        self.note("a function");
        self.skip_blanks();
        if self.take('(') {
            self.skip_blanks();
            if !self.take(')') {
                return Err(Unreadable::Syntax("an open parenthesis"));
            }
        }
        self.skip_lines()?;
        let stage = self.nested(Self::stage)?;
        let statements = vec![Statement {
            stages: vec![stage],
            background: false,
        }];
        Ok(Stage::Function {
            name,
            body: Script { statements },
        })
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

    /// Reads one redirection, if one comes next.
    fn redirect(&mut self) -> Read<Option<Redirect>> {
        let from = self.position();
        let mut descriptor = String::new();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            self.next();
            descriptor.push(digit);
        }
        match (self.peek(), self.peek_second()) {
            (Some('<' | '>'), Some('(')) | (None, _) => {}
            (Some('&'), Some('>')) if descriptor.is_empty() => {
                self.next();
                self.next();
                self.take('>');
                return self.writes(&descriptor).map(Some);
            }
            (Some('<'), _) => {
                self.next();
                return self.reads(&descriptor).map(Some);
            }
            (Some('>'), second) => {
                self.next();
                if second == Some('&') {
                    self.next();
                    return self.duplicates().map(Some);
                }
                if matches!(second, Some('>' | '|')) {
                    self.next();
                }
                return self.writes(&descriptor).map(Some);
            }
            _ => {}
        }
        self.rewind(from);
        Ok(None)
    }

    fn target(&mut self) -> Read<Token> {
        self.skip_blanks();
        self.word()?
            .ok_or(Unreadable::Syntax("a redirection without its file"))
    }

    fn writes(&mut self, descriptor: &str) -> Read<Redirect> {
        let target = self.target()?;
        let discards = target.literal().as_deref() == Some("/dev/null");
        if !discards || !matches!(descriptor, "" | "1" | "2") {
            self.note("a redirection that writes");
        }
        Ok(Redirect::Write(target))
    }

    fn duplicates(&mut self) -> Read<Redirect> {
        let target = self.target()?;
        let text = target.literal().unwrap_or_default();
        let digits = text.trim_end_matches('-');
        if !digits.chars().all(|c| c.is_ascii_digit()) || text.is_empty() {
            self.note("a redirection that writes");
            return Ok(Redirect::Write(target));
        }
        if text.ends_with('-') {
            self.note("a change of descriptors");
        }
        Ok(Redirect::Duplicate)
    }

    fn reads(&mut self, descriptor: &str) -> Read<Redirect> {
        match self.peek() {
            Some('<') => {
                self.next();
                self.here()
            }
            Some('&') => {
                self.next();
                self.note("a change of descriptors");
                self.target()?;
                Ok(Redirect::Duplicate)
            }
            Some('>') => {
                self.next();
                self.note("a redirection that writes");
                Ok(Redirect::Write(self.target()?))
            }
            _ => {
                let target = self.target()?;
                if target.literal().is_none() || !matches!(descriptor, "" | "0") {
                    self.note("a redirection that expands");
                }
                Ok(Redirect::Read(target))
            }
        }
    }

    /// Reads a here-string, or the start of a here-document after `<<`.
    fn here(&mut self) -> Read<Redirect> {
        if self.take('<') {
            self.note("a here-string");
            return Ok(Redirect::Text(Rc::new(OnceCell::from(self.target()?))));
        }
        let strip_tabs = self.take('-');
        let token = self.target()?;
        let quoted = token.bare().is_none();
        let delimiter = token
            .literal()
            .ok_or(Unreadable::Syntax("a here-document with a dynamic end"))?;
        let body = Rc::new(OnceCell::new());
        self.pending.push(Pending {
            delimiter,
            quoted,
            strip_tabs,
            body: Rc::clone(&body),
        });
        Ok(Redirect::Text(body))
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
        name: name.trim_end_matches('+').to_owned(),
        value: Token {
            source: word.source,
            atoms: value,
        },
    })
}

fn literal(text: &str) -> Token {
    Token {
        atoms: text
            .chars()
            .map(|value| Atom::Char {
                value,
                quoted: true,
            })
            .collect(),
        source: text.to_owned(),
    }
}

/// A command of which only what is nested in it runs.
fn opaque(inner: Vec<Atom>) -> Stage {
    let atoms = vec![Atom::Opaque {
        inner,
        quoted: true,
    }];
    Stage::Simple(Simple {
        assignments: vec![Assignment {
            name: String::new(),
            value: Token {
                atoms,
                source: String::new(),
            },
        }],
        ..Simple::default()
    })
}

fn opaque_statement(inner: Vec<Atom>) -> Statement {
    Statement {
        stages: vec![opaque(inner)],
        background: false,
    }
}
