//! Walking a folder and what is below it, from handles, in a stable order, without following links.

use std::ffi::{OsStr, OsString};

use cap_fs_ext::{DirExt, MetadataExt};
use cap_std::fs::{Dir, DirEntry, FileType};

use super::super::deny::{self, Access};
use super::contents::is_kernels;
use super::failure::{failed, missing};
use super::ignored::Ignored;
use super::replace::is_temporary;
use super::{Found, Located, PathError};

/// Most entries looked at in one walk; about a second's work.
const MAX_ENTRIES: usize = 200_000;

/// Deepest folder entered; each level holds a handle open.
const MAX_DEPTH: usize = 64;

/// One entry of a folder.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The folder it is in.
    pub dir: &'a Dir,
    /// Its name there.
    pub name: &'a OsStr,
    /// Its path below the root, `/` between components.
    pub relative: &'a str,
    /// What it is.
    pub kind: EntryKind,
    /// The device of the folder, where that is known to be in no file system of the kernel's.
    pub(super) device: Option<u64>,
}

/// What an entry is, no link followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, socket or device.
    Other,
}

impl EntryKind {
    pub(super) fn of(kind: FileType) -> Self {
        if kind.is_symlink() {
            Self::Link
        } else if kind.is_dir() {
            Self::Folder
        } else if kind.is_file() {
            Self::File
        } else {
            Self::Other
        }
    }
}

/// What to do after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Go on, into the entry where it is a folder.
    Enter,
    /// Go on, but not into it.
    Skip,
    /// End the walk.
    Stop,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visited {
    /// Everything was looked at.
    All,
    /// The visitor stopped it.
    Stopped,
    /// There is more than is looked at: the number of entries that were, or the depth.
    Bounded,
}

impl Located<'_> {
    /// Visits everything below the folder that was found, by `.gitignore` and without `.git`.
    ///
    /// Entries that the deny list keeps from being read are left out, and so are the daemon's own temporary files.
    pub fn visit(&self, each: &mut dyn FnMut(&Entry<'_>) -> Step) -> Result<Visited, PathError> {
        let dir = match &self.found {
            Found::Folder(dir) => dir.try_clone(),
            Found::Missing => return Err(missing(&self.shown)),
            Found::File | Found::Other(_) => {
                let problem = format!("path {:?} is not a folder", self.shown);
                return Err(PathError::Failed(problem));
            }
        };
        let dir = dir.map_err(|error| failed(&self.shown, &error))?;
        let ignored = Ignored::above(&self.roots.root(self.root).dir, &self.relative);
        let walk = TreeWalk::new(dir, self.relative.clone(), Some(ignored));
        Ok(walk.run(&mut |entry| {
            let denied = match entry.kind {
                EntryKind::Folder => deny::denied_folder(entry.relative, Access::Read),
                _ => deny::denied(entry.relative, Access::Read),
            };
            if denied.is_some() || is_temporary(entry.name) {
                Step::Skip
            } else {
                each(entry)
            }
        }))
    }

    /// Returns an entry's path below the folder that was found.
    pub fn below<'e>(&self, entry: &Entry<'e>) -> &'e str {
        entry
            .relative
            .strip_prefix(&self.relative)
            .unwrap_or(entry.relative)
            .trim_start_matches('/')
    }

    /// Returns an entry's path as the model names it.
    pub fn spell(&self, entry: &Entry<'_>) -> String {
        self.roots.spelling(self.root, entry.relative)
    }
}

struct Level {
    dir: Dir,
    device: Option<u64>,
    relative: String,
    entries: std::vec::IntoIter<(OsString, EntryKind)>,
}

/// A walk of every entry below a folder; without the ignored ones where there are rules for them.
pub(super) struct TreeWalk {
    levels: Vec<Level>,
    ignored: Option<Ignored>,
    /// How many entries may still be read, all levels together: they are held in memory.
    remaining: usize,
    bounded: bool,
}

impl TreeWalk {
    pub(super) fn new(dir: Dir, relative: String, ignored: Option<Ignored>) -> Self {
        let mut walk = Self {
            levels: Vec::new(),
            ignored,
            remaining: MAX_ENTRIES,
            bounded: false,
        };
        walk.push(dir, relative);
        walk
    }

    /// Reads a folder's entries in the order of their names; none where it cannot be read.
    fn push(&mut self, dir: Dir, relative: String) {
        if let Some(ignored) = &mut self.ignored {
            ignored.enter(&dir, &relative);
        }
        let mut entries: Vec<_> = dir
            .entries()
            .into_iter()
            .flatten()
            .flatten()
            .take(self.remaining + 1)
            .map(|entry| (entry.file_name(), kind_of(&entry)))
            .collect();
        self.bounded |= entries.len() > self.remaining;
        entries.truncate(self.remaining);
        self.remaining -= entries.len();
        entries.sort();
        let device = match is_kernels(&dir) {
            true => None,
            false => dir.dir_metadata().ok().map(|metadata| metadata.dev()),
        };
        self.levels.push(Level {
            dir,
            device,
            relative,
            entries: entries.into_iter(),
        });
    }

    pub(super) fn run(mut self, each: &mut dyn FnMut(&Entry<'_>) -> Step) -> Visited {
        while let Some(level) = self.levels.last_mut() {
            let Some((name, kind)) = level.entries.next() else {
                self.levels.pop();
                if let Some(ignored) = &mut self.ignored {
                    ignored.leave();
                }
                continue;
            };
            let relative = below(&level.relative, &name);
            let folder = kind == EntryKind::Folder;
            let ignored = self.ignored.as_ref();
            if ignored.is_some_and(|ignored| ignored.covers(&name, &relative, folder)) {
                continue;
            }
            match each(&Entry {
                dir: &level.dir,
                device: level.device,
                name: &name,
                relative: &relative,
                kind,
            }) {
                Step::Stop => return Visited::Stopped,
                Step::Enter if folder => self.enter(&name, relative),
                Step::Enter | Step::Skip => {}
            }
        }
        if self.bounded {
            Visited::Bounded
        } else {
            Visited::All
        }
    }

    /// Goes into a folder; one that vanished, or is closed to the daemon, is as good as empty.
    fn enter(&mut self, name: &OsStr, relative: String) {
        if self.levels.len() >= MAX_DEPTH {
            self.bounded = true;
            return;
        }
        let level = self.levels.last();
        let dir = level.and_then(|level| level.dir.open_dir_nofollow(name).ok());
        if let Some(dir) = dir.filter(|dir| !is_kernels(dir)) {
            self.push(dir, relative);
        }
    }
}

pub(super) fn kind_of(entry: &DirEntry) -> EntryKind {
    // Some file systems do not tell the kind with the name.
    let kind = match entry.file_type() {
        Ok(kind) if kind.is_dir() || kind.is_file() || kind.is_symlink() => Ok(kind),
        Ok(_) | Err(_) => entry.metadata().map(|metadata| metadata.file_type()),
    };
    kind.map_or(EntryKind::Other, EntryKind::of)
}

pub(super) fn below(relative: &str, name: &OsStr) -> String {
    let name = name.to_string_lossy();
    if relative.is_empty() {
        name.into_owned()
    } else {
        format!("{relative}/{name}")
    }
}
