//! Files that a line writes or downloads, and then runs; they are on the disk, so all scopes of a line share them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::command::Invocation;
use super::expand::{Arg, UNKNOWN};
use super::flow::file_taint;
use super::paths::plain_glob;
use super::removal::sources_and_targets;
use super::scope::{Scope, Taint};
use super::table::{TABLE, wildcard};
use super::walk::Walk;

/// Most files that are kept in mind.
const MAX_STORED: usize = 64;

/// What the line did to files so far; a clone is the same files.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(Rc<RefCell<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// What the files hold, by their names without their directories.
    names: HashMap<String, Taint>,
    /// What any other file may hold, once there are more than are kept.
    others: Taint,
    /// A whole tree was downloaded or unpacked: what is run by its path may be of it.
    tree: bool,
}

impl Files {
    /// Keeps in mind that the line writes the file, or stores there what was downloaded or decoded.
    pub(super) fn store(&self, path: &str, fetched: bool, written: bool) {
        let taint = Taint {
            fetched,
            written: written && !path.starts_with("/dev/"),
            ..Taint::default()
        };
        let mut known = self.0.borrow_mut();
        let full = known.names.len() >= MAX_STORED;
        let name = last_part(path);
        if full && !known.names.contains_key(name) {
            known.others = known.others.join(taint);
        } else {
            let stored = known.names.entry(name.to_owned()).or_default();
            *stored = stored.join(taint);
        }
    }

    /// Returns what the file may hold, or one that the pattern matches.
    pub(super) fn taint(&self, path: &str) -> Taint {
        let known = self.0.borrow();
        let name = last_part(path);
        let pattern = plain_glob(name);
        let names = known.names.iter().filter(|_| !name.is_empty());
        let mut taint = names
            .filter(|(known, _)| *known == name || wildcard(&pattern, known))
            .fold(known.others, |taint, (_, stored)| taint.join(*stored));
        taint.fetched |= known.tree && path.contains('/') && !path.starts_with(['/', '-']);
        taint
    }
}

/// Returns the last part of a path; a dynamic one, whatever it is, may be any other dynamic one.
fn last_part(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    if name.contains(UNKNOWN) {
        "\u{1a}"
    } else {
        name
    }
}

impl Walk<'_> {
    /// Programs that bring whole trees or copy what the line wrote or downloaded.
    pub(super) fn brings(&self, it: &Invocation<'_>, scope: &Scope) {
        let fetched = |arg: &Arg| arg.taint.fetched || file_taint(arg, scope).fetched;
        let unpacks = TABLE.programs.unpackers.contains(it.program)
            && (it.input.taint.fetched || it.rest.iter().any(fetched));
        let brings = unpacks || TABLE.brings(it.program, it.rest);
        scope.files.0.borrow_mut().tree |= brings;
        if matches!(it.program, "tee" | "sponge") {
            let operands = it.operands();
            operands.for_each(|arg| scope.files.store(&arg.text, false, true));
        }
        if matches!(it.program, "cp" | "mv" | "ln" | "install") {
            let (sources, targets) = sources_and_targets(it);
            let stored = sources.iter().map(|source| file_taint(source, scope));
            let taint = stored.fold(Taint::default(), Taint::join);
            let written = taint.written || sources.iter().any(|source| source.content.is_some());
            for target in targets {
                scope.files.store(&target.text, taint.fetched, written);
            }
        }
    }

    pub(super) fn stored(&mut self, taint: Taint, args: &[Arg]) {
        if taint.written {
            let reason = "runs a file that the same line writes";
            self.dangerous(args, "stored-code", reason);
        }
    }
}
