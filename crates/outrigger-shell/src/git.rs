//! What git commands lose or make others run. Reading subcommands are in [`super::safe`].

use super::command::shown;
use super::expand::Arg;
use super::flow::Feed;
use super::peel::option_values;
use super::removal::abbreviates;
use super::scope::Scope;
use super::table::{cluster, wildcard};
use super::walk::Walk;
use crate::DangerLevel::Dangerous;

/// Options before the subcommand that take the next word.
pub(super) const GLOBAL_VALUES: [&str; 10] = [
    "-C",
    "-c",
    "--git-dir",
    "--work-tree",
    "--namespace",
    "--exec-path",
    "--config-env",
    "--super-prefix",
    "--attr-source",
    "--shallow-file",
];

/// Options of `git config` that take the next word.
const CONFIG_VALUES: [&str; 9] = [
    "-f",
    "--file",
    "--blob",
    "--type",
    "-t",
    "--default",
    "--comment",
    "--value",
    "--url",
];

/// Configuration keys that name a program or a place from which code is loaded.
const RUNNING_KEYS: [&str; 40] = [
    "core.hookspath",
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.askpass",
    "core.gitproxy",
    "core.attributesfile",
    "core.worktree",
    "core.alternaterefscommand",
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    "merge.*.driver",
    "filter.*.clean",
    "filter.*.smudge",
    "filter.*.process",
    "alias.*",
    "credential.helper",
    "credential.*.helper",
    "gpg.program",
    "gpg.*.program",
    "gpg.ssh.defaultkeycommand",
    "sequence.editor",
    "pager.*",
    "interactive.difffilter",
    "mergetool.*",
    "difftool.*",
    "include.path",
    "includeif.*",
    "init.templatedir",
    "remote.*.uploadpack",
    "remote.*.receivepack",
    "url.*",
    "protocol.*",
    "http.proxy",
    "submodule.*.update",
    "uploadpack.packobjectshook",
    "safe.directory",
    "trailer.*",
];

/// Splits git's arguments into subcommand and the rest; also what `-c` sets.
pub(super) fn subcommand(rest: &[Arg]) -> Option<(&Arg, &[Arg])> {
    let mut rest = rest;
    loop {
        let (first, after) = rest.split_first()?;
        if !first.text.starts_with('-') {
            return Some((first, after));
        }
        rest = if GLOBAL_VALUES.contains(&first.text.as_str()) {
            after.get(1..).unwrap_or_default()
        } else {
            after
        };
    }
}

fn short(args: &[Arg], letter: char) -> bool {
    args.iter()
        .take_while(|arg| arg.text != "--")
        .any(|arg| cluster(&arg.text).is_some_and(|letters| letters.contains(letter)))
}

fn long(args: &[Arg], option: &str) -> bool {
    args.iter().any(|arg| {
        let name = arg
            .text
            .split_once('=')
            .map_or(arg.text.as_str(), |(name, _)| name);
        abbreviates(name, option) && name.len() >= 5
    })
}

impl Walk<'_> {
    pub(super) fn git(&mut self, args: &[Arg], rest: &[Arg], scope: &mut Scope) {
        for value in option_values(rest, "-c") {
            if let Some((_, program)) = value.text.split_once('=') {
                let text = program.trim_start_matches('!');
                self.text(text, &mut scope.clone(), &Feed::default());
            }
        }
        let Some((name, words)) = subcommand(rest) else {
            return;
        };
        if let Some(reason) = loses(&name.text, words) {
            self.find(Dangerous, "git-history", &shown(args), reason);
        }
        let talks = matches!(
            name.text.as_str(),
            "clone"
                | "fetch"
                | "pull"
                | "push"
                | "ls-remote"
                | "archive"
                | "fetch-pack"
                | "send-pack"
                | "init"
                | "submodule"
                | "remote"
                | "bundle"
        );
        let names_program = words.iter().any(|arg| {
            ["--upload-pack", "--receive-pack", "--exec", "--template"]
                .iter()
                .any(|option| {
                    let name = arg
                        .text
                        .split_once('=')
                        .map_or(&*arg.text, |(name, _)| name);
                    abbreviates(name, option) && name.len() >= 5
                })
        }) || (name.text == "clone"
            && words.iter().any(|arg| arg.text.starts_with("-u")));
        if talks && names_program {
            let reason = "names a program for git to run";
            self.find(Dangerous, "git-config", &shown(args), reason);
        }
        match name.text.as_str() {
            "config" => self.git_config(args, words, scope),
            "remote" if words.iter().any(|arg| arg.text.contains("ext::")) => {
                self.find(
                    Dangerous,
                    "git-config",
                    &shown(args),
                    "names a program for git to run",
                );
            }
            "clone" | "fetch" | "pull" | "ls-remote"
                if words.iter().any(|arg| arg.text.starts_with("ext::")) =>
            {
                self.find(
                    Dangerous,
                    "git-config",
                    &shown(args),
                    "names a program for git to run",
                );
            }
            _ => {}
        }
    }

    fn git_config(&mut self, args: &[Arg], words: &[Arg], scope: &mut Scope) {
        let reads = words.iter().any(|arg| {
            [
                "--get",
                "--list",
                "-l",
                "list",
                "get",
                "--get-all",
                "--get-regexp",
                "--show-origin",
                "--name-only",
            ]
            .contains(&arg.text.as_str())
        });
        let operands = config_operands(words);
        let global = long(words, "--global") || long(words, "--system");
        if !reads {
            self.config_file(args, words, scope);
        }
        let Some(key) = operands.iter().find(|arg| arg.text.contains('.')) else {
            if !reads && global && operands.len() > 1 {
                self.find(
                    Dangerous,
                    "git-config",
                    &shown(args),
                    "changes the user's git",
                );
            }
            return;
        };
        let unsets = words
            .iter()
            .any(|arg| arg.text.contains("unset") || arg.text.contains("section"));
        if reads || (operands.len() < 2 && !unsets) {
            return;
        }
        let folded = key.text.to_ascii_lowercase();
        if global {
            self.find(
                Dangerous,
                "git-config",
                &shown(args),
                "changes the user's git",
            );
        }
        if RUNNING_KEYS
            .iter()
            .any(|pattern| wildcard(pattern, &folded))
            || key.unknown
        {
            self.find(
                Dangerous,
                "git-config",
                &shown(args),
                "names a program for git to run",
            );
        }
        for value in operands.iter().skip(1) {
            let text = value.text.trim_start_matches('!');
            self.text(text, &mut scope.clone(), &Feed::default());
        }
    }

    /// `--file`: settings are kept where it says; the project's own are no more than without it.
    fn config_file(&mut self, args: &[Arg], words: &[Arg], scope: &Scope) {
        let files = option_values(words, "-f").chain(option_values(words, "--file"));
        for file in files.filter(|file| !file.text.ends_with(".git/config")) {
            self.written(&file, &shown(args), scope);
        }
    }
}

/// Returns what `git config` is told beyond its options and their values: keys and values of settings.
fn config_operands(words: &[Arg]) -> Vec<&Arg> {
    let mut operands = Vec::new();
    let mut rest = words.iter();
    while let Some(arg) = rest.next() {
        if CONFIG_VALUES.contains(&arg.text.as_str()) {
            rest.next();
        } else if !arg.text.starts_with('-') && arg.text != "set" {
            operands.push(arg);
        }
    }
    operands
}

/// Says what a subcommand destroys, if it does.
fn loses(name: &str, words: &[Arg]) -> Option<&'static str> {
    let has = |word: &str| words.iter().any(|arg| arg.text == word);
    let first = words
        .first()
        .map(|arg| arg.text.as_str())
        .unwrap_or_default();
    let forced = short(words, 'f') || long(words, "--force");
    let lost = match name {
        "push" => {
            let refspec = |arg: &Arg| {
                arg.text.starts_with('+') || (arg.text.starts_with(':') && arg.text.len() > 1)
            };
            forced
                || long(words, "--force-with-lease")
                || long(words, "--force-if-includes")
                || short(words, 'd')
                || long(words, "--delete")
                || long(words, "--mirror")
                || long(words, "--prune")
                || words.iter().any(refspec)
        }
        "reset" => ["--hard", "--merge", "--keep"]
            .iter()
            .any(|option| long(words, option)),
        "clean" => {
            let dry = short(words, 'n') || long(words, "--dry-run");
            !dry
        }
        "checkout" => forced || short(words, 'B') || discards(words),
        "checkout-index" => forced || short(words, 'a'),
        "restore" => {
            let staged = long(words, "--staged") || short(words, 'S');
            let tree = long(words, "--worktree") || short(words, 'W');
            !staged || tree
        }
        "switch" => {
            forced
                || long(words, "--discard-changes")
                || short(words, 'C')
                || long(words, "--force-create")
        }
        "branch" => forced || short(words, 'D') || short(words, 'M') || short(words, 'C'),
        "tag" => forced || short(words, 'd') || long(words, "--delete"),
        "stash" => matches!(first, "drop" | "clear"),
        "reflog" => matches!(first, "expire" | "delete"),
        "gc" => words.iter().any(|arg| {
            arg.text
                .strip_prefix("--prune=")
                .is_some_and(|when| !when.contains("week") && !when.contains("month"))
        }),
        "prune" | "filter-branch" | "filter-repo" | "obliterate" | "fast-import" | "nuke"
        | "undo" => true,
        "update-ref" => short(words, 'd') || has("--stdin"),
        "symbolic-ref" => short(words, 'd') || long(words, "--delete"),
        "worktree" => first == "remove" && forced,
        "submodule" => has("deinit") && (forced || long(words, "--all")),
        "rm" => forced || short(words, 'r') || words.iter().any(|arg| arg.glob || arg.unknown),
        "read-tree" => long(words, "--reset"),
        "replace" => short(words, 'd') || forced,
        "notes" => matches!(first, "remove" | "prune"),
        "lfs" => first == "prune",
        "remote" => matches!(first, "remove" | "rm"),
        "svn" => first == "dcommit",
        "annex" => first == "drop",
        _ => false,
    };
    lost.then_some("rewrites history, or discards work that cannot be brought back")
}

/// Whether `git checkout` names files rather than a branch.
fn discards(words: &[Arg]) -> bool {
    let creates =
        short(words, 'b') || short(words, 't') || long(words, "--orphan") || long(words, "--track");
    if creates {
        return false;
    }
    let after_dashes = words
        .iter()
        .position(|arg| arg.text == "--")
        .is_some_and(|at| words.len() > at + 1);
    let operands: Vec<&Arg> = words
        .iter()
        .filter(|arg| !arg.text.starts_with('-'))
        .collect();
    let is_path = |arg: &&Arg| {
        let text = arg.text.as_str();
        let extension = text.rsplit_once('.').is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && extension.starts_with(|c: char| c.is_ascii_alphabetic())
                && !extension.contains('/')
        });
        matches!(text, "." | ".." | ":/" | "*")
            || text.starts_with("./")
            || text.starts_with("../")
            || text.starts_with(":(")
            || text.ends_with('/')
            || arg.glob
            || extension
    };
    after_dashes || operands.len() > 1 || operands.iter().any(is_path)
}
