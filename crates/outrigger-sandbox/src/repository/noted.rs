//! A file, link or directory as it was, kept to be put back.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Most bytes that are kept of one kind of places; hooks are scripts, settings a page.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Most entries that are kept of the repository's own and of hooks in the work tree.
const MAX_OWN: usize = 2_048;

/// Most entries that are kept of worktrees and submodules: a git of its own has 18, most of them samples.
const MAX_BELOW: usize = 16 * 1_024;

/// Deepest directory of hooks that is looked into.
const MAX_DEPTH: usize = 8;

/// A file that changed so shortly ago may change again without its time telling.
const SETTLED_NANOSECONDS: i128 = 100_000_000;

/// What tells whether a file is the one it was, unread: the time is one that no program can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    mode: u32,
    changed: (i64, u64),
}

/// Where the content of a file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// Among the contents that go with the baseline.
    Kept {
        start: usize,
        length: usize,
    },
    Here(Vec<u8>),
}

/// Something at a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Noted {
    File {
        /// Nothing where it was too young to be trusted.
        stamp: Option<Stamp>,
        mode: u32,
        content: Content,
    },
    Link(OsString),
    /// By name, in order.
    Directory(Vec<(OsString, Self)>),
    /// Not kept, for its size or since it is none of these. A change can be told, not undone; without a stamp, not even
    /// whether there was one.
    Unknown(Option<Stamp>),
}

/// How much may still be kept.
#[derive(Debug)]
struct Budget {
    bytes: usize,
    entries: usize,
}

/// Keeps what it is shown.
#[derive(Debug)]
pub(crate) struct Noter<'a> {
    contents: Vec<u8>,
    /// The contents of the baseline before this one: what did not change since is not read again.
    before: &'a [u8],
    now: i128,
    budget: Budget,
}

/// The stamp of what is at a name, no link followed; nothing where nothing is.
///
/// # Errors
///
/// The system's, but for there being nothing.
pub(crate) fn stamp(dir: &Dir, name: &OsStr) -> io::Result<Option<(FileType, Stamp)>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some((FileType::from_raw_mode(found.st_mode), of(&found)))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What is at a name, no link followed; `None` where nothing is or nothing can be seen.
pub(crate) fn kind(dir: &Dir, name: &OsStr) -> Option<FileType> {
    Some(stamp(dir, name).ok()??.0)
}

/// The names in a directory, at most so many.
pub(crate) fn names(dir: &Dir, most: usize) -> Vec<OsString> {
    let entries = dir.entries().into_iter().flatten().flatten();
    entries.take(most).map(|entry| entry.file_name()).collect()
}

fn of(found: &Stat) -> Stamp {
    Stamp {
        device: found.st_dev,
        inode: found.st_ino,
        size: found.st_size.unsigned_abs(),
        mode: found.st_mode,
        changed: (found.st_ctime, found.st_ctime_nsec),
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i128) -> i128 {
    i128::from(seconds) * 1_000_000_000 + nanoseconds
}

impl Stamp {
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether the file is long enough as it is for a change to be told by its time.
    pub(super) fn is_settled(&self) -> bool {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let (seconds, part) = self.changed;
        let age =
            nanoseconds(now.tv_sec, i128::from(now.tv_nsec)) - nanoseconds(seconds, part.into());
        age > SETTLED_NANOSECONDS
    }
}

impl Noted {
    /// An ordinary file with this content.
    pub(crate) fn file(content: &[u8]) -> Self {
        Self::File {
            stamp: None,
            mode: 0o644,
            content: Content::Here(content.to_owned()),
        }
    }
}

impl<'a> Noter<'a> {
    /// Begins with the repository's own places, which nothing else can crowd out.
    pub(crate) fn new(before: &'a [u8]) -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Self {
            contents: Vec::new(),
            before,
            now: nanoseconds(now.tv_sec, i128::from(now.tv_nsec)),
            budget: Budget {
                bytes: MAX_BYTES,
                entries: MAX_OWN,
            },
        }
    }

    /// Goes on to worktrees and submodules, with a budget of their own.
    pub(super) fn go_below(&mut self) {
        self.budget = Budget {
            bytes: MAX_BYTES,
            entries: MAX_BELOW,
        };
    }

    pub(crate) fn into_contents(self) -> Vec<u8> {
        self.contents
    }

    /// The content of a file that was noted.
    pub(crate) fn content(&self, noted: &Noted) -> Option<&[u8]> {
        match noted {
            Noted::File {
                content: Content::Kept { start, length },
                ..
            } => self.contents.get(*start..start.checked_add(*length)?),
            _ => None,
        }
    }

    /// Notes what is at a name; `None` where nothing is. `before` is what was noted there earlier.
    pub(crate) fn take(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        before: Option<&Noted>,
    ) -> Option<Noted> {
        self.at_depth(dir, name, before, 0)
    }

    fn at_depth(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        before: Option<&Noted>,
        depth: usize,
    ) -> Option<Noted> {
        let (kind, stamp) = match stamp(dir, name) {
            Ok(found) => found?,
            Err(_) => return Some(Noted::Unknown(None)),
        };
        if self.budget.entries == 0 {
            return Some(Noted::Unknown(Some(stamp)));
        }
        self.budget.entries -= 1;
        let noted = match kind {
            FileType::Symlink => rustix::fs::readlinkat(dir, name, Vec::new())
                .map(|target| Noted::Link(OsString::from_vec(target.into_bytes())))
                .ok(),
            FileType::RegularFile => self
                .again(before, stamp)
                .or_else(|| self.read(dir, name).ok().flatten()),
            FileType::Directory => {
                return Some(
                    self.directory(dir, name, before, depth)
                        .unwrap_or(Noted::Unknown(None)),
                );
            }
            _ => None,
        };
        Some(noted.unwrap_or(Noted::Unknown(Some(stamp))))
    }

    /// What was noted before, where it is still that.
    fn again(&mut self, before: Option<&Noted>, now: Stamp) -> Option<Noted> {
        let Some(Noted::File {
            stamp: Some(stamp),
            mode,
            content: Content::Kept { start, length },
        }) = before
        else {
            return None;
        };
        let content = self.before.get(*start..start.checked_add(*length)?)?;
        if *stamp != now || *length > self.budget.bytes {
            return None;
        }
        Some(Noted::File {
            stamp: Some(*stamp),
            mode: *mode,
            content: self.keep(content),
        })
    }

    fn keep(&mut self, content: &[u8]) -> Content {
        let start = self.contents.len();
        self.contents.extend_from_slice(content);
        self.budget.bytes = self.budget.bytes.saturating_sub(content.len());
        Content::Kept {
            start,
            length: content.len(),
        }
    }

    fn read(&mut self, dir: &Dir, name: &OsStr) -> io::Result<Option<Noted>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(dir, name, flags | OFlags::NOCTTY, Mode::empty())?;
        let found = rustix::fs::fstat(&opened)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let most = self.budget.bytes;
        let mut content = Vec::new();
        std::fs::File::from(opened)
            .take(most as u64 + 1)
            .read_to_end(&mut content)?;
        if content.len() > most {
            return Ok(None);
        }
        let age = self.now - nanoseconds(found.st_ctime, i128::from(found.st_ctime_nsec));
        Ok(Some(Noted::File {
            stamp: (age > SETTLED_NANOSECONDS).then(|| of(&found)),
            mode: found.st_mode & 0o7777,
            content: self.keep(&content),
        }))
    }

    fn directory(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        before: Option<&Noted>,
        depth: usize,
    ) -> Option<Noted> {
        let inner = dir.open_dir_nofollow(name).ok()?;
        let mut names = names(&inner, self.budget.entries + 1);
        if depth >= MAX_DEPTH || names.len() > self.budget.entries {
            return None;
        }
        names.sort();
        let earlier = match before {
            Some(Noted::Directory(entries)) => entries.as_slice(),
            _ => &[],
        };
        let entries = names.into_iter().filter_map(|name| {
            let before = earlier
                .binary_search_by(|(known, _)| known.cmp(&name))
                .ok()
                .and_then(|at| earlier.get(at));
            let noted = self.at_depth(&inner, &name, before.map(|(_, noted)| noted), depth + 1)?;
            Some((name, noted))
        });
        Some(Noted::Directory(entries.collect()))
    }
}
