//! Which directories programs may come from, and which programs are the system's own.

#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Looks programs up; knows the roots, out of which none is trusted.
#[derive(Clone, Debug)]
pub struct Programs {
    roots: Vec<PathBuf>,
}

impl Programs {
    /// Trusts nothing below these roots; absolute and canonical.
    pub fn outside(roots: Vec<PathBuf>) -> Self {
        Self { roots }
    }

    /// Whether programs may be taken from a directory: outside the roots, and not writable by everybody.
    pub fn directory_is_trusted(&self, directory: &Path) -> bool {
        directory.is_absolute()
            && crate::canonicalize(directory)
                .is_ok_and(|real| !self.is_below_a_root(&real) && !is_writable_by_all(&real))
    }

    /// Whether a bare name, looked up in `path` as a shell would, is a program of the system: it
    /// belongs to root and lies outside the roots.
    pub fn is_trusted(&self, path: &str, name: &str) -> bool {
        if name.is_empty() || name.contains('/') {
            return false;
        }
        find(path, name)
            .and_then(|file| crate::canonicalize(&file).ok())
            .is_some_and(|real| !self.is_below_a_root(&real) && belongs_to_root(&real))
    }

    fn is_below_a_root(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }
}

/// Finds a program by its name in the absolute directories of `path`, as a shell would, or by its own path.
#[cfg(not(windows))]
pub fn find(path: &str, name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| is_executable(file));
    }
    path.split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| Path::new(directory).join(name))
        .find(|file| is_executable(file))
}

#[cfg(unix)]
fn is_writable_by_all(path: &Path) -> bool {
    path.metadata()
        .map_or(true, |metadata| metadata.mode() & 0o002 != 0)
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
}

#[cfg(unix)]
fn belongs_to_root(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.uid() == 0)
}

/// Its list of access would say it, which is not read here: no program counts as the system's for it.
#[cfg(not(unix))]
fn is_writable_by_all(_: &Path) -> bool {
    false
}

/// Finds a program by its name in the absolute directories of `path`, or by its own path, with an ending that is run.
#[cfg(windows)]
pub fn find(path: &str, name: &str) -> Option<PathBuf> {
    crate::windows::find(path, name, &|file| Path::new(file).is_file()).map(PathBuf::from)
}

/// Nothing is known to be the system's there, so that no command is proven to only read.
#[cfg(not(unix))]
fn belongs_to_root(_: &Path) -> bool {
    false
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_would() {
        let path = "/nonexistent:/bin:/usr/bin";
        let cases = [
            ("sh", true),
            ("/bin/sh", true),
            ("no-such-program", false),
            ("/bin/no-such-program", false),
            ("/etc/passwd", false),
            ("/bin", false),
        ];
        for (command, expected) in cases {
            assert_eq!(find(path, command).is_some(), expected, "{command}");
        }
        assert_eq!(find("", "sh"), None);
    }

    #[test]
    fn only_the_systems_own_programs_are_trusted() {
        let project = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let impostor = root.join("ls");
        fs::write(&impostor, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&impostor, fs::Permissions::from_mode(0o755)).unwrap();
        let programs = Programs::outside(vec![root.clone()]);
        assert!(programs.is_trusted("/usr/bin:/bin", "ls"));
        assert!(!programs.is_trusted("/usr/bin:/bin", "no-such-program"));
        assert!(!programs.is_trusted("/usr/bin:/bin", "./ls"));
        assert!(!programs.is_trusted("/usr/bin:/bin", ""));
        let shadowed = format!("{}:/usr/bin:/bin", root.display());
        assert!(!programs.is_trusted(&shadowed, "ls"));
        assert!(programs.directory_is_trusted(Path::new("/usr/bin")));
        assert!(!programs.directory_is_trusted(&root));
        assert!(!programs.directory_is_trusted(Path::new("/tmp")));
        assert!(!programs.directory_is_trusted(Path::new("bin")));
    }
}
