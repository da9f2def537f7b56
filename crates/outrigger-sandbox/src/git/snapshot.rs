//! Settings and hooks of one repository as they were, to be compared and restored.
//!
//! For modes in which nothing can be mounted. What this leaves open is a paragraph of SECURITY.md.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::process::Restored;
use crate::{Held, real, removal};

const GIT: &str = ".git";

/// Most bytes that are kept; hooks are scripts, settings a page.
const MAX_BYTES: usize = 4 * 1024 * 1024;

const MAX_ENTRIES: usize = 1_024;

const MAX_DEPTH: usize = 4;

const MAX_NAMED: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    File {
        mode: u32,
        content: Vec<u8>,
    },
    Link(OsString),
    Directory {
        mode: Mode,
    },
    /// A file of more than is kept.
    Large(Stamp),
    /// None of these.
    Other,
}

/// What tells whether a file was changed. The time is that of the last change, which nobody can set.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

#[derive(Debug)]
pub(super) struct Snapshot {
    root: Dir,
    /// By the path in the repository, whose own is empty.
    entries: Entries,
    /// Whether it has all that was in the folders.
    is_whole: bool,
}

type Entries = BTreeMap<PathBuf, Entry>;

impl Snapshot {
    /// Looks at the repository at the top of a root; `None` where there is none. Blocks.
    pub(super) fn take(root: &Path, held: &[Held]) -> Option<Self> {
        let root = readable(&Held::open(root, held).ok()?).ok()?;
        let (entries, is_whole) = look(&open(&root, GIT).ok()?, &Entries::new());
        Some(Self {
            root,
            entries,
            is_whole,
        })
    }

    /// Makes the settings and hooks of what is the repository now what they were. Blocks; nothing may write there
    /// meanwhile.
    pub(super) fn restore(&self) -> Restored {
        let mut restored = Restored::default();
        let git = match open(&self.root, GIT) {
            Ok(git) => git,
            Err(error) => {
                restored.paths.push(GIT.to_owned());
                restored.note(Err(error));
                return restored;
            }
        };
        // First, for what a command closed cannot be looked at.
        let opened = self.reset_modes(&git, &mut restored);
        let added = self.remove_added(&git, &mut restored);
        let (now, _) = look(&git, &self.entries);
        let mut changed: Vec<&PathBuf> = self.entries.keys().chain(now.keys()).collect();
        changed.sort();
        changed.dedup();
        changed.retain(|path| self.differs(path, now.get(*path)));
        // What is in the way goes from the inside out, what was there comes back from the outside in.
        for path in changed.iter().rev() {
            match (self.entries.get(*path), now.get(*path)) {
                (_, None) => {}
                // It may be the user's as it was.
                (Some(Entry::Large(_)), Some(Entry::Large(_))) => {
                    restored.note(as_owner(&git, path, disarm));
                }
                _ => restored.note(as_owner(&git, path, removal::remove_in)),
            }
        }
        for path in &changed {
            if let Some(entry) = self.entries.get(*path) {
                restored.note(as_owner(&git, path, |dir, name| write(dir, name, entry)));
            }
        }
        let changed = changed.into_iter().chain(&added).chain(&opened);
        restored.paths = changed.take(MAX_NAMED).map(|path| shown(path)).collect();
        restored
    }

    /// Whether something is not what it was.
    fn differs(&self, path: &Path, now: Option<&Entry>) -> bool {
        match (self.entries.get(path), now) {
            // It may have been there.
            (None, _) if !self.is_whole && !is_top(path) => false,
            // Their rights are put back already, as far as the system lets it.
            (Some(Entry::Directory { .. }), Some(Entry::Directory { .. })) => false,
            (before, now) => before != now,
        }
    }

    /// Removes what nobody had, however much it is: what can be compared is bounded. Returns the first of it.
    fn remove_added(&self, git: &Dir, restored: &mut Restored) -> Vec<PathBuf> {
        let mut added = Vec::new();
        let mut remove = |path: PathBuf| {
            let removed = as_owner(git, &path, removal::remove_in);
            let is_gone = removed.is_ok();
            restored.note(removed);
            if added.len() < MAX_NAMED {
                added.push(path);
            }
            is_gone
        };
        for (name, _) in super::SETTINGS {
            let path = PathBuf::from(name);
            if !self.entries.contains_key(&path) && git.symlink_metadata(name).is_ok() {
                remove(path);
            }
        }
        let is_known = |path: &Path| self.entries.contains_key(path);
        // Of others it is not known where not all could be looked at.
        let entries = self.entries.iter().filter(|_| self.is_whole);
        for (path, entry) in entries {
            if !matches!(entry, Entry::Directory { .. }) || !is_looked_into(path) {
                continue;
            }
            // What is no folder any more is put back after this.
            let Ok(folder) = at(git, path).and_then(|(dir, name)| dir.open_dir_nofollow(name))
            else {
                continue;
            };
            while let names = unknown(&folder, path, is_known)
                && !names.is_empty()
            {
                // What cannot be removed is found again and again.
                let gone = names.into_iter().filter(|name| remove(path.join(name)));
                if gone.count() == 0 {
                    break;
                }
            }
        }
        added
    }

    /// Gives each folder the rights that it had; returns those that had others.
    fn reset_modes(&self, git: &Dir, restored: &mut Restored) -> Vec<PathBuf> {
        let mut reset = Vec::new();
        for (path, entry) in &self.entries {
            let Entry::Directory { mode } = entry else {
                continue;
            };
            match reset_mode(git, path, *mode) {
                Ok(true) => reset.push(path.clone()),
                Ok(false) => {}
                Err(error) => restored.note(Err(error)),
            }
        }
        reset
    }
}

fn shown(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => GIT.to_owned(),
        false => format!("{GIT}/{}", path.display()),
    }
}

/// Gives a folder the rights that it had; returns whether it had others. What is no folder, or not there, is left.
fn reset_mode(git: &Dir, path: &Path, mode: Mode) -> io::Result<bool> {
    let open = || match path.parent() {
        None => git.try_clone(),
        Some(_) => at(git, path).and_then(|(dir, name)| dir.open_dir_nofollow(name)),
    };
    // It is put back as it was after this.
    let Ok(folder) = open() else {
        return Ok(false);
    };
    let is_other = real::mode_of(&folder)? != mode;
    if is_other {
        real::set_mode(&folder, mode)?;
    }
    Ok(is_other)
}

/// Does something with what a folder holds; where its owner may not write there, with that right for the moment.
fn as_owner(
    git: &Dir,
    path: &Path,
    work: impl Fn(&Dir, &OsStr) -> io::Result<()>,
) -> io::Result<()> {
    let (dir, name) = at(git, path)?;
    match work(&dir, &name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            real::with_rights(&dir, || work(&dir, &name))
        }
        done => done,
    }
}

/// Opens a folder to be looked into, also where it is closed to its owner.
fn readable(place: &OwnedFd) -> io::Result<Dir> {
    match real::readable(place) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            real::with_rights(place, || real::readable(place))
        }
        opened => opened,
    }
}

/// The same of one in a folder, which may be closed as well; no link is followed.
fn open(dir: &Dir, name: &str) -> io::Result<Dir> {
    let name = OsStr::new(name);
    match real::step(dir, name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            readable(&real::with_rights(dir, || real::step(dir, name))?)
        }
        place => readable(&place?),
    }
}

/// Returns the first names in a folder of what nobody had.
fn unknown(folder: &Dir, path: &Path, is_known: impl Fn(&Path) -> bool) -> Vec<OsString> {
    let entries = folder.entries().into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let unknown = names.filter(|name| !is_known(&path.join(name)));
    unknown.take(MAX_ENTRIES).collect()
}

/// Whether it is one of the names that are looked for, and not something in a folder.
fn is_top(path: &Path) -> bool {
    path.components().count() == 1
}

/// Whether what lies in a folder is looked at.
fn is_looked_into(path: &Path) -> bool {
    (1..=MAX_DEPTH).contains(&path.components().count())
}

/// Takes the right to be executed from a file, without which git does not run it as a hook.
fn disarm(dir: &Dir, name: &OsStr) -> io::Result<()> {
    let file = real::step(dir, name)?;
    let executable = Mode::XUSR | Mode::XGRP | Mode::XOTH;
    Ok(real::set_mode(&file, real::mode_of(&file)? - executable)?)
}

/// Makes what was there, at a name that is free.
fn write(dir: &Dir, name: &OsStr, entry: &Entry) -> io::Result<()> {
    match entry {
        Entry::Directory { mode } => {
            rustix::fs::mkdirat(dir, name, Mode::RWXU)?;
            // Not what the daemon's mask leaves of it.
            Ok(real::set_mode(&dir.open_dir_nofollow(name)?, *mode)?)
        }
        Entry::Link(target) => Ok(rustix::fs::symlinkat(target, dir, name)?),
        Entry::File { mode, content } => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))?;
            std::fs::File::from(made.try_clone()?).write_all(content)?;
            Ok(rustix::fs::fchmod(&made, Mode::from_raw_mode(*mode))?)
        }
        Entry::Large(_) => Err(io::Error::other("it was too large to be kept")),
        Entry::Other => Err(io::Error::other("it was neither a file nor a folder")),
    }
}

/// Returns the folder that holds a path, and its name there; no link is followed.
fn at(git: &Dir, path: &Path) -> io::Result<(Dir, OsString)> {
    let mut names: Vec<_> = path.iter().map(OsString::from).collect();
    let name = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
    let mut dir = git.try_clone()?;
    for name in names {
        dir = dir.open_dir_nofollow(name)?;
    }
    Ok((dir, name))
}

impl Restored {
    fn note(&mut self, done: io::Result<()>) {
        if let (Err(error), None) = (done, &self.failure) {
            self.failure = Some(error.to_string());
        }
    }
}

struct Listing<'a> {
    entries: Entries,
    bytes: usize,
    /// What there was before a command, after one.
    before: &'a Entries,
    is_whole: bool,
}

/// Looks at what git is led by and runs; returns as well whether that is all.
fn look(git: &Dir, before: &Entries) -> (Entries, bool) {
    let mut listing = Listing {
        entries: BTreeMap::new(),
        bytes: MAX_BYTES,
        before,
        is_whole: true,
    };
    let own = real::mode_of(git).map_or(Entry::Other, |mode| Entry::Directory { mode });
    listing.entries.insert(PathBuf::new(), own);
    for (name, _) in super::SETTINGS {
        listing.add(git, OsStr::new(name), Path::new(name));
    }
    (listing.entries, listing.is_whole)
}

impl Listing<'_> {
    fn add(&mut self, dir: &Dir, name: &OsStr, path: &Path) {
        let found = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(error) => {
                self.is_whole &= error == Errno::NOENT;
                return;
            }
        };
        if self.entries.len() >= MAX_ENTRIES {
            self.is_whole = false;
            return;
        }
        let entry = match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Entry::Directory {
                mode: Mode::from_raw_mode(found.st_mode & 0o7777),
            },
            FileType::Symlink => rustix::fs::readlinkat(dir, name, Vec::new())
                .map_or(Entry::Other, |target| {
                    Entry::Link(OsString::from_vec(target.into_bytes()))
                }),
            FileType::RegularFile => self.read(dir, name, path).unwrap_or(Entry::Other),
            _ => Entry::Other,
        };
        let is_directory = matches!(entry, Entry::Directory { .. });
        self.entries.insert(path.to_owned(), entry);
        if is_directory && is_looked_into(path) {
            let looked = dir.open_dir_nofollow(name);
            let looked = looked.and_then(|inner| self.add_all(&inner, path));
            self.is_whole &= looked.is_ok();
        }
    }

    fn add_all(&mut self, inner: &Dir, path: &Path) -> io::Result<()> {
        let entries = inner.entries()?.take(MAX_ENTRIES);
        let names = entries.map(|entry| Ok(entry?.file_name()));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort();
        for name in names {
            self.add(inner, &name, &path.join(&name));
        }
        Ok(())
    }

    fn read(&mut self, dir: &Dir, name: &OsStr, path: &Path) -> io::Result<Entry> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(dir, name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&opened)?;
        let large = Entry::Large(Stamp {
            inode: found.st_ino,
            length: u64::try_from(found.st_size).unwrap_or_default(),
            changed: (
                found.st_ctime,
                i64::try_from(found.st_ctime_nsec).unwrap_or_default(),
            ),
        });
        // How much room there is depends on the files before it.
        if matches!(self.before.get(path), Some(Entry::Large(_))) {
            return Ok(large);
        }
        let mut content = Vec::new();
        let most = self.bytes;
        std::fs::File::from(opened)
            .take(most as u64 + 1)
            .read_to_end(&mut content)?;
        if content.len() > most {
            return Ok(large);
        }
        self.bytes -= content.len();
        Ok(Entry::File {
            mode: found.st_mode & 0o7777,
            content,
        })
    }
}
