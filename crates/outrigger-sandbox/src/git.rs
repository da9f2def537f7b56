//! Keeps commands from changing what git runs outside of the sandbox: hooks, and settings that name programs.
//!
//! In [`Mode::Full`](super::Mode) this is done with mounts, so nothing can change and nothing has to be undone:
//! - a command sees every repository read-only ([`GitAccess::ReadOnly`]);
//! - the git tool may change repositories, but not their settings and hooks ([`GitAccess::Create`]);
//! - a name that is free, and would lead git elsewhere, is taken by a placeholder while a command runs.
//!
//! Where nothing can be mounted, [`watch`] compares settings and hooks before and after, and restores them.
//!
//! Here the places are found. The helper mounts them (`helper::mounts::pins`) and holds the placeholders.

mod ask;
mod look;
mod references;
mod snapshot;
mod unwritten;
pub(super) mod watch;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::ask::ask;
pub use self::ask::is_tracked;
use self::look::Look;
pub(super) use self::references::{Cache, References};
pub(super) use self::unwritten::{is_placeholder, may_be_placeholder, named, unwritten};
use super::GitAccess;
use super::policy::{Pin, Pinned};

/// Most places that are pinned for one command; each costs three system calls at its start. A project with more
/// repositories than fit is not run in.
const MAX_PINS: usize = 4_096;

/// Most directories that are looked into below `worktrees` and `modules` of one repository.
const MAX_EXAMINED: usize = 4_096;

/// Deepest path of a submodule's directory: names of submodules may hold slashes.
const MAX_DEPTH: usize = 12;

/// The folder of hooks that many projects have in their work tree, whatever their settings say just now.
const HUSKY: &str = ".husky";

/// What git takes programs to run from, below its directory, and what stands there while nothing else does.
pub(super) const SETTINGS: [(&str, PlaceholderKind); 4] = [
    ("config", PlaceholderKind::Settings),
    ("config.worktree", PlaceholderKind::Settings),
    ("commondir", PlaceholderKind::Commondir),
    ("hooks", PlaceholderKind::Directory),
];

/// The mode of a directory of ours: one of a user's own that is empty looks different.
pub(super) const DIRECTORY_MODE: u32 = 0o1555;

/// Whether a directory has it. A folder whose group is handed on hands that on, too.
pub(super) fn is_directory_mode(mode: u32) -> bool {
    mode & 0o7777 & !libc::S_ISGID == DIRECTORY_MODE
}

/// A name that is taken while a command runs, so that the command cannot take it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Placeholder {
    pub(super) path: PathBuf,
    pub(super) kind: PlaceholderKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum PlaceholderKind {
    Directory,
    /// A directory that is missing on the way to a name, and stands for it.
    OnTheWay,
    /// A file of settings that says nothing.
    Settings,
    /// A `commondir` that says "this directory".
    Commondir,
}

impl PlaceholderKind {
    /// Returns the content of the file; `None` for a directory. By it a file is known as ours, also after a power cut.
    pub(super) fn content(self) -> Option<&'static [u8]> {
        match self {
            Self::Directory | Self::OnTheWay => None,
            Self::Settings => {
                Some(b"# Placeholder of Outrigger: stands here while a command runs.\n")
            }
            // The odd spelling is read as `.` by git 2.47, libgit2 1.9.7, gitoxide (gix 0.87.1) and dulwich 1.2.21,
            // tried 2026-11-22.
            Self::Commondir => Some(b"./././\n"),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Protection {
    /// Outer places first, each once.
    pub(super) pins: Vec<Pin>,
    pub(super) placeholders: Vec<Placeholder>,
    /// Repositories of linked worktrees, outside of the roots.
    pub(super) outside: Vec<PathBuf>,
}

/// Finds what protects the repositories in `roots`, which the command may change. `nested` are further `.git` entries
/// below them. Looks at files; for a thread that may block.
pub(super) fn protect(
    roots: &[PathBuf],
    nested: &[PathBuf],
    access: GitAccess,
    references: &[Arc<References>],
) -> io::Result<Protection> {
    let look = Look::default();
    let mut found = Finder {
        roots,
        access,
        look: &look,
        protection: Protection::default(),
    };
    for root in roots {
        found.root(root);
    }
    // What says of a linked worktree or a submodule where its repository is may go with it.
    let stays = |dot: &&PathBuf| access != GitAccess::Nested || look.is_folder(dot);
    for dot in nested.iter().filter(stays) {
        if let Some(root) = found.root_of(dot) {
            found.on_the_way(root, dot);
            found.dot(dot);
            found.husky(root, dot.parent().unwrap_or(root));
        }
    }
    for reference in references.iter().flat_map(|known| &known.places) {
        if let Some(root) = found.root_of(&reference.path) {
            found.reference(root, reference);
        }
    }
    let protection = found.finish()?;
    look.finish()?;
    Ok(protection)
}

struct Finder<'a> {
    roots: &'a [PathBuf],
    access: GitAccess,
    look: &'a Look,
    protection: Protection,
}

impl<'a> Finder<'a> {
    fn root(&mut self, root: &Path) {
        let dot = root.join(".git");
        if let Some(repository) = worktree_outside(self.look, root, &dot) {
            if self.access >= GitAccess::Write {
                self.directory(&repository);
            }
            self.protection.outside.push(repository);
        }
        self.husky(root, root);
        let is_repository = is_git_directory(self.look, root);
        if is_repository {
            // A root without a work tree: what else is in it stays open.
            self.settings(root);
        }
        let may_make = match self.access {
            GitAccess::ReadOnly | GitAccess::Write => false,
            // While a server runs for hours, the user may want the name.
            GitAccess::ExistingReadOnly | GitAccess::Create | GitAccess::Nested => true,
        };
        if self.look.has_repository(&dot) {
            self.dot(&dot);
        } else if !is_repository && !may_make {
            // Without a file `HEAD` the root itself is not taken for a repository either. Empty folders: in a repository
            // further up, the user's `git add` passes them over.
            for path in [dot, root.join("HEAD")] {
                self.pin(path.clone(), Pinned::ReadOnly);
                self.placeholder(path, PlaceholderKind::Directory);
            }
        }
    }

    /// Protects a repository's `.husky`; `top` is the folder of its work tree.
    fn husky(&mut self, root: &Path, top: &Path) {
        let path = top.join(HUSKY);
        if self.look.is_there(&path) {
            let kind = PlaceholderKind::Directory;
            self.reference(root, &Placeholder { path, kind });
        }
    }

    /// Protects what settings name in a root. The git tool may change hooks in the work tree: a checkout does.
    fn reference(&mut self, root: &Path, reference: &Placeholder) {
        let dot = root.join(".git");
        let folder = reference.path.parent().unwrap_or(root);
        let is_open = match (reference.path.starts_with(&dot), reference.kind) {
            // Read-only with all of the repository, or the git tool may make one.
            (true, _) => self.access < GitAccess::Write || !self.look.has_repository(&dot),
            (false, PlaceholderKind::Directory) => self.access >= GitAccess::Create,
            // A checkout may make the folder, and other files in it.
            (false, _) => self.access >= GitAccess::Create && !self.look.is_there(folder),
        };
        if is_open {
            return;
        }
        let real = self.look.canonical(&reference.path);
        let real = real.filter(|real| self.root_of(real).is_some());
        let reference = self.first_missing(root, reference);
        for path in real.iter().chain([&reference.path]) {
            self.on_the_way(root, path);
            self.pin(path.clone(), Pinned::ReadOnly);
        }
        if self.access != GitAccess::ExistingReadOnly {
            self.protection.placeholders.push(reference);
        }
    }

    /// Returns the outermost missing folder above a place, which is what a command could make; the place itself where its
    /// folder is there. The placeholder of another command counts as missing, to be held as well.
    fn first_missing(&self, root: &Path, named: &Placeholder) -> Placeholder {
        let inside = named.path.ancestors().take_while(|path| *path != root);
        let missing = inside.filter(|path| match self.look.metadata(path) {
            None => true,
            Some(found) => {
                let may_be_ours = found.is_dir() && is_directory_mode(found.mode());
                *path != named.path && may_be_ours && self.look.is_empty(path)
            }
        });
        match missing.last() {
            Some(missing) if missing != named.path => Placeholder {
                path: missing.to_owned(),
                kind: PlaceholderKind::OnTheWay,
            },
            _ => named.clone(),
        }
    }

    fn dot(&mut self, dot: &Path) {
        let Some(metadata) = self.look.metadata(dot) else {
            return;
        };
        if metadata.is_dir() {
            return self.directory(dot);
        }
        self.pin(dot.to_owned(), Pinned::ReadOnly);
        let git = match metadata.is_symlink() {
            true => {
                let git = self.look.canonical(dot);
                git.filter(|git| self.look.is_folder(git))
            }
            false => named_by(self.look, dot),
        };
        let Some(git) = git else {
            return;
        };
        let common = pointed(self.look, &git.join("commondir"), &git);
        for directory in std::iter::once(git).chain(common) {
            if let Some(root) = self.root_of(&directory) {
                self.on_the_way(root, &directory);
                // Of a linked worktree it is pinned with its repository.
                if !is_of_worktree(self.look, &directory) {
                    self.directory(&directory);
                }
            }
        }
    }

    fn directory(&mut self, git: &Path) {
        if self.access < GitAccess::Write {
            return self.pin(git.to_owned(), Pinned::ReadOnly);
        }
        self.settings(git);
        if self.access == GitAccess::Nested {
            return;
        }
        let mut examined = 0;
        let mut waiting = vec![git.join("worktrees"), git.join("modules")];
        while let Some(folder) = waiting.pop() {
            let is_of_worktrees = folder.ends_with("worktrees");
            for entry in self.look.folders_in(&folder, MAX_EXAMINED + 1) {
                examined += 1;
                let depth = entry
                    .strip_prefix(git)
                    .map_or(0, |below| below.components().count());
                if examined > MAX_EXAMINED || depth > MAX_DEPTH {
                    // More than can be looked at: closed as a whole.
                    self.pin(folder.clone(), Pinned::ReadOnly);
                    break;
                }
                self.on_the_way(git, &entry);
                if is_of_worktrees {
                    self.pin(entry.clone(), Pinned::Worktree);
                    self.placeholder(entry.join("config.worktree"), PlaceholderKind::Settings);
                    // Submodules of a linked worktree.
                    waiting.push(entry.join("modules"));
                } else if self.look.is_there(&entry.join("HEAD")) {
                    self.settings(&entry);
                    waiting.extend(["worktrees", "modules"].map(|name| entry.join(name)));
                } else {
                    waiting.push(entry);
                }
            }
        }
    }

    /// Protects settings and hooks of a directory of git, which may be changed otherwise.
    fn settings(&mut self, git: &Path) {
        self.pin(git.to_owned(), Pinned::Repository);
        for (name, kind) in SETTINGS {
            self.placeholder(git.join(name), kind);
        }
    }

    /// Pins the folders between: one above a mount could be moved, and another put in its place.
    fn on_the_way(&mut self, from: &Path, to: &Path) {
        for folder in to.ancestors().skip(1).take_while(|it| *it != from) {
            self.pin(folder.to_owned(), Pinned::Folder);
        }
    }

    fn pin(&mut self, path: PathBuf, what: Pinned) {
        self.protection.pins.push(Pin { path, what });
    }

    fn placeholder(&mut self, path: PathBuf, kind: PlaceholderKind) {
        let placeholders = &mut self.protection.placeholders;
        placeholders.push(Placeholder { path, kind });
    }

    fn root_of(&self, path: &Path) -> Option<&'a Path> {
        let mut roots = self.roots.iter().map(PathBuf::as_path);
        roots.find(|root| path.starts_with(root) && path != *root)
    }

    fn finish(mut self) -> io::Result<Protection> {
        let pins = &mut self.protection.pins;
        // Outer ones first: what is pinned below goes on top. Of two at a place the stricter one is kept.
        pins.sort_by(|one, other| one.path.cmp(&other.path).then(other.what.cmp(&one.what)));
        pins.dedup_by(|one, other| one.path == other.path);
        // What is below a read-only place is read-only with it, and cannot be moved.
        pins.dedup_by(|inner, outer| {
            outer.what == Pinned::ReadOnly && inner.path.starts_with(&outer.path)
        });
        let placeholders = &mut self.protection.placeholders;
        placeholders.sort_by(|one, other| one.path.cmp(&other.path));
        placeholders.dedup_by(|one, other| one.path == other.path);
        if self.protection.pins.len() > MAX_PINS {
            return Err(io::Error::other(format!(
                "the project has more git repositories than can be protected from a command ({MAX_PINS} places); choose a smaller folder as the project"
            )));
        }
        Ok(self.protection)
    }
}

fn named_by(look: &Look, dot: &Path) -> Option<PathBuf> {
    let text = look.pointer(dot)?;
    let named = text.strip_prefix("gitdir:")?.trim();
    look.canonical(&dot.parent()?.join(named))
}

fn pointed(look: &Look, file: &Path, from: &Path) -> Option<PathBuf> {
    look.canonical(&from.join(look.pointer(file)?.trim()))
}

/// Returns the repository that a linked worktree belongs to, where that lies outside of the worktree.
///
/// The worktree's `.git` file is believed only where the repository points back to it: a command may have written the
/// file in an earlier run, but nothing outside of the root.
fn worktree_outside(look: &Look, root: &Path, dot: &Path) -> Option<PathBuf> {
    let administration = named_by(look, dot)?;
    let back = look.pointer(&administration.join("gitdir"))?;
    if Path::new(back.trim()) != dot || administration.starts_with(root) {
        return None;
    }
    let common = pointed(look, &administration.join("commondir"), &administration)?;
    // The administration of a worktree always lies in its repository.
    (look.is_file(&common.join("HEAD")) && administration.starts_with(common.join("worktrees")))
        .then_some(common)
}

fn is_of_worktree(look: &Look, directory: &Path) -> bool {
    let above = directory.parent().and_then(Path::file_name);
    above.is_some_and(|name| name == "worktrees") && look.is_file(&directory.join("commondir"))
}

/// Whether git takes a directory for a repository of its own, one without a work tree around it.
fn is_git_directory(look: &Look, directory: &Path) -> bool {
    let has = |name: &str| look.is_there(&directory.join(name));
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

#[cfg(test)]
mod tests;
