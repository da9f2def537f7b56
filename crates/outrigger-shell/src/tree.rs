//! Reads all of bash with tree-sitter-bash: every command at every depth, for the rules about harm.
//!
//! A line is called safe only if [`super::plain`] sees the same words in it. What words are made of is in
//! [`super::words`], how the text is parsed in [`super::parse`].

use std::ops::Range;

use tree_sitter::Node;

use super::parse::parse;
use super::types::{Assignment, Atom, CompoundKind, Redirect, Script, Stage, Statement, Token};
use super::words::is_word;

/// Deepest nesting that is followed: a group, a substitution and a string in it are one step each.
pub(super) const MAX_NESTING: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) script: Script,
    /// Why that may not be all that bash would run.
    pub(super) fault: Option<Fault>,
}

/// Why a text was not read to its end, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    Syntax,
    TooDeep,
    /// The parser gave up, so nothing of the text was read.
    TooLong,
}

/// Reads a text that a shell would run.
///
/// Two readings where a line with a `#` is continued: a comment does not go on, everything else does.
pub(super) fn readings(text: &str) -> Vec<Reading> {
    let (mut joined, mut split) = (String::new(), String::new());
    for line in text.split_inclusive('\n') {
        let slashes = |head: &str| head.len() - head.trim_end_matches('\\').len();
        let escapes = |head: &&str| slashes(head).is_multiple_of(2);
        let whole = line.strip_suffix("\\\n").filter(escapes).unwrap_or(line);
        joined.push_str(whole);
        split.push_str(if line.contains('#') { line } else { whole });
    }
    let mut readings = vec![read(&joined, 0)];
    if split != joined {
        readings.push(read(&split, 0));
    }
    readings
}

/// Reads a text that is nested so deeply in another one.
pub(super) fn read(text: &str, depth: usize) -> Reading {
    let Some(tree) = parse(text) else {
        return Reading {
            fault: Some(Fault::TooLong),
            ..Reading::default()
        };
    };
    let mut builder = Builder {
        text,
        fault: tree.root_node().has_error().then_some(Fault::Syntax),
        depth,
    };
    Reading {
        script: builder.script(tree.root_node()),
        fault: builder.fault,
    }
}

pub(super) struct Builder<'t> {
    pub(super) text: &'t str,
    pub(super) fault: Option<Fault>,
    pub(super) depth: usize,
}

impl<'t> Builder<'t> {
    pub(super) fn fail(&mut self, fault: impl Into<Option<Fault>>) {
        self.fault = self.fault.max(fault.into());
    }

    pub(super) fn source(&self, node: Node<'_>) -> &'t str {
        self.slice(node.byte_range())
    }

    pub(super) fn field(&self, node: Node<'_>, name: &str) -> String {
        let field = node.child_by_field_name(name);
        field.map_or("", |field| self.source(field)).to_owned()
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// Runs a step one level deeper; beyond the deepest level it is not run, and nothing is read.
    pub(super) fn deeper<T: Default>(&mut self, step: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= MAX_NESTING {
            self.fail(Fault::TooDeep);
            return T::default();
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Returns the statements among the children of a node, those of its clauses included.
    pub(super) fn script(&mut self, node: Node<'_>) -> Script {
        self.deeper(|builder| {
            let mut statements = Script::new();
            for child in children(node) {
                builder.statement(child, &mut statements);
            }
            statements
        })
    }

    /// Returns the statements of a node behind what is nested in its words: these are matched or counted, not run.
    fn clause(&mut self, node: Node<'_>) -> Script {
        let mut inner = Vec::new();
        for child in children(node).filter(|child| !is_statement(child.kind())) {
            self.nested(child, &mut inner);
        }
        let mut script = Script::new();
        if !inner.is_empty() {
            let mut assignment = Assignment::default();
            assignment.value.atoms.push(Atom::opaque(inner, true));
            let mut stage = Stage::default();
            stage.assignments.push(assignment);
            script.push(Statement::of([stage]));
        }
        script.append(&mut self.script(node));
        script
    }

    pub(super) fn statement(&mut self, node: Node<'_>, statements: &mut Script) {
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
                statements.push(Statement::of([]));
                self.deeper(|builder| builder.pipeline(node, statements));
            }
            "redirected_statement" => self.deeper(|builder| builder.redirected(node, statements)),
            "negated_command" | "elif_clause" | "else_clause" | "do_group" | "case_item"
            | "ERROR" => statements.append(&mut self.clause(node)),
            _ => statements.extend(self.stage(node).map(|it| Statement::of([it]))),
        }
    }

    /// Adds the stages of a pipeline to the last statement.
    ///
    /// The grammar takes `a && b 2>x` before a pipe for one stage. To bash only a command is one: the pipe is `b`'s.
    fn pipeline(&mut self, node: Node<'_>, statements: &mut Script) {
        for child in children(node).filter(Node::is_named) {
            let mut inner = Script::new();
            self.statement(child, &mut inner);
            if inner.len() > 1 && !is_list(child) {
                inner = vec![Statement::of([Stage::compound(CompoundKind::Group, inner)])];
            }
            let mut inner = inner.into_iter();
            if let (Some(last), Some(first)) = (statements.last_mut(), inner.next()) {
                last.stages.extend(first.stages);
            }
            statements.extend(inner);
        }
    }

    fn stage(&mut self, node: Node<'_>) -> Option<Stage> {
        let kind = match node.kind() {
            "command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments" => return Some(self.simple(node)),
            "test_command" => {
                let mut stage = Stage::default();
                self.test_words(node, &mut stage.words);
                return Some(stage);
            }
            "function_definition" => return Some(self.function(node)),
            "for_statement" => return Some(self.each(node)),
            "subshell" => CompoundKind::Subshell,
            "while_statement" | "c_style_for_statement" => CompoundKind::Loop,
            "compound_statement" | "if_statement" | "case_statement" => CompoundKind::Group,
            _ => return None,
        };
        Some(Stage::compound(kind, self.clause(node)))
    }

    fn function(&mut self, node: Node<'_>) -> Stage {
        let mut body = self.script(node);
        let is_redirect = |child: &Node<'_>| child.kind().ends_with("_redirect");
        if children(node).any(|child| is_redirect(&child)) {
            // What is redirected is each call of it.
            let mut group = Stage::compound(CompoundKind::Group, body);
            for child in children(node).filter(is_redirect) {
                self.redirect(child, &mut group);
            }
            body = vec![Statement::of([group])];
        }
        Stage::compound(CompoundKind::Function(self.field(node, "name")), body)
    }

    fn each(&mut self, node: Node<'_>) -> Stage {
        let variable = self.field(node, "variable");
        let words = children(node).filter(|child| is_word(child.kind()));
        let mut words: Vec<Token> = words.map(|word| self.token(word)).collect();
        let all = children(node).all(|child| child.kind() != "in");
        words.extend(all.then(|| Token {
            atoms: vec![Atom::parameter("@", true)],
            source: "\"$@\"".to_owned(),
        }));
        let kind = CompoundKind::Each { variable, words };
        Stage::compound(kind, self.script(node))
    }

    fn redirected(&mut self, node: Node<'_>, statements: &mut Script) {
        let before = statements.len();
        let mut found = Stage::default();
        let mut behind = Vec::new();
        for child in children(node).filter(Node::is_named) {
            if child.kind().ends_with("_redirect") {
                behind.append(&mut self.redirect(child, &mut found));
            } else {
                self.statement(child, statements);
            }
        }
        if statements.len() == before {
            statements.push(Statement::of([Stage::default()]));
        }
        match statements.last_mut().and_then(|it| it.stages.last_mut()) {
            Some(stage) if !stage.defines() => {
                stage.redirects.append(&mut found.redirects);
                stage.words.append(&mut found.words);
            }
            _ => self.fail(Fault::Syntax),
        }
        for part in behind {
            match part.kind() {
                "pipeline" => self.pipeline(part, statements),
                _ => self.statement(part, statements),
            }
        }
    }

    /// Reads one redirection, and words that stand behind it.
    ///
    /// Returns what stands behind the start of a here-document: the rest of its pipeline, then of its list.
    pub(super) fn redirect<'n>(&mut self, node: Node<'n>, found: &mut Stage) -> Vec<Node<'n>> {
        let mut operator = "";
        let mut target = None;
        let mut here = Vec::new();
        let mut behind = Vec::new();
        for child in children(node) {
            match child.kind() {
                "heredoc_start" | "heredoc_body" | "heredoc_end" => here.push(child),
                "file_descriptor" | "\n" => {}
                kind if kind.ends_with("_redirect") => {
                    behind.append(&mut self.redirect(child, found));
                }
                // The grammar takes words after the file for more files; bash for arguments.
                kind if is_word(kind) && (target.is_some() || !here.is_empty()) => {
                    found.words.push(self.token(child));
                }
                kind if is_word(kind) => target = Some(self.token(child)),
                _ if child.is_named() => behind.push(child),
                _ if operator.is_empty() => operator = self.source(child),
                _ => {}
            }
        }
        if !here.is_empty() {
            let text = self.here_document(operator, &here);
            found.redirects.push(Redirect::Text(text));
        } else if let Some(target) = target {
            let digits = target.literal().unwrap_or_default();
            let number = !digits.is_empty() && digits.chars().all(|c| "0123456789-".contains(c));
            found.redirects.push(match operator {
                "<" => Redirect::Read(target),
                "<<<" => Redirect::Text(target),
                "<&" | "<&-" => Redirect::Descriptor(target),
                ">&" | ">&-" if number => Redirect::Duplicate,
                _ => Redirect::Write(target),
            });
        }
        behind
    }

    fn simple(&mut self, node: Node<'_>) -> Stage {
        let mut simple = Stage::default();
        if node.kind() == "variable_assignment" {
            simple.assignments.push(self.assignment(node));
            return simple;
        }
        let declares = node.kind() != "command";
        for child in children(node) {
            match child.kind() {
                "variable_assignment" if !declares || node.kind() == "variable_assignments" => {
                    simple.assignments.push(self.assignment(child));
                }
                kind if kind.ends_with("_redirect") => drop(self.redirect(child, &mut simple)),
                "command_name" => {
                    let name = child.named_child(0).unwrap_or(child);
                    simple.words.push(self.token(name));
                }
                "subshell" => self.fail(Fault::Syntax),
                _ => simple.words.push(self.token(child)),
            }
        }
        simple
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
}

/// Returns the children of a node; asking for them one by one would take quadratic time.
pub(super) fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
    children.into_iter()
}

/// Whether a node is a list, or one with redirections behind it: commands of their own, without braces around them.
fn is_list(mut node: Node<'_>) -> bool {
    while node.kind() == "redirected_statement" {
        let Some(body) = node.child_by_field_name("body") else {
            return false;
        };
        node = body;
    }
    node.kind() == "list"
}

pub(super) fn is_statement(kind: &str) -> bool {
    let mut ends = ["_statement", "_command", "_clause"].iter();
    ends.any(|end| kind.ends_with(end))
        || kind.starts_with("variable_assignment")
        || matches!(kind, "command" | "list" | "pipeline" | "subshell")
        || matches!(kind, "function_definition" | "do_group" | "case_item")
}
