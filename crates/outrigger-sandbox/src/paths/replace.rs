//! Writing: a file is replaced as a whole, atomically, or not at all.
//!
//! The new content goes to a file without a name in the same folder and is forced to the disk. Where it replaces an old
//! one it gets a temporary name for a moment; where the file system has no files without names, from the beginning.
//! Such a file is locked by its writer, so [`Roots::sweep`] can tell one that a crash left behind from one in use.

mod attributes;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions};

use super::failure::failed;
use super::tree::{EntryKind, Step, TreeWalk};
use super::{Found, Located, PathError, Roots};
use attributes::{keep_attributes, set_mode};

/// Largest content written, in bytes.
pub(super) const MAX_WRITE_BYTES: usize = 8 * 1024 * 1024;

/// Space that is left free on the disk, in bytes, or a twentieth of a smaller disk.
const MIN_FREE_BYTES: u64 = 256 * 1024 * 1024;

/// Begin and end of the names that the daemon gives to temporary files; 16 hexadecimal digits are between them.
const TEMPORARY: (&str, &str) = (".outrigger-", ".tmp");

const DIGITS: usize = 16;

/// Whether a name is one that the daemon gives to its temporary files.
pub(super) fn is_temporary(name: &OsStr) -> bool {
    let digits = name
        .to_str()
        .and_then(|name| name.strip_prefix(TEMPORARY.0)?.strip_suffix(TEMPORARY.1));
    digits.is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// How often a name for the temporary file is drawn before giving up: two are never equal by chance.
const MAX_DRAWS: usize = 4;

impl Located<'_> {
    /// Replaces the file's content, or creates the file and the folders above it.
    ///
    /// An existing file keeps its mode (without set-id bits), owner and extended attributes where
    /// the daemon may set them. A new one gets what the process's mask allows.
    pub fn replace(&self, content: &[u8]) -> Result<(), PathError> {
        self.restore(content, None)
    }

    /// The same; a file that is created gets these mode bits.
    pub fn restore(&self, content: &[u8], mode: Option<u32>) -> Result<(), PathError> {
        let mut old = match &self.found {
            Found::Missing => None,
            Found::File => Some(self.open_old()?),
            Found::Folder(_) => return Err(self.refuse("it is a folder")),
            Found::Other(word) => return Err(self.refuse(&format!("it is {word}"))),
        };
        if content.len() > MAX_WRITE_BYTES {
            return Err(self.refuse(&format!(
                "the content has {} bytes, at most {MAX_WRITE_BYTES} are written",
                content.len()
            )));
        }
        self.check_space(content.len() as u64)?;
        let dir = self.make_parents()?;
        self.swap_in(&dir, (&mut old, mode), content)
            .map_err(|error| failed(&self.shown, &error))
    }

    /// Removes the file that was found, where it could be written in place. Its folder stays.
    pub fn remove(&self) -> Result<(), PathError> {
        self.open_old()?;
        self.parent
            .remove_file(&self.name)
            .map_err(|error| failed(&self.shown, &error))?;
        sync_folder(&self.parent);
        Ok(())
    }

    /// Opens the old file, having made sure that it could be written in place.
    fn open_old(&self) -> Result<File, PathError> {
        // Renaming over a read-only file would succeed: the folder's rights decide, not the file's.
        #[cfg(unix)]
        rustix::fs::accessat(
            &self.parent,
            Path::new(&self.name),
            rustix::fs::Access::WRITE_OK,
            rustix::fs::AtFlags::empty(),
        )
        .map_err(|error| failed(&self.shown, &error.into()))?;
        let file = self.open()?;
        #[cfg(windows)]
        if file
            .metadata()
            .is_ok_and(|metadata| metadata.permissions().readonly())
        {
            return Err(self.refuse("it is marked as read-only"));
        }
        Ok(File::from_std(file))
    }

    fn refuse(&self, problem: &str) -> PathError {
        PathError::Failed(format!(
            "path {:?} cannot be written: {problem}",
            self.shown
        ))
    }

    #[cfg(unix)]
    fn check_space(&self, needed: u64) -> Result<(), PathError> {
        let disk = rustix::fs::fstatvfs(&self.parent)
            .map_err(|error| failed(&self.shown, &error.into()))?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        self.check_free(needed, bytes(disk.f_bavail), bytes(disk.f_blocks))
    }

    #[cfg(windows)]
    fn check_space(&self, needed: u64) -> Result<(), PathError> {
        let root = self.roots.path(self.root).to_string_lossy();
        let (free, all) =
            crate::windows::free_space(&root).map_err(|error| failed(&self.shown, &error))?;
        self.check_free(needed, free, all)
    }

    fn check_free(&self, needed: u64, free: u64, all: u64) -> Result<(), PathError> {
        let kept = MIN_FREE_BYTES.min(all / 20);
        if free < needed.saturating_add(kept) {
            return Err(self.refuse(&format!(
                "the disk has {free} bytes left, and {kept} are kept free"
            )));
        }
        Ok(())
    }

    fn make_parents(&self) -> Result<Dir, PathError> {
        let make = || {
            let mut dir = self.parent.try_clone()?;
            for name in &self.missing {
                match dir.create_dir(name) {
                    // Whoever was quicker made a folder, or opening it fails: no link is followed.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => made?,
                }
                dir = dir.open_dir_nofollow(name)?;
            }
            Ok(dir)
        };
        make().map_err(|error| failed(&self.shown, &error))
    }

    fn swap_in(
        &self,
        dir: &Dir,
        (old, mode): (&mut Option<File>, Option<u32>),
        content: &[u8],
    ) -> io::Result<()> {
        let replaces = old.is_some();
        let unnamed = Temporary::unnamed(dir, replaces);
        match unnamed.and_then(|temporary| self.finish(temporary, (old, mode), content)) {
            Ok(()) => {}
            // Of these two a file with a name would die as well.
            Err(error) if is_final(&error) => return Err(error),
            // Not every file system has files without names, and not every system lets them have one later.
            Err(_) => self.finish(Temporary::named(dir, replaces)?, (old, mode), content)?,
        }
        sync_folder(dir);
        Ok(())
    }

    fn finish(
        &self,
        mut temporary: Temporary<'_>,
        (old, mode): (&mut Option<File>, Option<u32>),
        content: &[u8],
    ) -> io::Result<()> {
        temporary.file.write_all(content)?;
        let replaces = old.is_some();
        match (old.as_ref(), mode) {
            (Some(old), _) => keep_attributes(old, &temporary.file)?,
            (None, Some(mode)) => set_mode(&temporary.file, mode)?,
            (None, None) => {}
        }
        temporary.file.sync_all()?;
        // Windows replaces no file that is open.
        #[cfg(windows)]
        drop(old.take());
        temporary.rename(Path::new(&self.name), replaces)
    }
}

impl Roots {
    /// Removes temporary files that a crash left in a root; returns how many there were.
    ///
    /// For the start of the daemon; looks at no more entries than one walk visits.
    pub fn sweep(&self) -> usize {
        let mut removed = 0;
        for root in [&self.project, &self.central] {
            let Ok(dir) = root.dir.try_clone() else {
                continue;
            };
            TreeWalk::new(dir, String::new(), None).run(&mut |entry| {
                if is_temporary(entry.name)
                    && entry.kind == EntryKind::File
                    && remove_stale(entry.dir, Path::new(entry.name))
                {
                    removed += 1;
                }
                Step::Enter
            });
        }
        removed
    }
}

/// Whether another way to write the file would fail in the same way.
fn is_final(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// A file that becomes the new one, or is gone when dropped.
struct Temporary<'a> {
    dir: &'a Dir,
    file: File,
    /// The name to remove; nothing while it has none, or once it has its own.
    name: Option<String>,
}

impl<'a> Temporary<'a> {
    /// Opens a file that has no name, with the rights of a new file, or with none for others until the old ones are set.
    #[cfg(target_os = "linux")]
    fn unnamed(dir: &'a Dir, replaces: bool) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags, openat};
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let opened = openat(dir, ".", flags, Mode::from_raw_mode(rights(replaces)))?;
        let file = File::from_std(opened.into());
        // It may get a temporary name.
        lock(&file);
        Ok(Self {
            dir,
            file,
            name: None,
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn unnamed(_dir: &'a Dir, _replaces: bool) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Creates a file with a temporary name, with the same rights.
    fn named(dir: &'a Dir, replaces: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .follow(FollowSymlinks::No);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, rights(replaces));
        // Who may do what with it is changed by its handle, which takes a right of its own.
        #[cfg(windows)]
        if replaces {
            cap_std::fs::OpenOptionsExt::access_mode(&mut options, WRITE_AND_CHANGE_ACCESS);
        }
        let (file, name) = draw_name(|name| {
            let file = dir.open_with(name, &options)?;
            lock(&file);
            Ok(file)
        })?;
        Ok(Self {
            dir,
            file,
            name: Some(name),
        })
    }

    /// Gives it its own name: that of the old file, which it replaces in one step, or one that nothing has yet, since
    /// what came there meanwhile was never looked at.
    fn rename(&mut self, name: &Path, replaces: bool) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        match &self.name {
            #[cfg(target_os = "linux")]
            None if !replaces => return link(&self.file, self.dir, name),
            #[cfg(target_os = "linux")]
            None => {
                // For the moment between this and the renaming.
                let (dir, file) = (self.dir, &self.file);
                let ((), drawn) = draw_name(|drawn| link(file, dir, Path::new(drawn)))?;
                self.name = Some(drawn);
            }
            Some(drawn) if !replaces => {
                use rustix::fs::{RenameFlags, renameat_with};
                use rustix::io::Errno;
                let (from, flags) = (drawn.as_str(), RenameFlags::NOREPLACE);
                match renameat_with(self.dir, from, self.dir, name, flags) {
                    // Some file systems cannot tell in one step.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                    renamed => {
                        renamed?;
                        self.name = None;
                    }
                }
            }
            _ => {}
        }
        #[cfg(windows)]
        unlock(&self.file);
        #[cfg(windows)]
        if let Some(drawn) = self.name.as_deref().filter(|_| !replaces) {
            // A second name is given only where nothing has it. Disks without such names rename in the step below.
            match self.dir.hard_link(drawn, self.dir, name) {
                // The first one goes with this value.
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {}
            }
        }
        if let Some(drawn) = &self.name {
            self.dir.rename(drawn, self.dir, name)?;
            self.name = None;
        }
        Ok(())
    }
}

#[cfg(unix)]
fn rights(replaces: bool) -> u32 {
    if replaces { 0o600 } else { 0o666 }
}

/// Makes something under a temporary name that nothing has.
fn draw_name<T>(mut make: impl FnMut(&str) -> io::Result<T>) -> io::Result<(T, String)> {
    for _ in 0..MAX_DRAWS {
        let number = getrandom::u64().map_err(io::Error::other)?;
        let name = format!("{}{number:016x}{}", TEMPORARY.0, TEMPORARY.1);
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Gives a name to a file that has none, where nothing has that name.
#[cfg(target_os = "linux")]
fn link(file: &File, dir: &Dir, name: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, linkat};
    // By the descriptor itself only with a privilege, before Linux 6.10. By its entry in `/proc` always, where that is
    // mounted; a process may use its own, dumpable or not.
    match linkat(file, "", dir, name, AtFlags::EMPTY_PATH) {
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::PERM) => {}
        done => return Ok(done?),
    }
    let entry = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, entry, dir, name, AtFlags::SYMLINK_FOLLOW)?)
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // A file that cannot be removed is found by the next sweep.
        if let Some(name) = &self.name
            && self.dir.remove_file(name).is_err()
        {
            tracing::warn!("a temporary file was left behind");
        }
    }
}

/// Marks a temporary file as in use for as long as it is open.
#[cfg(unix)]
fn lock(file: &File) -> bool {
    // Where the file system has no locks, sweeping finds none either and leaves the file.
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// `GENERIC_WRITE`, to read what the system says of it (`READ_CONTROL`) and to change who may do what (`WRITE_DAC`).
#[cfg(windows)]
const WRITE_AND_CHANGE_ACCESS: u32 = 0x4000_0000 | 0x0002_0000 | 0x0004_0000;

/// Marks a temporary file as in use for as long as it is open.
#[cfg(windows)]
fn lock(file: &File) -> bool {
    let file = file.try_clone().map(File::into_std);
    file.is_ok_and(|file| file.try_lock().is_ok())
}

/// A lock keeps others there from reading the file, which is the user's from now on.
#[cfg(windows)]
fn unlock(file: &File) {
    let file = file.try_clone().map(File::into_std);
    if let Err(error) = file.and_then(|file| file.unlock()) {
        tracing::debug!(%error, "a written file stays locked until it is closed");
    }
}

fn remove_stale(dir: &Dir, name: &Path) -> bool {
    super::contents::open_regular(dir, name, &name.to_string_lossy())
        .is_ok_and(|file| lock(&file) && dir.remove_file(name).is_ok())
}

/// Forces the renaming to the disk; some file systems cannot, and the file is replaced either way.
fn sync_folder(dir: &Dir) {
    let mut options = OpenOptions::new();
    options.read(true);
    cap_fs_ext::OpenOptionsMaybeDirExt::maybe_dir(&mut options, true);
    let folder = dir.open_with(".", &options);
    if let Err(error) = folder.and_then(|folder| folder.sync_all()) {
        tracing::debug!(%error, "folder not synced");
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests;
