//! Settings and hooks of one repository as they were, to be compared and restored.
//!
//! For modes in which nothing can be mounted. What this leaves open is a paragraph of SECURITY.md.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use crate::process::Restored;
use crate::{Held, real};

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
    /// Neither of these, or more than is kept.
    Other,
}

#[derive(Debug)]
pub(super) struct Snapshot {
    root: Dir,
    /// By the path in the repository, whose own is empty.
    entries: Entries,
}

type Entries = BTreeMap<PathBuf, Entry>;

impl Snapshot {
    /// Looks at the repository at the top of a root; `None` where there is none. Blocks.
    pub(super) fn take(root: &Path, held: &[Held]) -> Option<Self> {
        let root = real::readable(&Held::open(root, held).ok()?).ok()?;
        let entries = look(&root.open_dir_nofollow(GIT).ok()?, None);
        Some(Self { root, entries })
    }

    /// Makes the settings and hooks of what is the repository now what they were. Blocks; nothing may write there
    /// meanwhile.
    pub(super) fn restore(&self) -> Restored {
        let mut restored = Restored::default();
        let git = match self.root.open_dir_nofollow(GIT) {
            Ok(git) => git,
            Err(error) => {
                restored.paths.push(GIT.to_owned());
                restored.note(Err(error));
                return restored;
            }
        };
        // First, for what a command closed cannot be looked at.
        let opened = self.reset_modes(&git, &mut restored);
        let now = look(&git, Some(&self.entries));
        let mut changed: Vec<&PathBuf> = self.entries.keys().chain(now.keys()).collect();
        changed.sort();
        changed.dedup();
        changed.retain(|path| self.entries.get(*path) != now.get(*path));
        // What is in the way goes from the inside out, what was there comes back from the outside in.
        let is_there = |path: &&&PathBuf| now.contains_key(**path);
        for path in changed.iter().rev().filter(is_there) {
            restored.note(as_owner(&git, path, remove));
        }
        for path in &changed {
            if let Some(entry) = self.entries.get(*path) {
                restored.note(as_owner(&git, path, |dir, name| write(dir, name, entry)));
            }
        }
        let changed = changed.into_iter().chain(&opened);
        restored.paths = changed.take(MAX_NAMED).map(|path| shown(path)).collect();
        restored
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
            let mode = real::mode_of(&dir)?;
            real::set_mode(&dir, mode | Mode::RWXU)?;
            let done = work(&dir, &name);
            real::set_mode(&dir, mode)?;
            done
        }
        done => done,
    }
}

fn remove(dir: &Dir, name: &OsStr) -> io::Result<()> {
    Ok(real::remove(dir, name)?)
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
        Entry::Other => Err(io::Error::other("it was too large to be kept")),
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

struct Look<'a> {
    entries: Entries,
    bytes: usize,
    /// What there was before a command, after one.
    before: Option<&'a Entries>,
}

/// Looks at what git is led by and runs. After a command folders that it made and closed are opened.
fn look(git: &Dir, before: Option<&Entries>) -> Entries {
    let mut look = Look {
        entries: BTreeMap::new(),
        bytes: MAX_BYTES,
        before,
    };
    let own = real::mode_of(git).map_or(Entry::Other, |mode| Entry::Directory { mode });
    look.entries.insert(PathBuf::new(), own);
    for (name, _) in super::SETTINGS {
        look.add(git, OsStr::new(name), Path::new(name), 0);
    }
    look.entries
}

impl Look<'_> {
    fn add(&mut self, dir: &Dir, name: &OsStr, path: &Path, depth: usize) {
        let Ok(found) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        if self.entries.len() >= MAX_ENTRIES {
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
            FileType::RegularFile => self.read(dir, name).unwrap_or(Entry::Other),
            _ => Entry::Other,
        };
        let closed = match &entry {
            Entry::Directory { mode } => (!mode.contains(Mode::RWXU)).then_some(*mode),
            _ => None,
        };
        let is_directory = matches!(entry, Entry::Directory { .. });
        let is_new = self.before.is_some_and(|it| !it.contains_key(path));
        self.entries.insert(path.to_owned(), entry);
        if is_directory
            && depth < MAX_DEPTH
            && let Ok(inner) = dir.open_dir_nofollow(name)
        {
            if let (true, Some(mode)) = (is_new, closed) {
                real::set_mode(&inner, mode | Mode::RWXU).unwrap_or_default();
            }
            let entries = inner.entries().into_iter().flatten().flatten();
            let mut names: Vec<OsString> = entries
                .take(MAX_ENTRIES)
                .map(|entry| entry.file_name())
                .collect();
            names.sort();
            for name in names {
                let path = path.join(&name);
                self.add(&inner, &name, &path, depth + 1);
            }
        }
    }

    fn read(&mut self, dir: &Dir, name: &OsStr) -> io::Result<Entry> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(dir, name, flags, Mode::empty())?;
        let mode = rustix::fs::fstat(&opened)?.st_mode & 0o7777;
        let mut content = Vec::new();
        let most = self.bytes;
        std::fs::File::from(opened)
            .take(most as u64 + 1)
            .read_to_end(&mut content)?;
        if content.len() > most {
            return Ok(Entry::Other);
        }
        self.bytes -= content.len();
        Ok(Entry::File { mode, content })
    }
}
