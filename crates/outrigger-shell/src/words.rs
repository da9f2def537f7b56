//! What the words in a tree are made of: quotes, escapes, expansions, here-documents.

use std::ops::Range;

use tree_sitter::Node;

use super::ansi::unescape;
use super::plain::is_name;
use super::tree::{Builder, Fault, children, is_statement, read};
use super::types::{Assignment, Atom, Operator, Script, Stage, Statement, Token};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Bare,
    Double,
    Here,
}

impl Quoting {
    fn of(quoted: bool) -> Self {
        if quoted { Self::Double } else { Self::Bare }
    }
}

impl Builder<'_> {
    /// Reads the body of a here-document, if it ends where bash ends it.
    pub(super) fn here_document(&mut self, operator: &str, parts: &[Node<'_>]) -> Token {
        let part = |kind| parts.iter().find(|part| part.kind() == kind);
        let start = part("heredoc_start").map_or("", |node| self.source(*node));
        let delimiter = start.replace(['\'', '"', '\\'], "");
        let end = part("heredoc_end").map_or("", |node| self.source(*node).trim_start());
        let Some(body) = part("heredoc_body") else {
            return Token::quoted("");
        };
        let text = self.source(*body);
        let tabs: &[char] = if operator == "<<-" { &['\t'] } else { &[] };
        let closes = |line: &str| line.trim_start_matches(tabs) == delimiter;
        if end != delimiter || start.contains('$') || text.lines().any(closes) {
            self.fail(Fault::Syntax);
        }
        let mut token = Token::quoted(if delimiter == start { "" } else { text });
        if delimiter == start {
            self.parts(*body, body.byte_range(), Quoting::Here, &mut token.atoms);
        }
        token
    }

    pub(super) fn assignment(&mut self, node: Node<'_>) -> Assignment {
        let mut assignment = Assignment::default();
        self.source(node).clone_into(&mut assignment.value.source);
        let mut subscript = Vec::new();
        for child in children(node) {
            match child.kind() {
                "variable_name" if assignment.name.is_empty() => {
                    self.source(child).clone_into(&mut assignment.name);
                }
                "subscript" if assignment.name.is_empty() => {
                    assignment.name = self.field(child, "name");
                    self.nested(child, &mut subscript);
                }
                "=" => {}
                "+=" => assignment.appends = true,
                _ => self.atoms(child, false, &mut assignment.value.atoms),
            }
        }
        if !subscript.is_empty() {
            // What is nested in a subscript runs as well.
            let atom = Atom::opaque(subscript, true);
            assignment.value.atoms.push(atom);
        }
        assignment
    }

    pub(super) fn token(&mut self, node: Node<'_>) -> Token {
        let mut atoms = Vec::new();
        self.atoms(node, false, &mut atoms);
        Token {
            atoms,
            source: self.source(node).to_owned(),
        }
    }

    fn atoms(&mut self, node: Node<'_>, quoted: bool, atoms: &mut Vec<Atom>) {
        let text = self.source(node);
        match node.kind() {
            "raw_string" => {
                let inner = text.get(1..text.len().saturating_sub(1));
                atoms.push(Atom::Quoted(inner.unwrap_or_default().to_owned()));
            }
            "ansi_c_string" => {
                let inner = text.get(2..text.len().saturating_sub(1));
                // Bash ends the word's text at a NUL; what is after it is lost.
                let decoded = unescape(inner.unwrap_or_default(), 2);
                let kept = decoded.split('\0').next().unwrap_or_default();
                atoms.push(Atom::Quoted(kept.to_owned()));
            }
            "string" => {
                atoms.push(Atom::Quoted(String::new()));
                let range = node.byte_range();
                let from = range.start + 1;
                let inner = from..range.end.saturating_sub(1).max(from);
                self.deeper(|builder| builder.parts(node, inner, Quoting::Double, atoms));
            }
            "simple_expansion" => {
                let name = text.strip_prefix('$').unwrap_or_default();
                atoms.push(Atom::parameter(name, quoted));
            }
            "expansion" => {
                let atom = self.deeper(|builder| Some(builder.expansion(node, quoted)));
                atoms.extend(atom);
            }
            "command_substitution" => {
                let script = match text.strip_prefix('`') {
                    Some(inner) => self.backquoted(inner, quoted),
                    None => self.deeper(|builder| builder.substituted(node)),
                };
                atoms.push(Atom::Output { script, quoted });
            }
            "process_substitution" => {
                let script = self.script(node);
                let receives = text.starts_with('>');
                atoms.push(Atom::Stream { script, receives });
            }
            "arithmetic_expansion" => {
                let mut inner = Vec::new();
                self.nested(node, &mut inner);
                atoms.push(Atom::opaque(inner, quoted));
            }
            kind @ ("array" | "translated_string") => {
                for child in children(node).filter(Node::is_named) {
                    self.atoms(child, quoted, atoms);
                    if kind == "array" {
                        Atom::quote(' ', atoms);
                    }
                }
            }
            _ => self.deeper(|builder| {
                builder.parts(node, node.byte_range(), Quoting::of(quoted), atoms);
            }),
        }
    }

    /// `$(…)`: a script, or the file of `$(<file)`.
    fn substituted(&mut self, node: Node<'_>) -> Script {
        let mut script = Script::new();
        let mut stage = Stage::default();
        for child in children(node) {
            if child.kind() == "file_redirect" {
                self.redirect(child, &mut stage);
            } else {
                self.statement(child, &mut script);
            }
        }
        if !stage.redirects.is_empty() {
            stage.words.clear();
            script.push(Statement::of([stage]));
        }
        script
    }

    /// The text of backquotes is unescaped once and read as a text of its own.
    fn backquoted(&mut self, inner: &str, quoted: bool) -> Script {
        let mut text = String::new();
        let mut chars = inner.strip_suffix('`').unwrap_or(inner).chars();
        while let Some(c) = chars.next() {
            match (c, chars.clone().next()) {
                ('\\', Some(next)) if "$`\\".contains(next) || quoted && next == '"' => {
                    text.push(next);
                    chars.next();
                }
                _ => text.push(c),
            }
        }
        let reading = self.deeper(|builder| read(&text, builder.depth));
        self.fail(reading.fault);
        reading.script
    }

    /// Appends the expansions in a range of the node's text, and the text between them.
    fn parts(
        &mut self,
        node: Node<'_>,
        range: Range<usize>,
        quoting: Quoting,
        atoms: &mut Vec<Atom>,
    ) {
        let mut at = range.start;
        for child in children(node) {
            if child.start_byte() < at || !is_part(child.kind()) {
                continue;
            }
            self.literal(at..child.start_byte(), quoting, atoms);
            self.atoms(child, quoting != Quoting::Bare, atoms);
            at = child.end_byte();
        }
        self.literal(at..range.end, quoting, atoms);
    }

    /// Appends text without expansions; one that is there all the same was not understood.
    fn literal(&mut self, range: Range<usize>, quoting: Quoting, atoms: &mut Vec<Atom>) {
        let bare = quoting == Quoting::Bare;
        let mut chars = self.slice(range).chars().peekable();
        while let Some(c) = chars.next() {
            let escapes = match chars.peek() {
                Some('$' | '`' | '\\') => true,
                Some('"') => quoting != Quoting::Here,
                next => bare && next.is_some(),
            };
            match (c, chars.peek()) {
                ('\\', _) if escapes => Atom::quote(chars.next().unwrap_or(c), atoms),
                ('$', Some('(' | '{')) | ('`', _) => self.fail(Fault::Syntax),
                _ if bare && c != '$' => atoms.push(Atom::Bare(c)),
                _ => Atom::quote(c, atoms),
            }
        }
    }

    fn expansion(&mut self, node: Node<'_>, quoted: bool) -> Atom {
        let range = node.byte_range();
        let inner = range.start + 2..range.end.saturating_sub(1);
        let text = self.slice(inner.clone());
        let name: String = text.chars().take_while(|c| is_name(*c)).collect();
        let rest = text.get(name.len()..).unwrap_or_default();
        if rest.is_empty() && !name.is_empty() {
            return Atom::parameter(name, quoted);
        }
        if let Some(subscript) = rest.strip_prefix('[').and_then(|it| it.strip_suffix(']'))
            && !name.is_empty()
            && subscript.chars().all(|c| is_name(c) || "@*-$".contains(c))
        {
            let whole = matches!(subscript, "@" | "*");
            let name = if whole { name } else { format!("{name}[]") };
            // All of an array is several words even in quotes.
            return Atom::parameter(name, quoted && !whole);
        }
        if let Some(prompt) = text.strip_suffix("@P") {
            // What the value holds is expanded once more.
            let script = read(&format!("eval \"echo ${{{prompt}}}\""), self.depth).script;
            return Atom::Output { script, quoted };
        }
        let sign = rest.trim_start_matches(':');
        let operator = match sign.chars().next() {
            Some('-' | '?') => Some(Operator::Otherwise),
            Some('=') => Some(Operator::Assigns),
            Some('+') => Some(Operator::Instead),
            _ => None,
        };
        if let Some(operator) = operator.filter(|_| !name.is_empty() && rest.len() - sign.len() < 2)
        {
            let from = inner.end - sign.len() + 1;
            let mut atoms = Vec::new();
            self.parts(node, from..inner.end, Quoting::of(quoted), &mut atoms);
            return Atom::Parameter {
                name,
                operator,
                inner: atoms,
                quoted,
            };
        }
        let mut nested = Vec::new();
        for child in children(node) {
            self.nested(child, &mut nested);
        }
        Atom::opaque(nested, quoted)
    }

    pub(super) fn nested(&mut self, node: Node<'_>, atoms: &mut Vec<Atom>) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match node.kind() {
                "command_substitution"
                | "process_substitution"
                | "simple_expansion"
                | "expansion" => self.atoms(node, true, atoms),
                kind if is_statement(kind) => {
                    let script = self.script(node);
                    atoms.push(Atom::Output {
                        script,
                        quoted: true,
                    });
                }
                // Bash counts with what is quoted here, and runs what is in its subscripts.
                "raw_string" if subscript(self.source(node)).is_some() => self.fail(Fault::Syntax),
                // The grammar does not look into patterns.
                "regex" | "extglob_pattern"
                    if ["`", "$("].iter().any(|it| self.source(node).contains(it)) =>
                {
                    self.fail(Fault::Syntax);
                }
                _ => open.extend(children(node)),
            }
        }
    }
}

/// Returns what is behind a `[` where bash would expand it in a text that it counts with or takes for a name: `a[$(…)]`.
pub(super) fn subscript(text: &str) -> Option<&str> {
    let (_, inside) = text.split_once('[')?;
    Some(inside).filter(|it| it.contains(['$', '`']))
}

/// Whether a node is a part of a word that stands for something else than its text.
fn is_part(kind: &str) -> bool {
    let mut ends = ["string", "expansion", "substitution"].iter();
    ends.any(|end| kind.ends_with(end)) || matches!(kind, "concatenation" | "array")
}

pub(super) fn is_word(kind: &str) -> bool {
    is_part(kind) || matches!(kind, "word" | "number" | "brace_expression")
}
