//! Takes names while a command runs, so that the command cannot take them, and frees them after the last command.
//!
//! Every helper holds a shared lock on each placeholder; the one that gets it alone is the last. The kernel gives the
//! locks of a killed helper back, and the next one that comes by removes what it left.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock};
use rustix::io::Errno;

use super::opened::Opened;
use crate::git::{DIRECTORY_MODE, Placeholder, PlaceholderKind, is_directory_mode};
use crate::real;

/// How often a name is tried again that another helper frees at the same moment.
const TRIES: usize = 100;

/// How often the owner of a folder may be denied what its mode allows. Another helper may have opened it only now; after so many
/// times it is the system that denies it, and it denies it to a command, too.
const DENIALS: usize = 20;

const PAUSE: Duration = Duration::from_millis(2);

/// What stands at a name.
enum Standing {
    /// A placeholder, which is held now.
    Placeholder(File),
    /// Something of somebody else's.
    Others,
}

/// What keeps somebody from using a folder.
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
    /// Takes the names that are free. A name where something is needs none, nor one in a folder that is another user's, and not to
    /// be written to: the command cannot either. Fails where the way to a name is not what the daemon found.
    pub(super) fn take(wanted: &[Placeholder], opened: &Opened) -> io::Result<Self> {
        // The mode of a directory is what it is known by.
        let mask = rustix::process::umask(Mode::empty());
        let taken = wanted.iter().filter_map(|it| take(it, opened).transpose());
        let taken: io::Result<Vec<_>> = taken.collect();
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

fn take(wanted: &Placeholder, opened: &Opened) -> io::Result<Option<(Place, File)>> {
    let (folder, below) = opened.nearest(&wanted.path)?;
    let mut place = Place {
        folder,
        name: OsString::new(),
        kind: wanted.kind,
    };
    let mut names = below.iter().peekable();
    while let Some(name) = names.next() {
        name.clone_into(&mut place.name);
        if names.peek().is_some() {
            match place.within(|| place.enter()) {
                Ok(Some(folder)) => place.folder = folder,
                Ok(None) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(changed(&wanted.path, "removed"));
                }
                Err(error) => return Err(error),
            }
        }
    }
    match place.within(|| place.try_take())? {
        Some(Standing::Placeholder(file)) => Ok(Some((place, file))),
        // A name below it is free, and nobody looked there.
        Some(Standing::Others) if wanted.kind == PlaceholderKind::OnTheWay => {
            Err(changed(&wanted.path, "made"))
        }
        Some(Standing::Others) | None => Ok(None),
    }
}

fn changed(path: &Path, how: &str) -> io::Error {
    let path = path.display();
    io::Error::other(format!(
        "{path}, or a folder above it, was {how} while the command was prepared; run it again"
    ))
}

impl Place {
    /// Opens the folder that has the name.
    fn enter(&self) -> Result<Option<OwnedFd>, Errno> {
        match real::step(&self.folder, &self.name) {
            Ok(next) => Ok(Some(next)),
            // A link: what it leads to has a way of its own.
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::NOTDIR)),
        }
    }

    fn busy(&self) -> io::Error {
        let name = self.name.display();
        io::Error::other(format!("{name} is used by another command"))
    }

    /// Does something in the folder, also where that is closed to its owner: a command of the same owner could open it, too. `None` is
    /// what the system denies, and denies to a command, too. An attempt that returns `None` is made again.
    fn within<T>(
        &self,
        mut attempt: impl FnMut() -> Result<Option<T>, Errno>,
    ) -> io::Result<Option<T>> {
        let mut denied = 0;
        for _ in 0..TRIES {
            let done = match attempt() {
                Err(Errno::ACCESS) => match self.denial()? {
                    Denial::Closed => real::with_rights(&self.folder, &mut attempt),
                    Denial::Other if denied < DENIALS => {
                        denied += 1;
                        Ok(None)
                    }
                    Denial::Other | Denial::Foreign => return Ok(None),
                },
                done => done,
            };
            match done {
                Ok(Some(done)) => return Ok(Some(done)),
                Err(Errno::PERM | Errno::ROFS | Errno::NOTDIR) => return Ok(None),
                // Another helper was faster, or made the folder again what it was.
                Ok(None) | Err(Errno::ACCESS) => std::thread::sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
        Err(self.busy())
    }

    /// Says what kept this process from using the folder.
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

    fn try_take(&self) -> Result<Option<Standing>, Errno> {
        match self.make() {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        let Some(file) = self.open_ours()? else {
            return match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Ok(Some(Standing::Others)),
                // It went between the two.
                Err(Errno::NOENT) => Ok(None),
                Err(error) => Err(error),
            };
        };
        // Never waited for: a command may lock what it sees.
        let is_locked = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        let is_held = is_locked && self.holds(&file);
        Ok(is_held.then_some(Standing::Placeholder(file)))
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
            None => kind == FileType::Directory && is_directory_mode(found.st_mode),
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
            Err(Errno::ACCESS) => Ok(real::with_rights(&self.folder, remove)?),
            removed => Ok(removed?),
        }
    }
}
