//! Reading what was found: regular files only, whole, up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cap_fs_ext::{FollowSymlinks, MetadataExt, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::failure::{failed, missing, was_swapped, word_for};
use super::{Entry, Found, Located, PathError, Roots};

/// Largest file handled whole, in bytes; what is larger is searched or read by commands.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Largest hidden file that is compared with what git has of it, in bytes; keys are smaller.
const MAX_HIDDEN_BYTES: u64 = 1024 * 1024;

/// What a file held, with what has to be kept of it.
#[derive(Debug)]
pub struct Contents {
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Located<'_> {
    /// Opens the regular file that was found; never waits for a pipe or a device.
    ///
    /// # Errors
    ///
    /// [`PathError::Missing`] where nothing is there; [`PathError::Failed`] where it is not a
    /// regular file, lies in a file system of the kernel's, or may not be read.
    pub fn open(&self) -> Result<File, PathError> {
        match &self.found {
            Found::File => {}
            Found::Missing => return Err(missing(&self.shown)),
            Found::Folder(_) => return Err(not_a_file(&self.shown, "a folder")),
            Found::Other(word) => return Err(not_a_file(&self.shown, word)),
        }
        let name = Path::new(&self.name);
        let (file, metadata) = open_with_metadata(&self.parent, name, &self.shown, None)?;
        self.refuse_linked(&metadata)?;
        Ok(file.into_std())
    }

    /// Reads the whole file.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`PathError::TooLarge`] above [`MAX_FILE_BYTES`].
    pub fn read(&self) -> Result<Contents, PathError> {
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
        Ok(Contents { bytes })
    }

    /// Whether the file that was found may be run by anybody.
    pub fn is_executable(&self) -> bool {
        self.open()
            .and_then(|file| file.metadata().map_err(|error| failed(&self.shown, &error)))
            .is_ok_and(|metadata| may_run(&metadata))
    }

    /// Opens a regular file that a visit came by, as [`open`](Self::open) does.
    ///
    /// # Errors
    ///
    /// [`PathError`] where it is something else by now, or may not be read.
    pub fn open_entry(&self, entry: &Entry<'_>) -> Result<File, PathError> {
        let name = Path::new(entry.name);
        let (file, metadata) = open_with_metadata(entry.dir, name, entry.relative, entry.device)?;
        self.refuse_linked(&metadata)?;
        Ok(file.into_std())
    }

    /// Refuses a secret under another name: renamed with its folder, or one of several names.
    fn refuse_linked(&self, metadata: &Metadata) -> Result<(), PathError> {
        let secret = || {
            self.roots.secrets.known().holds(metadata).then(|| {
                PathError::Forbidden(format!(
                    "path {:?} is another name of a file that may not be read",
                    self.shown
                ))
            })
        };
        if let Some(refused) = secret() {
            return Err(refused);
        }
        if metadata.nlink() < 2 {
            return Ok(());
        }
        let owner = owner(metadata);
        let own = owner == effective_user() || owner == self.roots.root(self.root).owner;
        if !own {
            // A link that a third user made would lend them the daemon's rights.
            return Err(PathError::Failed(format!(
                "path {:?} is one of several names of a file that belongs to another user",
                self.shown
            )));
        }
        if self.roots.is_git_setting(metadata) {
            return Err(PathError::Forbidden(format!(
                "path {:?} is another name of a file that may not be read",
                self.shown
            )));
        }
        let complete = match self.roots.secrets.fresh() {
            Some(complete) => complete,
            None => self.roots.hidden().complete,
        };
        match secret() {
            Some(refused) => Err(refused),
            None if complete => Ok(()),
            None => Err(PathError::Failed(format!(
                "path {:?} is one of several names of a file, and the project is too large to tell whether another one is a secret's",
                self.shown
            ))),
        }
    }
}

#[cfg(unix)]
fn may_run(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
}

#[cfg(not(unix))]
fn may_run(_: &std::fs::Metadata) -> bool {
    false
}

impl Roots {
    /// Whether no file can be a secret without being known as one, as far as the last look through the roots tells;
    /// before the first, a file that nobody renamed has only its name.
    pub fn knows_secrets(&self) -> bool {
        self.secrets.is_complete()
    }

    /// Reads a file of the project that is hidden from commands, for the daemon to compare and not to show.
    pub fn hidden_content(&self, relative: &str) -> Option<Vec<u8>> {
        let path = Path::new(relative);
        let name = path.file_name()?;
        let dir = match path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            Some(parent) => self.project.dir.open_dir(parent).ok()?,
            None => self.project.dir.try_clone().ok()?,
        };
        let file = open_regular(&dir, Path::new(name), relative).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_HIDDEN_BYTES + 1)
            .read_to_end(&mut bytes)
            .ok()?;
        (bytes.len() as u64 <= MAX_HIDDEN_BYTES).then_some(bytes)
    }

    /// Whether it is a file of git's settings, which can hold credentials.
    fn is_git_setting(&self, metadata: &Metadata) -> bool {
        [&self.project, &self.central].iter().any(|root| {
            [".git/config", ".git/config.worktree"].iter().any(|name| {
                root.dir.symlink_metadata(name).is_ok_and(|setting| {
                    (setting.dev(), setting.ino()) == (metadata.dev(), metadata.ino())
                })
            })
        })
    }
}

/// Returns the user that a file belongs to, where the system has such.
#[cfg(unix)]
pub(super) fn owner(metadata: &Metadata) -> Option<u32> {
    Some(cap_std::fs::MetadataExt::uid(metadata))
}

/// Returns the user that a file belongs to, where the system has such.
#[cfg(not(unix))]
pub(super) fn owner(_metadata: &Metadata) -> Option<u32> {
    None
}

/// When a file or folder was last changed, in seconds and nanoseconds: by the clock that no call sets, as `touch -r`
/// sets the other.
#[cfg(unix)]
pub(super) fn changed(metadata: &Metadata) -> Option<(i64, i64)> {
    use cap_std::fs::MetadataExt;
    Some((metadata.ctime(), metadata.ctime_nsec()))
}

/// When a file or folder was last changed, as its time of modification says: there is no other.
#[cfg(not(unix))]
pub(super) fn changed(metadata: &Metadata) -> Option<(i64, i64)> {
    let modified = metadata.modified().ok()?.into_std();
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((
        i64::try_from(since.as_secs()).ok()?,
        i64::from(since.subsec_nanos()),
    ))
}

/// Returns the user the daemon acts as, where the system has such.
#[cfg(unix)]
fn effective_user() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

/// Returns the user the daemon acts as, where the system has such.
#[cfg(not(unix))]
fn effective_user() -> Option<u32> {
    None
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
        0x9fa0,
        0x6265_6572,
        0x0027_e0eb,
        0x6367_7270,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0x1cd1,
        0xcafe_4a11,
    ];
    rustix::fs::fstatfs(handle)
        .is_ok_and(|system| u64::try_from(system.f_type).is_ok_and(|kind| MAGIC.contains(&kind)))
}

/// Other systems have no such file systems where a project could be.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_kernels<T>(_handle: T) -> bool {
    false
}
