//! Removing and moving: what is lost decides between dangerous and blocked.

use super::command::shown;
use super::expand::{Arg, UNKNOWN};
use super::paths;
use super::peel::find_roots;
use super::scope::Scope;
use super::table::{cluster, wildcard};
use super::walk::Walk;
use crate::DangerLevel::{Blocked, Dangerous};

const PROTECTED: &str = "removes or moves a system directory or a home";

/// Whether the word is the long option or one of its abbreviations.
pub(super) fn abbreviates(word: &str, option: &str) -> bool {
    word.len() > 2 && word.starts_with("--") && option.starts_with(word)
}

impl Walk<'_> {
    /// Programs that remove or move files.
    pub(super) fn removal(&mut self, program: &str, args: &[Arg], rest: &[Arg], scope: &Scope) {
        match program {
            "rm" | "grm" | "unlink" | "rmdir" | "trash" | "trash-put" | "gio" => {
                self.remove(program, args, rest, scope);
            }
            "shred" | "srm" if operands_of(rest).any(|arg| arg.glob) => {
                self.remove(program, args, rest, scope);
            }
            "rsync" => self.mirror(args, rest, scope),
            "find" | "gfind" => self.find_delete(args, rest, scope),
            "mv" | "gmv" | "rename" => self.move_away(args, rest, scope),
            "dd" => self.copy_device(args, rest, scope),
            "truncate" => self.truncate(args, rest),
            "cp" | "install" | "ln" => self.copy(args, rest),
            "tar" | "bsdtar" | "zip" => {
                let removes = |arg: &Arg| {
                    matches!(
                        arg.text.as_str(),
                        "--remove-files" | "--move" | "--recursive-unlink"
                    )
                };
                if rest.iter().any(removes) {
                    self.find(Dangerous, "removal", &shown(args), "removes what it packs");
                }
            }
            _ => {}
        }
    }

    fn remove(&mut self, program: &str, args: &[Arg], rest: &[Arg], scope: &Scope) {
        let has = |letters: &str, long: &str| {
            let options = rest.iter().take_while(|arg| arg.text != "--");
            options.into_iter().any(|arg| {
                cluster(&arg.text).is_some_and(|given| given.contains(|c| letters.contains(c)))
                    || abbreviates(&arg.text, long)
            })
        };
        let recursive = program == "rm" && has("rR", "--recursive");
        let forced = program == "rm" && has("f", "--force");
        let operands = || operands_of(rest);
        let sweeping = operands().any(|arg| arg.glob || arg.unknown);
        // What the line makes up may be any name where it is.
        let here = paths::protected(&Arg::literal("."), scope);
        let names_any = |arg: &Arg| arg.made && arg.text.starts_with(UNKNOWN);
        let protected =
            operands().any(|arg| paths::protected(arg, scope) || here && names_any(arg));
        let everything = operands().any(|arg| paths::names_everything(&arg.text));
        let above_root = rest
            .iter()
            .any(|arg| abbreviates(&arg.text, "--no-preserve-root") && arg.text.len() > 4);
        if protected && (recursive || sweeping || everything) || above_root {
            self.find(Blocked, "protected-tree", &shown(args), PROTECTED);
        } else if recursive || forced || sweeping || protected {
            let reason = match (recursive, protected) {
                (true, _) => "removes a whole tree",
                (_, true) => "removes a system file",
                _ => "removes without asking, or more than is named",
            };
            self.find(Dangerous, "removal", &shown(args), reason);
        }
    }

    /// `rsync --delete` removes what the source does not have.
    fn mirror(&mut self, args: &[Arg], rest: &[Arg], scope: &Scope) {
        let deletes = rest.iter().any(|arg| arg.text.starts_with("--del"));
        let target = operands_of(rest).last();
        if deletes && target.is_some_and(|target| paths::protected(target, scope)) {
            self.find(Blocked, "protected-tree", &shown(args), PROTECTED);
        }
    }

    fn find_delete(&mut self, args: &[Arg], rest: &[Arg], scope: &Scope) {
        if !rest.iter().any(|arg| arg.text == "-delete") {
            return;
        }
        if find_roots(rest)
            .iter()
            .any(|arg| paths::protected(arg, scope))
        {
            self.find(Blocked, "protected-tree", &shown(args), PROTECTED);
        } else {
            self.find(
                Dangerous,
                "removal",
                &shown(args),
                "removes every file it finds",
            );
        }
    }

    fn move_away(&mut self, args: &[Arg], rest: &[Arg], scope: &Scope) {
        let (sources, targets) = sources_and_targets(rest);
        if sources.iter().any(|arg| paths::protected(arg, scope)) {
            return self.find(Blocked, "protected-tree", &shown(args), PROTECTED);
        }
        let roots = [
            self.surroundings.project_root,
            self.surroundings.central_root,
        ];
        if targets.iter().any(|arg| paths::outside(arg, scope, &roots)) {
            self.find(
                Dangerous,
                "removal",
                &shown(args),
                "moves files out of the project",
            );
        }
    }

    fn copy(&mut self, args: &[Arg], rest: &[Arg]) {
        let (sources, _) = sources_and_targets(rest);
        if sources.iter().any(|arg| arg.text == "/dev/null") {
            self.find(Dangerous, "removal", &shown(args), "empties a file");
        }
    }

    fn copy_device(&mut self, args: &[Arg], rest: &[Arg], scope: &Scope) {
        let from = |names: &[&str]| {
            rest.iter()
                .filter_map(|arg| arg.text.strip_prefix("if="))
                .any(|source| names.iter().any(|name| wildcard(name, source)))
        };
        let target = rest
            .iter()
            .filter_map(|arg| arg.text.strip_prefix("of="))
            .find(|target| *target != "/dev/null");
        let into_file =
            target.is_some_and(|target| !paths::data_device(&Arg::literal(target), scope));
        if into_file && from(&["/dev/zero", "/dev/null", "/dev/*random", "/dev/full"]) {
            let reason = "overwrites a file with noise or zeros";
            self.find(Dangerous, "removal", &shown(args), reason);
        }
    }

    fn truncate(&mut self, args: &[Arg], rest: &[Arg]) {
        let empties = super::peel::option_values(rest, "-s")
            .chain(super::peel::option_values(rest, "--size"))
            .any(|size| {
                let digits = size.text.trim_start_matches(['<', '%', '/']);
                digits
                    .trim_end_matches(char::is_alphabetic)
                    .trim_matches('0')
                    .is_empty()
                    || size.text.starts_with(['-', '<'])
                    || size.unknown
            });
        if empties {
            self.find(Dangerous, "removal", &shown(args), "empties or cuts a file");
        }
    }

    /// A redirection to a file: what the command writes there, and what that does to the file.
    pub(super) fn redirected(
        &mut self,
        target: &Arg,
        args: &[Arg],
        feed: &super::flow::Feed,
        scope: &Scope,
    ) {
        let program = super::peel::program(args).map(|(name, _)| name);
        let quiet = match program.as_deref() {
            None => args.is_empty(),
            Some(":" | "true") => true,
            Some("cat") => args.iter().any(|arg| arg.text.starts_with("/dev/")),
            Some(_) => false,
        };
        let null = target.text.starts_with("/dev/");
        if quiet && !null && !feed.connected {
            self.find(Dangerous, "removal", &shown(args), "empties a file");
        }
        if paths::network_path(target) {
            self.signs.network_path = true;
            let announces = matches!(
                program.as_deref(),
                None | Some("echo" | "printf" | ":" | "true" | "exec")
            );
            if !announces || feed.taint.secret {
                self.find(
                    Dangerous,
                    "upload",
                    &target.text,
                    "sends what it reads to another machine",
                );
            }
        }
        let secret = args.iter().any(|arg| paths::denied(arg, scope).is_some());
        if secret && paths::network_path(target) {
            self.find(Dangerous, "upload", &target.text, "sends a secret away");
        }
    }
}

/// Returns the words that are no options: all of them behind `--`.
fn operands_of(rest: &[Arg]) -> impl Iterator<Item = &Arg> {
    let dashes = rest.iter().position(|arg| arg.text == "--");
    let end = dashes.unwrap_or(rest.len());
    rest.iter()
        .enumerate()
        .filter(move |(index, arg)| *index > end || !arg.text.starts_with('-'))
        .map(|(_, arg)| arg)
}

/// Splits the operands of `cp`, `mv` and their kin.
pub(super) fn sources_and_targets(rest: &[Arg]) -> (Vec<Arg>, Vec<Arg>) {
    let targets: Vec<Arg> = super::peel::option_values(rest, "-t")
        .chain(super::peel::option_values(rest, "--target-directory"))
        .collect();
    let mut operands: Vec<Arg> = rest
        .iter()
        .filter(|arg| !arg.text.starts_with('-'))
        .cloned()
        .collect();
    if !targets.is_empty() {
        operands.retain(|arg| !targets.iter().any(|target| target.text == arg.text));
        return (operands, targets);
    }
    let target = operands.pop();
    (operands, target.into_iter().collect())
}
