//! Reads all of bash with tree-sitter-bash: every command at every depth, for the rules about harm.
//!
//! A line is called safe only if [`super::plain`] sees the same words in it.

use std::cell::OnceCell;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::ansi::unescape;
use super::plain::is_name;
use super::types::{
    Assignment, Atom, Compound, CompoundKind, Operator, Redirect, Script, Simple, Stage, Statement,
    Token,
};

/// Deepest nesting that is followed: a group, a substitution and a string in it are one step each.
pub(super) const MAX_NESTING: usize = 64;

/// How often tree-sitter may report progress (every hundred steps) however short the text is.
const CHECKS_AT_LEAST: usize = 1_000;

/// And once more for so many bytes. Error recovery may take time quadratic in the text: it is counted, not timed.
const BYTES_PER_CHECK: usize = 16;

/// What was read of a text.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) script: Script,
    /// Why that may not be all that bash would run.
    pub(super) fault: Option<Fault>,
}

/// Why a text was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Syntax,
    TooDeep,
}

/// Reads a text that a shell would run.
///
/// Two readings where a line with a `#` is continued: a comment does not go on, everything else does.
pub(super) fn readings(text: &str) -> Vec<Reading> {
    if !text.contains("\\\n") {
        return vec![read(text)];
    }
    let (mut joined, mut split) = (String::new(), String::new());
    for line in text.split_inclusive('\n') {
        let head = line.strip_suffix('\n').unwrap_or(line);
        let bare = head.trim_end_matches('\\');
        let continues = head.len() < line.len() && (head.len() - bare.len()) % 2 == 1;
        let whole = if continues {
            head.strip_suffix('\\').unwrap_or(head)
        } else {
            line
        };
        joined.push_str(whole);
        split.push_str(if line.contains('#') { line } else { whole });
    }
    let mut readings = vec![read(&joined)];
    if split != joined {
        readings.push(read(&split));
    }
    readings
}

fn read(text: &str) -> Reading {
    let Some(tree) = parse(text) else {
        return Reading {
            fault: Some(Fault::Syntax),
            ..Reading::default()
        };
    };
    let mut builder = Builder {
        text,
        fault: tree.root_node().has_error().then_some(Fault::Syntax),
        depth: 0,
    };
    let statements = builder.statements(tree.root_node());
    Reading {
        script: Script { statements },
        fault: builder.fault,
    }
}

/// Parses the text; `None` if that takes too many steps, or the grammar cannot be loaded.
fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    let mut checks = CHECKS_AT_LEAST + text.len() / BYTES_PER_CHECK;
    let mut progress = |_: &ParseState| {
        checks = checks.saturating_sub(1);
        if checks == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let ascii = adapted(text);
    let mut input = |at: usize, _| ascii.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut input, None, Some(options))
}

/// Returns the text as the grammar reads it right, byte for byte; the words are taken from the text itself.
///
/// The scanner of tree-sitter-bash 0.25.1 looks code points up in a table of 256 (`isdigit` in scanner.c), so `{` before a
/// distant one reads foreign memory. To bash they are letters, and so are carriage returns and their like. A line that
/// begins with a backslash is taken for a part of the line before, and `! {`, `time {`, `coproc {` for commands.
fn adapted(text: &str) -> Vec<u8> {
    let letter = |byte: u8| match byte {
        b'\n' | b'\t' => byte,
        byte if byte.is_ascii() && !byte.is_ascii_control() => byte,
        _ => b'x',
    };
    let mut bytes: Vec<u8> = text.bytes().map(letter).collect();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        let start = blanks.count();
        let word = rest.get(start..).unwrap_or_default();
        let new_line = rest.iter().take(start).any(|byte| *byte == b'\n') || at == 0;
        let escaped = word.starts_with(b"\\") && word.get(1).is_some_and(u8::is_ascii_alphanumeric);
        let blanked = before_compound(word);
        if let Some(byte) = bytes.get_mut(at + start).filter(|_| escaped && new_line) {
            *byte = b'x';
        }
        let keyword = bytes.iter_mut().skip(at + start).take(blanked);
        keyword.for_each(|byte| *byte = b' ');
        let rest = bytes.get(at + start..).unwrap_or_default();
        let ends = |c: &u8| c.is_ascii_whitespace() || b";&|()`".contains(c);
        at += start
            + rest
                .iter()
                .position(ends)
                .map_or(rest.len(), |to| to.max(1));
        // What ends a word is no part of the next one.
        at += usize::from(bytes.get(at).is_some_and(|c| b";&|()`".contains(c)));
    }
    bytes
}

/// Returns how long a keyword is that stands before a compound command; `coproc` may be followed by a name.
fn before_compound(text: &[u8]) -> usize {
    let behind_word = |text: &[u8], from: usize| {
        let rest = text.get(from..).unwrap_or_default().iter();
        let word = rest
            .clone()
            .take_while(|c| !c.is_ascii_whitespace())
            .count();
        let blanks = rest.skip(word).take_while(|c| c.is_ascii_whitespace());
        from + word + blanks.count()
    };
    let keyword = ["! ", "!\t", "time ", "time\t", "coproc ", "coproc\t"]
        .iter()
        .find(|keyword| text.starts_with(keyword.as_bytes()));
    let Some(keyword) = keyword else { return 0 };
    let next = behind_word(text, 0);
    let mut starts = vec![next];
    starts.extend(keyword.starts_with('c').then(|| behind_word(text, next)));
    let begins = |at: &usize| {
        let rest = text.get(*at..).unwrap_or_default();
        COMPOUND
            .iter()
            .any(|start| rest.starts_with(start.as_bytes()))
    };
    starts.into_iter().find(begins).unwrap_or_default()
}

/// How compound commands begin.
const COMPOUND: [&str; 10] = [
    "{ ", "{\n", "{\t", "(", "if ", "for ", "while ", "until ", "case ", "[[ ",
];

/// How the text between the expansions of a word is quoted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Bare,
    Double,
    /// The body of a here-document.
    Here,
}

/// Builds a script from the nodes of a tree.
struct Builder<'t> {
    text: &'t str,
    fault: Option<Fault>,
    depth: usize,
}

impl<'t> Builder<'t> {
    fn source(&self, node: Node<'_>) -> &'t str {
        self.slice(node.byte_range())
    }

    fn slice(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// Runs a step one level deeper; beyond the deepest level it is not run, and nothing is read.
    fn deeper<T: Default>(&mut self, step: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= MAX_NESTING {
            self.fault = Some(Fault::TooDeep);
            return T::default();
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Returns the statements among the children of a node, those of its clauses included.
    fn statements(&mut self, node: Node<'_>) -> Vec<Statement> {
        let mut statements = Vec::new();
        self.deeper(|builder| {
            for child in children(node) {
                builder.statement(child, &mut statements);
            }
        });
        statements
    }

    fn script(&mut self, node: Node<'_>) -> Script {
        Script {
            statements: self.statements(node),
        }
    }

    fn statement(&mut self, node: Node<'_>, statements: &mut Vec<Statement>) {
        match node.kind() {
            "&" => {
                if let Some(last) = statements.last_mut() {
                    last.background = true;
                }
            }
            "list" => {
                // The tree leans to the left: a long list is walked, not recursed into.
                let mut rights = Vec::new();
                let mut left = node;
                while left.kind() == "list" {
                    let parts: Vec<Node<'_>> = children(left).collect();
                    let Some((first, rest)) = parts.split_first() else {
                        break;
                    };
                    rights.extend(rest.iter().rev().copied());
                    left = *first;
                }
                rights.push(left);
                for part in rights.into_iter().rev() {
                    self.deeper(|builder| builder.statement(part, statements));
                }
            }
            "pipeline" => {
                let stages = self.deeper(|builder| builder.stages(node));
                statements.push(Statement::of(stages));
            }
            "redirected_statement" => self.deeper(|builder| builder.redirected(node, statements)),
            "negated_command" | "elif_clause" | "else_clause" | "do_group" | "case_item"
            | "ERROR" => {
                let opaque = self.nested_words(node);
                statements.extend(opaque.map(|stage| Statement::of(vec![stage])));
                statements.append(&mut self.statements(node));
            }
            _ => {
                if let Some(stage) = self.stage(node) {
                    statements.push(Statement::of(vec![stage]));
                }
            }
        }
    }

    fn stages(&mut self, node: Node<'_>) -> Vec<Stage> {
        let mut stages = Vec::new();
        for child in children(node).filter(Node::is_named) {
            let mut inner = Vec::new();
            self.statement(child, &mut inner);
            let plain = inner.len() == 1;
            match inner.pop() {
                Some(statement) if plain => stages.extend(statement.stages),
                Some(last) => {
                    inner.push(last);
                    stages.push(Stage::Compound(Compound::new(CompoundKind::Group, inner)));
                }
                None => {}
            }
        }
        stages
    }

    fn stage(&mut self, node: Node<'_>) -> Option<Stage> {
        let kind = match node.kind() {
            "command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments" => return Some(coprocess(self.simple(node))),
            "test_command" => {
                let mut words = Vec::new();
                self.test_words(node, &mut words);
                return Some(Stage::Simple(tested(words)));
            }
            "function_definition" => return Some(self.function(node)),
            "for_statement" => return Some(self.each(node)),
            "subshell" => CompoundKind::Subshell,
            "while_statement" | "c_style_for_statement" => CompoundKind::Loop,
            "compound_statement" | "if_statement" | "case_statement" => CompoundKind::Group,
            _ => return None,
        };
        // Words are matched or counted, not run; what is nested in them runs.
        let opaque = self.nested_words(node);
        let mut statements: Vec<Statement> = opaque
            .map(|stage| Statement::of(vec![stage]))
            .into_iter()
            .collect();
        statements.append(&mut self.statements(node));
        Some(Stage::Compound(Compound::new(kind, statements)))
    }

    fn function(&mut self, node: Node<'_>) -> Stage {
        let named = node.child_by_field_name("name");
        let name = named.map_or("", |name| self.source(name)).to_owned();
        let mut body = self.script(node);
        let (mut redirects, mut words, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for child in children(node).filter(|child| child.kind().ends_with("_redirect")) {
            self.redirect(child, &mut redirects, &mut words, &mut after);
        }
        if !redirects.is_empty() {
            let mut group = Compound::new(CompoundKind::Group, body.statements);
            group.redirects = redirects;
            body.statements = vec![Statement::of(vec![Stage::Compound(group)])];
        }
        let body = Rc::new(body);
        Stage::Function { name, body }
    }

    fn each(&mut self, node: Node<'_>) -> Stage {
        let mut variable = String::new();
        let mut words = Vec::new();
        for child in children(node) {
            if child.kind() == "variable_name" {
                self.source(child).clone_into(&mut variable);
            } else if is_word(child.kind()) {
                words.push(self.token(child));
            }
        }
        let all = children(node).all(|child| child.kind() != "in");
        words.extend(all.then(|| Token {
            atoms: vec![Atom::parameter("@".to_owned(), true)],
            source: "\"$@\"".to_owned(),
        }));
        let statements = self.statements(node);
        let kind = CompoundKind::Each { variable, words };
        Stage::Compound(Compound::new(kind, statements))
    }

    /// Returns a command that does nothing but what is nested in the words of the node.
    fn nested_words(&mut self, node: Node<'_>) -> Option<Stage> {
        let mut inner = Vec::new();
        for child in children(node).filter(|child| !is_statement(child.kind())) {
            self.nested(child, &mut inner);
        }
        let value = Token {
            atoms: vec![Atom::Opaque {
                inner,
                quoted: true,
            }],
            source: String::new(),
        };
        let empty =
            matches!(value.atoms.as_slice(), [Atom::Opaque { inner, .. }] if inner.is_empty());
        (!empty).then(|| {
            Stage::Simple(Simple {
                assignments: vec![Assignment {
                    name: String::new(),
                    appends: false,
                    value,
                }],
                ..Simple::default()
            })
        })
    }

    fn redirected(&mut self, node: Node<'_>, statements: &mut Vec<Statement>) {
        let before = statements.len();
        let mut redirects = Vec::new();
        let mut words = Vec::new();
        let mut after = Vec::new();
        for child in children(node).filter(Node::is_named) {
            if child.kind().ends_with("_redirect") {
                self.redirect(child, &mut redirects, &mut words, &mut after);
            } else {
                self.statement(child, statements);
            }
        }
        if statements.len() == before {
            statements.push(Statement::of(vec![Stage::Simple(Simple::default())]));
        }
        if let Some(statement) = statements.last_mut() {
            match statement.stages.last_mut() {
                Some(Stage::Simple(simple)) => {
                    simple.redirects.append(&mut redirects);
                    simple.words.append(&mut words);
                }
                Some(Stage::Compound(compound)) => compound.redirects.append(&mut redirects),
                Some(Stage::Function { .. }) | None => self.fault = Some(Fault::Syntax),
            }
        }
        // What stands behind the start of a here-document: the rest of the pipeline, then of the list.
        for part in after {
            if part.kind() == "pipeline" {
                for child in children(part).filter(Node::is_named) {
                    let mut inner = Vec::new();
                    self.statement(child, &mut inner);
                    let mut inner = inner.into_iter();
                    if let (Some(statement), Some(next)) = (statements.last_mut(), inner.next()) {
                        statement.stages.extend(next.stages);
                    }
                    statements.extend(inner);
                }
            } else {
                self.statement(part, statements);
            }
        }
    }

    /// Reads one redirection, the words that stand behind it, and what a here-document has in its first line.
    fn redirect<'n>(
        &mut self,
        node: Node<'n>,
        redirects: &mut Vec<Redirect>,
        words: &mut Vec<Token>,
        after: &mut Vec<Node<'n>>,
    ) {
        let mut operator = "";
        let mut target = None;
        let mut here = None;
        for child in children(node) {
            let kind = child.kind();
            match kind {
                "heredoc_start" | "heredoc_body" | "heredoc_end" => {
                    here.get_or_insert_with(Vec::new).push(child);
                }
                "file_descriptor" | "\n" => {}
                kind if kind.ends_with("_redirect") => {
                    self.redirect(child, redirects, words, after);
                }
                kind if is_word(kind) => {
                    // The grammar takes words after the file for more files; bash for arguments.
                    let token = self.token(child);
                    if target.is_none() && here.is_none() {
                        target = Some(token);
                    } else {
                        words.push(token);
                    }
                }
                _ if child.is_named() => after.push(child),
                _ if operator.is_empty() => operator = self.source(child),
                _ => {}
            }
        }
        if let Some(parts) = here {
            redirects.push(Redirect::Text(Rc::new(
                self.here_document(operator, &parts),
            )));
            return;
        }
        let Some(target) = target else { return };
        let digits = target.literal().unwrap_or_default();
        let number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '-');
        redirects.push(match operator {
            "<" => Redirect::Read(target),
            "<<<" => Redirect::Text(Rc::new(OnceCell::from(target))),
            "<&" | "<&-" => Redirect::Descriptor(target),
            ">&" | ">&-" if number => Redirect::Duplicate,
            _ => Redirect::Write(target),
        });
    }

    /// Reads the body of a here-document, if it ends where bash ends it.
    fn here_document(&mut self, operator: &str, parts: &[Node<'_>]) -> OnceCell<Token> {
        let part = |kind| parts.iter().find(|part| part.kind() == kind);
        let start = part("heredoc_start").map_or("", |node| self.source(*node));
        let delimiter = start.replace(['\'', '"', '\\'], "");
        let end = part("heredoc_end").map_or("", |node| self.source(*node).trim_start());
        let Some(body) = part("heredoc_body") else {
            return OnceCell::from(Token::quoted(""));
        };
        let text = self.source(*body);
        let strips = operator == "<<-";
        let closes = |line: &str| {
            let line = if strips {
                line.trim_start_matches('\t')
            } else {
                line
            };
            line == delimiter
        };
        if end != delimiter || start.contains('$') || text.lines().any(closes) {
            self.fault = Some(Fault::Syntax);
        }
        if delimiter != start {
            return OnceCell::from(Token::quoted(text));
        }
        let mut atoms = vec![Atom::Empty];
        self.parts(*body, body.byte_range(), Quoting::Here, &mut atoms);
        OnceCell::from(Token {
            atoms,
            source: text.to_owned(),
        })
    }

    fn simple(&mut self, node: Node<'_>) -> Simple {
        let mut simple = Simple::default();
        if node.kind() == "variable_assignment" {
            simple.assignments.push(self.assignment(node));
            return simple;
        }
        let declares = node.kind() != "command";
        for child in children(node) {
            match child.kind() {
                "variable_assignment" if !declares || node.kind() == "variable_assignments" => {
                    let assignment = self.assignment(child);
                    simple.assignments.push(assignment);
                }
                kind if kind.ends_with("_redirect") => {
                    let mut after = Vec::new();
                    self.redirect(child, &mut simple.redirects, &mut simple.words, &mut after);
                }
                "command_name" => match child.named_child(0) {
                    Some(name) => simple.words.push(self.token(name)),
                    None => simple.words.push(self.token(child)),
                },
                "subshell" => self.fault = Some(Fault::Syntax),
                _ => simple.words.push(self.token(child)),
            }
        }
        simple
    }

    fn assignment(&mut self, node: Node<'_>) -> Assignment {
        let mut assignment = Assignment {
            name: String::new(),
            appends: false,
            value: Token {
                atoms: Vec::new(),
                source: self.source(node).to_owned(),
            },
        };
        let mut subscript = Vec::new();
        for child in children(node) {
            match child.kind() {
                "variable_name" if assignment.name.is_empty() => {
                    self.source(child).clone_into(&mut assignment.name);
                }
                "subscript" if assignment.name.is_empty() => {
                    let name = child.child_by_field_name("name");
                    assignment.name = name.map_or("", |name| self.source(name)).to_owned();
                    self.nested(child, &mut subscript);
                }
                "=" => {}
                "+=" => assignment.appends = true,
                _ => self.atoms(child, false, &mut assignment.value.atoms),
            }
        }
        if !subscript.is_empty() {
            // What is nested in a subscript runs as well.
            assignment.value.atoms.push(Atom::Opaque {
                inner: subscript,
                quoted: true,
            });
        }
        assignment
    }

    /// The operators of a test are words, too.
    fn test_words(&mut self, node: Node<'_>, words: &mut Vec<Token>) {
        for child in children(node) {
            if is_word(child.kind()) || child.child_count() == 0 {
                words.push(self.token(child));
            } else {
                self.deeper(|builder| builder.test_words(child, words));
            }
        }
    }

    fn token(&mut self, node: Node<'_>) -> Token {
        let mut atoms = Vec::new();
        self.atoms(node, false, &mut atoms);
        Token {
            atoms,
            source: self.source(node).to_owned(),
        }
    }

    /// Appends what a word, or a part of one, is made of.
    fn atoms(&mut self, node: Node<'_>, quoted: bool, atoms: &mut Vec<Atom>) {
        let text = self.source(node);
        match node.kind() {
            "raw_string" => {
                let inner = text.get(1..text.len().saturating_sub(1));
                atoms.append(&mut Token::quoted(inner.unwrap_or_default()).atoms);
            }
            "ansi_c_string" => {
                let inner = text.get(2..text.len().saturating_sub(1));
                // Bash ends the word's text at a NUL; what is after it is lost.
                let decoded = unescape(inner.unwrap_or_default(), 2);
                let kept = decoded.split('\0').next().unwrap_or_default();
                atoms.append(&mut Token::quoted(kept).atoms);
            }
            "string" => {
                atoms.push(Atom::Empty);
                let range = node.byte_range();
                let inner = range.start + 1..range.end.saturating_sub(1).max(range.start + 1);
                self.deeper(|builder| builder.parts(node, inner, Quoting::Double, atoms));
            }
            "translated_string" => {
                for child in children(node).filter(Node::is_named) {
                    self.atoms(child, quoted, atoms);
                }
            }
            "simple_expansion" => {
                let name = text.strip_prefix('$').unwrap_or_default().to_owned();
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
                for child in children(node) {
                    self.nested(child, &mut inner);
                }
                atoms.push(Atom::Opaque { inner, quoted });
            }
            "array" => {
                for child in children(node).filter(Node::is_named) {
                    self.atoms(child, quoted, atoms);
                    atoms.push(Atom::quoted(' '));
                }
            }
            _ => {
                let quoting = if quoted {
                    Quoting::Double
                } else {
                    Quoting::Bare
                };
                self.deeper(|builder| builder.parts(node, node.byte_range(), quoting, atoms));
            }
        }
    }

    /// `$(…)`: a script, or the file of `$(<file)`.
    fn substituted(&mut self, node: Node<'_>) -> Script {
        let mut statements = Vec::new();
        let mut simple = Simple::default();
        for child in children(node) {
            if child.kind() == "file_redirect" {
                let (mut words, mut after) = (Vec::new(), Vec::new());
                self.redirect(child, &mut simple.redirects, &mut words, &mut after);
            } else {
                self.statement(child, &mut statements);
            }
        }
        if !simple.redirects.is_empty() {
            statements.push(Statement::of(vec![Stage::Simple(simple)]));
        }
        Script { statements }
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
        self.deeper(|builder| {
            let Some(tree) = parse(&text) else {
                builder.fault = Some(Fault::Syntax);
                return Script::default();
            };
            let mut inner = Builder {
                text: &text,
                fault: tree.root_node().has_error().then_some(Fault::Syntax),
                depth: builder.depth,
            };
            let script = inner.script(tree.root_node());
            builder.fault = builder.fault.or(inner.fault);
            script
        })
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
            match (c, chars.peek()) {
                ('\\', Some(_)) if bare => atoms.extend(chars.next().map(Atom::quoted)),
                ('\\', Some('$' | '`' | '\\')) => atoms.extend(chars.next().map(Atom::quoted)),
                ('\\', Some('"')) if quoting == Quoting::Double => {
                    atoms.extend(chars.next().map(Atom::quoted));
                }
                ('$', Some('(' | '{')) | ('`', _) => self.fault = Some(Fault::Syntax),
                ('$', _) => atoms.push(Atom::quoted(c)),
                (value, _) => atoms.push(Atom::Char {
                    value,
                    quoted: !bare,
                }),
            }
        }
    }

    /// Reads `${…}`.
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
        let sign = rest.trim_start_matches(':');
        let operator = match sign.chars().next() {
            Some('-' | '?') => Some(Operator::Otherwise),
            Some('=') => Some(Operator::Assigns),
            Some('+') => Some(Operator::Instead),
            _ => None,
        };
        if let Some(operator) = operator.filter(|_| !name.is_empty() && rest.len() - sign.len() < 2)
        {
            let mut fallback = Vec::new();
            let quoting = if quoted {
                Quoting::Double
            } else {
                Quoting::Bare
            };
            let from = inner.end - sign.len() + 1;
            self.parts(node, from..inner.end, quoting, &mut fallback);
            return Atom::Parameter {
                name,
                operator,
                fallback,
                quoted,
            };
        }
        let mut nested = Vec::new();
        for child in children(node) {
            self.nested(child, &mut nested);
        }
        Atom::Opaque {
            inner: nested,
            quoted,
        }
    }

    /// Appends every expansion at any depth of a node.
    fn nested(&mut self, node: Node<'_>, atoms: &mut Vec<Atom>) {
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
                // The grammar does not look into patterns.
                "regex" | "extglob_pattern"
                    if ["`", "$("].iter().any(|it| self.source(node).contains(it)) =>
                {
                    self.fault = Some(Fault::Syntax);
                }
                _ => open.extend(children(node)),
            }
        }
    }
}

/// To `[` the signs for greater and less are redirections.
fn tested(words: Vec<Token>) -> Simple {
    let mut simple = Simple::default();
    let single = words.first().is_some_and(|word| word.source == "[");
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let target = match word.source.as_str() {
            "<" | ">" | ">>" if single => words.next(),
            _ => None,
        };
        match target {
            Some(target) if word.source == "<" => simple.redirects.push(Redirect::Read(target)),
            Some(target) => simple.redirects.push(Redirect::Write(target)),
            None => simple.words.push(word),
        }
    }
    simple
}

/// The grammar takes `coproc` for a program.
fn coprocess(mut simple: Simple) -> Stage {
    if simple
        .words
        .first()
        .is_none_or(|word| word.source != "coproc")
    {
        return Stage::Simple(simple);
    }
    simple.words.remove(0);
    let mut statement = Statement::of(vec![Stage::Simple(simple)]);
    statement.background = true;
    Stage::Compound(Compound::new(CompoundKind::Coprocess, vec![statement]))
}

/// Returns the children of a node; asking for them one by one would take quadratic time.
fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
    children.into_iter()
}

/// Whether a node is a part of a word that stands for something else than its text.
fn is_part(kind: &str) -> bool {
    matches!(
        kind,
        "string"
            | "raw_string"
            | "ansi_c_string"
            | "translated_string"
            | "concatenation"
            | "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "array"
    )
}

fn is_word(kind: &str) -> bool {
    is_part(kind) || matches!(kind, "word" | "number" | "brace_expression")
}

fn is_statement(kind: &str) -> bool {
    kind.ends_with("_statement")
        || kind.ends_with("_command")
        || matches!(
            kind,
            "command"
                | "list"
                | "pipeline"
                | "subshell"
                | "function_definition"
                | "variable_assignment"
                | "variable_assignments"
                | "elif_clause"
                | "else_clause"
                | "do_group"
                | "case_item"
        )
}
