//! What folders held when they were last read.
//!
//! A folder that has not changed since costs a look at its time instead of a look at each name. One that changed just
//! before it was read is read again: clocks of file systems tick slowly enough to hide a second change.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cap_fs_ext::MetadataExt;
use cap_std::fs::Dir;
use parking_lot::Mutex;

use super::super::contents::changed;
use super::super::failure::was_swapped;
use super::super::secrets::{Identity, Known};
use super::super::tree::{EntryKind, kind_of};
use crate::deny;

/// Most folders remembered, at some hundred bytes each.
pub(super) const MAX_FOLDERS: usize = 100_000;

/// How many seconds a folder must have been left alone for its time to tell of the next change.
const SETTLED: u64 = 2;

/// What was found in the folders of a root, by their path below it.
pub(in super::super) type Memory = Mutex<HashMap<PathBuf, Arc<Folder>>>;

#[derive(Debug, Default)]
pub(in super::super) struct Folder {
    pub(super) stamp: Stamp,
    pub(super) secret: bool,
    /// Whether it has an entry `.git`, of whatever kind.
    pub(super) has_git: bool,
    pub(super) entries: usize,
    pub(super) folders: Vec<OsString>,
    pub(super) secrets: Vec<Secret>,
    /// Links with a secret's name, or with the name of a folder that makes secrets of what is in it.
    pub(super) links: Vec<OsString>,
    /// Inodes of the files that are none by their names, sorted.
    inodes: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Secret {
    pub(super) name: OsString,
    folder: bool,
    /// Which file it is; nothing for a link, which leads elsewhere tomorrow.
    pub(super) identity: Option<Identity>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        u64::try_from(self.changed.0).is_ok_and(|changed| now.saturating_sub(changed) > SETTLED)
    }
}

pub(super) fn stamp(dir: &Dir) -> Option<Stamp> {
    let metadata = dir.dir_metadata().ok()?;
    Some(Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        changed: changed(&metadata)?,
    })
}

/// Keeps a folder for the next walk, if its time will tell of a change and there is room.
pub(super) fn keep(
    folders: &mut HashMap<PathBuf, Arc<Folder>>,
    now: SystemTime,
    relative: &Path,
    folder: Arc<Folder>,
) {
    if folder.stamp.is_settled(now) && folders.len() < MAX_FOLDERS {
        folders.insert(relative.to_owned(), folder);
    }
}

impl Folder {
    /// Reads a folder; `secret` is whether all in it is, `most` how many entries are read.
    pub(super) fn read(
        dir: &Dir,
        relative: &Path,
        stamp: Stamp,
        secret: bool,
        most: usize,
    ) -> io::Result<Self> {
        let mut folder = Self {
            stamp,
            secret,
            ..Self::default()
        };
        for entry in dir.entries()?.take(most.saturating_add(1)) {
            folder.add(dir, relative, &entry?);
        }
        folder.folders.sort();
        folder.secrets.sort_by(|a, b| a.name.cmp(&b.name));
        folder.links.sort();
        folder.inodes.sort_unstable();
        Ok(folder)
    }

    fn add(&mut self, dir: &Dir, relative: &Path, entry: &cap_std::fs::DirEntry) {
        self.entries += 1;
        let name = entry.file_name();
        let path = relative.join(&name).to_string_lossy().into_owned();
        let kind = kind_of(entry);
        let is_folder = kind == EntryKind::Folder;
        let secret = match kind {
            EntryKind::File | EntryKind::Link => self.secret || deny::hidden(&path),
            // A folder called "secrets" is none; one called ".ssh" is.
            EntryKind::Folder => self.secret || deny::hidden_folder(&path),
            EntryKind::Other => false,
        };
        if name == ".git" {
            self.has_git = true;
        } else if is_folder {
            self.folders.push(name.clone());
        }
        if kind == EntryKind::Link && (secret || deny::hides_within(&path)) {
            self.links.push(name.clone());
        }
        if secret {
            let metadata = dir.symlink_metadata(&name).ok();
            self.secrets.push(Secret {
                folder: is_folder,
                identity: metadata
                    .filter(|_| kind != EntryKind::Link)
                    .map(|metadata| Identity::of(&metadata)),
                name,
            });
        } else if kind == EntryKind::File {
            self.inodes.extend(inode(entry));
        }
    }

    pub(super) fn names_secret(&self, folder: &OsStr) -> bool {
        self.secrets
            .iter()
            .any(|secret| secret.folder && secret.name == folder)
    }

    /// Whether there is anything in it that could be another name of a secret.
    pub(super) fn may_hold_other_names(&self) -> bool {
        !self.inodes.is_empty()
    }

    /// Returns the names in it that are other ones of known secrets, or may be; an error where nobody can tell.
    pub(super) fn other_names(
        &self,
        root: &Dir,
        relative: &Path,
        known: &mut Known,
    ) -> io::Result<Vec<OsString>> {
        let device = self.stamp.device;
        let mut inodes = self.inodes.iter();
        if !inodes.any(|inode| known.may_hold(device, *inode)) {
            return Ok(Vec::new());
        }
        let dir = match root.open_dir(Path::new(".").join(relative)) {
            Ok(dir) => dir,
            Err(error) if was_swapped(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in dir.entries()? {
            let entry = entry?;
            if inode(&entry).is_some_and(|inode| known.may_hold(device, inode)) {
                names.push(entry.file_name());
            }
        }
        names.retain(|name| match dir.symlink_metadata(name) {
            Ok(metadata) => known.confirm(&metadata),
            // In a folder that is read and not entered, the number is all that is known.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        });
        Ok(names)
    }
}

/// The number that the folder itself has of an entry: no look at the entry is needed.
#[cfg(unix)]
fn inode(entry: &cap_std::fs::DirEntry) -> Option<u64> {
    Some(std::os::unix::fs::DirEntryExt::ino(entry))
}

#[cfg(not(unix))]
fn inode(_entry: &cap_std::fs::DirEntry) -> Option<u64> {
    None
}
