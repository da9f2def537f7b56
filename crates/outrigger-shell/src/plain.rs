//! Reads the part of bash that may be called safe: commands of words, joined by pipes and lists.
//!
//! Whatever is outside of it ends the reading with the name of the construct; [`super::tree`] reads the whole language.

use std::cell::OnceCell;
use std::rc::Rc;

use super::types::{Atom, Redirect, Script, Simple, Stage, Statement, Token, has_braces};

const RESERVED: [&str; 21] = [
    "if", "then", "elif", "else", "fi", "for", "select", "while", "until", "do", "done", "case",
    "esac", "in", "function", "{", "}", "!", "[[", "]]", "coproc",
];

/// Why a text is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outside {
    /// It has this construct.
    Construct(&'static str),
    /// Bash would refuse it: it has this.
    Syntax(&'static str),
}

type Read<T> = Result<T, Outside>;

fn outside<T>(construct: &'static str) -> Read<T> {
    Err(Outside::Construct(construct))
}

/// A here-document whose lines have not come yet.
struct Pending {
    delimiter: String,
    strip_tabs: bool,
    body: Rc<OnceCell<Token>>,
}

/// A position in a text.
pub(super) struct Reader {
    chars: Vec<char>,
    position: usize,
    pending: Vec<Pending>,
}

/// Whether the character ends a bare word.
fn is_meta(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'
    )
}

pub(super) fn is_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

/// Reads a whole text.
pub(super) fn read(text: &str) -> Read<Script> {
    let mut reader = Reader::new(text);
    let mut script = Script::default();
    reader.skip_lines()?;
    while reader.peek().is_some() {
        script.statements.push(reader.pipeline()?);
        reader.separator()?;
    }
    if reader.pending.is_empty() {
        Ok(script)
    } else {
        outside("a here-document without its end")
    }
}

impl Reader {
    pub(super) fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            position: 0,
            pending: Vec::new(),
        }
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

    fn next_raw(&mut self) -> Option<char> {
        let c = self.raw(0)?;
        self.position += 1;
        Some(c)
    }

    /// Takes the next character if it is this one.
    fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        self.position += usize::from(found);
        found
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

    /// Steps over blanks, comments and ends of lines, reading here-documents as they come.
    fn skip_lines(&mut self) -> Read<()> {
        self.skip_blanks();
        while self.take('\n') {
            self.here_documents()?;
            self.skip_blanks();
        }
        Ok(())
    }

    /// Reads what stands between two pipelines, or the end.
    fn separator(&mut self) -> Read<()> {
        self.skip_blanks();
        match self.peek() {
            Some(';') => {
                self.position += 1;
                if matches!(self.peek(), Some(';' | '&')) {
                    return Err(Outside::Syntax("a stray `;;`"));
                }
            }
            Some(joint @ ('&' | '|')) => {
                self.position += 1;
                if !self.take(joint) {
                    return outside("a background job");
                }
                self.skip_lines()?;
                if self.peek().is_none() {
                    return Err(Outside::Syntax("an operator without its command"));
                }
            }
            Some('(' | ')') => return Err(Outside::Syntax("a stray parenthesis")),
            _ => {}
        }
        self.skip_lines()
    }

    fn pipeline(&mut self) -> Read<Statement> {
        let mut stages = Vec::new();
        loop {
            stages.push(Stage::Simple(self.command()?));
            self.skip_blanks();
            if self.peek() != Some('|') {
                break;
            }
            self.position += 1;
            if self.peek() == Some('|') {
                self.position -= 1;
                break;
            }
            if self.take('&') {
                return outside("a pipe that carries errors");
            }
            self.skip_lines()?;
        }
        Ok(Statement {
            stages,
            background: false,
        })
    }

    fn command(&mut self) -> Read<Simple> {
        let mut simple = Simple::default();
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            let first = simple.words.is_empty();
            if first && self.peek() == Some('(') {
                return outside("a subshell");
            }
            let Some(word) = self.word()? else {
                if simple.words.len() == 1 && self.peek() == Some('(') {
                    return outside("a function");
                }
                break;
            };
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
            (true, true) => Err(Outside::Syntax("an operator without its command")),
            (true, false) => outside("a redirection without a command"),
            (false, _) => Ok(simple),
        }
    }

    /// Reads one word; `None` where an operator or the end comes first.
    pub(super) fn word(&mut self) -> Read<Option<Token>> {
        self.join_lines();
        let from = self.position;
        let mut atoms = Vec::new();
        while let Some(c) = self.peek() {
            if matches!(c, '<' | '>') && self.after(1) == Some('(') {
                return outside("a process substitution");
            }
            if is_meta(c) {
                break;
            }
            self.position += 1;
            match c {
                '\\' => match self.next_raw() {
                    Some(value) => atoms.push(Atom::quoted(value)),
                    None => return Err(Outside::Syntax("a backslash at the end")),
                },
                '\'' => self.single_quoted(&mut atoms)?,
                '"' => self.double_quoted(&mut atoms)?,
                '$' => self.dollar(&mut atoms, false)?,
                '`' => return outside("a substitution"),
                value => atoms.push(Atom::Char {
                    value,
                    quoted: false,
                }),
            }
        }
        let source = self.chars.get(from..self.position).unwrap_or_default();
        let source = source.iter().collect::<String>().replace("\\\n", "");
        Ok((!atoms.is_empty()).then_some(Token { atoms, source }))
    }

    /// Returns the character that many places on; line continuations on the way are not there.
    fn after(&mut self, places: usize) -> Option<char> {
        let from = self.position;
        for _ in 0..places {
            self.peek();
            self.position += 1;
        }
        let found = self.peek();
        self.position = from;
        found
    }

    fn single_quoted(&mut self, atoms: &mut Vec<Atom>) -> Read<()> {
        atoms.push(Atom::Empty);
        loop {
            match self.next_raw() {
                Some('\'') => return Ok(()),
                Some(value) => atoms.push(Atom::quoted(value)),
                None => return Err(Outside::Syntax("an open single quote")),
            }
        }
    }

    fn double_quoted(&mut self, atoms: &mut Vec<Atom>) -> Read<()> {
        atoms.push(Atom::Empty);
        loop {
            let next = self.peek();
            self.position += 1;
            match next {
                Some('"') => return Ok(()),
                Some('$') => self.dollar(atoms, true)?,
                Some('`') => return outside("a substitution"),
                Some('\\') => match self.raw(0) {
                    Some(c @ ('$' | '`' | '\\' | '"')) => {
                        self.position += 1;
                        atoms.push(Atom::quoted(c));
                    }
                    _ => atoms.push(Atom::quoted('\\')),
                },
                Some(c) => atoms.push(Atom::quoted(c)),
                None => return Err(Outside::Syntax("an open double quote")),
            }
        }
    }

    /// Reads what follows a `$`: a name, with or without braces, or nothing.
    fn dollar(&mut self, atoms: &mut Vec<Atom>, quoted: bool) -> Read<()> {
        match self.peek() {
            Some('\'') if !quoted => return outside("ANSI-C quoting"),
            Some('"') if !quoted => return outside("a translated string"),
            Some('(') => return outside("a substitution"),
            Some('[') => return outside("an arithmetic expansion"),
            Some('{') => {
                self.position += 1;
                let name = self.name();
                if name.is_empty() || !self.take('}') {
                    return outside("a parameter expansion with an operator");
                }
                atoms.push(Atom::parameter(name, quoted));
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.position += 1;
                atoms.push(Atom::parameter(c.to_string(), quoted));
            }
            Some(c) if is_name(c) => {
                let name = self.name();
                atoms.push(Atom::parameter(name, quoted));
            }
            _ => atoms.push(Atom::quoted('$')),
        }
        Ok(())
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| is_name(*c)) {
            self.position += 1;
            name.push(c);
        }
        name
    }

    /// Reads one redirection, if one comes next.
    fn redirect(&mut self) -> Read<Option<Redirect>> {
        let from = self.position;
        let mut descriptor = String::new();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            self.position += 1;
            descriptor.push(digit);
        }
        let both = descriptor.is_empty() && self.peek() == Some('&') && self.after(1) == Some('>');
        self.position += usize::from(both);
        let direction = self.peek();
        if !matches!(direction, Some('<' | '>')) || self.after(1) == Some('(') {
            self.position = from;
            return Ok(None);
        }
        self.position += 1;
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

    fn reads(&mut self, descriptor: &str) -> Read<Redirect> {
        if self.take('&') {
            return outside("a change of descriptors");
        }
        if self.take('>') {
            return outside("a redirection that writes");
        }
        if self.take('<') {
            return self.here();
        }
        let target = self.target()?;
        if target.literal().is_none() || !matches!(descriptor, "" | "0") {
            return outside("a redirection that expands");
        }
        Ok(Redirect::Read(target))
    }

    fn target(&mut self) -> Read<Token> {
        self.skip_blanks();
        self.word()?
            .ok_or(Outside::Syntax("a redirection without its file"))
    }

    /// Reads the start of a here-document after `<<`.
    fn here(&mut self) -> Read<Redirect> {
        if self.take('<') {
            return outside("a here-string");
        }
        let strip_tabs = self.take('-');
        let token = self.target()?;
        if token.bare().is_some() {
            return outside("a here-document that expands");
        }
        let delimiter = token.literal();
        let delimiter = delimiter.ok_or(Outside::Syntax("a here-document with a dynamic end"))?;
        let body = Rc::new(OnceCell::new());
        self.pending.push(Pending {
            delimiter,
            strip_tabs,
            body: Rc::clone(&body),
        });
        Ok(Redirect::Text(body))
    }

    /// Reads the bodies of the here-documents that began on the line just ended.
    fn here_documents(&mut self) -> Read<()> {
        for document in std::mem::take(&mut self.pending) {
            let mut text = String::new();
            loop {
                let Some(mut line) = self.line() else {
                    return outside("a here-document without its end");
                };
                if document.strip_tabs {
                    line = line.trim_start_matches('\t').to_owned();
                }
                if line == document.delimiter {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            // The cell belongs to this document alone and is still empty.
            drop(document.body.set(Token::quoted(&text)));
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
}

/// Refuses reserved words and assignments.
fn check_first(word: &Token) -> Read<()> {
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
    let bare = word.atoms.iter().map_while(Atom::bare);
    let text: String = bare.take_while(|c| *c != '[').collect();
    let name: String = text.chars().take_while(|c| is_name(*c)).collect();
    let rest = text.get(name.len()..).unwrap_or_default();
    let subscript = rest.is_empty()
        && word.atoms.iter().any(|atom| atom.bare() == Some('['))
        && word.atoms.iter().any(|atom| atom.bare() == Some('='));
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && (rest.starts_with('=') || rest.starts_with("+=") || subscript)
}
