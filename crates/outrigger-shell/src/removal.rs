//! Removing and moving: what is lost decides between dangerous and blocked.

use super::command::Invocation;
use super::expand::{Arg, UNKNOWN};
use super::flow::Feed;
use super::paths;
use super::peel::{self, find_roots};
use super::scope::Scope;
use super::table::{is_option, wildcard};
use super::walk::Walk;
use crate::DangerLevel;

const PROTECTED: &str = "removes or moves a system directory or a home";

impl Walk<'_> {
    pub(super) fn removal(&mut self, it: &Invocation<'_>, scope: &Scope) {
        let protected = |arg: &Arg| paths::protected(arg, scope);
        match it.program {
            "rm" | "unlink" | "rmdir" | "trash" | "trash-put" | "gio" => self.remove(it, scope),
            "shred" | "srm" if it.operands().any(|arg| arg.glob) => self.remove(it, scope),
            // `--delete` removes what the source does not have.
            "rsync"
                if it.rest.iter().any(|arg| arg.text.starts_with("--del"))
                    && it.operands().last().is_some_and(protected) =>
            {
                self.blocked(it.args, "protected-tree", PROTECTED);
            }
            "find" if it.names(&["-delete"]) => {
                if find_roots(it.rest).iter().any(protected) {
                    self.blocked(it.args, "protected-tree", PROTECTED);
                } else {
                    self.dangerous(it.args, "removal", "removes every file it finds");
                }
            }
            "mv" | "rename" => self.move_away(it, scope),
            "dd" => self.copy_device(it, scope),
            "truncate" => self.truncate(it),
            "cp" | "install" | "ln" => {
                let (sources, _) = sources_and_targets(it);
                if sources.iter().any(|arg| arg.text == "/dev/null") {
                    self.dangerous(it.args, "removal", "empties a file");
                }
            }
            _ => {}
        }
    }

    fn remove(&mut self, it: &Invocation<'_>, scope: &Scope) {
        let end = it.rest.iter().position(|arg| arg.text == "--");
        let options = it.rest.get(..end.unwrap_or(it.rest.len()));
        let has = |names: &[&str]| {
            let mut options = options.unwrap_or_default().iter();
            options.any(|arg| names.iter().any(|name| abbreviates(&arg.text, name)))
        };
        let recursive = it.program == "rm" && has(&["-r", "-R", "--recursive"]);
        let forced = it.program == "rm" && has(&["-f", "--force"]);
        let sweeping = it.operands().any(|arg| arg.glob || arg.unknown);
        // What the line makes up may be any name where it is.
        let here = paths::protected(&Arg::literal("."), scope);
        let names_any = |arg: &Arg| arg.made && arg.text.starts_with(UNKNOWN);
        let protected = it
            .operands()
            .any(|arg| paths::protected(arg, scope) || here && names_any(arg));
        let everything = it.operands().any(|arg| paths::names_everything(&arg.text));
        let above_root = it.rest.iter().any(|arg| arg.text.starts_with("--no"));
        if protected && (recursive || sweeping || everything) || above_root {
            self.blocked(it.args, "protected-tree", PROTECTED);
        } else if recursive || forced || sweeping || protected {
            let reason = match (recursive, protected) {
                (true, _) => "removes a whole tree",
                (_, true) => "removes a system file",
                _ => "removes without asking, or more than is named",
            };
            self.dangerous(it.args, "removal", reason);
        } else if it.operands().any(|arg| paths::runs_later(arg, scope)) {
            let reason = "removes what another program runs or trusts later";
            self.dangerous(it.args, "removal", reason);
        }
    }

    fn move_away(&mut self, it: &Invocation<'_>, scope: &Scope) {
        let (sources, targets) = sources_and_targets(it);
        let known = self.surroundings;
        let roots = [known.project_root, known.central_root];
        if sources.iter().any(|arg| paths::protected(arg, scope)) {
            self.blocked(it.args, "protected-tree", PROTECTED);
        } else if targets.iter().any(|arg| paths::outside(arg, scope, &roots)) {
            self.dangerous(it.args, "removal", "moves files out of the project");
        } else if sources.iter().any(|arg| paths::runs_later(arg, scope)) {
            let reason = "moves away what another program runs or trusts later";
            self.dangerous(it.args, "removal", reason);
        }
    }

    fn copy_device(&mut self, it: &Invocation<'_>, scope: &Scope) {
        let operand = |start| {
            let mut words = it.rest.iter();
            words.find_map(|arg| arg.text.strip_prefix(start))
        };
        let empty = ["/dev/zero", "/dev/null", "/dev/*random", "/dev/full"];
        let source = operand("if=").unwrap_or_default();
        let target = operand("of=").filter(|target| *target != "/dev/null");
        let into_file = target.is_some_and(|it| !paths::data_device(&Arg::literal(it), scope));
        if into_file && empty.iter().any(|name| wildcard(name, source)) {
            let reason = "overwrites a file with noise or zeros";
            self.dangerous(it.args, "removal", reason);
        }
    }

    fn truncate(&mut self, it: &Invocation<'_>) {
        let cuts = |size: &Arg| {
            let digits = size.text.trim_start_matches(['<', '%', '/']);
            let digits = digits.trim_end_matches(char::is_alphabetic);
            size.unknown || size.text.starts_with(['-', '<']) || digits.trim_matches('0').is_empty()
        };
        if it.values(&["-s", "--size"]).iter().any(cuts) {
            self.dangerous(it.args, "removal", "empties or cuts a file");
        }
    }

    /// A redirection to a file: what the command writes there, and what that does to the file.
    pub(super) fn redirected(&mut self, target: &Arg, args: &[Arg], feed: &Feed, scope: &Scope) {
        let program = peel::program(args).map(|(name, _)| name);
        let program = program.as_deref();
        let quiet = match program {
            None => args.is_empty(),
            Some(":" | "true") => true,
            Some("cat") => args.iter().any(|arg| arg.text.starts_with("/dev/")),
            Some(_) => false,
        };
        if quiet && !target.text.starts_with("/dev/") && !feed.connected {
            self.dangerous(args, "removal", "empties a file");
        }
        if !paths::network_path(target) {
            return;
        }
        self.signs.network_path = true;
        let announces = matches!(
            program,
            None | Some("echo" | "printf" | ":" | "true" | "exec")
        );
        let secret = args.iter().any(|arg| paths::denied(arg, scope).is_some());
        if !announces || feed.taint.secret || secret {
            let reason = "sends what it reads to another machine";
            self.find(DangerLevel::Dangerous, "upload", &target.text, reason);
        }
    }
}

/// Whether the word is the option, or an abbreviation of any length of a long one.
fn abbreviates(word: &str, option: &str) -> bool {
    is_option(word, option) || word.len() > 2 && word.starts_with("--") && option.starts_with(word)
}

pub(super) fn sources_and_targets(it: &Invocation<'_>) -> (Vec<Arg>, Vec<Arg>) {
    let targets = it.values(&["-t", "--target-directory"]);
    let mut operands: Vec<Arg> = it.operands().cloned().collect();
    if !targets.is_empty() {
        operands.retain(|arg| !targets.iter().any(|target| target.text == arg.text));
        return (operands, targets);
    }
    let target = operands.pop();
    (operands, target.into_iter().collect())
}
