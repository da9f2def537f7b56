//! Why a path cannot be used, in words for the model: never with a place it did not ask for.

use std::io;

use cap_std::fs::Metadata;

use super::super::deny::Access;

/// Why a path cannot be used as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It leads outside the roots or is on the deny list.
    #[error("{0}")]
    Forbidden(String),
    /// There is nothing at this path.
    #[error("{0}")]
    Missing(String),
    /// The file is larger than what is handled.
    #[error("{0}")]
    TooLarge(String),
    /// It could not be done; the text tells the model why.
    #[error("{0}")]
    Failed(String),
}

pub(super) fn outside(requested: &str) -> PathError {
    PathError::Forbidden(format!(
        "path {requested:?} is outside the project and its central storage"
    ))
}

pub(super) fn forbidden(requested: &str, access: Access, reason: &str) -> PathError {
    let verb = match access {
        Access::Read | Access::Look => "read",
        Access::Write => "written",
    };
    PathError::Forbidden(format!("path {requested:?} may not be {verb}: {reason}"))
}

pub(super) fn word_for(metadata: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use cap_std::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return "a named pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    if metadata.is_dir() {
        "a folder"
    } else {
        "no regular file"
    }
}

/// Whether an error says that a name is no longer what it was a moment ago.
pub(super) fn was_swapped(error: &io::Error) -> bool {
    is_link(error)
        || matches!(
            error.kind(),
            io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::IsADirectory
                | io::ErrorKind::InvalidInput
        )
}

#[cfg(unix)]
fn is_link(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

#[cfg(windows)]
fn is_link(error: &io::Error) -> bool {
    /// `ERROR_STOPPED_ON_SYMLINK`.
    const STOPPED: i32 = 681;
    error.raw_os_error() == Some(STOPPED)
}

pub(super) fn missing(shown: &str) -> PathError {
    PathError::Missing(format!("path {shown:?} does not exist"))
}

/// Puts a system's error into words that hold no path but the one asked for.
pub(super) fn failed(shown: &str, error: &io::Error) -> PathError {
    let problem = match error.kind() {
        _ if is_link(error) => "it was changed while it was opened".to_owned(),
        io::ErrorKind::NotFound => return missing(shown),
        io::ErrorKind::PermissionDenied => "the daemon has no permission for it".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "its file system is read-only".to_owned(),
        io::ErrorKind::NotADirectory => "part of it is not a folder".to_owned(),
        io::ErrorKind::AlreadyExists => "someone else just created it".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.raw_os_error().map_or_else(
            || error.kind().to_string(),
            |code| io::Error::from_raw_os_error(code).to_string(),
        ),
    };
    PathError::Failed(format!("path {shown:?} cannot be used: {problem}"))
}
