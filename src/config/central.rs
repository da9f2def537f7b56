//! Which folder is whose central storage. The first folder of a name has the name alone, each other one its digest too.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::Project;

/// The most of a folder's name in that of its central storage, in characters: with the digest it is one part of a path.
const MAX_NAME_CHARS: usize = 40;

/// Returns the folder that holds central storages where nothing else is configured.
pub(super) fn in_home(home: &Path) -> PathBuf {
    home.join("outrigger").join("projects")
}

/// Returns the central storage in `storage` that no other folder has: `NAME-DIGEST`.
pub(crate) fn of_folder(storage: &Path, root: &Path) -> PathBuf {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
    let digest: String = HEXLOWER.encode(&digest).chars().take(8).collect();
    let short: String = name.chars().take(MAX_NAME_CHARS).collect();
    storage.join(format!("{short}-{digest}"))
}

/// Returns the central storage of the daemon's own project: `NAME`, or where another folder has that, `NAME-DIGEST`.
pub(super) fn of_name(home: &Path, name: &str, root: &Path) -> PathBuf {
    match owner(home, name) {
        Some(owner) if owner != root.as_os_str().as_encoded_bytes() => {
            of_folder(&in_home(home), root)
        }
        _ => in_home(home).join(name),
    }
}

/// Notes that the central storage of a project's name is this project's, where it is nobody's yet. Where that cannot be
/// written, the log says so, and the next folder of the name may have it too.
///
/// # Errors
///
/// Another folder of the name was faster; reads as a sentence.
pub(crate) fn claim(home: &Path, project: &Project) -> Result<(), String> {
    if project.central != in_home(home).join(&project.name) {
        return Ok(());
    }
    let own = project.root.as_os_str().as_encoded_bytes();
    let record = record(home, &project.name);
    if owner(home, &project.name).is_none()
        && let Err(error) = note(&record, own)
    {
        let record = record.display();
        tracing::warn!("whose central storage it is cannot be noted in {record}: {error}");
    }
    match owner(home, &project.name) {
        Some(owner) if owner != own => Err(format!(
            "another folder of the name {:?} has just taken the central storage {}; start again",
            project.name,
            project.central.display()
        )),
        _ => Ok(()),
    }
}

/// Writes a record that is whole from the first moment, unless there is one.
fn note(record: &Path, own: &[u8]) -> io::Result<()> {
    let folder = record.parent().unwrap_or(record);
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(own)?;
    match file.persist_noclobber(record) {
        Err(error) if error.error.kind() != ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

/// Returns the path of the folder whose central storage has this name alone.
fn owner(home: &Path, name: &str) -> Option<Vec<u8>> {
    fs::read(record(home, name)).ok()
}

/// Not in the storage, where a project's name could be the record's.
fn record(home: &Path, name: &str) -> PathBuf {
    home.join("outrigger").join("owners").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_of_a_name_has_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let project = |root: &str, name: &str| {
            let root = PathBuf::from(root);
            let central = of_name(home, name, &root);
            let name = name.to_owned();
            Project {
                root,
                name,
                central,
            }
        };
        let first = project("/a/app", "app");
        assert_eq!(first.central, home.join("outrigger/projects/app"));
        // Before anybody has it, whoever asks is told the same.
        let late = project("/b/app", "app");
        assert_eq!(late.central, first.central);
        claim(home, &first).unwrap();
        claim(home, &first).unwrap();
        assert_eq!(project("/a/app", "app"), first);
        let problem = claim(home, &late).unwrap_err();
        assert!(problem.contains("\"app\" has just taken"), "{problem}");

        let second = project("/b/app", "app");
        let expected = of_folder(&in_home(home), Path::new("/b/app"));
        assert_eq!(second.central, expected);
        claim(home, &second).unwrap();
        assert_eq!(project("/a/app", "app"), first);
        // A name that is given is a name as well.
        assert_ne!(project("/c", "app").central, first.central);
    }

    #[test]
    fn what_is_configured_is_nobodys() {
        let home = tempfile::tempdir().unwrap();
        let project = Project {
            root: "/a/app".into(),
            name: "app".to_owned(),
            central: "/elsewhere".into(),
        };
        claim(home.path(), &project).unwrap();
        assert!(!home.path().join("outrigger").exists());
    }

    #[test]
    fn where_nothing_can_be_noted_there_is_a_project_all_the_same() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("outrigger"), "a file").unwrap();
        let project = Project {
            root: "/a/app".into(),
            name: "app".to_owned(),
            central: of_name(home.path(), "app", Path::new("/a/app")),
        };
        assert_eq!(claim(home.path(), &project), Ok(()));
    }
}
