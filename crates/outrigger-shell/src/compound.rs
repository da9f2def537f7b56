//! Reads compound commands: groups, conditionals, loops, `case`, `[[`, functions.

use super::grammar::Read;
use super::reader::{Reader, Unreadable};
use super::script::{
    Assignment, Atom, Compound, CompoundKind, Operator, Script, Simple, Stage, Statement, Token,
};

impl Reader {
    /// Reads a subshell or an arithmetic command after its first parenthesis.
    pub(super) fn parenthesised(&mut self) -> Read<Stage> {
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

    pub(super) fn compound(&mut self, kind: CompoundKind, body: Script) -> Read<Stage> {
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

    pub(super) fn conditional(&mut self) -> Read<Stage> {
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

    pub(super) fn do_group(&mut self, body: &mut Script) -> Read<()> {
        self.skip_lines()?;
        let end = if self.take_reserved("{") { "}" } else { "done" };
        if end == "done" {
            self.expect("do")?;
        }
        body.statements.append(&mut self.script(&[end])?.statements);
        self.expect(end)
    }

    pub(super) fn each(&mut self) -> Read<Stage> {
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
        } else {
            words.push(all_parameters());
        }
        self.take(';');
        self.do_group(&mut body)?;
        self.compound(CompoundKind::Each { variable, words }, body)
    }

    pub(super) fn case(&mut self) -> Read<Stage> {
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
    pub(super) fn condition(&mut self) -> Read<Stage> {
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

    pub(super) fn function(&mut self, name: String) -> Read<Stage> {
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
            body: std::rc::Rc::new(Script { statements }),
        })
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
            appends: false,
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

/// `"$@"`, which a `for` without words goes through.
fn all_parameters() -> Token {
    Token {
        atoms: vec![Atom::Parameter {
            name: "@".to_owned(),
            operator: Operator::Otherwise,
            fallback: Vec::new(),
            quoted: true,
        }],
        source: "\"$@\"".to_owned(),
    }
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
