//! What one command means: wrappers are peeled, shell text is walked, then the rules are asked.

use std::collections::BTreeSet;

use super::expand::{Arg, UNKNOWN};
use super::flow::{Feed, file_taint, printf, taint_of};
use super::peel::{self, Peeled};
use super::scope::{Scope, Value};
use super::table::{TABLE, cluster, has, is_option};
use super::tree;
use super::walk::Walk;
use super::words::subscript;
use super::{DangerLevel, SimpleCommand, Word, paths};

#[derive(Clone, Copy)]
pub(super) struct Invocation<'a> {
    /// The program's name, without its directory and in lower case; empty where it is not known.
    pub(super) program: &'a str,
    /// All words, the first of them, and those behind it.
    pub(super) args: &'a [Arg],
    pub(super) first: &'a Arg,
    pub(super) rest: &'a [Arg],
    /// What it reads.
    pub(super) input: &'a Feed,
}

impl<'a> Invocation<'a> {
    pub(super) fn has(&self, option: &str) -> bool {
        self.rest.iter().any(|arg| is_option(&arg.text, option))
    }

    pub(super) fn names(&self, words: &[&str]) -> bool {
        self.rest.iter().any(|arg| words.contains(&&*arg.text))
    }

    /// Returns the words that are no options: all of them behind `--`.
    pub(super) fn operands(&self) -> impl Iterator<Item = &'a Arg> {
        let dashes = self.rest.iter().position(|arg| arg.text == "--");
        let end = dashes.unwrap_or(self.rest.len());
        let words = self.rest.iter().enumerate();
        words
            .filter(move |(index, arg)| *index > end || !arg.text.starts_with('-'))
            .map(|(_, arg)| arg)
    }

    pub(super) fn values<T: AsRef<str>>(&self, options: &[T]) -> Vec<Arg> {
        let options = options.iter().map(AsRef::as_ref);
        options
            .flat_map(|option| peel::option_values(self.rest, option))
            .collect()
    }
}

pub(super) fn shown(args: &[Arg]) -> String {
    let words = words_of(args).into_iter().map(|word| match word {
        Word::Dynamic(text) | Word::Literal(text) => text,
    });
    words.collect::<Vec<String>>().join(" ")
}

/// Returns the words as written; one that was followed into several is one word again.
fn words_of(args: &[Arg]) -> SimpleCommand {
    let words = args.iter().map(|arg| match &arg.word {
        // A text that a shell is given may hold what is not known, as a letter among others.
        Some(Word::Literal(text)) if text.contains(UNKNOWN) => {
            Word::Dynamic(text.replace(UNKNOWN, "…"))
        }
        Some(word) => word.clone(),
        None => Word::Dynamic(arg.text.replace(UNKNOWN, "…")),
    });
    let mut words: Vec<Word> = words.collect();
    words.dedup_by(|a, b| a == b && matches!(a, Word::Dynamic(_)));
    words
}

impl Walk<'_> {
    pub(super) fn blocked(&mut self, args: &[Arg], rule: &'static str, reason: &str) {
        self.find(DangerLevel::Blocked, rule, &shown(args), reason);
    }

    pub(super) fn dangerous(&mut self, args: &[Arg], rule: &'static str, reason: &str) {
        self.find(DangerLevel::Dangerous, rule, &shown(args), reason);
    }

    pub(super) fn hidden(&mut self, args: &[Arg]) {
        let reason = "runs text that was downloaded or decoded";
        self.blocked(args, "hidden-code", reason);
    }

    pub(super) fn command(&mut self, args: &[Arg], input: &Feed, scope: &mut Scope) {
        let Some((first, rest)) = args.split_first() else {
            return;
        };
        self.commands.push(words_of(args));
        self.count(args.len());
        let program = peel::program(args).map(|(program, _)| program);
        let it = Invocation {
            program: program.as_deref().unwrap_or_default(),
            args,
            first,
            rest,
            input,
        };
        self.deeper(&first.text, |walk| {
            if it.program.is_empty() {
                walk.unnamed(&it, scope);
            } else {
                walk.judge(&it, scope);
            }
            walk.matched(&it);
            walk.called(&it, scope);
        });
    }

    fn judge(&mut self, it: &Invocation<'_>, scope: &mut Scope) {
        if it.first.text.contains('/') {
            // What the path is made of is not run: what was put there may be.
            let taint = file_taint(it.first, scope);
            if taint.fetched {
                self.hidden(it.args);
            }
            self.stored(taint, it.args);
        }
        if matches!(it.program, "env" | "strace") {
            // What is set so counts for the rest of the line as well: that is only stricter.
            let assigned = it.rest.iter().filter(|arg| peel::is_assignment(&arg.text));
            assigned.for_each(|arg| self.definition("export", arg, scope));
        }
        for inner in peel::peel(it.program, it.rest, it.input) {
            match inner {
                Peeled::Command(inner) => {
                    let denied = |arg: &Arg| paths::denied(arg, scope).is_some();
                    let secret = || it.input.taint.secret || inner.iter().any(denied);
                    // `xargs` is given the names of files by what it reads.
                    if it.program == "xargs" && secret() {
                        let reason = "reads a file that may hold secrets";
                        self.find(DangerLevel::Warning, "secret", &shown(it.args), reason);
                    }
                    self.command(&inner, it.input, scope);
                }
                Peeled::Text(text) => self.code(&text, scope, it.input),
            }
        }
        for mark in TABLE.marks.get(it.program).into_iter().flatten() {
            let lines = it.input.likely().into_iter().flat_map(str::lines);
            for arg in it.rest.iter().cloned().chain(lines.map(Arg::literal)) {
                for code in arg.text.split(mark).skip(1) {
                    self.code(&arg.with(code), scope, it.input);
                }
            }
        }
        let programs = &TABLE.programs;
        if programs.evaluating.contains(it.program) || scope.bodies.contains_key(&it.first.text) {
            for arg in it.rest {
                self.subscript(&arg.text, scope);
            }
        }
        for rule in TABLE.rules(it.program, it.rest) {
            self.find(rule.level, &rule.id, &shown(it.args), &rule.reason);
        }
        if has(&TABLE.programs.shells, it.program) {
            self.shell(it, scope);
        }
        self.builtin(it, scope);
        self.interpreter(it, scope);
        self.removal(it, scope);
        self.system(it, scope);
        self.writing(it, scope);
        self.brings(it, scope);
        self.network(it, scope);
        self.git(it, scope);
    }

    pub(super) fn code(&mut self, text: &Arg, scope: &mut Scope, feed: &Feed) {
        if text.taint.hidden() {
            self.hidden(std::slice::from_ref(text));
        }
        // Editors and git mark shell text by `!` or `:!`, ssh and others name it: `ProxyCommand=…`.
        let marked = text.text.strip_prefix(':');
        let marked = marked.filter(|rest| rest.starts_with('!'));
        let plain = marked.unwrap_or(&text.text).trim_start_matches('!');
        self.text(plain, scope, feed);
        if let Some((_, value)) = plain.split_once('=').filter(|_| peel::is_assignment(plain)) {
            self.text(value, scope, feed);
        }
    }

    /// What is in a subscript runs where bash counts with the text or takes it for a name.
    pub(super) fn subscript(&mut self, text: &str, scope: &Scope) {
        if let Some(inside) = subscript(text) {
            // A here-document is expanded as a subscript is: no words are made of it, and quotes mean nothing.
            let line = format!(": <<_\n{inside}\n_");
            self.text(&line, &mut scope.clone(), &Feed::default());
        }
    }

    fn shell(&mut self, it: &Invocation<'_>, scope: &mut Scope) {
        self.signs.shell = true;
        for file in it.values(&["--rcfile", "--init-file"]) {
            self.run_file(&file, it.args, scope);
        }
        let call = ShellCall::new(it.rest);
        let Some((script, parameters)) = call.operands.split_first() else {
            return self.program_text(it, scope);
        };
        if call.command {
            let mut inner = scope.clone();
            set_parameters(&mut inner, parameters);
            self.code(script, &mut inner, it.input);
            if taint_of(parameters).hidden() || it.input.taint.hidden() && script.unknown {
                self.hidden(it.args);
            }
        } else if call.standard_input || script.text == "-" || paths::is_input(&script.text) {
            self.program_text(it, scope);
        } else {
            self.run_file(script, it.args, scope);
        }
    }

    pub(super) fn run_file(&mut self, file: &Arg, args: &[Arg], scope: &mut Scope) {
        let taint = file_taint(file, scope);
        if file.taint.hidden() || taint.fetched {
            self.hidden(args);
        }
        if let Some(text) = &file.content {
            self.text(text, &mut scope.clone(), &Feed::default());
        }
        self.stored(taint, args);
    }

    /// A shell that runs what it reads.
    fn program_text(&mut self, it: &Invocation<'_>, scope: &Scope) {
        if it.input.taint.hidden() {
            self.hidden(it.args);
        }
        self.stored(it.input.taint, it.args);
        if let Some(text) = it.input.likely() {
            self.text(text, &mut scope.clone(), &Feed::default());
        }
    }

    /// Builtins that run text, change the scope, or both.
    fn builtin(&mut self, it: &Invocation<'_>, scope: &mut Scope) {
        match it.program {
            "eval" => {
                self.signs.shell |= it.rest.iter().any(|arg| arg.unknown);
                if taint_of(it.rest).hidden() {
                    self.hidden(it.args);
                }
            }
            "cd" | "pushd" | "chdir" => {
                let path = match it.operands().next() {
                    Some(arg) => arg.as_known().map(str::to_owned),
                    None => Some(scope.home.clone()),
                };
                scope.change_directory(path.as_deref());
            }
            "popd" => scope.change_directory(None),
            "at" | "batch" => self.program_text(it, scope),
            "source" | "." => {
                if let Some(file) = it.operands().next() {
                    if paths::is_input(&file.text) {
                        self.program_text(it, scope);
                    }
                    self.run_file(file, it.args, scope);
                }
            }
            "trap" => {
                if let Some(action) = it.operands().next() {
                    self.code(action, scope, &Feed::default());
                }
            }
            "alias" | "export" | "declare" | "typeset" | "local" | "readonly" => {
                for arg in it.operands() {
                    self.definition(it.program, arg, scope);
                }
            }
            "read" | "mapfile" | "readarray" => {
                self.subscript(it.input.likely().unwrap_or_default(), scope);
                let several = it.operands().count() > 1;
                for name in it.operands() {
                    scope.bind(&name.text, read_value(it.input, several));
                }
            }
            "printf" => {
                if let [dash, name, words @ ..] = it.rest
                    && dash.text == "-v"
                {
                    let value = Value::any(printf(words), taint_of(words));
                    scope.bind(&name.text, value);
                }
            }
            "shift" => {
                // How often it shifts is not followed: each may be any of them.
                let all = scope.value("@").unwrap_or_default();
                for index in 1..=9 {
                    scope.bind(&index.to_string(), Value::clone(&all));
                }
            }
            "set" => {
                let behind = it.rest.iter().skip_while(|arg| arg.text != "--");
                let parameters: Vec<Arg> = behind.cloned().collect();
                set_parameters(scope, &parameters);
            }
            "enable" | "hash" | "bind" | "complete" => {
                for value in it.values(&["-p", "-x", "-C", "-f"]) {
                    self.code(&value, scope, &Feed::default());
                }
            }
            _ => {}
        }
    }

    /// `NAME=value` as an argument.
    fn definition(&mut self, program: &str, arg: &Arg, scope: &mut Scope) {
        let Some((name, value)) = arg.text.split_once('=') else {
            return;
        };
        let text = arg.with(value);
        if program == "alias" || has(&TABLE.programs.variables, name) {
            self.code(&text, scope, &Feed::default());
        }
        if program == "alias" {
            // An alias is the function that does the same.
            let script = tree::read(&format!("{value} \"$@\""), 0).script;
            scope.bodies.insert(name.to_owned(), script.into());
        }
        let known = (!arg.unknown).then(|| value.to_owned());
        scope.bind(name, Value::any(known, arg.taint));
    }
}

/// Most words of what is read that a variable is taken to hold one of.
const MAX_FIELDS: usize = 32;

/// `read a b`: each variable holds one of the words, a line, or all of it.
fn read_value(input: &Feed, several: bool) -> Value {
    let text = input.text.as_deref();
    let lines = text.into_iter().flat_map(str::lines).take(MAX_FIELDS);
    let fields = text
        .into_iter()
        .flat_map(|it| it.split([' ', '\t', '\n', ',', ':']));
    let fields = fields.filter(|field| several && !field.is_empty());
    let choices = text.into_iter().chain(lines).chain(fields.take(MAX_FIELDS));
    let choices = BTreeSet::from_iter(choices.map(str::to_owned));
    Value::any(choices, input.taint)
}

/// Sets `$0`, `$1`, … and `$@`.
pub(super) fn set_parameters(scope: &mut Scope, parameters: &[Arg]) {
    for (index, arg) in parameters.iter().enumerate() {
        let value = Value::of(std::slice::from_ref(arg));
        scope.bind(&index.to_string(), value);
    }
    for name in ["@", "*"] {
        scope.bind(name, Value::of(parameters.get(1..).unwrap_or_default()));
    }
}

struct ShellCall<'a> {
    /// `-c`: the first operand is the program's text.
    command: bool,
    /// `-s`: the program is read, whatever the operands are.
    standard_input: bool,
    operands: &'a [Arg],
}

impl<'a> ShellCall<'a> {
    fn new(args: &'a [Arg]) -> Self {
        let (mut operands, mut command, mut standard_input) = (args, false, false);
        while let Some((first, after)) = operands.split_first() {
            let text = first.text.as_str();
            if !text.starts_with(['-', '+']) || text == "-" {
                break;
            }
            operands = after;
            if text == "--" {
                break;
            }
            let letters = cluster(text).or(text.strip_prefix('+')).unwrap_or_default();
            command |= letters.contains('c') || text == "--command";
            command |= text.eq_ignore_ascii_case("-command");
            standard_input |= letters.contains('s');
            let valued = matches!(text, "--rcfile" | "--init-file" | "-Command" | "-File");
            if (valued || letters.ends_with(['o', 'O'])) && !command {
                operands = after.get(1..).unwrap_or_default();
            }
        }
        Self {
            command,
            standard_input,
            operands,
        }
    }
}
