//! The daemon's own process: nothing of it is to be read by others, dumped to disk or preloaded; and what it may write.

use std::path::Path;

/// Keeps other processes of the same user out of this one's memory and environment, and core dumps off.
///
/// The first thing in `main`, before any thread. What the system refuses is left as it is: the
/// daemon works without.
#[cfg(target_os = "linux")]
pub fn harden() {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    // Refused only to a process that is confined already.
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Does nothing on this system.
#[cfg(not(target_os = "linux"))]
pub fn harden() {}

/// Why this process cannot make files in a folder; `None` where it can.
///
/// The system is asked, nothing is tried: no file is to be left behind in somebody's project.
#[cfg(unix)]
#[must_use]
pub fn unwritable(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::fs::{Access, access};

    let error = access(folder, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let own = rustix::process::getuid().as_raw();
    Some(match folder.metadata() {
        Ok(metadata) => format!(
            "{error}; it belongs to uid {}, the daemon runs as uid {own}",
            metadata.uid()
        ),
        Err(_) => format!("{error}; the daemon runs as uid {own}"),
    })
}

/// Why this process cannot make files in a folder; `None` where it can, as far as is known here.
#[cfg(not(unix))]
#[must_use]
pub fn unwritable(folder: &Path) -> Option<String> {
    match folder.metadata() {
        Ok(metadata) if metadata.permissions().readonly() => Some("it is read-only".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_written_is_said_with_the_reason() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(unwritable(place.path()), None);
        let missing = unwritable(&place.path().join("missing")).unwrap();
        assert!(missing.starts_with("No such file"), "{missing}");
        // Nobody makes files there, root neither.
        #[cfg(target_os = "linux")]
        if let Some(why) = unwritable(Path::new("/proc/self/fdinfo")) {
            assert!(why.contains("belongs to uid"), "{why}");
        }
    }
}
