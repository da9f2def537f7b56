//! What git commands lose or make others run. Reading subcommands are in [`super::safe`], those that lose in the table.

use super::command::{Invocation, shown};
use super::expand::Arg;
use super::flow::Feed;
use super::peel::option_values;
use super::scope::Scope;
use super::table::{TABLE, has, is_option, wildcard};
use super::walk::Walk;

fn subcommand(rest: &[Arg]) -> Option<(&str, &[Arg])> {
    let mut rest = rest;
    while let Some((first, after)) = rest.split_first() {
        if !first.text.starts_with('-') {
            return Some((&first.text, after));
        }
        let valued = usize::from(has(&TABLE.git.global_values, &first.text));
        rest = after.get(valued..).unwrap_or_default();
    }
    None
}

impl Walk<'_> {
    pub(super) fn git(&mut self, it: &Invocation<'_>, scope: &Scope) {
        if it.program != "git" {
            return;
        }
        for value in option_values(it.rest, "-c") {
            if let Some((_, program)) = value.text.split_once('=') {
                self.configured(program, scope);
            }
        }
        let Some((name, words)) = subcommand(it.rest) else {
            return;
        };
        // The table has subcommands as programs, so that git's own options are not taken for theirs.
        for rule in TABLE.rules(&format!("git-{name}"), words) {
            self.find(rule.level, &rule.id, &shown(it.args), &rule.reason);
        }
        let sweeps = match name {
            "checkout" => discards(words),
            "rm" => words.iter().any(|arg| arg.glob || arg.unknown),
            _ => false,
        };
        if sweeps {
            let reason = "rewrites history, or discards work that cannot be brought back";
            self.dangerous(it.args, "git-history", reason);
        }
        if name == "config" {
            self.git_config(it, words, scope);
        }
    }

    fn configured(&mut self, value: &str, scope: &Scope) {
        let text = value.trim_start_matches('!');
        self.text(text, &mut scope.clone(), &Feed::default());
    }

    fn git_config(&mut self, it: &Invocation<'_>, words: &[Arg], scope: &Scope) {
        let reads = |arg: &Arg| has(&TABLE.git.config_reads, &arg.text);
        if words.iter().any(reads) {
            return;
        }
        let given = |option| words.iter().any(|arg| is_option(&arg.text, option));
        let global = given("--global") || given("--system");
        // Settings are kept where `--file` says; the project's own are no more than without it.
        let files = option_values(words, "-f").chain(option_values(words, "--file"));
        for file in files.filter(|file| !file.text.ends_with(".git/config")) {
            self.written(&file, &shown(it.args), scope);
        }
        let operands = config_operands(words);
        let unsets = |arg: &Arg| arg.text.contains("unset") || arg.text.contains("section");
        if operands.len() < 2 && !words.iter().any(unsets) {
            return;
        }
        if global {
            self.dangerous(it.args, "git-config", "changes the user's git");
        }
        let Some(key) = operands.iter().find(|arg| arg.text.contains('.')) else {
            return;
        };
        let folded = key.text.to_ascii_lowercase();
        let mut running = TABLE.git.running_keys.iter();
        if key.unknown || running.any(|pattern| wildcard(pattern, &folded)) {
            let reason = "names a program for git to run";
            self.dangerous(it.args, "git-config", reason);
        }
        for value in operands.iter().skip(1) {
            self.configured(&value.text, scope);
        }
    }
}

/// Returns what `git config` is told beyond its options and their values: keys and values of settings.
fn config_operands(words: &[Arg]) -> Vec<&Arg> {
    let mut operands = Vec::new();
    let mut rest = words.iter();
    while let Some(arg) = rest.next() {
        if has(&TABLE.git.config_values, &arg.text) {
            rest.next();
        } else if !arg.text.starts_with('-') && arg.text != "set" {
            operands.push(arg);
        }
    }
    operands
}

/// Whether `git checkout` names files rather than a branch.
fn discards(words: &[Arg]) -> bool {
    let makes = ["-b", "-t", "--orphan", "--track"];
    let given = |arg: &Arg| makes.iter().any(|option| is_option(&arg.text, option));
    if words.iter().any(given) {
        return false;
    }
    let dashes = words.iter().position(|arg| arg.text == "--");
    let operands = || words.iter().filter(|arg| !arg.text.starts_with('-'));
    let is_path = |arg: &Arg| {
        let text = arg.text.as_str();
        let extension = text.rsplit_once('.').is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && extension.starts_with(|c: char| c.is_ascii_alphabetic())
                && !extension.contains('/')
        });
        let mut starts = ["./", "../", ":("].iter();
        arg.glob
            || extension
            || matches!(text, "." | ".." | ":/" | "*")
            || text.ends_with('/')
            || starts.any(|start| text.starts_with(start))
    };
    dashes.is_some_and(|at| words.len() > at + 1)
        || operands().count() > 1
        || operands().any(is_path)
}
