//! Reading what was found: regular files only, whole, up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cap_fs_ext::{FollowSymlinks, MetadataExt, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::failure::{failed, missing, was_swapped, word_for};
use super::secrets::Identity;
use super::{Entry, Found, Located, PathError, Root, Roots};

/// Largest file handled whole, in bytes; what is larger is searched or read by commands.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Largest hidden file that is compared with what git has of it, in bytes; keys are smaller.
const MAX_HIDDEN_BYTES: u64 = 1024 * 1024;

impl Located<'_> {
    /// Opens the regular file that was found, outside of the kernel's file systems; never waits for a pipe or a device.
    pub fn open(&self) -> Result<File, PathError> {
        match &self.found {
            Found::File => {}
            Found::Missing => return Err(missing(&self.shown)),
            Found::Folder(_) => return Err(not_a_file(&self.shown, "a folder")),
            Found::Other(word) => return Err(not_a_file(&self.shown, word)),
        }
        let name = Path::new(&self.name);
        let (file, metadata) = open_with_metadata(&self.parent, name, &self.shown, None)?;
        self.refuse_linked(&file, &metadata)?;
        Ok(file.into_std())
    }

    /// Reads the whole file, which may have [`MAX_FILE_BYTES`].
    pub fn read(&self) -> Result<Vec<u8>, PathError> {
        let file = self.open()?;
        let mut bytes = Vec::new();
        // The size that a look-up tells may be wrong a moment later: the limit is on what comes.
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed(&self.shown, &error))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(PathError::TooLarge(format!(
                "file {:?} is larger than {} MiB; use file_search, or a command that reads a part of it",
                self.shown,
                MAX_FILE_BYTES / 1024 / 1024
            )));
        }
        Ok(bytes)
    }

    /// Whether the file that was found may be run by anybody.
    pub fn is_executable(&self) -> bool {
        self.mode().is_some_and(|mode| mode & 0o111 != 0)
    }

    /// Returns the mode bits of the file that was found; `None` where it cannot be opened, or the system has none.
    pub fn mode(&self) -> Option<u32> {
        let metadata = self.open().ok()?.metadata().ok()?;
        mode_of(&metadata)
    }

    /// Opens a regular file that a visit came by, as [`open`](Self::open) does.
    pub fn open_entry(&self, entry: &Entry<'_>) -> Result<File, PathError> {
        let name = Path::new(entry.name);
        let (file, metadata) = open_with_metadata(entry.dir, name, entry.relative, entry.device)?;
        self.refuse_linked(&file, &metadata)?;
        Ok(file.into_std())
    }

    /// Refuses a secret under another name: renamed with its folder, or one of several names.
    fn refuse_linked(
        &self,
        file: &cap_std::fs::File,
        metadata: &Metadata,
    ) -> Result<(), PathError> {
        let identity = Identity::of_open(file, metadata);
        let is_secret = || self.roots.secrets.lock().holds(identity);
        let forbidden = || {
            Err(PathError::Forbidden(format!(
                "path {:?} is another name of a file that may not be read",
                self.shown
            )))
        };
        if is_secret() {
            return forbidden();
        }
        if metadata.nlink() < 2 {
            return Ok(());
        }
        if !is_own(metadata, &self.roots.root(self.root).dir) {
            // A link that a third user made would lend them the daemon's rights.
            return Err(PathError::Failed(format!(
                "path {:?} is one of several names of a file that belongs to another user",
                self.shown
            )));
        }
        if self.roots.is_git_setting(metadata) {
            return forbidden();
        }
        let fresh = self.roots.secrets.lock().fresh();
        let complete = match fresh {
            Some(complete) => complete,
            None => self.roots.hidden().complete,
        };
        match is_secret() {
            true => forbidden(),
            false if complete => Ok(()),
            false => Err(PathError::Failed(format!(
                "path {:?} is one of several names of a file, and the project is too large to tell whether another one is a secret's",
                self.shown
            ))),
        }
    }
}

#[cfg(unix)]
fn mode_of(metadata: &std::fs::Metadata) -> Option<u32> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
    Some(mode & 0o777)
}

#[cfg(not(unix))]
fn mode_of(_: &std::fs::Metadata) -> Option<u32> {
    None
}

impl Roots {
    /// Whether no file can be a secret without being known as one, as far as the last look through the roots tells;
    /// before the first, a file that nobody renamed has only its name.
    pub fn knows_secrets(&self) -> bool {
        self.secrets.lock().was_complete()
    }

    /// Reads a file of the project that is hidden from commands, for the daemon to compare and not to show.
    pub fn hidden_content(&self, relative: &str) -> Option<Vec<u8>> {
        let path = Path::new(relative);
        let dir = Path::new(".").join(path.parent()?);
        let dir = self.project.dir.open_dir(dir).ok()?;
        let file = open_regular(&dir, Path::new(path.file_name()?), relative).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_HIDDEN_BYTES + 1)
            .read_to_end(&mut bytes)
            .ok()?;
        (bytes.len() as u64 <= MAX_HIDDEN_BYTES).then_some(bytes)
    }

    /// Whether it is a file of git's settings, which can hold credentials.
    fn is_git_setting(&self, metadata: &Metadata) -> bool {
        let place = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        let is_it = |root: &Root, name| {
            let setting = root.dir.symlink_metadata(name);
            setting.is_ok_and(|setting| place(&setting) == place(metadata))
        };
        [&self.project, &self.central]
            .into_iter()
            .any(|root| is_it(root, ".git/config") || is_it(root, ".git/config.worktree"))
    }
}

/// Whether a file belongs to the user the daemon acts as, or to the owner of a root.
#[cfg(unix)]
fn is_own(metadata: &Metadata, root: &Dir) -> bool {
    use cap_std::fs::MetadataExt;
    let owner = metadata.uid();
    owner == rustix::process::geteuid().as_raw()
        || root.dir_metadata().is_ok_and(|root| root.uid() == owner)
}

#[cfg(not(unix))]
fn is_own(_metadata: &Metadata, _root: &Dir) -> bool {
    true
}

/// When a file or folder was last changed, in seconds and nanoseconds: by the clock that no call sets, as `touch -r`
/// sets the other.
#[cfg(unix)]
pub(super) fn changed(metadata: &Metadata) -> Option<(i64, i64)> {
    use cap_std::fs::MetadataExt;
    Some((metadata.ctime(), metadata.ctime_nsec()))
}

#[cfg(not(unix))]
pub(super) fn changed(metadata: &Metadata) -> Option<(i64, i64)> {
    let modified = metadata.modified().ok()?.into_std();
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((
        i64::try_from(since.as_secs()).ok()?,
        i64::from(since.subsec_nanos()),
    ))
}

/// Opens one name in a folder as a regular file: no link followed, no waiting.
pub(super) fn open_regular(
    dir: &Dir,
    name: &Path,
    shown: &str,
) -> Result<cap_std::fs::File, PathError> {
    open_with_metadata(dir, name, shown, None).map(|(file, _)| file)
}

/// The same with what the system says of the file.
///
/// `device` is that of a folder known to be in no file system of the kernel's: what lies on it is not
/// asked again: in a search that is one of the few calls for each file.
fn open_with_metadata(
    dir: &Dir,
    name: &Path,
    shown: &str,
    device: Option<u64>,
) -> Result<(cap_std::fs::File, Metadata), PathError> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOCTTY.bits();
        options.custom_flags(i32::try_from(flags).unwrap_or_default());
    }
    let file = dir.open_with(name, &options).map_err(|error| {
        // What was a regular file a moment ago is none now; that is no reason to look elsewhere.
        if was_swapped(&error) && error.kind() != io::ErrorKind::NotFound {
            PathError::Failed(format!("path {shown:?} was changed while it was opened"))
        } else {
            failed(shown, &error)
        }
    })?;
    let metadata = file.metadata().map_err(|error| failed(shown, &error))?;
    if !metadata.is_file() {
        return Err(not_a_file(shown, word_for(&metadata)));
    }
    if device != Some(metadata.dev()) && is_kernels(&file) {
        return Err(PathError::Failed(format!(
            "path {shown:?} lies in a file system of the kernel"
        )));
    }
    Ok((file, metadata))
}

fn not_a_file(shown: &str, word: &str) -> PathError {
    PathError::Failed(format!("path {shown:?} is {word}, not a regular file"))
}

/// Whether a handle lies in `/proc`, `/sys` or their like, mounted somewhere below a root.
#[cfg(target_os = "linux")]
pub(super) fn is_kernels(handle: impl rustix::fd::AsFd) -> bool {
    /// proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, devpts, bpf; from `linux/magic.h`.
    const MAGIC: &[u64] = &[
        0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0x1cd1,
        0xcafe4a11,
    ];
    rustix::fs::fstatfs(handle)
        .is_ok_and(|system| u64::try_from(system.f_type).is_ok_and(|kind| MAGIC.contains(&kind)))
}

/// Other systems have no such file systems where a project could be.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_kernels<T>(_handle: T) -> bool {
    false
}
