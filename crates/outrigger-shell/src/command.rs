//! What one command means: wrappers are peeled, shell text is walked, then the rules are asked.

use super::expand::{Arg, UNKNOWN};
use super::flow::Feed;
use super::peel::{self, Peeled, joined};
use super::scope::{Scope, Value};
use super::table::{TABLE, cluster, has};
use super::walk::Walk;
use super::{SimpleCommand, Word};
use crate::DangerLevel::{Blocked, Warning};

/// What surrounds a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Setting {
    pub(super) input: Feed,
    /// It runs in the background or beside others in a pipe.
    pub(super) parallel: bool,
}

/// Writes the words as the user knows them.
pub(super) fn shown(args: &[Arg]) -> String {
    let words: Vec<String> = words_of(args)
        .into_iter()
        .map(|word| match word {
            Word::Dynamic(text) | Word::Literal(text) => text,
        })
        .collect();
    words.join(" ")
}

/// Returns the words as written; one that was followed into several is one word again.
fn words_of(args: &[Arg]) -> Vec<Word> {
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
    /// Judges one command and everything it runs in turn.
    pub(super) fn command(&mut self, args: &[Arg], setting: &Setting, scope: &mut Scope) {
        if args.is_empty() {
            return;
        }
        self.commands.push(SimpleCommand {
            words: words_of(args),
        });
        self.count(args.len());
        let name = args.first().map(|arg| arg.text.clone()).unwrap_or_default();
        self.deeper(&name, |walk| {
            match peel::program(args) {
                Some((program, rest)) => walk.named(&program, args, rest, setting, scope),
                None => walk.unnamed(args, setting, scope),
            }
            walk.matched(args, setting, scope);
            walk.called(args, setting, scope);
        });
    }

    pub(super) fn named(
        &mut self,
        program: &str,
        args: &[Arg],
        rest: &[Arg],
        setting: &Setting,
        scope: &mut Scope,
    ) {
        self.itself(args, scope);
        self.downloaded(args, scope);
        let mut inside = self.inside(program, rest, scope);
        for inner in peel::peel(program, rest, &setting.input) {
            let scope = inside.as_mut().unwrap_or(scope);
            match inner {
                Peeled::Command(inner) => {
                    if program == "xargs" {
                        self.named_secret(args, &inner, setting, scope);
                    }
                    self.command(&inner, setting, scope);
                }
                Peeled::Text(text) => self.code(&text, scope, &setting.input),
            }
        }
        let table: &'static super::table::Table = &TABLE;
        for rule in table.rules(program, rest) {
            self.find(rule.level, &rule.id, &shown(args), &rule.reason);
        }
        if program == "eval" {
            self.signs.shell |= rest.iter().any(|arg| arg.unknown);
            if super::flow::taint_of(rest).hidden() {
                self.hidden(args);
            }
        }
        if has(&TABLE.programs.shells, program) {
            self.shell(args, rest, setting, scope);
        }
        self.builtin(program, args, rest, setting, scope);
        self.interpreter(program, args, rest, setting, scope);
        self.removal(program, args, rest, scope);
        self.system(program, args, rest, scope);
        self.writing(program, args, rest, setting, scope);
        self.brings(program, rest, setting, scope);
        self.recipe(program, args, rest, setting, scope);
        self.network(program, args, rest, setting, scope);
        if program == "git" {
            self.git(args, rest, scope);
        }
    }

    /// Walks text that will be run by a shell.
    pub(super) fn code(&mut self, text: &Arg, scope: &mut Scope, feed: &Feed) {
        if text.taint.hidden() {
            self.find(
                Blocked,
                "hidden-code",
                &text.text.replace(UNKNOWN, "…"),
                "runs text that was downloaded or decoded",
            );
        }
        // Editors and git mark shell text by `!` or `:!`, ssh and others name it: `ProxyCommand=…`.
        let marked = text
            .text
            .strip_prefix(':')
            .filter(|rest| rest.starts_with('!'));
        let plain = marked.unwrap_or(&text.text).trim_start_matches('!');
        self.text(plain, scope, feed);
        if let Some((_, value)) = plain.split_once('=').filter(|_| peel::is_assignment(plain)) {
            self.text(value, scope, feed);
        }
    }

    pub(super) fn hidden(&mut self, args: &[Arg]) {
        self.find(
            Blocked,
            "hidden-code",
            &shown(args),
            "runs text that was downloaded or decoded",
        );
    }

    /// A program or script that the same line downloaded.
    fn downloaded(&mut self, args: &[Arg], scope: &mut Scope) {
        let Some(first) = args.first() else { return };
        if first.text.contains('/') && super::flow::file_taint(first, scope).fetched {
            self.hidden(args);
        }
        self.stored(first, None, args, scope);
    }

    /// `env NAME=value`, `env -C directory`: what the command inside sees; `None` where nothing is set.
    fn inside(&mut self, program: &str, rest: &[Arg], scope: &Scope) -> Option<Scope> {
        let sets = matches!(program, "env" | "genv" | "strace");
        let set: Vec<&Arg> = rest
            .iter()
            .filter(|arg| sets && peel::is_assignment(&arg.text))
            .collect();
        let directories = peel::directories(program, rest);
        if set.is_empty() && directories.is_empty() {
            return None;
        }
        let mut inside = scope.clone();
        for directory in directories {
            inside.change_directory(directory.as_known());
        }
        for arg in set {
            self.definition("export", arg, &mut inside);
        }
        Some(inside)
    }

    /// `xargs` is given the names of files by what it reads.
    fn named_secret(&mut self, args: &[Arg], inner: &[Arg], setting: &Setting, scope: &Scope) {
        let denied = |arg: &Arg| super::paths::denied(arg, scope).is_some();
        if setting.input.taint.secret || inner.iter().any(denied) {
            let reason = "reads a file that may hold secrets";
            self.find(Warning, "secret", &shown(args), reason);
        }
    }

    fn shell(&mut self, args: &[Arg], rest: &[Arg], setting: &Setting, scope: &mut Scope) {
        self.signs.shell = true;
        for option in ["--rcfile", "--init-file"] {
            for file in peel::option_values(rest, option) {
                if file.taint.hidden() || super::flow::file_taint(&file, scope).hidden() {
                    self.hidden(args);
                }
                self.stored(&file, None, args, scope);
            }
        }
        let call = ShellCall::new(rest);
        let Some((script, parameters)) = call.operands.split_first() else {
            return self.program_text(args, setting, scope);
        };
        if call.command {
            let mut inner = scope.clone();
            set_parameters(&mut inner, parameters);
            self.code(script, &mut inner, &setting.input);
            if super::flow::taint_of(parameters).hidden()
                || setting.input.taint.hidden() && script.unknown
            {
                self.hidden(args);
            }
        } else if call.standard_input || script.text == "-" || script.text.starts_with("/dev/") {
            self.program_text(args, setting, scope);
        } else {
            self.stored(script, None, args, scope);
        }
        if script.taint.hidden() || super::flow::file_taint(script, scope).fetched {
            self.hidden(args);
        }
    }

    /// A shell or interpreter that runs what it reads.
    pub(super) fn program_text(&mut self, args: &[Arg], setting: &Setting, scope: &mut Scope) {
        if setting.input.taint.hidden() {
            self.hidden(args);
        }
        for text in setting.input.texts() {
            self.text(text, &mut scope.clone(), &Feed::default());
        }
    }

    /// Builtins that run text, change the scope, or both.
    fn builtin(
        &mut self,
        program: &str,
        args: &[Arg],
        rest: &[Arg],
        setting: &Setting,
        scope: &mut Scope,
    ) {
        let operands = || rest.iter().filter(|arg| !arg.text.starts_with('-'));
        match program {
            "cd" | "pushd" | "chdir" => {
                let target = operands().next();
                let path = match target {
                    Some(arg) => arg.as_known().map(str::to_owned),
                    None => Some(scope.home.clone()),
                };
                scope.change_directory(path.as_deref());
            }
            "at" | "batch" => self.program_text(args, setting, scope),
            "popd" => scope.change_directory(None),
            "source" | "." => {
                let file = operands().next();
                let hidden = file.is_some_and(|arg| {
                    arg.taint.hidden() || super::flow::file_taint(arg, scope).fetched
                });
                if hidden {
                    self.hidden(args);
                }
                if file.is_some_and(|arg| arg.text.starts_with("/dev/")) {
                    self.program_text(args, setting, scope);
                }
                if let Some(file) = file {
                    self.stored(file, None, args, scope);
                }
            }
            "trap" => {
                if let Some(action) = operands().next() {
                    self.code(action, scope, &Feed::default());
                }
            }
            "alias" | "export" | "declare" | "typeset" | "local" | "readonly" => {
                for arg in operands() {
                    self.definition(program, arg, scope);
                }
            }
            "read" | "mapfile" | "readarray" => self.reads(rest, setting, scope),
            "printf" => {
                let (option, words) = rest.split_at_checked(2).unwrap_or((rest, &[]));
                if let [dash, name] = option
                    && dash.text == "-v"
                {
                    let text = super::flow::printf(words);
                    let value = Value {
                        choices: text.into_iter().collect(),
                        taint: super::flow::taint_of(words),
                        spread: false,
                    };
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
                let parameters: Vec<Arg> = rest
                    .iter()
                    .skip_while(|arg| arg.text != "--")
                    .skip(1)
                    .cloned()
                    .collect();
                set_parameters(scope, &[vec![Arg::literal("bash")], parameters].concat());
            }
            "enable" | "hash" | "bind" | "complete" => {
                for option in ["-p", "-x", "-C", "-f"] {
                    for value in peel::option_values(rest, option) {
                        self.code(&value, scope, &Feed::default());
                    }
                }
            }
            _ => {}
        }
    }
}

/// Sets `$0`, `$1`, … and `$@`.
pub(super) fn set_parameters(scope: &mut Scope, parameters: &[Arg]) {
    let value = |args: &[Arg]| Value {
        spread: args.iter().any(|arg| arg.glob),
        taint: super::flow::taint_of(args),
        choices: if args.iter().all(|arg| !arg.unknown) {
            args.iter().map(|arg| arg.text.clone()).collect()
        } else {
            Vec::new()
        },
    };
    for (index, arg) in parameters.iter().enumerate() {
        scope.bind(&index.to_string(), value(std::slice::from_ref(arg)));
    }
    let rest = parameters.get(1..).unwrap_or_default();
    for name in ["@", "*"] {
        scope.bind(name, value(rest));
    }
}

/// How a shell is called.
struct ShellCall<'a> {
    /// `-c`: the first operand is the program's text.
    command: bool,
    /// `-s`: the program is read, whatever the operands are.
    standard_input: bool,
    operands: &'a [Arg],
}

impl<'a> ShellCall<'a> {
    fn new(args: &'a [Arg]) -> Self {
        let mut call = Self {
            command: false,
            standard_input: false,
            operands: args,
        };
        while let Some((first, after)) = call.operands.split_first() {
            let text = first.text.as_str();
            if !text.starts_with(['-', '+']) || text == "-" {
                break;
            }
            call.operands = after;
            let mut skip = matches!(text, "--rcfile" | "--init-file" | "-Command" | "-File");
            if text == "--" {
                break;
            }
            call.command |= text.eq_ignore_ascii_case("-command") || text == "--command";
            if let Some(letters) = cluster(text).or(text.strip_prefix('+')) {
                call.command |= letters.contains('c');
                call.standard_input |= letters.contains('s');
                skip |= letters.ends_with(['o', 'O']);
            }
            if skip && !call.command {
                call.operands = after.get(1..).unwrap_or_default();
            }
        }
        call
    }
}

/// Joins arguments for a search in their text.
pub(super) fn all_text(args: &[Arg]) -> String {
    joined(args).text
}
