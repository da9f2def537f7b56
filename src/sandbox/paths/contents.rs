//! Reading what was found: regular files only, whole, up to a limit.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cap_fs_ext::{FollowSymlinks, MetadataExt, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::failure::{failed, missing, was_swapped, word_for};
use super::{Entry, Found, Located, PathError, RootName, Roots};

/// Largest file handled whole, in bytes; what is larger is searched or read by commands.
pub const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// How long the list of secrets is used before it is made anew. Only files with several names are
/// compared with it, and making it walks the roots.
const SECRETS_AGE: Duration = Duration::from_secs(5);

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
        let file = open_regular(&self.parent, Path::new(&self.name), &self.shown)?;
        let metadata = file
            .metadata()
            .map_err(|error| failed(&self.shown, &error))?;
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

    /// Opens a regular file that a visit came by, as [`open`](Self::open) does.
    ///
    /// # Errors
    ///
    /// [`PathError`] where it is something else by now, or may not be read.
    pub fn open_entry(&self, entry: &Entry<'_>) -> Result<File, PathError> {
        let file = open_regular(entry.dir, Path::new(entry.name), entry.relative)?;
        let metadata = file
            .metadata()
            .map_err(|error| failed(entry.relative, &error))?;
        self.refuse_linked(&metadata)?;
        Ok(file.into_std())
    }

    /// Refuses a file that has several names where one of them may be a secret's.
    fn refuse_linked(&self, metadata: &Metadata) -> Result<(), PathError> {
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
        let identity = (metadata.dev(), metadata.ino());
        if self.roots.secrets().contains(&identity) {
            return Err(PathError::Forbidden(format!(
                "path {:?} is another name of a file that may not be read",
                self.shown
            )));
        }
        Ok(())
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

/// Device and inode numbers of files.
type Inodes = HashSet<(u64, u64)>;

/// The inodes of all secrets, for as long as they are taken for current.
///
/// The lock is held while the list is made, so that it is made once for all who wait for it.
#[derive(Debug, Default)]
pub(super) struct Secrets(Mutex<Option<(Instant, Arc<Inodes>)>>);

impl Secrets {
    fn get_or_collect(&self, collect: impl FnOnce(&mut Inodes)) -> Arc<Inodes> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, secrets)) = &*kept
            && made.elapsed() < SECRETS_AGE
        {
            return Arc::clone(secrets);
        }
        let mut secrets = Inodes::new();
        collect(&mut secrets);
        let secrets = Arc::new(secrets);
        *kept = Some((Instant::now(), Arc::clone(&secrets)));
        secrets
    }
}

impl Roots {
    fn secrets(&self) -> Arc<Inodes> {
        self.secrets.get_or_collect(|secrets| {
            for root in [RootName::Project, RootName::Central] {
                self.collect_secrets(root, secrets);
            }
        })
    }
}

/// Opens one name in a folder as a regular file: no link followed, no waiting.
pub(super) fn open_regular(
    dir: &Dir,
    name: &Path,
    shown: &str,
) -> Result<cap_std::fs::File, PathError> {
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
    if is_kernels(&file) {
        return Err(PathError::Failed(format!(
            "path {shown:?} lies in a file system of the kernel"
        )));
    }
    Ok(file)
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
