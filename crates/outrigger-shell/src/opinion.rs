//! The second opinion: tree-sitter-bash reads the same line by a grammar of its own.
//!
//! A line is called safe only if both readers see the same words, and a command that only this one
//! sees is judged as well.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::Word;

/// How many levels of a syntax tree are walked; a deeper one cannot be a line that is called safe.
const MAX_LEVELS: usize = 200;

/// How often tree-sitter may report progress (every hundred steps) however short the line is.
const CHECKS_AT_LEAST: usize = 1_000;

/// The same for a line that our own reader cannot read, however long it is: recovery costs the most there, and the
/// line is cut into its words in any case.
const CHECKS_IF_UNREADABLE: usize = 200;

/// And once more for so many bytes.
const BYTES_PER_CHECK: usize = 4;

/// A line as tree-sitter reads it.
pub(super) struct Opinion<'l> {
    line: &'l str,
    tree: Tree,
}

impl<'l> Opinion<'l> {
    /// Parses the line; `None` if that takes too many steps, or the grammar cannot be loaded.
    pub(super) fn new(line: &'l str, readable: bool) -> Option<Self> {
        let mut parser = Parser::new();
        parser
            .set_language(&tree_sitter_bash::LANGUAGE.into())
            .ok()?;
        // Error recovery may take time quadratic in the line: it is counted, not timed.
        let mut checks = if readable {
            CHECKS_AT_LEAST + line.len() / BYTES_PER_CHECK
        } else {
            CHECKS_IF_UNREADABLE
        };
        let mut progress = |_: &ParseState| {
            checks = checks.saturating_sub(1);
            if checks == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        // The scanner of tree-sitter-bash 0.25.1 looks code points up in a table of 256 (`isdigit` in
        // scanner.c), so `{` before a distant one reads foreign memory. To bash they are letters.
        let ascii: Vec<u8> = line
            .bytes()
            .map(|byte| if byte.is_ascii() { byte } else { b'x' })
            .collect();
        let mut text = |at: usize, _| ascii.get(at..).unwrap_or_default();
        let tree = parser.parse_with_options(&mut text, None, Some(options))?;
        Some(Self { line, tree })
    }

    /// Returns the words of each command in order, if the line is nothing but plain commands.
    pub(super) fn commands(&self) -> Option<Vec<Vec<Word>>> {
        let root = self.tree.root_node();
        if root.has_error() {
            return None;
        }
        let mut commands = Vec::new();
        self.plain(root, &mut commands, 0)?;
        Some(commands)
    }

    /// Returns the source of the words of every command at every depth.
    pub(super) fn all_commands(&self) -> Vec<Vec<&'l str>> {
        let mut commands = Vec::new();
        let mut open = vec![self.tree.root_node()];
        while let Some(node) = open.pop() {
            if node.kind() == "command" {
                let words = children(node)
                    .filter(|child| is_word(child.kind()) || child.kind() == "command_name")
                    .map(|child| self.text(child))
                    .collect();
                commands.push(words);
            }
            open.extend(children(node));
        }
        commands
    }

    fn text(&self, node: Node<'_>) -> &'l str {
        self.line.get(node.byte_range()).unwrap_or_default()
    }

    fn plain(&self, node: Node<'_>, commands: &mut Vec<Vec<Word>>, level: usize) -> Option<()> {
        if level > MAX_LEVELS {
            return None;
        }
        match node.kind() {
            "program" | "list" | "pipeline" => {
                for child in children(node).filter(Node::is_named) {
                    self.plain(child, commands, level + 1)?;
                }
            }
            "comment" => {}
            "command" => {
                let mut words = Vec::new();
                for child in children(node) {
                    match child.kind() {
                        "command_name" => words.push(self.word(child.named_child(0)?)),
                        kind if is_word(kind) => words.push(self.word(child)),
                        _ => return None,
                    }
                }
                commands.push(words);
            }
            "test_command" => {
                let mut words = Vec::new();
                self.test_words(node, &mut words, level)?;
                commands.push(words);
            }
            "redirected_statement" => {
                let mut parts = children(node);
                self.plain(parts.next()?, commands, level + 1)?;
                for redirect in parts {
                    self.redirect(redirect, commands, level)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn redirect(&self, node: Node<'_>, commands: &mut Vec<Vec<Word>>, level: usize) -> Option<()> {
        match node.kind() {
            "file_redirect" => {
                // The grammar takes words after the file for more files; bash for arguments.
                let more = children(node).filter(|child| is_word(child.kind())).skip(1);
                let more: Vec<Word> = more.map(|child| self.word(child)).collect();
                commands.last_mut()?.extend(more);
            }
            "heredoc_redirect" => {
                for child in children(node).filter(Node::is_named) {
                    match child.kind() {
                        "heredoc_start" | "heredoc_body" | "heredoc_end" => {}
                        "file_redirect" => self.redirect(child, commands, level)?,
                        _ => self.plain(child, commands, level + 1)?,
                    }
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn test_words(&self, node: Node<'_>, words: &mut Vec<Word>, level: usize) -> Option<()> {
        if level > MAX_LEVELS {
            return None;
        }
        for child in children(node) {
            if is_word(child.kind()) {
                words.push(self.word(child));
            } else if child.child_count() == 0 {
                words.push(Word::Literal(self.text(child).to_owned()));
            } else {
                self.test_words(child, words, level + 1)?;
            }
        }
        Some(())
    }

    fn word(&self, node: Node<'_>) -> Word {
        match self.literal(node) {
            Some(text) => Word::Literal(text),
            None => Word::Dynamic(self.text(node).to_owned()),
        }
    }

    fn literal(&self, node: Node<'_>) -> Option<String> {
        let text = self.text(node);
        match node.kind() {
            "word" | "number" => unescape(text),
            "raw_string" => Some(text.strip_prefix('\'')?.strip_suffix('\'')?.to_owned()),
            "string" => {
                let plain = children(node)
                    .filter(Node::is_named)
                    .all(|child| child.kind() == "string_content");
                let inner = text.strip_prefix('"')?.strip_suffix('"')?;
                plain.then(|| unescape_quoted(inner))
            }
            "concatenation" => {
                let parts = children(node);
                parts.map(|part| self.literal(part)).collect()
            }
            _ => None,
        }
    }
}

/// Returns the children of a node; asking for them one by one would take quadratic time.
fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
    children.into_iter()
}

fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "number"
            | "string"
            | "raw_string"
            | "ansi_c_string"
            | "translated_string"
            | "concatenation"
            | "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "brace_expression"
    )
}

/// Removes the backslashes of a bare word; `None` if the shell would expand it.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    let mut bracket = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') => {}
                escaped => plain.extend(escaped),
            },
            '*' | '?' => return None,
            '~' if plain.is_empty() => return None,
            '[' => {
                bracket = true;
                plain.push(c);
            }
            ']' if bracket => return None,
            c => plain.push(c),
        }
    }
    Some(plain)
}

fn unescape_quoted(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => {
                chars.next();
            }
            ('\\', Some('$' | '`' | '"' | '\\')) => plain.extend(chars.next()),
            (c, _) => plain.push(c),
        }
    }
    plain
}
