//! What one command means: wrappers are peeled, shell text is walked, then the rules are asked.

use super::expand::{Arg, UNKNOWN};
use super::flow::Feed;
use super::peel::{self, Peeled, joined};
use super::scope::{Scope, Value};
use super::table::{TABLE, cluster, has};
use super::walk::Walk;
use super::{SimpleCommand, Word};
use crate::message::DangerLevel::{Blocked, Dangerous};

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
        self.deeper(&name, |walk| match peel::program(args) {
            Some((program, rest)) => walk.named(&program, args, rest, setting, scope),
            None => walk.unnamed(args, setting, scope),
        });
    }

    /// A command whose program is not known.
    fn unnamed(&mut self, args: &[Arg], setting: &Setting, scope: &mut Scope) {
        let Some(first) = args.first() else { return };
        if first.taint.hidden() {
            self.hidden(args);
        }
        // Unquoted words may turn out empty: then the first that cannot is the program.
        let empty = args.iter().take_while(|arg| arg.loose).count();
        if empty > 0 {
            self.command(args.get(empty..).unwrap_or_default(), setting, scope);
        }
    }

    fn named(
        &mut self,
        program: &str,
        args: &[Arg],
        rest: &[Arg],
        setting: &Setting,
        scope: &mut Scope,
    ) {
        self.itself(args, setting, scope);
        self.downloaded(args, scope);
        for inner in peel::peel(program, rest, &setting.input) {
            match inner {
                Peeled::Command(inner) => self.command(&inner, setting, scope),
                Peeled::Text(text) => self.code(&text, scope, &setting.input),
            }
        }
        let table: &'static super::table::Table = &TABLE;
        for rule in table.rules(program, rest) {
            self.find(rule.level, &rule.id, &shown(args), &rule.reason);
        }
        if program == "eval" && super::flow::taint_of(rest).hidden() {
            self.hidden(args);
        }
        if has(&TABLE.programs.shells, program) {
            self.shell(args, rest, setting, scope);
        }
        self.builtin(program, args, rest, setting, scope);
        self.interpreter(program, args, rest, setting, scope);
        self.removal(program, args, rest, scope);
        self.system(program, args, rest, scope);
        self.writing(program, args, rest, setting, scope);
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
        // Editors and git mark shell text by `!`, ssh and others name it: `ProxyCommand=…`.
        let plain = text.text.trim_start_matches(['!', ':']);
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

    /// A function that starts itself beside itself.
    fn itself(&mut self, args: &[Arg], setting: &Setting, scope: &Scope) {
        let calls_itself = args
            .first()
            .is_some_and(|arg| scope.functions.contains(&arg.text));
        if calls_itself && setting.parallel {
            self.find(
                Blocked,
                "fork-bomb",
                &shown(args),
                "starts itself again and again",
            );
        }
    }

    /// A program or script that the same line downloaded.
    fn downloaded(&mut self, args: &[Arg], scope: &Scope) {
        let path = args.first().filter(|arg| arg.text.contains('/'));
        if path.is_some_and(|arg| super::flow::file_taint(arg, scope).fetched) {
            self.hidden(args);
        }
    }

    fn shell(&mut self, args: &[Arg], rest: &[Arg], setting: &Setting, scope: &mut Scope) {
        self.signs.shell = true;
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
        if let Some(text) = &setting.input.text {
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
            "read" | "mapfile" | "readarray" => {
                for arg in operands() {
                    let value = Value {
                        choices: setting.input.text.iter().cloned().collect(),
                        taint: setting.input.taint,
                        spread: false,
                    };
                    scope.bind(&arg.text, value);
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

    /// `NAME=value` as an argument.
    fn definition(&mut self, program: &str, arg: &Arg, scope: &mut Scope) {
        let Some((name, value)) = arg.text.split_once('=') else {
            return;
        };
        let text = Arg {
            text: value.to_owned(),
            ..arg.clone()
        };
        if program == "alias" || has(&TABLE.environment.runs, name) {
            self.code(&text, scope, &Feed::default());
        }
        let choices = if arg.unknown {
            Vec::new()
        } else {
            vec![value.to_owned()]
        };
        let value = Value {
            choices,
            taint: arg.taint,
            spread: false,
        };
        scope.bind(name, value);
    }

    /// Programs that change processes, modes or the machine, beyond what the tables say.
    fn system(&mut self, program: &str, args: &[Arg], rest: &[Arg], scope: &Scope) {
        match program {
            "kill" => self.kill(args, rest),
            "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "xattr" => {
                self.mode(args, rest, scope);
            }
            "mkfifo" | "mknod" => self.signs.named_pipe = true,
            "nc" | "ncat" | "netcat" | "telnet" | "socat" => self.signs.netcat = true,
            "openssl" if rest.first().is_some_and(|arg| arg.text == "s_client") => {
                self.signs.netcat = true;
            }
            "crontab" => {
                let lists = rest.iter().any(|arg| arg.text == "-l" || arg.text == "-e");
                if !lists {
                    let reason = "replaces the schedule of the user";
                    self.find(Dangerous, "schedule", &shown(args), reason);
                }
            }
            "docker" | "podman" | "nerdctl" => {
                let mounts = |arg: &Arg| {
                    arg.text
                        .trim_start_matches("-v")
                        .trim_start_matches("--volume=")
                        .starts_with("/:")
                        || arg.text.contains("docker.sock")
                        || arg.text.contains("source=/,")
                        || arg.text.contains("src=/,")
                };
                if rest.iter().any(mounts) {
                    let reason = "gives a container the whole machine";
                    self.find(Dangerous, "container", &shown(args), reason);
                }
            }
            _ => {}
        }
        let script = args
            .first()
            .is_some_and(|arg| arg.text.contains("/init.d/"));
        let stops = |arg: &Arg| matches!(arg.text.as_str(), "stop" | "restart" | "force-stop");
        if script && rest.iter().any(stops) {
            let reason = "stops or changes services of the machine";
            self.find(Dangerous, "service", &shown(args), reason);
        }
    }

    fn kill(&mut self, args: &[Arg], rest: &[Arg]) {
        let mut targets = rest;
        if let Some((first, after)) = rest.split_first()
            && first.text.starts_with('-')
        {
            targets = match first.text.as_str() {
                "-s" | "-n" => after.get(1..).unwrap_or_default(),
                _ => after,
            };
        }
        for target in targets {
            let text = target.text.as_str();
            let substituted = target.word.as_ref().is_none_or(
                |word| matches!(word, Word::Dynamic(source) if source.contains(['(', '`'])),
            );
            if text == "1" {
                self.find(Blocked, "power", &shown(args), "kills the first process");
            } else if text == "-1" || (target.unknown && substituted) {
                let reason = "kills processes by name or all of them";
                self.find(Dangerous, "process", &shown(args), reason);
            }
        }
    }

    fn mode(&mut self, args: &[Arg], rest: &[Arg], scope: &Scope) {
        let recursive = rest.iter().any(|arg| {
            cluster(&arg.text).is_some_and(|letters| letters.contains('R'))
                || super::removal::abbreviates(&arg.text, "--recursive")
        });
        let mut operands = rest.iter().filter(|arg| !arg.text.starts_with('-'));
        let mode = operands.next();
        let protected = operands.any(|arg| super::paths::protected(arg, scope));
        let special = mode.is_some_and(|mode| sets_identity(&mode.text));
        match (recursive, protected) {
            (true, true) => self.find(
                Blocked,
                "protected-tree",
                &shown(args),
                "changes a system directory or a home",
            ),
            (false, false) if !special => {}
            (true, false) => self.find(
                Dangerous,
                "mode",
                &shown(args),
                "changes the mode or owner of a whole tree",
            ),
            _ => self.find(
                Dangerous,
                "mode",
                &shown(args),
                "changes a system file, or what identity a program runs with",
            ),
        }
    }
}

/// Whether a mode sets the set-user-id or set-group-id bit.
fn sets_identity(mode: &str) -> bool {
    let octal = mode.len() >= 4 && mode.chars().all(|c| c.is_digit(8));
    let digit = mode.chars().rev().nth(3).unwrap_or('0');
    octal && matches!(digit, '2' | '4' | '6' | '3' | '5' | '7')
        || mode.contains('+') && mode.split('+').skip(1).any(|bits| bits.contains('s'))
}

/// Sets `$0`, `$1`, … and `$@`.
fn set_parameters(scope: &mut Scope, parameters: &[Arg]) {
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
