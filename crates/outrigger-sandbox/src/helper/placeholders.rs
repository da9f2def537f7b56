//! Takes names while a command runs, so that the command cannot take them, and frees them after the last command.
//!
//! Every helper holds a shared lock on each placeholder; the one that gets it alone is the last. The kernel gives the
//! locks of a killed helper back, and the next one that comes by removes what it left.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock};
use rustix::io::Errno;

use super::opened::Opened;
use crate::git::{Placeholder, PlaceholderKind};
use crate::real;

/// How often a name is tried again that another helper frees at the same moment.
const TRIES: usize = 100;

/// How often the owner of a folder may be denied what its mode allows. Another helper may have opened it only now; after so many
/// times it is the system that denies it, and it denies it to a command, too.
const DENIALS: usize = 20;

const PAUSE: Duration = Duration::from_millis(2);

/// The mode of a directory of ours: one of a user's own that is empty looks different.
const DIRECTORY_MODE: u32 = 0o1555;

/// What of a mode says so. A folder whose group is handed on hands that on, too.
const MODE_BITS: u32 = 0o7777 & !libc::S_ISGID;

/// What has come of taking a name.
enum Attempt {
    Taken(File),
    /// There is something of somebody else's.
    Others,
    /// It is to be tried once more.
    Again,
}

/// What keeps somebody from writing to a folder.
enum Denial {
    /// Another user's, and closed to others.
    Foreign,
    /// Closed to its owner.
    Closed,
    /// What its mode does not tell.
    Other,
}

#[derive(Default)]
pub(super) struct Placeholders(Vec<(Place, File)>);

struct Place {
    folder: OwnedFd,
    name: OsString,
    kind: PlaceholderKind,
}

impl Placeholders {
    /// Takes the names that are free. A name where something is needs none, nor one in a folder that is another user's, and not
    /// to be written to: the command cannot either.
    pub(super) fn take(wanted: &[Placeholder], opened: &Opened) -> io::Result<Self> {
        // The mode of a directory is what it is known by.
        let mask = rustix::process::umask(Mode::empty());
        let places = wanted.iter().filter_map(|wanted| Place::of(wanted, opened));
        let taken: io::Result<Vec<_>> = places.filter_map(|it| it.take().transpose()).collect();
        rustix::process::umask(mask);
        Ok(Self(taken?))
    }

    /// Frees those that nobody else holds. To be called when no process of the command is left.
    pub(super) fn release(self) {
        for (place, file) in &self.0 {
            if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                place.free(file).unwrap_or_default();
            }
        }
    }
}

impl Place {
    fn of(wanted: &Placeholder, opened: &Opened) -> Option<Self> {
        Some(Self {
            folder: opened.open_below(wanted.path.parent()?).ok()?,
            name: wanted.path.file_name()?.to_owned(),
            kind: wanted.kind,
        })
    }

    fn take(self) -> io::Result<Option<(Self, File)>> {
        let mut denied = 0;
        for _ in 0..TRIES {
            let attempt = match self.try_take() {
                Err(Errno::ACCESS) => match self.denial()? {
                    // A command of the same owner could make the folder writable, too.
                    Denial::Closed => self.as_writable(|| self.try_take()),
                    Denial::Other if denied < DENIALS => {
                        denied += 1;
                        Ok(Attempt::Again)
                    }
                    Denial::Other | Denial::Foreign => Ok(Attempt::Others),
                },
                attempt => attempt,
            };
            match attempt {
                Ok(Attempt::Taken(file)) => return Ok(Some((self, file))),
                Ok(Attempt::Others) | Err(Errno::PERM | Errno::ROFS | Errno::NOTDIR) => {
                    return Ok(None);
                }
                // Another helper was faster, or made the folder again what it was.
                Ok(Attempt::Again) | Err(Errno::ACCESS) => std::thread::sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
        let name = self.name.display();
        Err(io::Error::other(format!(
            "{name} is locked by another command"
        )))
    }

    /// Says what kept this process from writing to the folder.
    fn denial(&self) -> io::Result<Denial> {
        let found = rustix::fs::fstat(&self.folder)?;
        let is_open = Mode::from_raw_mode(found.st_mode).contains(Mode::WUSR | Mode::XUSR);
        Ok(
            match (found.st_uid == rustix::process::geteuid().as_raw(), is_open) {
                (false, _) => Denial::Foreign,
                (true, false) => Denial::Closed,
                (true, true) => Denial::Other,
            },
        )
    }

    fn try_take(&self) -> Result<Attempt, Errno> {
        match self.make() {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        let Some(file) = self.open_ours()? else {
            return match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Ok(Attempt::Others),
                // It went between the two.
                Err(Errno::NOENT) => Ok(Attempt::Again),
                Err(error) => Err(error),
            };
        };
        // Never waited for: a command may lock what it sees.
        let is_locked = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        Ok(match is_locked && self.holds(&file) {
            true => Attempt::Taken(file),
            false => Attempt::Again,
        })
    }

    fn make(&self) -> Result<(), Errno> {
        let Some(content) = self.kind.content() else {
            let mode = Mode::from_raw_mode(DIRECTORY_MODE);
            return rustix::fs::mkdirat(&self.folder, &self.name, mode);
        };
        // It appears whole: half of one would be taken for the user's.
        let half = format!(".outrigger-{:016x}", getrandom::u64().unwrap_or_default());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.folder, &half, flags, Mode::from_raw_mode(0o644))?;
        let written = File::from(made).write_all(content);
        let written = written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let renamed = written.and_then(|()| {
            let flags = RenameFlags::NOREPLACE;
            rustix::fs::renameat_with(&self.folder, &half, &self.folder, &self.name, flags)
        });
        if renamed.is_err() {
            rustix::fs::unlinkat(&self.folder, &half, AtFlags::empty()).unwrap_or_default();
        }
        renamed
    }

    fn open_ours(&self) -> Result<Option<File>, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(opened) = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty()) else {
            return Ok(None);
        };
        let found = rustix::fs::fstat(&opened)?;
        let kind = FileType::from_raw_mode(found.st_mode);
        let mut file = File::from(opened);
        let is_ours = match self.kind.content() {
            None => kind == FileType::Directory && found.st_mode & MODE_BITS == DIRECTORY_MODE,
            Some(content) => {
                let mut read = Vec::new();
                kind == FileType::RegularFile
                    && usize::try_from(found.st_size) == Ok(content.len())
                    && file.read_to_end(&mut read).is_ok()
                    && read == content
            }
        };
        Ok(is_ours.then_some(file))
    }

    fn holds(&self, file: &File) -> bool {
        let there = rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        let open = rustix::fs::fstat(file);
        matches!((there, open), (Ok(there), Ok(open)) if (there.st_dev, there.st_ino) == (open.st_dev, open.st_ino))
    }

    fn free(&self, file: &File) -> io::Result<()> {
        // The user may have written to it meanwhile. A directory that is not empty stays by itself.
        if !self.holds(file) || self.open_ours()?.is_none() {
            return Ok(());
        }
        let flags = match self.kind.content() {
            None => AtFlags::REMOVEDIR,
            Some(_) => AtFlags::empty(),
        };
        let remove = || rustix::fs::unlinkat(&self.folder, &self.name, flags);
        match remove() {
            // A folder that nobody may write to, such as another placeholder, where this process has no right beyond that of
            // its owner: it has entered a user namespace in which the owner is nobody.
            Err(Errno::ACCESS) => Ok(self.as_writable(remove)?),
            removed => Ok(removed?),
        }
    }

    /// Does something while the folder may be written to by its owner, who this has to be. Fails with [`Errno::ACCESS`] as well where
    /// another helper did the same and was first to make it what it was.
    fn as_writable<T>(&self, work: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
        let mode = real::mode_of(&self.folder)?;
        let open = mode | Mode::WUSR | Mode::XUSR;
        if open == mode {
            // Another helper's doing, who makes it again what it was.
            return work();
        }
        real::set_mode(&self.folder, open)?;
        let done = work();
        real::set_mode(&self.folder, mode)?;
        done
    }
}
