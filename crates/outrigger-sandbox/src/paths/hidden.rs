//! What commands are to find nothing at, found anew before each command, and quickly where little has changed.
//!
//! A secret is remembered by its inode ([`super::secrets`]), so that it stays one under another name. What cannot be
//! looked into is hidden as a whole.

mod links;
mod memory;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use parking_lot::MutexGuard;

use self::links::Link;
use self::memory::{Folder, stamp};
use super::contents::is_kernels;
use super::secrets::{Identity, Known};
use super::{Hidden, Reach, Root, Roots};

pub(super) use self::memory::Memory;

/// Most entries of all roots; some seconds' work when nothing is remembered. A project with more is not run in: a
/// large `node_modules` has 300,000.
const MAX_ENTRIES: usize = 1_000_000;

/// Deepest folder entered; each level holds a handle open. What is deeper is hidden.
const MAX_DEPTH: usize = 256;

/// Longest path below a root that is gone on from, in bytes: the kernel takes 4,096 for the whole, one name has 255.
const MAX_LENGTH: usize = 3_000;

/// Most walks for one command. Another one is needed where a link made a secret of a folder that had been passed.
const MAX_WALKS: usize = 16;

impl Roots {
    /// Lists what commands are to find nothing at: secrets by the deny list, wherever they are by now.
    ///
    /// Folders are named once, not each file in them. Blocks; for a thread that may.
    pub fn hidden(&self) -> Hidden {
        self.hidden_within(MAX_ENTRIES, SystemTime::now())
    }

    fn hidden_within(&self, most: usize, now: SystemTime) -> Hidden {
        let mut walk = Walk {
            root: &self.project,
            reach: Reach::ReadWrite,
            now,
            old: HashMap::new(),
            new: HashMap::new(),
            remaining: most,
            hidden: Hidden::default(),
            folders: Vec::new(),
            links: Vec::new(),
            known: self.secrets.lock(),
        };
        walk.all_roots(self, most);
        let mut walks = 1;
        while self.add_linked(&walk.links, &mut walk.known) {
            if walks == MAX_WALKS {
                walk.hidden.complete = false;
                break;
            }
            walks += 1;
            walk.all_roots(self, most);
        }
        let (mut hidden, mut known) = (walk.hidden, walk.known);
        // Now that all secrets are known: their other names.
        for (root, relative, folder) in walk.folders {
            match folder.other_names(&root.dir, &relative, &mut known) {
                Ok(names) => {
                    let paths = names.into_iter().map(|name| relative.join(name));
                    hidden.paths.extend(paths.map(|path| root.path.join(path)));
                }
                Err(_) => hidden.complete = false,
            }
        }
        hidden.complete &= known.is_complete();
        let mut seen = HashSet::new();
        hidden.paths.retain(|path| seen.insert(path.clone()));
        known.walked(hidden.complete);
        hidden
    }
}

struct Walk<'a> {
    root: &'a Root,
    reach: Reach,
    now: SystemTime,
    old: HashMap<PathBuf, Arc<Folder>>,
    new: HashMap<PathBuf, Arc<Folder>>,
    remaining: usize,
    hidden: Hidden,
    /// Folders in which a secret may have another name.
    folders: Vec<(&'a Root, PathBuf, Arc<Folder>)>,
    /// Links that make a secret of what they lead to, or of what is in it.
    links: Vec<Link>,
    known: MutexGuard<'a, Known>,
}

impl<'a> Walk<'a> {
    fn all_roots(&mut self, roots: &'a Roots, most: usize) {
        self.hidden = Hidden {
            complete: true,
            ..Hidden::default()
        };
        self.folders.clear();
        self.links.clear();
        self.remaining = most;
        let further = roots.further.iter().map(|(root, reach)| (root, *reach));
        let own = [&roots.project, &roots.central].map(|root| (root, Reach::ReadWrite));
        for (root, reach) in own.into_iter().chain(further) {
            self.root = root;
            self.reach = reach;
            self.old = std::mem::take(&mut *root.hidden.lock());
            match root.dir.try_clone() {
                Ok(dir) => self.folder(&dir, Path::new(""), 0, false),
                Err(_) => self.hidden.complete = false,
            }
            *root.hidden.lock() = std::mem::take(&mut self.new);
        }
    }

    /// Looks at a folder; `covered` is whether one that it lies in, or its own name, is hidden.
    fn folder(&mut self, dir: &Dir, relative: &Path, depth: usize, covered: bool) {
        let Some(stamp) = stamp(dir) else {
            self.hidden.complete = false;
            return;
        };
        let remembered = self
            .old
            .remove(relative)
            .filter(|folder| folder.stamp == stamp && folder.secret == covered);
        let folder = match remembered {
            Some(folder) => folder,
            None => match Folder::read(dir, relative, stamp, covered, self.remaining) {
                Ok(folder) => Arc::new(folder),
                Err(_) => return self.hide(relative, covered),
            },
        };
        if folder.entries > self.remaining {
            self.hidden.complete = false;
        }
        self.remaining = self.remaining.saturating_sub(folder.entries);
        self.secrets_in(&folder, relative, covered);
        for name in &folder.folders {
            if self.remaining == 0 {
                self.hidden.complete = false;
                break;
            }
            let covered = covered || folder.names_secret(name);
            self.enter(dir, &relative.join(name), name, depth, covered);
        }
        if folder.may_hold_other_names() {
            let visited = (self.root, relative.to_owned(), Arc::clone(&folder));
            self.folders.push(visited);
        }
        memory::keep(&mut self.new, self.now, relative, folder);
    }

    /// Takes note of what is secret in a folder by its name, of links to secrets, and of a repository.
    fn secrets_in(&mut self, folder: &Folder, relative: &Path, covered: bool) {
        // Where nothing can be changed, no repository has to be kept from it.
        if folder.has_git && !covered && self.reach == Reach::ReadWrite {
            let dot = self.root.path.join(relative).join(".git");
            self.hidden.repositories.push(dot);
        }
        for secret in &folder.secrets {
            if let Some(identity) = secret.identity {
                self.known.add(identity);
            }
            self.hide(&relative.join(&secret.name), covered);
        }
        let links = folder.links.iter().map(|name| Link {
            root: self.root.name,
            path: relative.join(name),
            in_secret: folder.secret,
        });
        self.links.extend(links);
    }

    fn enter(&mut self, above: &Dir, relative: &Path, name: &OsStr, depth: usize, covered: bool) {
        if depth >= MAX_DEPTH || relative.as_os_str().len() > MAX_LENGTH {
            return self.hide(relative, covered);
        }
        let inner = match above.open_dir_nofollow(name) {
            Ok(inner) => inner,
            Err(_) if is_gone(above, name) => return,
            // Closed to the daemon, though a command may open it: `chmod` is all that takes.
            Err(_) => return self.hide(relative, covered),
        };
        if is_kernels(&inner) {
            return;
        }
        let is_known = || {
            let metadata = inner.dir_metadata();
            metadata.is_ok_and(|it| self.known.holds(Identity::of_open(&inner, &it)))
        };
        let is_secret = covered || is_known();
        if is_secret {
            self.hide(relative, covered);
        }
        self.folder(&inner, relative, depth + 1, is_secret);
    }

    /// Hides a path, unless something that hides it is named already.
    fn hide(&mut self, relative: &Path, covered: bool) {
        if covered {
            return;
        }
        // A root itself is never hidden: where it is closed to the daemon, a command may open it and nothing is known.
        if relative.as_os_str().is_empty() {
            self.hidden.complete = false;
            return;
        }
        let path = self.root.path.join(relative);
        self.hidden.paths.push(path);
    }
}

/// Whether what was a folder vanished, or is a link by now. Where the folder above is closed nobody can tell, and a
/// command may open that one, too.
fn is_gone(above: &Dir, name: &OsStr) -> bool {
    match above.symlink_metadata(name) {
        Ok(metadata) => !metadata.is_dir(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
