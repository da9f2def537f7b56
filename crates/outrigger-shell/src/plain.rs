//! Reads the part of bash that may be called safe: commands of words, joined by pipes and lists.
//!
//! Whatever is outside of it ends the reading with the name of the construct; [`super::tree`] reads the whole language.

use super::types::{Atom, Redirect, Script, Stage, Statement, Token, has_braces};

const RESERVED: [&str; 21] = [
    "if", "then", "elif", "else", "fi", "for", "select", "while", "until", "do", "done", "case",
    "esac", "in", "function", "{", "}", "!", "[[", "]]", "coproc",
];

const META: &str = " \t\n;&|<>()";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outside {
    Construct(&'static str),
    /// Bash would refuse it: it has this.
    Syntax(&'static str),
}

type Parsed<T> = Result<T, Outside>;

fn outside<T>(construct: &'static str) -> Parsed<T> {
    Err(Outside::Construct(construct))
}

fn syntax<T>(what: &'static str) -> Parsed<T> {
    Err(Outside::Syntax(what))
}

pub(super) struct Reader<'t> {
    rest: &'t str,
}

pub(super) fn is_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

pub(super) fn read(text: &str) -> Parsed<Script> {
    let mut reader = Reader::new(text);
    let mut script = Script::default();
    reader.skip_lines();
    while reader.peek().is_some() {
        script.push(reader.pipeline()?);
        reader.separator()?;
    }
    Ok(script)
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text }
    }

    /// Returns the next character behind line continuations, which bash removes before it looks for words.
    pub(super) fn peek(&mut self) -> Option<char> {
        while let Some(rest) = self.rest.strip_prefix("\\\n") {
            self.rest = rest;
        }
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Takes the next character behind line continuations if it is this one.
    fn take(&mut self, expected: char) -> bool {
        self.take_if(|c| c == expected).is_some()
    }

    fn take_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        self.peek().filter(|c| wanted(*c))?;
        self.next()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        std::iter::from_fn(|| self.take_if(&wanted)).collect()
    }

    fn is_followed_by(&mut self, expected: char) -> bool {
        let from = self.rest;
        self.next();
        let found = self.peek() == Some(expected);
        self.rest = from;
        found
    }

    /// Steps over blanks and a comment, but not over the end of the line.
    pub(super) fn skip_blanks(&mut self) {
        while self.take_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        if self.peek() == Some('#') {
            // A backslash does not carry a comment to the next line.
            self.rest = self.rest.trim_start_matches(|c| c != '\n');
        }
    }

    /// Steps over blanks, comments and ends of lines.
    fn skip_lines(&mut self) {
        self.skip_blanks();
        while self.take('\n') {
            self.skip_blanks();
        }
    }

    /// Reads what stands between two pipelines, or the end.
    fn separator(&mut self) -> Parsed<()> {
        self.skip_blanks();
        match self.peek() {
            Some(';') => {
                self.next();
                if matches!(self.peek(), Some(';' | '&')) {
                    return syntax("a stray `;;`");
                }
            }
            Some(joint @ ('&' | '|')) => {
                self.next();
                if !self.take(joint) {
                    return outside("a background job");
                }
                self.skip_lines();
                if self.peek().is_none() {
                    return syntax("an operator without its command");
                }
            }
            Some('(' | ')') => return syntax("a stray parenthesis"),
            _ => {}
        }
        self.skip_lines();
        Ok(())
    }

    fn pipeline(&mut self) -> Parsed<Statement> {
        let mut statement = Statement::of([self.command()?]);
        loop {
            self.skip_blanks();
            if self.peek() != Some('|') || self.is_followed_by('|') {
                return Ok(statement);
            }
            self.next();
            if self.take('&') {
                return outside("a pipe that carries errors");
            }
            self.skip_lines();
            statement.stages.push(self.command()?);
        }
    }

    fn command(&mut self) -> Parsed<Stage> {
        let mut simple = Stage::default();
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            let first = simple.words.is_empty();
            if self.peek() == Some('(') && simple.words.len() < 2 {
                return outside(if first { "a subshell" } else { "a function" });
            }
            let Some(word) = self.word()? else { break };
            if has_braces(&word.atoms) {
                return outside("a brace expansion");
            }
            if self.peek() == Some('(') {
                let array = word.atoms.last().and_then(Atom::bare) == Some('=');
                return outside(if array { "an array" } else { "a function" });
            }
            if first {
                check_first(&word)?;
            }
            simple.words.push(word);
        }
        match (simple.words.is_empty(), simple.redirects.is_empty()) {
            (true, true) => syntax("an operator without its command"),
            (true, false) => outside("a redirection without a command"),
            (false, _) => Ok(simple),
        }
    }

    /// Reads one word; `None` where an operator or the end comes first.
    pub(super) fn word(&mut self) -> Parsed<Option<Token>> {
        self.peek();
        let from = self.rest;
        let mut atoms = Vec::new();
        while let Some(c) = self.peek() {
            if matches!(c, '<' | '>') && self.is_followed_by('(') {
                return outside("a process substitution");
            }
            if META.contains(c) {
                break;
            }
            self.next();
            match c {
                '\\' => match self.next() {
                    Some(c) => Atom::quote(c, &mut atoms),
                    None => return syntax("a backslash at the end"),
                },
                '\'' => {
                    let Some((text, rest)) = self.rest.split_once('\'') else {
                        return syntax("an open single quote");
                    };
                    atoms.push(Atom::Quoted(text.to_owned()));
                    self.rest = rest;
                }
                '"' => self.double_quoted(&mut atoms)?,
                '$' => atoms.push(self.dollar(false)?),
                '`' => return outside("a substitution"),
                c => atoms.push(Atom::Bare(c)),
            }
        }
        // By its length: compared with the rest for each word, a text takes time quadratic in its length.
        let source = from.get(..from.len() - self.rest.len());
        let source = source.unwrap_or_default();
        let source = source.replace("\\\n", "");
        Ok((!atoms.is_empty()).then_some(Token { atoms, source }))
    }

    fn double_quoted(&mut self, atoms: &mut Vec<Atom>) -> Parsed<()> {
        atoms.push(Atom::Quoted(String::new()));
        while let Some(c) = self.take_if(|_| true) {
            match c {
                '"' => return Ok(()),
                '$' => atoms.push(self.dollar(true)?),
                '`' => return outside("a substitution"),
                '\\' if self.rest.starts_with(['$', '`', '\\', '"']) => {
                    Atom::quote(self.next().unwrap_or(c), atoms);
                }
                c => Atom::quote(c, atoms),
            }
        }
        syntax("an open double quote")
    }

    /// Reads what follows a `$`: a name, with or without braces, or nothing.
    fn dollar(&mut self, quoted: bool) -> Parsed<Atom> {
        match self.peek() {
            Some('\'') if !quoted => outside("ANSI-C quoting"),
            Some('"') if !quoted => outside("a translated string"),
            Some('(') => outside("a substitution"),
            Some('[') => outside("an arithmetic expansion"),
            Some('{') => {
                self.next();
                let name = self.take_while(is_name);
                if name.is_empty() || !self.take('}') {
                    return outside("a parameter expansion with an operator");
                }
                Ok(Atom::parameter(name, quoted))
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.next();
                Ok(Atom::parameter(c, quoted))
            }
            Some(c) if is_name(c) => Ok(Atom::parameter(self.take_while(is_name), quoted)),
            _ => Ok(Atom::Quoted("$".to_owned())),
        }
    }

    fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        self.peek();
        let from = self.rest;
        let descriptor = self.take_while(|c| c.is_ascii_digit());
        let both = descriptor.is_empty() && self.peek() == Some('&') && self.is_followed_by('>');
        if both {
            self.next();
        }
        let direction = self.peek();
        if !matches!(direction, Some('<' | '>')) || self.is_followed_by('(') {
            self.rest = from;
            return Ok(None);
        }
        self.next();
        if direction == Some('<') {
            return self.reads(&descriptor).map(Some);
        }
        let duplicates = !both && self.take('&');
        if !duplicates && !self.take('>') {
            self.take('|');
        }
        let target = self.target()?;
        let text = target.literal().unwrap_or_default();
        if duplicates && !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) {
            return Ok(Some(Redirect::Duplicate));
        }
        if duplicates || text != "/dev/null" || !matches!(descriptor.as_str(), "" | "1" | "2") {
            return outside("a redirection that writes");
        }
        Ok(Some(Redirect::Write(target)))
    }

    fn reads(&mut self, descriptor: &str) -> Parsed<Redirect> {
        if self.take('&') {
            return outside("a change of descriptors");
        }
        if self.take('>') {
            return outside("a redirection that writes");
        }
        if self.take('<') {
            return outside("a here-document or here-string");
        }
        let target = self.target()?;
        if target.literal().is_none() || !matches!(descriptor, "" | "0") {
            return outside("a redirection that expands");
        }
        Ok(Redirect::Read(target))
    }

    fn target(&mut self) -> Parsed<Token> {
        self.skip_blanks();
        self.word()?
            .ok_or(Outside::Syntax("a redirection without its file"))
    }
}

fn check_first(word: &Token) -> Parsed<()> {
    let bare = word.bare().unwrap_or_default();
    match bare.as_str() {
        "!" => outside("a negation"),
        bare if RESERVED.contains(&bare) => outside("control flow"),
        _ if is_assignment(word) => outside("an assignment"),
        _ => Ok(()),
    }
}

/// Whether the word is `name=value`, `name+=value` or `name[subscript]=value`.
fn is_assignment(word: &Token) -> bool {
    let text: String = word.atoms.iter().map_while(Atom::bare).collect();
    let rest = text.trim_start_matches(is_name);
    let subscript = rest.is_empty() || rest.starts_with('[');
    let has = |c| word.atoms.iter().any(|atom| atom.bare() == Some(c));
    rest.len() < text.len()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && (rest.starts_with('=') || rest.starts_with("+=") || subscript && has('[') && has('='))
}
