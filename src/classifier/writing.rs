//! Where commands write: disks, system files, and files that something else will run later.

use super::command::{Setting, shown};
use super::expand::Arg;
use super::paths;
use super::peel::option_values;
use super::removal::sources_and_targets;
use super::scope::Scope;
use super::walk::Walk;
use crate::message::DangerLevel::{Blocked, Dangerous};

/// Programs all of whose operands are written or changed.
const CHANGES_OPERANDS: [&str; 17] = [
    "tee", "touch", "truncate", "sponge", "chmod", "chown", "ln", "mkdir", "patch", "ed", "ex",
    "vim", "nano", "mknod", "mkfifo", "shred", "chattr",
];

/// Programs whose last operand is written.
const WRITES_LAST: [&str; 9] = [
    "cp", "mv", "install", "ln", "rsync", "scp", "gcp", "gmv", "ditto",
];

impl Walk<'_> {
    /// Judges every path that the command writes to.
    pub(super) fn writing(
        &mut self,
        program: &str,
        args: &[Arg],
        rest: &[Arg],
        setting: &Setting,
        scope: &mut Scope,
    ) {
        let words = shown(args);
        for target in targets(program, rest) {
            self.written(&target, &words, scope);
            if program == "tee" && setting.input.taint.hidden() {
                scope.downloads.push(target.text.clone());
            }
        }
        if matches!(program, "cp" | "mv" | "ln" | "install") {
            let (sources, targets) = sources_and_targets(rest);
            let fetched = sources
                .iter()
                .any(|source| super::flow::file_taint(source, scope).fetched);
            if fetched {
                scope
                    .downloads
                    .extend(targets.into_iter().map(|target| target.text));
            }
        }
    }

    /// Judges one path that is written to.
    pub(super) fn written(&mut self, target: &Arg, words: &str, scope: &Scope) {
        if paths::data_device(target, scope) {
            self.find(Blocked, "device", words, "writes to a device directly");
        } else if paths::kernel_trigger(target) {
            self.find(Blocked, "power", words, "acts on the kernel directly");
        } else if let Some(reason) = paths::sensitive_write(target, scope) {
            self.find(Dangerous, "sensitive-write", words, reason);
        }
    }
}

/// Returns the paths that the command writes to, and for directories what it puts there.
fn targets(program: &str, rest: &[Arg]) -> Vec<Arg> {
    let mut found: Vec<Arg> = Vec::new();
    for option in [
        "-o",
        "--output",
        "-O",
        "--output-document",
        "--output-file",
        "--target-directory",
    ] {
        found.extend(option_values(rest, option));
    }
    let assigned = |name: &'static str| {
        rest.iter().filter_map(move |arg| {
            let text = arg.text.strip_prefix(name)?.to_owned();
            Some(Arg {
                text,
                ..arg.clone()
            })
        })
    };
    if program == "dd" || program == "dcfldd" || program == "dc3dd" {
        found.extend(assigned("of="));
    }
    let operands = rest.iter().filter(|arg| !arg.text.starts_with('-'));
    let in_place = rest.iter().any(|arg| {
        arg.text.starts_with("--in-place")
            || super::table::cluster(&arg.text).is_some_and(|letters| letters.contains('i'))
    });
    if CHANGES_OPERANDS.contains(&program)
        || (in_place && matches!(program, "sed" | "gsed" | "perl" | "ruby" | "yq" | "gawk"))
    {
        found.extend(operands.cloned());
    } else if WRITES_LAST.contains(&program) {
        let (sources, targets) = sources_and_targets(rest);
        for target in targets {
            let inside = sources.iter().filter_map(|source| {
                let name = source.text.trim_end_matches('/').rsplit('/').next()?;
                Some(Arg {
                    text: format!("{}/{name}", target.text),
                    ..target.clone()
                })
            });
            found.extend(inside.collect::<Vec<_>>());
            found.push(target);
        }
    } else if matches!(program, "tar" | "unzip" | "git" | "bsdtar" | "7z") {
        for option in ["-C", "-d", "--directory"] {
            found.extend(option_values(rest, option));
        }
    }
    found
}
