//! Where commands write: disks, system files, and files that something else will run later.

use super::command::{Invocation, shown};
use super::expand::Arg;
use super::paths;
use super::removal::sources_and_targets;
use super::scope::Scope;
use super::table::TABLE;
use super::walk::Walk;
use crate::DangerLevel::{Blocked, Dangerous};

impl Walk<'_> {
    pub(super) fn writing(&mut self, it: &Invocation<'_>, scope: &Scope) {
        let words = shown(it.args);
        let decodes = TABLE.programs.decoders.contains(it.program);
        for target in targets(it) {
            self.written(&target, &words, scope);
            if decodes || it.input.taint.hidden() {
                scope.files.store(&target.text, true, false);
                // `gunzip x.gz` writes `x`.
                if let Some((name, _)) = target.text.rsplit_once('.') {
                    scope.files.store(name, true, false);
                }
            }
        }
        // A program that is not known may write any file that it is given.
        let writes = |file: &Arg| paths::runs_later(file, scope);
        if !TABLE.knows(it.program) && it.operands().any(writes) {
            self.find(Dangerous, "sensitive-write", &words, paths::RUNS_LATER);
        }
    }

    pub(super) fn written(&mut self, target: &Arg, words: &str, scope: &Scope) {
        if paths::data_device(target, scope) {
            self.find(Blocked, "device", words, "writes to a device directly");
        } else if target.text.contains("sysrq") && target.text.contains("/proc") {
            self.find(Blocked, "power", words, "acts on the kernel directly");
        } else if let Some(reason) = paths::sensitive_write(target, scope) {
            self.find(Dangerous, "sensitive-write", words, reason);
        }
    }
}

/// Returns the paths that the command writes to, and for directories what it puts there.
fn targets(it: &Invocation<'_>) -> Vec<Arg> {
    let writes = &TABLE.writes;
    let own = writes.by_program.get(it.program).into_iter().flatten();
    let options: Vec<&str> = writes.options.iter().chain(own).map(|it| &**it).collect();
    let mut found = it.values(&options);
    if matches!(it.program, "dd" | "dcfldd" | "dc3dd") {
        found.extend(it.rest.iter().filter_map(|arg| {
            let text = arg.text.strip_prefix("of=")?;
            Some(arg.with(text))
        }));
    }
    if writes.all.contains(it.program) || edits_in_place(it) {
        found.extend(it.operands().cloned());
    } else if writes.last.contains(it.program)
        || writes.second.contains(it.program) && it.operands().count() > 1
    {
        found.extend(copied(it));
    }
    if matches!(it.program, "tar" | "bsdtar") {
        found.extend(archive(it));
    }
    found
}

fn edits_in_place(it: &Invocation<'_>) -> bool {
    matches!(it.program, "sed" | "perl" | "ruby" | "yq" | "gawk")
        && (it.has("-i") || it.has("--in-place"))
}

/// The target of `cp` and its kin, and what the sources become in it.
fn copied(it: &Invocation<'_>) -> Vec<Arg> {
    let (sources, targets) = sources_and_targets(it);
    let mut found = Vec::new();
    for target in targets {
        found.extend(sources.iter().filter_map(|source| {
            let name = source.text.trim_end_matches('/').rsplit('/').next()?;
            Some(target.with(format!("{}/{name}", target.text)))
        }));
        found.push(target);
    }
    found
}

/// The archive that `tar` makes or changes; its letters may stand without a dash.
fn archive(it: &Invocation<'_>) -> Vec<Arg> {
    let first = it.rest.first().map_or("", |arg| arg.text.as_str());
    let bare = !first.starts_with('-');
    let long = ["-c", "-r", "-u", "--create", "--append", "--update"];
    let makes =
        bare && first.contains(['c', 'r', 'u', 'A']) || long.iter().any(|option| it.has(option));
    let second = it.rest.get(1).filter(|_| bare && first.contains('f'));
    let mut found = it.values(&["-f", "--file"]);
    found.extend(second.cloned());
    found.retain(|_| makes);
    found
}
