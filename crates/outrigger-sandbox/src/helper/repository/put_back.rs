//! Makes what is at a name what it was, in few steps, whatever is there now.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::Restored;
use crate::helper::removal;
use crate::repository::{Content, Kept, Noted, Noter, kind, names, placeholder, stamp};

/// Most changes that are told by name: more is one attack, not news.
const MAX_TOLD: usize = 16;

/// Longest path that is told whole.
const MAX_PATH_CHARACTERS: usize = 200;

/// Most entries too many that are removed one by one; with more the whole directory is made anew.
const MAX_STRANGE: usize = 32;

/// Most things that are put aside under numbers of their own.
const MAX_ASIDE: usize = 256;

/// Most directories that wait for their removal, each with a descriptor; more are left under their new names.
const MAX_JUNK: usize = 256;

/// Directories that had to go: moved aside already, to be removed when there is time.
#[derive(Default)]
pub(in crate::helper) struct Junk(Vec<(Dir, OsString)>);

/// Puts things back and tells of it.
pub(super) struct Hand<'a> {
    pub(super) kept: &'a Kept,
    pub(super) junk: &'a mut Junk,
    pub(super) restored: &'a mut Restored,
    /// Whether nobody else may have something mounted at a placeholder.
    pub(super) is_last: bool,
}

impl Junk {
    /// Removes all of it, however long that takes.
    pub(in crate::helper) fn remove(self) {
        for (dir, name) in self.0 {
            removal::remove_at(&dir, &name);
        }
    }
}

impl Hand<'_> {
    /// Makes what is at a name what it was, and tells where it was not.
    pub(super) fn make(&mut self, dir: &Dir, at: &Path, name: &OsStr, noted: Option<&Noted>) {
        let outcome = self.put_back(dir, name, noted);
        self.tell(&at.join(name), outcome);
    }

    /// The same, but what the sandbox itself puts at a missing name is no change.
    pub(super) fn make_pinned(&mut self, dir: &Dir, at: &Path, name: &str, noted: Option<&Noted>) {
        if noted.is_none() && self.is_placeholder(dir, name) {
            if self.is_last {
                let flags = match kind(dir, OsStr::new(name)) {
                    Some(FileType::Directory) => AtFlags::REMOVEDIR,
                    _ => AtFlags::empty(),
                };
                // Harmless where it stays.
                rustix::fs::unlinkat(dir, name, flags).unwrap_or_default();
            }
            return;
        }
        self.make(dir, at, OsStr::new(name), noted);
    }

    fn is_placeholder(&self, dir: &Dir, name: &str) -> bool {
        let Some(expected) = placeholder(name) else {
            return dir
                .open_dir_nofollow(name)
                .is_ok_and(|inner| names(&inner, 1).is_empty());
        };
        let mut noter = Noter::new(&[]);
        noter
            .take(dir, OsStr::new(name), None)
            .is_some_and(|noted| noter.content(&noted) == Some(expected))
    }

    /// Says what was changed back, or could not be.
    pub(super) fn tell(&mut self, path: &Path, outcome: io::Result<bool>) {
        let shown = match outcome {
            Ok(false) => return,
            Ok(true) => shown(path),
            Err(error) => {
                let shown = shown(path);
                self.restored
                    .failure
                    .get_or_insert_with(|| format!("{shown}: {error}"));
                shown
            }
        };
        if self.restored.paths.len() < MAX_TOLD && !self.restored.paths.contains(&shown) {
            self.restored.paths.push(shown);
        }
    }

    /// Makes what is at a name what it was, `None` for nothing. Says whether something had to be changed.
    ///
    /// # Errors
    ///
    /// The system's; the rest is put back as far as that goes.
    pub(super) fn put_back(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        noted: Option<&Noted>,
    ) -> io::Result<bool> {
        let there = stamp(dir, name)?;
        match (noted, there) {
            // What was removed runs nothing, and what cannot be known cannot be made.
            (None | Some(Noted::Unknown(_)), None) => Ok(false),
            (Some(Noted::Unknown(Some(then))), Some((_, now))) if *then == now => Ok(false),
            (Some(Noted::Unknown(_)), Some(_)) => Err(io::Error::other(
                "too large, too many or not readable, so that its changes cannot be undone",
            )),
            (None, Some(_)) => self.clear(dir, name).map(|()| true),
            (Some(Noted::Directory(entries)), there) => {
                self.directory(dir, name, entries, there.map(|(kind, _)| kind))
            }
            (Some(noted), Some((_, now))) if self.is_same(dir, name, noted, Some(now)) => Ok(false),
            (Some(noted), there) => {
                if there.is_some_and(|(kind, _)| kind == FileType::Directory) {
                    self.clear(dir, name)?;
                }
                let written = self.write(dir, name, noted);
                if written.is_err() && kind(dir, name).is_some() {
                    // A disk that a command filled, say. What cannot be made what it was shall run nothing either.
                    put_aside(dir, name)?;
                }
                written.map(|()| true)
            }
        }
    }

    fn is_same(
        &self,
        dir: &Dir,
        name: &OsStr,
        noted: &Noted,
        now: Option<crate::repository::Stamp>,
    ) -> bool {
        if let Noted::File { stamp, .. } = noted
            && stamp.is_some()
            && *stamp == now
        {
            return true;
        }
        let mut noter = Noter::new(&[]);
        let found = noter.take(dir, name, None);
        match (noted, &found) {
            (Noted::Link(then), Some(Noted::Link(now))) => then == now,
            (Noted::File { mode, content, .. }, Some(now @ Noted::File { mode: mode_now, .. })) => {
                mode == mode_now
                    && self
                        .content(content)
                        .is_ok_and(|content| noter.content(now) == Some(content.as_slice()))
            }
            _ => false,
        }
    }

    fn content(&self, content: &Content) -> io::Result<Vec<u8>> {
        self.kept.content(content)
    }

    fn directory(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        entries: &[(OsString, Noted)],
        there: Option<FileType>,
    ) -> io::Result<bool> {
        let mut changed = there != Some(FileType::Directory);
        if changed && there.is_some() {
            self.clear(dir, name)?;
        }
        if changed {
            make_directory(dir, name)?;
        }
        let mut inner = removal::open(dir, name)?;
        let is_known = |name: &OsString| {
            entries
                .binary_search_by(|(known, _)| known.cmp(name))
                .is_ok()
        };
        let mut strange = names(&inner, entries.len() + MAX_STRANGE + 1);
        strange.retain(|name| !is_known(name));
        if strange.len() > MAX_STRANGE {
            self.clear(dir, name)?;
            make_directory(dir, name)?;
            inner = removal::open(dir, name)?;
            strange.clear();
            changed = true;
        }
        let mut outcome = Ok(());
        let known = entries.iter().map(|(name, noted)| (name, Some(noted)));
        for (name, noted) in known.chain(strange.iter().map(|name| (name, None))) {
            match self.put_back(&inner, name, noted) {
                Ok(one) => changed |= one,
                Err(error) => outcome = Err(error),
            }
        }
        outcome.map(|()| changed)
    }

    /// Takes away what is at a name. A directory goes aside, under a name that means nothing to git: what is in it may
    /// take minutes to remove.
    pub(super) fn clear(&mut self, dir: &Dir, name: &OsStr) -> io::Result<()> {
        if kind(dir, name) != Some(FileType::Directory) {
            return Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?);
        }
        if rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR).is_ok() {
            return Ok(());
        }
        let aside = OsString::from(format!(".outrigger-removed-{}", random()?));
        rustix::fs::renameat(dir, name, dir, &aside)?;
        // What there is no room for stays where it runs nothing.
        if self.junk.0.len() < MAX_JUNK
            && let Ok(dir) = dir.try_clone()
        {
            self.junk.0.push((dir, aside));
        }
        Ok(())
    }

    /// Writes beside and renames: whoever looks meanwhile sees the one or the other.
    fn write(&self, dir: &Dir, name: &OsStr, noted: &Noted) -> io::Result<()> {
        let beside = format!(".outrigger-{}", random()?);
        let made = match noted {
            Noted::Link(target) => rustix::fs::symlinkat(target, dir, &beside).map_err(Into::into),
            Noted::File { mode, content, .. } => self.write_new(dir, &beside, *mode, content),
            Noted::Directory(_) | Noted::Unknown(_) => return Ok(()),
        };
        made.and_then(|()| Ok(rustix::fs::renameat(dir, &beside, dir, name)?))
            .inspect_err(|_| {
                rustix::fs::unlinkat(dir, &beside, AtFlags::empty()).unwrap_or_default();
            })
    }

    fn write_new(&self, dir: &Dir, name: &str, mode: u32, content: &Content) -> io::Result<()> {
        let content = self.content(content)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))?;
        let mut file = std::fs::File::from(made);
        file.write_all(&content)?;
        Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
    }
}

/// Gives what is at a name another one, which means nothing to git; nothing is lost.
pub(super) fn put_aside(dir: &Dir, name: &OsStr) -> io::Result<()> {
    let free = (0..MAX_ASIDE)
        .map(|number| format!("{}-replaced-{number}", name.display()))
        .find(|name| kind(dir, OsStr::new(name)).is_none());
    let free = match free {
        Some(free) => free,
        // A command may have taken them all.
        None => format!("{}-replaced-{}", name.display(), random()?),
    };
    Ok(rustix::fs::renameat(dir, name, dir, free)?)
}

fn make_directory(dir: &Dir, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o755))?)
}

fn random() -> io::Result<String> {
    let number = getrandom::u64().map_err(io::Error::other)?;
    Ok(format!("{number:016x}"))
}

/// A path as it may stand in a text: it was a command that chose it.
fn shown(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().chars().take(MAX_PATH_CHARACTERS) {
        if letter.is_control() {
            write!(text, "{}", letter.escape_default()).unwrap_or_default();
        } else {
            text.push(letter);
        }
    }
    text
}
