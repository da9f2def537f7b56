//! Files that a line writes, downloads or unpacks, and then runs.
//!
//! They are on the disk: what a subshell or a shell string does to them is there for the rest of the line, so all
//! scopes of a line share them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use super::command::Invocation;
use super::expand::{Arg, UNKNOWN, expand_text};
use super::flow::file_taint;
use super::paths::plain_glob;
use super::removal::sources_and_targets;
use super::scope::{Scope, Taint};
use super::table::{TABLE, has, wildcard};
use super::types::Redirect;
use super::walk::Walk;

/// Most files that are kept in mind; beyond, any file may be one of them.
const MAX_STORED: usize = 64;

/// Programs that unpack archives into trees.
const UNPACKERS: [&str; 12] = [
    "tar", "bsdtar", "gtar", "unzip", "7z", "7za", "7zr", "cpio", "unar", "bsdunzip", "jar",
    "dpkg-deb",
];

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
        may_hold(&self.0.borrow().downloads, path)
    }

    /// Keeps in mind that the line writes the file.
    fn write(&self, path: &str) {
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

/// Whether the file may be of a tree that the line downloaded.
pub(super) fn unpacked(arg: &Arg, scope: &Scope) -> bool {
    let system = ["-", "/bin/", "/usr/", "/sbin/", "/dev/", "/opt/", "/lib"];
    scope.files.0.borrow().tree
        && !system.iter().any(|prefix| arg.text.starts_with(prefix))
        && (arg.text.contains('/') || scope.moved)
}

impl Walk<'_> {
    /// Keeps in mind what the redirections of a command or a group write.
    pub(super) fn stores(&self, redirects: &[Redirect], scope: &Scope) {
        for redirect in redirects {
            if let Redirect::Write(token) = redirect {
                scope.files.write(&expand_text(token, scope).text);
            }
        }
    }

    /// Programs that bring whole trees or copy what the line wrote.
    pub(super) fn brings(&mut self, it: &Invocation<'_>, scope: &Scope) {
        let fetched = |arg: &Arg| arg.taint.fetched || file_taint(arg, scope).fetched;
        let unpacks = UNPACKERS.contains(&it.program)
            && (it.input.taint.fetched || it.rest.iter().any(fetched));
        let brings = unpacks || TABLE.brings(it.program, it.rest);
        scope.files.0.borrow_mut().tree |= brings;
        if matches!(it.program, "tee" | "sponge") {
            it.operands().for_each(|arg| scope.files.write(&arg.text));
        }
        if !matches!(it.program, "cp" | "mv" | "ln" | "install") {
            return;
        }
        let (sources, targets) = sources_and_targets(it);
        for source in &sources {
            let name = source.text.rsplit('/').next().unwrap_or_default();
            let found = matches!(&source.word, Some(super::Word::Dynamic(_)));
            if (found || source.text.contains("bin/")) && has(&TABLE.refused, name) {
                let reason = "gives a refused program another name";
                self.blocked(it.args, "hidden-program", reason);
            }
            if scope.files.is_written(&source.text) || source.content.is_some() {
                let targets = targets.iter();
                targets.for_each(|target| scope.files.write(&target.text));
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
