//! Walks a script, every command at every depth, and gathers what is found; the worst decides.
//!
//! A text that cannot be read is cut into words at everything that could separate commands, so that
//! what is hidden behind a syntax error still counts. What one command means is in [`super::command`].

use super::characters::deceptive_blank;
use super::expand::{Arg, MAX_WORDS, expand, expand_all, expand_text, expand_value};
use super::flow::{Feed, command_output, file_taint, input_of, stage_output, taint_of};
use super::functions::looks_like_fork_bomb;
use super::plain::Reader;
use super::scope::{Scope, Taint, Value};
use super::table::{TABLE, has};
use super::tree::{self, MAX_NESTING, Reading};
use super::types::{
    Assignment, Atom, Compound, CompoundKind, Operator, Redirect, Script, Stage, Statement, Token,
};
use super::{Classification, Finding, MAX_READ, SimpleCommand, Surroundings, paths, peel};
use crate::DangerLevel::{self, Blocked, Warning};

/// Most bytes of nested text that are read for one line: its parts are read again for each level of
/// quoting around them.
const MAX_WORK: usize = 4 * MAX_READ;

/// Most words of commands, nested and unwrapped ones included, that are looked at.
const MAX_JUDGED: usize = 200_000;

/// Most programs that one first word is taken for.
const MAX_HEADS: usize = 64;

/// Most findings that are kept; one that is worse than all of them is kept in any case.
const MAX_FINDINGS: usize = 100;

pub(super) struct Walk<'a> {
    pub(super) surroundings: &'a Surroundings<'a>,
    pub(super) findings: Vec<Finding>,
    pub(super) commands: Vec<SimpleCommand>,
    pub(super) signs: Signs,
    work: usize,
    judged: usize,
    pub(super) calls: usize,
    depth: usize,
}

/// Parts of a reverse shell; none of them means much alone.
#[derive(Debug, Default)]
pub(super) struct Signs {
    pub(super) network_path: bool,
    pub(super) netcat: bool,
    pub(super) named_pipe: bool,
    pub(super) shell: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(surroundings: &'a Surroundings<'a>) -> Self {
        Self {
            surroundings,
            findings: Vec::new(),
            commands: Vec::new(),
            signs: Signs::default(),
            work: 0,
            judged: 0,
            calls: 0,
            depth: 0,
        }
    }

    pub(super) fn find(
        &mut self,
        level: DangerLevel,
        rule: &'static str,
        words: &str,
        reason: impl Into<String>,
    ) {
        let finding = Finding::new(level, rule, words, reason);
        let full = self.findings.len() >= MAX_FINDINGS
            && self.findings.iter().any(|known| known.level >= level);
        if !full && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Returns what was found, without what an approval stands for and what stands in the line.
    pub(super) fn finish(self, plain: bool) -> Classification {
        let level = self.findings.iter().map(|finding| finding.level).max();
        Classification {
            level: level.unwrap_or(DangerLevel::Safe),
            commands: self.commands,
            written: Vec::new(),
            findings: self.findings,
            plain,
            remembered: None,
        }
    }

    pub(super) fn count(&mut self, words: usize) {
        let most = if words >= MAX_WORDS { MAX_JUDGED } else { 0 };
        self.judged = self.judged.saturating_add(words).max(most);
    }

    /// Runs a step one level deeper; beyond the deepest level it is not run, and that is a finding.
    pub(super) fn deeper(&mut self, words: &str, step: impl FnOnce(&mut Self)) {
        if self.judged >= MAX_JUDGED {
            let reason = "holds more commands than can be looked at";
            self.find(Blocked, "limit-work", words, reason);
        } else if self.depth >= MAX_NESTING {
            let reason = "is nested too deeply to be looked at";
            self.find(Blocked, "limit-nesting", words, reason);
        } else {
            self.depth += 1;
            step(self);
            self.depth -= 1;
        }
    }

    pub(super) fn text(&mut self, text: &str, scope: &mut Scope, feed: &Feed) {
        self.work = self.work.saturating_add(text.len());
        if self.work > MAX_WORK {
            let reason = "holds more nested text than can be looked at";
            return self.find(Blocked, "limit-work", text, reason);
        }
        self.deeper(text, |walk| {
            walk.readings(text, &tree::readings(text), scope, feed);
        });
    }

    /// Walks what was read of a text; one that was not read to its end is cut into its words as well.
    pub(super) fn readings(
        &mut self,
        text: &str,
        readings: &[Reading],
        scope: &mut Scope,
        feed: &Feed,
    ) {
        for (index, reading) in readings.iter().enumerate() {
            let mut other = scope.clone();
            let scope = if index == 0 { &mut *scope } else { &mut other };
            self.script(&reading.script, scope, feed);
        }
        if readings.iter().any(|reading| reading.fault.is_some()) {
            self.fragments(text, scope);
        }
    }

    /// Judges every run of words in a text that is not a script.
    pub(super) fn fragments(&mut self, text: &str, scope: &mut Scope) {
        if looks_like_fork_bomb(text) {
            self.starts_itself(text);
        }
        let (mut hides, mut runs) = (false, false);
        let mut input = Feed::default();
        for args in fragments_of(text, scope) {
            let assigns = |arg: &&Arg| peel::is_assignment(&arg.text);
            let assigned = args.iter().take_while(assigns).count();
            let args = args.get(assigned..).unwrap_or_default();
            // Each piece may feed the next one: what joins them cannot be read.
            self.command(args, &input, scope);
            input = command_output(args, &input, scope);
            hides |= command_taint(args).hidden();
            if let Some((program, _)) = peel::program(args) {
                runs |= has(&TABLE.programs.shells, &program)
                    || TABLE.interpreters.contains_key(&program)
                    || matches!(program.as_str(), "eval" | "source" | ".");
            }
        }
        if hides && runs {
            self.hidden(&[Arg::literal(text)]);
        }
    }

    pub(super) fn script(&mut self, script: &Script, scope: &mut Scope, feed: &Feed) {
        for statement in script {
            self.statement(statement, scope, feed);
        }
    }

    fn statement(&mut self, statement: &Statement, scope: &mut Scope, outer: &Feed) {
        let mut feed = outer.clone();
        let parallel = statement.background || statement.stages.len() > 1;
        let running = scope.running.clone();
        let read = scope.input;
        if parallel {
            scope.fork();
        }
        for (index, stage) in statement.stages.iter().enumerate() {
            scope.input = feed.taint;
            let input = input_of(&stage.redirects, &feed, scope);
            match &stage.compound {
                None => self.simple(stage, scope, &input, parallel),
                Some(compound) => {
                    self.redirects(&stage.redirects, &input, &[], scope);
                    self.compound(compound, scope, &input);
                }
            }
            if index + 1 < statement.stages.len() {
                feed = stage_output(stage, &feed, scope);
            }
        }
        scope.running = running;
        scope.input = read;
    }

    fn compound(&mut self, compound: &Compound, scope: &mut Scope, feed: &Feed) {
        let looping = scope.in_loop;
        let mut inner = scope.clone();
        match &compound.kind {
            CompoundKind::Each { variable, words } => {
                words.iter().for_each(|word| self.nested(word, scope, feed));
                let values = expand_all(words, scope);
                values.iter().for_each(|it| self.subscript(&it.text, scope));
                inner.bind(variable, Value::of(&values));
                inner.in_loop = true;
            }
            CompoundKind::Loop => inner.in_loop = true,
            CompoundKind::Function(name) => {
                return self.define(name, &compound.body, scope, feed);
            }
            CompoundKind::Group | CompoundKind::Subshell => {}
        }
        self.deeper("", |walk| walk.script(&compound.body, &mut inner, feed));
        inner.in_loop = looping;
        if !matches!(compound.kind, CompoundKind::Subshell) {
            *scope = inner;
        }
    }

    fn nested(&mut self, token: &Token, scope: &Scope, feed: &Feed) {
        for atom in &token.atoms {
            self.nested_atom(atom, scope, feed);
        }
        if let Some(blank) = deceptive_blank(token) {
            let code = blank as u32;
            let reason = format!("has a blank that is none to the shell (U+{code:04X})");
            self.find(Warning, "deceptive-text", &token.source, reason);
        }
    }

    fn nested_atom(&mut self, atom: &Atom, scope: &Scope, feed: &Feed) {
        match atom {
            Atom::Output { script, .. } | Atom::Stream { script, .. } => {
                let mut scope = scope.clone();
                scope.fork();
                let receives = matches!(atom, Atom::Stream { receives: true, .. });
                let feed = if receives { feed } else { &Feed::default() };
                self.deeper("", |walk| walk.script(script, &mut scope, feed));
            }
            Atom::Parameter { inner, .. } => self.deeper("", |walk| {
                let inner = inner.iter();
                inner.for_each(|atom| walk.nested_atom(atom, scope, feed));
            }),
            Atom::Bare(_) | Atom::Quoted(_) => {}
        }
    }

    fn simple(&mut self, simple: &Stage, scope: &mut Scope, input: &Feed, parallel: bool) {
        let args = expand_all(&simple.words, scope);
        // What a command writes may go into `>(…)`, so that is walked with its output.
        let stage_feed = Feed {
            taint: input.taint.join(command_taint(&args)),
            ..input.clone()
        };
        for token in &simple.words {
            self.nested(token, scope, &stage_feed);
        }
        self.redirects(&simple.redirects, &stage_feed, &args, scope);
        for assignment in &simple.assignments {
            self.assignment(assignment, scope);
        }
        for token in &simple.words {
            bind_fallbacks(token, scope);
        }
        if args.len() == 1 && args.iter().all(|arg| arg.text == "exec") {
            scope.opened = scope.opened.join(input.taint);
        }
        if parallel || scope.in_loop {
            self.script_itself(&simple.words, &args);
        }
        self.command(&args, input, scope);
        // A first word that may be one of several: each of them may be the program.
        let many = |name: &String| scope.value(name).is_some_and(|it| it.choices.len() > 1);
        let varies = |atom: &Atom| matches!(atom, Atom::Parameter { name, .. } if many(name));
        let first = simple.words.first();
        let first = first.filter(|token| token.atoms.iter().any(varies));
        let heads = first.map_or(0, |token| expand(token, scope).len());
        for from in 1..heads.min(MAX_HEADS) {
            self.command(args.get(from..).unwrap_or_default(), input, scope);
        }
    }

    fn assignment(&mut self, assignment: &Assignment, scope: &mut Scope) {
        self.nested(&assignment.value, scope, &Feed::default());
        let value = expand_value(&assignment.value.atoms, scope);
        if has(&TABLE.programs.variables, &assignment.name) {
            let arg = expand_text(&assignment.value, scope);
            self.code(&arg, scope, &Feed::default());
            if let Some(text) = arg.content {
                self.text(&text, scope, &Feed::default());
            }
        }
        let texts = value.choices.iter();
        texts.for_each(|it| self.subscript(it, scope));
        let value = match scope.value(&assignment.name) {
            // What it holds and this behind it: what that makes is not followed.
            Some(old) if assignment.appends => Value::any(None, old.taint.join(value.taint)),
            _ => value,
        };
        scope.bind(&assignment.name, value);
    }

    fn redirects(&mut self, redirects: &[Redirect], feed: &Feed, args: &[Arg], scope: &mut Scope) {
        for redirect in redirects {
            match redirect {
                Redirect::Write(token) => {
                    self.nested(token, scope, feed);
                    let target = expand_text(token, scope);
                    let hidden = feed.taint.hidden();
                    scope.files.store(&target.text, hidden, true);
                    self.written(&target, &token.source, scope);
                    self.redirected(&target, args, feed, scope);
                }
                Redirect::Read(token) => {
                    self.nested(token, scope, &Feed::default());
                    let source = expand_text(token, scope);
                    self.signs.network_path |= paths::network_path(&source);
                    if file_taint(&source, scope).secret {
                        let reason = "reads a file that may hold secrets";
                        self.find(Warning, "secret", &token.source, reason);
                    }
                }
                Redirect::Text(token) | Redirect::Descriptor(token) => {
                    self.nested(token, scope, &Feed::default());
                }
                Redirect::Duplicate => {}
            }
        }
    }

    /// Adds what only several commands together show.
    pub(super) fn conclude(&mut self) {
        let signs = &self.signs;
        let reverse = signs.shell && (signs.network_path || (signs.named_pipe && signs.netcat));
        if reverse {
            let reason = "connects a shell to the network";
            self.find(Blocked, "reverse-shell", "", reason);
        }
    }
}

/// `${name:=value}` sets the variable.
fn bind_fallbacks(token: &Token, scope: &mut Scope) {
    for atom in &token.atoms {
        if let Atom::Parameter {
            name,
            operator,
            inner,
            ..
        } = atom
            && *operator == Operator::Assigns
            && scope.value(name).is_none()
        {
            let value = expand_value(inner, scope);
            scope.bind(name, value);
        }
    }
}

/// Cuts a text at everything that could separate commands.
///
/// Once with quotes as separators, once without them: `s''udo` and `"; sudo` both count.
fn fragments_of(text: &str, scope: &Scope) -> Vec<Vec<Arg>> {
    let plain = text.replace("\\\n", "").replace('\\', "");
    let cut = plain.replace(['"', '\'', '$'], "\n");
    let joined = plain.replace(['"', '\''], "");
    let separates = |c: char| ";|&()`\n<>".contains(c);
    let in_braces = |c: char| separates(c) || "{}".contains(c);
    let pieces = cut.split(in_braces).chain(joined.split(in_braces));
    let pieces = pieces.chain(joined.split(separates).filter(|text| text.contains('{')));
    let words = |word| match Reader::new(word).word() {
        Ok(Some(token)) => expand(&token, scope),
        _ => vec![Arg::literal(word)],
    };
    let commands = pieces.map(|piece| piece.split_whitespace().flat_map(words).collect());
    commands.collect()
}

/// Returns what kind of text the command itself writes.
fn command_taint(args: &[Arg]) -> Taint {
    let mut taint = taint_of(args);
    if let Some((program, _)) = peel::program(args) {
        taint.fetched |= TABLE.programs.fetchers.contains(&program);
        taint.decoded |= TABLE.programs.decoders.contains(&program);
    }
    taint
}
