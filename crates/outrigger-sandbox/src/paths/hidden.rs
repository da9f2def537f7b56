//! What commands are to find nothing at, found anew before each command, and quickly where little has changed.
//!
//! A secret is remembered by its inode ([`super::secrets`]), so that it stays one under another name: after its
//! folder was renamed, beside a hard link to it, or where a link with a secret's name leads (`links`). What cannot be
//! looked into is hidden as a whole. What folders hold is remembered (`memory`).

mod links;
mod memory;

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use self::links::Link;
use self::memory::{Folder, stamp};
use super::contents::is_kernels;
use super::secrets::Known;
use super::{Hidden, Root, RootName, Roots};

pub(super) use self::memory::Memory;

/// Most entries of both roots; some seconds' work when nothing is remembered. A project with more is not run in: a
/// large `node_modules` has 300,000.
const MAX_ENTRIES: usize = 1_000_000;

/// Deepest folder entered; each level holds a handle open. What is deeper is hidden.
const MAX_DEPTH: usize = 256;

/// Longest path below a root that is gone on from, in bytes: the kernel takes 4,096 for the whole, one name has 255.
const MAX_LENGTH: usize = 3_000;

/// Most walks for one command. Another one is needed where a link made a secret of a folder that had been passed.
const MAX_WALKS: usize = 16;

/// Whether a folder is hidden, and with which name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cover {
    /// It is not.
    No,
    /// By its own name.
    This,
    /// It lies in one that is.
    Above,
}

impl Cover {
    /// That of what lies in the folder.
    fn within(self) -> Self {
        match self {
            Self::No => Self::No,
            Self::This | Self::Above => Self::Above,
        }
    }
}

/// What was found in both roots.
struct Walked<'a> {
    hidden: Hidden,
    /// Folders in which a secret may have another name.
    folders: Vec<(&'a Root, PathBuf, Arc<Folder>)>,
    /// Links that make a secret of what they lead to, or of what is in it.
    links: Vec<Link>,
}

impl Roots {
    /// Lists what commands are to find nothing at: secrets by the deny list, wherever they are by now.
    ///
    /// Folders are named once, not each file in them. Blocks; for a thread that may.
    pub fn hidden(&self) -> Hidden {
        self.hidden_within(MAX_ENTRIES, SystemTime::now())
    }

    fn hidden_within(&self, most: usize, now: SystemTime) -> Hidden {
        let mut known = self.secrets.known();
        let mut walked = self.walk(most, now, &mut known);
        let mut walks = 1;
        while self.add_linked(&walked.links, &mut known) {
            if walks == MAX_WALKS {
                walked.hidden.complete = false;
                break;
            }
            walks += 1;
            walked = self.walk(most, now, &mut known);
        }
        let mut hidden = walked.hidden;
        // Now that all secrets are known: their other names.
        for (root, relative, folder) in walked.folders {
            for name in folder.other_names(&root.dir, &relative, &mut known) {
                hidden.paths.push(root.path.join(&relative).join(name));
            }
        }
        hidden.complete &= known.is_complete();
        let mut seen = HashSet::new();
        hidden.paths.retain(|path| seen.insert(path.clone()));
        known.walked(hidden.complete);
        hidden
    }

    /// Looks through both roots once.
    fn walk(&self, most: usize, now: SystemTime, known: &mut Known) -> Walked<'_> {
        let mut walked = Walked {
            hidden: Hidden {
                paths: Vec::new(),
                repositories: Vec::new(),
                complete: true,
            },
            folders: Vec::new(),
            links: Vec::new(),
        };
        let mut left = most;
        for name in [RootName::Project, RootName::Central] {
            let root = self.root(name);
            let mut walk = Walk {
                root,
                now,
                old: root.hidden.take(),
                new: HashMap::new(),
                left,
                walked: &mut walked,
                known: &mut *known,
            };
            match root.dir.try_clone() {
                Ok(dir) => walk.folder(&dir, Path::new(""), 0, Cover::No),
                Err(_) => walk.walked.hidden.complete = false,
            }
            left = walk.left;
            root.hidden.put(walk.new);
        }
        walked
    }
}

struct Walk<'w, 'a> {
    root: &'a Root,
    now: SystemTime,
    old: HashMap<PathBuf, Arc<Folder>>,
    new: HashMap<PathBuf, Arc<Folder>>,
    left: usize,
    walked: &'w mut Walked<'a>,
    known: &'w mut Known,
}

impl Walk<'_, '_> {
    fn folder(&mut self, dir: &Dir, relative: &Path, depth: usize, cover: Cover) {
        let Some(stamp) = stamp(dir) else {
            self.walked.hidden.complete = false;
            return;
        };
        let secret = cover != Cover::No;
        let remembered = self
            .old
            .remove(relative)
            .filter(|folder| folder.stamp == stamp && folder.secret == secret);
        let folder = match remembered {
            Some(folder) => folder,
            None => match Folder::read(dir, relative, stamp, secret, self.left) {
                Ok(folder) => Arc::new(folder),
                Err(_) => return self.hide(relative, cover),
            },
        };
        if folder.entries > self.left {
            self.walked.hidden.complete = false;
        }
        self.left = self.left.saturating_sub(folder.entries);
        self.secrets_in(&folder, relative, cover);
        for name in &folder.folders {
            if self.left == 0 {
                self.walked.hidden.complete = false;
                break;
            }
            let named = match cover {
                Cover::No if folder.names_secret(name) => Cover::This,
                above => above.within(),
            };
            self.enter(dir, &relative.join(name), name, depth, named);
        }
        if folder.may_hold_other_names() {
            let visited = (self.root, relative.to_owned(), Arc::clone(&folder));
            self.walked.folders.push(visited);
        }
        memory::keep(&mut self.new, self.now, relative, folder);
    }

    /// Takes note of what is secret in a folder by its name, of links to secrets, and of a repository.
    fn secrets_in(&mut self, folder: &Folder, relative: &Path, cover: Cover) {
        if folder.has_git && cover == Cover::No {
            let dot = self.root.path.join(relative).join(".git");
            self.walked.hidden.repositories.push(dot);
        }
        for secret in &folder.secrets {
            if let Some(identity) = secret.identity {
                self.known.add(identity);
            }
            self.hide(&relative.join(&secret.name), cover.within());
        }
        let links = folder.links.iter().map(|name| Link {
            root: self.root.name,
            path: relative.join(name),
            in_secret: folder.secret,
        });
        self.walked.links.extend(links);
    }

    /// Goes into a folder.
    fn enter(&mut self, above: &Dir, relative: &Path, name: &OsString, depth: usize, cover: Cover) {
        if depth >= MAX_DEPTH || relative.as_os_str().len() > MAX_LENGTH {
            return self.hide(relative, cover);
        }
        let inner = match above.open_dir_nofollow(name) {
            Ok(inner) => inner,
            // Vanished, or a link by now.
            Err(_) if !above.symlink_metadata(name).is_ok_and(|it| it.is_dir()) => return,
            // Closed to the daemon, though a command may open it: `chmod` is all that takes.
            Err(_) => return self.hide(relative, cover),
        };
        if is_kernels(&inner) {
            return;
        }
        let is_known = || {
            let metadata = inner.dir_metadata();
            metadata.is_ok_and(|metadata| self.known.holds(&metadata))
        };
        let cover = match cover {
            Cover::No if is_known() => {
                self.hide(relative, Cover::No);
                Cover::This
            }
            cover => cover,
        };
        self.folder(&inner, relative, depth + 1, cover);
    }

    /// Hides a path, unless something that hides it is named already.
    fn hide(&mut self, relative: &Path, cover: Cover) {
        if cover == Cover::No && !relative.as_os_str().is_empty() {
            let path = self.root.path.join(relative);
            self.walked.hidden.paths.push(path);
        }
    }
}

#[cfg(test)]
mod tests;
