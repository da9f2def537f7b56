//! Reads what a `$` or a backquote begins: parameters, substitutions, arithmetic.

use super::reader::{Reader, Unreadable, is_name};
use super::script::{Atom, Operator, Script};

impl Reader {
    /// Reads what follows a `$`.
    pub(super) fn dollar(&mut self, atoms: &mut Vec<Atom>, quoted: bool) -> Result<(), Unreadable> {
        match self.peek() {
            Some('\'') if !quoted => {
                self.advance();
                self.note("ANSI-C quoting");
                super::ansi::ansi_c_quoted(self, atoms)?;
            }
            Some('"') if !quoted => {
                self.advance();
                self.note("a translated string");
                self.double_quoted(atoms)?;
            }
            Some('(') => {
                self.advance();
                self.note("a substitution");
                if self.peek() == Some('(') && self.closes_as_arithmetic() {
                    self.advance();
                    let inner = self.arithmetic()?;
                    atoms.push(Atom::Opaque { inner, quoted });
                } else {
                    let script = self.script_until_paren()?;
                    atoms.push(Atom::Output { script, quoted });
                }
            }
            Some('[') => {
                self.advance();
                self.note("an arithmetic expansion");
                let inner = self.until_bracket()?;
                atoms.push(Atom::Opaque { inner, quoted });
            }
            Some('{') => {
                self.advance();
                let atom = self.braced_parameter(quoted)?;
                atoms.push(atom);
            }
            Some(c) if is_name(c) || matches!(c, '@' | '*' | '#' | '?' | '-' | '$' | '!') => {
                let name = self.parameter_name();
                atoms.push(Atom::Parameter {
                    name,
                    operator: Operator::Otherwise,
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
            self.advance();
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
            self.advance();
            let script = self.script_until_brace()?;
            return Ok(Atom::Output { script, quoted });
        }
        let from = self.position();
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| is_name(*c)) {
            self.advance();
            name.push(c);
        }
        if self.peek() == Some('}') && !name.is_empty() {
            self.advance();
            return Ok(Atom::Parameter {
                name,
                operator: Operator::Otherwise,
                fallback: Vec::new(),
                quoted,
            });
        }
        self.note("a parameter expansion with an operator");
        if let Some(element) = self.element(&name, quoted) {
            return Ok(element);
        }
        let colon = self.take(':');
        let operator = match self.peek() {
            Some('-') => Some(Operator::Otherwise),
            Some('=') => Some(Operator::Assigns),
            Some('+') => Some(Operator::Instead),
            _ => None,
        };
        if let Some(operator) = operator.filter(|_| !name.is_empty()) {
            self.advance();
            let fallback = self.until_brace(quoted)?;
            return Ok(Atom::Parameter {
                name,
                operator,
                fallback,
                quoted,
            });
        }
        if colon && self.peek() == Some('?') {
            self.until_brace(quoted)?;
            return Ok(Atom::Parameter {
                name,
                operator: Operator::Otherwise,
                fallback: Vec::new(),
                quoted,
            });
        }
        self.rewind(from);
        let inner = self.until_brace(quoted)?;
        Ok(Atom::Opaque { inner, quoted })
    }

    /// Reads `[…]}` after the name of an array: all of it, or one element, which may be any.
    ///
    /// Nothing is taken where the subscript is more than a number, a name, `@` or `*`.
    fn element(&mut self, name: &str, quoted: bool) -> Option<Atom> {
        let from = self.position();
        if name.is_empty() || !self.take('[') {
            return None;
        }
        let mut subscript = String::new();
        while let Some(c) = self
            .peek()
            .filter(|c| is_name(*c) || matches!(c, '@' | '*' | '-' | '$'))
        {
            self.advance();
            subscript.push(c);
        }
        if !self.take(']') || !self.take('}') {
            self.rewind(from);
            return None;
        }
        let whole = matches!(subscript.as_str(), "@" | "*");
        Some(Atom::Parameter {
            name: if whole {
                name.to_owned()
            } else {
                format!("{name}[]")
            },
            operator: Operator::Otherwise,
            fallback: Vec::new(),
            // Even in quotes it becomes several words.
            quoted: quoted && !whole,
        })
    }

    /// Reads the operand of a parameter expansion up to its closing brace.
    fn until_brace(&mut self, quoted: bool) -> Result<Vec<Atom>, Unreadable> {
        let mut atoms = Vec::new();
        loop {
            match self.peek() {
                Some('}') => {
                    self.advance();
                    return Ok(atoms);
                }
                Some('\'') if !quoted => {
                    self.advance();
                    self.single_quoted(&mut atoms)?;
                }
                Some('"') => {
                    self.advance();
                    self.double_quoted(&mut atoms)?;
                }
                Some('\\') => {
                    self.advance();
                    if let Some(value) = self.next_in_quotes() {
                        atoms.push(Atom::Char {
                            value,
                            quoted: true,
                        });
                    }
                }
                Some('$' | '`') => self.quoted_char(&mut atoms, true)?,
                Some(value) => {
                    self.advance();
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
        let mut rest = self.rest().peekable();
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
                    self.advance();
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
                    self.advance();
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
    pub(super) fn backquoted(
        &mut self,
        atoms: &mut Vec<Atom>,
        quoted: bool,
    ) -> Result<(), Unreadable> {
        self.note("a substitution");
        let mut text = String::new();
        loop {
            match self.next_in_quotes() {
                Some('`') => break,
                Some('\\') => match self.next_in_quotes() {
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

    pub(super) fn script_until_paren(&mut self) -> Result<Script, Unreadable> {
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
