//! Removes a command's private directory after its tree is dead.
//!
//! Done here and not in the daemon: what lies in it was made by the command, and a directory nested deep enough
//! to break the removal then breaks only this process.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes the directory and all in it, as far as that is possible.
pub(super) fn remove(directory: &Path) {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // A directory without the right to write in it keeps its entries.
            open_up(directory);
            fs::remove_dir_all(directory).unwrap_or_default();
        }
        _ => {}
    }
}

fn open_up(directory: &Path) {
    fs::set_permissions(directory, Permissions::from_mode(0o700)).unwrap_or_default();
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        // The type of the entry itself: a symbolic link is not followed out of the directory.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_rights_goes_and_what_a_link_names_stays() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "kept").unwrap();
        let private = place.path().join("private");
        fs::create_dir_all(private.join("locked/inner")).unwrap();
        std::os::unix::fs::symlink(&outside, private.join("locked/link")).unwrap();
        fs::set_permissions(private.join("locked"), Permissions::from_mode(0o000)).unwrap();
        remove(&private);
        assert!(!private.exists());
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    }
}
