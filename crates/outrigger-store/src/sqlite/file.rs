//! The file, its folder, and the lock that makes it one process's.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::SCHEMA;
use crate::Error;

/// The beginning of every SQLite file, and where its schema's number is (https://sqlite.org/fileformat2.html).
const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER: usize = 100;
const USER_VERSION: std::ops::Range<usize> = 60..64;

/// What is wrong with a file that has another header.
pub(super) const FOREIGN: &str = "it is no SQLite file";

/// Held as long as the file is ours.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // The number of a process that ended says nothing.
        self.0.set_len(0).ok();
    }
}

/// Makes the folder and locks the file for this process.
pub(super) fn lock(path: &Path) -> Result<Lock, Error> {
    if fs::metadata(path).is_ok_and(|it| !it.is_file()) {
        return Err(Error::Open {
            path: path.display().to_string(),
            problem: "it is no regular file".to_owned(),
        });
    }
    let at = beside(path, "lock");
    let failed = |problem: io::Error| Error::Open {
        path: at.display().to_string(),
        problem: problem.to_string(),
    };
    if let Some(folder) = path.parent() {
        folder_of_ours(folder).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    private(&mut options);
    let mut file = options.open(&at).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let (path, pid) = (path.display().to_string(), whose(&file));
            return Err(Error::InUse { path, pid });
        }
        Err(TryLockError::Error(problem)) => return Err(failed(problem)),
    }
    // For the message of whoever comes second; nothing depends on it.
    let said = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| write!(file, "{}", std::process::id()));
    said.map_err(failed)?;
    make(path)?;
    Ok(Lock(file))
}

/// Returns the process that has the file; `None` where none has.
pub(super) fn holder(path: &Path) -> Option<String> {
    let file = File::open(beside(path, "lock")).ok()?;
    // A lock that is shared for a moment, and only where a process is named: it is gone when `file` is.
    let is_named = file.metadata().is_ok_and(|it| it.len() > 0);
    let is_held = is_named && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    is_held.then(|| whose(&file))
}

/// Returns the process that a lock names.
fn whose(lock: &File) -> String {
    let mut pid = String::new();
    lock.take(20).read_to_string(&mut pid).ok();
    match pid.trim() {
        "" => "unknown".to_owned(),
        pid => pid.to_owned(),
    }
}

/// Makes the file where there is none, nobody else's: SQLite would make it with the mode that the user's files have.
pub(super) fn make(path: &Path) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    private(&mut options);
    let opened = options.open(path).and_then(|file| only_ours(&file));
    opened.map_err(|problem| Error::Open {
        path: path.display().to_string(),
        problem: problem.to_string(),
    })
}

/// Which file it is, wherever it is moved to; the same for all where the system does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

impl From<&Metadata> for Identity {
    #[cfg(unix)]
    fn from(found: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self(found.dev(), found.ino())
    }

    #[cfg(not(unix))]
    fn from(_: &Metadata) -> Self {
        Self(0, 0)
    }
}

/// What a file is by its header, without opening it as a database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    Empty,
    Foreign,
    Ours,
}

/// Looks at the header. Fails where the file is newer than this program.
pub(super) fn looks(path: &Path) -> Result<Looks, Error> {
    let mut header = [0; HEADER];
    let read = File::open(path).and_then(|file| fill(&file, &mut header));
    let read = read.map_err(|problem| Error::Open {
        path: path.display().to_string(),
        problem: problem.to_string(),
    })?;
    if read == 0 {
        return Ok(Looks::Empty);
    }
    if read < HEADER || !header.starts_with(MAGIC) {
        return Ok(Looks::Foreign);
    }
    let version = header.get(USER_VERSION).and_then(|it| it.try_into().ok());
    let found = i64::from(u32::from_be_bytes(version.unwrap_or_default()));
    if found > SCHEMA {
        return Err(Error::Newer {
            path: path.display().to_string(),
            found,
            known: SCHEMA,
        });
    }
    Ok(Looks::Ours)
}

/// Moves the file away where it is no database, and returns where it is now. Fails where it is newer than this program.
pub(super) fn look(path: &Path) -> Result<Option<PathBuf>, Error> {
    if looks(path)? != Looks::Foreign {
        return Ok(None);
    }
    let moved = move_away(path, FOREIGN)?;
    make(path)?;
    Ok(Some(moved))
}

/// Moves a damaged file away, with its log of changes, and returns where it is now.
pub(super) fn move_away(path: &Path, problem: &str) -> Result<PathBuf, Error> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let suffix = format!("damaged-{}", since.unwrap_or_default().as_millis());
    let to = beside(path, &suffix);
    fs::rename(path, &to).map_err(|_| Error::Corrupt {
        path: path.display().to_string(),
        problem: problem.to_owned(),
    })?;
    for part in ["-wal", "-shm"] {
        fs::rename(with(path, part), with(&to, part)).ok();
    }
    Ok(to)
}

/// Returns `PATH.suffix`.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    with(path, &format!(".{suffix}"))
}

/// Returns the path with something at its end.
pub(super) fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn fill(mut file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Makes a folder that nobody else may look into; one that is there stays as it is.
fn folder_of_ours(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Has a file that is made be nobody else's.
pub(super) fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// Takes a file from whom it does not concern, where it was made with more leave.
fn only_ours(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// Returns whether the file is on a file system of another machine, or of a virtual machine's host.
#[cfg(target_os = "linux")]
pub(super) fn is_on_a_network(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    let found = rustix::fs::statfs(folder).map(|it| it.f_type as u64 & 0xFFFF_FFFF);
    found.is_ok_and(is_foreign)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_on_a_network(_: &Path) -> bool {
    false
}

/// Returns whether locks and shared memory do not work as SQLite's log of changes needs them on a file system of this
/// number (linux/magic.h).
#[cfg(target_os = "linux")]
fn is_foreign(file_system: u64) -> bool {
    // NFS, SMB (three of them), 9p, FUSE (virtiofs too).
    let foreign = [
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x0102_1997,
        0x6573_5546,
    ];
    foreign.contains(&file_system)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_other_machines_are_known_by_their_numbers() {
        for (name, number, expected) in [
            ("nfs", 0x6969, true),
            ("smb", 0x517B, true),
            ("cifs", 0xFF53_4D42, true),
            ("smb2", 0xFE53_4D42, true),
            ("9p", 0x0102_1997, true),
            ("fuse, virtiofs, sshfs", 0x6573_5546, true),
            ("ext4", 0xEF53, false),
            ("xfs", 0x5846_5342, false),
            ("btrfs", 0x9123_683E, false),
            ("tmpfs", 0x0102_1994, false),
            ("overlayfs", 0x794C_7630, false),
            ("zfs", 0x2FC1_2FC1, false),
        ] {
            assert_eq!(is_foreign(number), expected, "{name}");
        }
        assert!(!is_on_a_network(Path::new("/no such folder/file")));
    }
}
