//! Looks at the files of repositories.
//!
//! A command may close a folder for a moment, while the next command is prepared. So a folder that cannot be looked into is not one
//! in which there is nothing.

use std::cell::RefCell;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Longest `.git` or `commondir` file that is read, in bytes: one line with a path.
const MAX_POINTER_BYTES: u64 = 8 * 1024;

/// Most links that are followed one after the other, as the kernel does.
const MAX_LINKS: usize = 40;

/// Answers what is there; remembers the first that it could not look at, though a command could.
#[derive(Debug, Default)]
pub(super) struct Look(RefCell<Option<io::Error>>);

impl Look {
    /// Fails with what could not be looked at, in which case the answers may have been wrong.
    pub(super) fn finish(self) -> io::Result<()> {
        self.0.into_inner().map_or(Ok(()), Err)
    }

    pub(super) fn is_there(&self, path: &Path) -> bool {
        self.metadata(path).is_some()
    }

    /// What is at the path itself; no link is followed.
    pub(super) fn metadata(&self, path: &Path) -> Option<Metadata> {
        self.seen(path, path.symlink_metadata())
    }

    pub(super) fn is_file(&self, path: &Path) -> bool {
        let found = self.seen(path, path.metadata());
        found.is_some_and(|found| found.is_file())
    }

    pub(super) fn is_folder(&self, path: &Path) -> bool {
        let found = self.seen(path, path.metadata());
        found.is_some_and(|found| found.is_dir())
    }

    pub(super) fn canonical(&self, path: &Path) -> Option<PathBuf> {
        self.seen(path, path.canonicalize())
    }

    /// The folders in a folder, so many at most.
    pub(super) fn folders_in(&self, folder: &Path, most: usize) -> Vec<PathBuf> {
        let entries = self.seen(folder, std::fs::read_dir(folder));
        let entries = entries.into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .take(most)
            .map(|entry| entry.path())
            .collect()
    }

    pub(super) fn is_empty(&self, folder: &Path) -> bool {
        let entries = self.seen(folder, std::fs::read_dir(folder));
        entries.is_some_and(|mut entries| entries.next().is_none())
    }

    /// The text of a file that says where something of git's is.
    pub(super) fn pointer(&self, file: &Path) -> Option<String> {
        if !self.metadata(file)?.is_file() {
            return None;
        }
        let text = self.beginning(file, MAX_POINTER_BYTES)?;
        String::from_utf8(text).ok()
    }

    /// The first bytes of a file; `None` of what is none, as a pipe that nobody writes to.
    pub(super) fn beginning(&self, file: &Path, most: u64) -> Option<Vec<u8>> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let opened = self.seen(file, options.open(file))?;
        if !self.seen(file, opened.metadata())?.is_file() {
            return None;
        }
        let mut text = Vec::new();
        let read = opened.take(most).read_to_end(&mut text);
        self.seen(file, read)?;
        Some(text)
    }

    /// Whether git may take what is at a `.git` for a repository: not a placeholder of another command.
    pub(super) fn has_repository(&self, dot: &Path) -> bool {
        let found = self.metadata(dot);
        found.is_some_and(|found| !found.is_dir() || self.is_there(&dot.join("HEAD")))
    }

    fn seen<T>(&self, path: &Path, looked: io::Result<T>) -> Option<T> {
        looked
            .inspect_err(|error| {
                if is_nothing(error) || is_foreign(path, MAX_LINKS) {
                    return;
                }
                let reason = format!(
                    "what git runs in {} is not known, since it cannot be looked at: {error}; \
                     give yourself the rights to it again (chmod u+rwx)",
                    path.display()
                );
                let error = io::Error::new(error.kind(), reason);
                self.0.borrow_mut().get_or_insert(error);
            })
            .ok()
    }
}

/// Whether an error says that nothing is there.
fn is_nothing(error: &io::Error) -> bool {
    let nothing = [
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::LOOP,
        Errno::INVAL,
        Errno::NAMETOOLONG,
        Errno::ISDIR,
    ];
    Errno::from_io_error(error).is_some_and(|error| nothing.contains(&error))
}

/// Whether what can be reached of a path ends at something of another user's, which a command cannot open either.
fn is_foreign(path: &Path, links: usize) -> bool {
    let mut places = path.ancestors();
    let Some((place, found)) = places.find_map(|it| Some((it, it.symlink_metadata().ok()?))) else {
        return false;
    };
    if !found.is_symlink() {
        return found.uid() != rustix::process::geteuid().as_raw();
    }
    let folder = place.parent().unwrap_or(place);
    let target = place.read_link().map(|target| folder.join(target));
    links > 0 && target.is_ok_and(|target| is_foreign(&target, links - 1))
}
