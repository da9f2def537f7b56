//! Where commands write: disks, system files, and files that something else will run later.

use super::command::{Setting, shown};
use super::expand::Arg;
use super::paths;
use super::peel::option_values;
use super::removal::sources_and_targets;
use super::scope::Scope;
use super::table::{TABLE, cluster};
use super::walk::Walk;
use crate::DangerLevel::{Blocked, Dangerous};

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
        let decodes = TABLE.programs.decoders.contains(program);
        for target in targets(program, rest) {
            self.written(&target, &words, scope);
            if decodes || setting.input.taint.hidden() {
                scope.files.download(&target.text);
                // `gunzip x.gz` writes `x`.
                let name = target.text.rsplit_once('.').map(|(name, _)| name);
                name.iter().for_each(|name| scope.files.download(name));
            }
        }
        if !TABLE.knows(program) {
            // A program that is not known may write any file that it is given.
            let files = rest.iter().flat_map(named);
            if files
                .into_iter()
                .any(|file| paths::runs_later(&file, scope))
            {
                self.find(Dangerous, "sensitive-write", &words, paths::RUNS_LATER);
            }
        }
        if matches!(program, "cp" | "mv" | "ln" | "install") {
            let (sources, targets) = sources_and_targets(rest);
            let fetched = sources
                .iter()
                .any(|source| super::flow::file_taint(source, scope).fetched);
            if fetched {
                targets
                    .iter()
                    .for_each(|target| scope.files.download(&target.text));
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
    let writes = &TABLE.writes;
    let own = writes.by_program.get(program).into_iter().flatten();
    let options = writes.options.iter().chain(own);
    let mut found: Vec<Arg> = options
        .flat_map(|option| option_values(rest, option))
        .collect();
    if matches!(program, "dd" | "dcfldd" | "dc3dd") {
        found.extend(rest.iter().filter_map(|arg| behind(arg, "of=")));
    }
    let operands = || rest.iter().filter(|arg| !arg.text.starts_with('-'));
    if writes.all.contains(program) || edits_in_place(program, rest) {
        found.extend(operands().cloned());
    } else if writes.last.contains(program)
        || writes.second.contains(program) && operands().count() > 1
    {
        found.extend(copied(rest));
    }
    if matches!(program, "tar" | "bsdtar" | "gtar") {
        found.extend(archive(rest));
    }
    found
}

/// The word without what it begins with, if it begins so.
fn behind(arg: &Arg, start: &str) -> Option<Arg> {
    let text = arg.text.strip_prefix(start)?.to_owned();
    Some(Arg {
        text,
        ..arg.clone()
    })
}

fn edits_in_place(program: &str, rest: &[Arg]) -> bool {
    matches!(program, "sed" | "gsed" | "perl" | "ruby" | "yq" | "gawk")
        && rest.iter().any(|arg| {
            arg.text.starts_with("--in-place")
                || cluster(&arg.text).is_some_and(|letters| letters.contains('i'))
        })
}

/// The target of `cp` and its kin, and what the sources become in it.
fn copied(rest: &[Arg]) -> Vec<Arg> {
    let (sources, targets) = sources_and_targets(rest);
    let mut found = Vec::new();
    for target in targets {
        found.extend(sources.iter().filter_map(|source| {
            let name = source.text.trim_end_matches('/').rsplit('/').next()?;
            Some(Arg {
                text: format!("{}/{name}", target.text),
                ..target.clone()
            })
        }));
        found.push(target);
    }
    found
}

/// The archive that `tar` makes or changes; its letters may stand without a dash.
fn archive(rest: &[Arg]) -> Vec<Arg> {
    let first = rest.first().map_or("", |arg| arg.text.as_str());
    let bare = !first.starts_with('-');
    let letters =
        |arg: &Arg| cluster(&arg.text).is_some_and(|given| given.contains(['c', 'r', 'u']));
    let long = [
        "--create",
        "--append",
        "--update",
        "--concatenate",
        "--delete",
    ];
    let makes = bare && first.contains(['c', 'r', 'u', 'A'])
        || rest
            .iter()
            .any(|arg| letters(arg) || long.contains(&arg.text.as_str()));
    if !makes {
        return Vec::new();
    }
    let named = option_values(rest, "-f").chain(option_values(rest, "--file"));
    let second = rest.get(1).filter(|_| bare && first.contains('f'));
    named.chain(second.cloned()).collect()
}

/// Returns what any word may name for a file: itself, or what is joined to an option or a name.
fn named(arg: &Arg) -> impl Iterator<Item = Arg> {
    let joined = arg.text.split_once('=').map(|(_, value)| value);
    let letters = cluster(&arg.text).and_then(|letters| letters.get(1..));
    let whole = (!arg.text.starts_with('-')).then_some(arg.text.as_str());
    let texts = whole.into_iter().chain(joined).chain(letters);
    let args = texts.map(|text| Arg {
        text: text.to_owned(),
        ..arg.clone()
    });
    args.collect::<Vec<_>>().into_iter()
}
