//! Files that a line writes or downloads, and then runs.
//!
//! They are on the disk: what a subshell or a shell string does to them is there for the rest of the line, so all
//! scopes of a line share them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use super::command::Invocation;
use super::expand::{Arg, UNKNOWN};
use super::flow::file_taint;
use super::paths::plain_glob;
use super::removal::sources_and_targets;
use super::scope::{Scope, Taint};
use super::table::{TABLE, wildcard};
use super::walk::Walk;

/// Most files that are kept in mind; beyond, any file may be one of them.
const MAX_STORED: usize = 64;

/// What the line did to files so far; a clone is the same files.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(Rc<RefCell<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// Names, without their directories, of files that hold what was downloaded or decoded.
    downloads: HashSet<String>,
    /// The same of files that the line writes.
    written: HashSet<String>,
    /// A whole tree was downloaded or unpacked: what is run by its path may be of it.
    tree: bool,
}

impl Files {
    /// Keeps in mind that the file holds what was downloaded or decoded.
    pub(super) fn download(&self, path: &str) {
        insert(&mut self.0.borrow_mut().downloads, path);
    }

    /// Whether the file, or one that the pattern matches, may hold what was downloaded or decoded.
    pub(super) fn is_download(&self, path: &str) -> bool {
        let known = self.0.borrow();
        known.tree && path.contains('/') && !path.starts_with(['/', '-'])
            || may_hold(&known.downloads, path)
    }

    /// Keeps in mind that the line writes the file.
    pub(super) fn write(&self, path: &str) {
        if !path.starts_with("/dev/") {
            insert(&mut self.0.borrow_mut().written, path);
        }
    }

    /// Whether it may be a file that the line writes.
    pub(super) fn is_written(&self, path: &str) -> bool {
        may_hold(&self.0.borrow().written, path)
    }
}

fn insert(names: &mut HashSet<String>, path: &str) {
    if names.len() < MAX_STORED {
        names.insert(last_part(path).to_owned());
    }
}

fn may_hold(names: &HashSet<String>, path: &str) -> bool {
    let name = last_part(path);
    let pattern = plain_glob(name);
    let glob = pattern.contains(['*', '?']);
    !name.is_empty()
        && (names.len() >= MAX_STORED
            || names.contains(name)
            || glob && names.iter().any(|known| wildcard(&pattern, known)))
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
            it.operands().for_each(|arg| scope.files.write(&arg.text));
        }
        if matches!(it.program, "cp" | "mv" | "ln" | "install") {
            let (sources, targets) = sources_and_targets(it);
            let taint = sources.iter().fold(Taint::default(), |taint, it| {
                taint.join(file_taint(it, scope))
            });
            for target in targets {
                if taint.written || sources.iter().any(|source| source.content.is_some()) {
                    scope.files.write(&target.text);
                }
                if taint.fetched {
                    scope.files.download(&target.text);
                }
            }
        }
    }

    /// A program or script that the same line downloaded or wrote is run by its path.
    pub(super) fn downloaded(&mut self, args: &[Arg], scope: &Scope) {
        let Some(first) = args.first().filter(|first| first.text.contains('/')) else {
            return;
        };
        if file_taint(first, scope).fetched {
            self.hidden(args);
        }
        self.stored(file_taint(first, scope), args);
    }

    /// What the line wrote to a file is run.
    pub(super) fn stored(&mut self, taint: Taint, args: &[Arg]) {
        if taint.written {
            let reason = "runs a file that the same line writes";
            self.dangerous(args, "stored-code", reason);
        }
    }
}
