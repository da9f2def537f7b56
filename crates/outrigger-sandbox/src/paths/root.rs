//! Which folders may be a root at all.

use std::io;
use std::path::{Path, PathBuf, absolute};

use super::super::deny::{self, Access};

/// Folders refused with all that is in them.
#[cfg(not(windows))]
const SYSTEM_TREES: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/System",
    "/Library",
    "/private/etc",
];

/// Folders below those that people do work in.
#[cfg(not(windows))]
const WORKPLACES: &[&str] = &["/usr/src", "/usr/local/src", "/dev/shm"];

/// Folders refused as a whole, while what is in them may be a root.
#[cfg(not(windows))]
const SHARED_PLACES: &[&str] = &[
    "/",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/run",
    "/srv",
    "/tmp",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/tmp",
    "/usr/src",
    "/usr/local/src",
    "/dev/shm",
    "/Users",
    "/Volumes",
    "/private",
    "/private/tmp",
    "/private/var",
    "/Applications",
];

/// Why a root is not accepted: it is no folder that can be opened, or too much to hand out to a model.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RootsError(String);

impl RootsError {
    pub(super) fn unusable(path: &Path, source: &io::Error) -> Self {
        Self(format!("folder {path:?} cannot be used: {source}"))
    }
}

/// Resolves a root's path, at the start and on the operator's word, and refuses unfit folders; returns
/// it without links and as it was given.
pub(super) fn check(path: &Path, home: Option<&Path>) -> Result<(PathBuf, PathBuf), RootsError> {
    let unusable = |source| RootsError::unusable(path, &source);
    let canonical = crate::canonicalize(path).map_err(unusable)?;
    let given = absolute(path).map_err(unusable)?;
    let refusal = refusal(&canonical, home).or_else(|| refusal(&given, home));
    match refusal {
        Some(reason) => Err(RootsError(format!(
            "folder {path:?} is refused as a root: {reason}; give a project's own folder"
        ))),
        None => Ok((canonical, given)),
    }
}

/// Creates central storage, readable by its owner only.
pub(super) fn create_central(path: &Path) -> Result<(), RootsError> {
    if !path.is_dir() {
        let made = crate::private_directory(path);
        made.map_err(|source| RootsError::unusable(path, &source))?;
    }
    Ok(())
}

/// Returns why a folder of the system can be no root; `None` for any other folder.
#[cfg(windows)]
pub fn of_the_system(path: &Path) -> Option<&'static str> {
    match path.to_str().map(super::windows::read) {
        Some(Ok(written)) => super::windows::of_the_system(&written),
        // Of another machine, or one that many programs cannot be given.
        _ => Some("it is not on a drive of this machine by a path that all programs take"),
    }
}

/// Returns why a folder of the system can be no root; `None` for any other folder.
#[cfg(not(windows))]
pub fn of_the_system(path: &Path) -> Option<&'static str> {
    let is = |place: &&str| path == Path::new(place);
    let below = |place: &&str| path.starts_with(place);
    if path.parent().is_none() {
        return Some("it is the whole file system");
    }
    if SHARED_PLACES.iter().any(is) {
        return Some("it holds folders of many owners");
    }
    if SYSTEM_TREES.iter().any(below) && !WORKPLACES.iter().any(below) {
        return Some("it belongs to the system");
    }
    None
}

/// Returns why a path can be no further folder for commands; `None` for one that can. `path` is absolute. Does file I/O.
///
/// More is refused than as a root: what is reached through a link, sockets of services, and folders of the home whose names
/// begin with a dot, where programs keep settings and credentials.
pub fn refused_to_commands(path: &Path, home: Option<&Path>) -> Option<String> {
    let canonical = match crate::canonicalize(path) {
        Ok(canonical) => canonical,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some("there is no such folder".to_owned());
        }
        Err(error) => return Some(error.to_string()),
    };
    if let Some(reason) = refusal(path, home).or_else(|| refusal(&canonical, home)) {
        let mut places = [path, &canonical].into_iter();
        let instead = match places.any(|place| of_the_system(place).is_some()) {
            true => "; name one of your own, such as one in the home, or below /opt, /srv or /mnt",
            false => "",
        };
        return Some(format!("{reason}{instead}"));
    }
    // As its text stands, without `.` and a slash at its end.
    if path.components().ne(canonical.components()) {
        return Some(format!(
            "it is reached through a link or `..`; name {}",
            canonical.display()
        ));
    }
    if !canonical.is_dir() {
        return Some("it is no folder".to_owned());
    }
    if canonical.starts_with("/run") {
        return Some("services have their sockets there".to_owned());
    }
    let home = home.map(crate::canonical);
    let below = home.and_then(|home| canonical.strip_prefix(home).ok().map(Path::to_owned));
    #[cfg(windows)]
    if let Some(Ok(below)) = below
        .as_deref()
        .and_then(Path::to_str)
        .map(super::windows::read)
        && super::windows::of_programs(&below.names)
    {
        return Some(OF_PROGRAMS.to_owned());
    }
    let first = below.and_then(|below| {
        below
            .components()
            .next()
            .map(|it| it.as_os_str().to_owned())
    });
    first
        .is_some_and(|name| name.to_string_lossy().starts_with('.'))
        .then(|| OF_PROGRAMS.to_owned())
}

const OF_PROGRAMS: &str = "programs keep settings and credentials in such folders of the home";

fn refusal(path: &Path, home: Option<&Path>) -> Option<&'static str> {
    if let Some(reason) = of_the_system(path) {
        return Some(reason);
    }
    let home = home.map(crate::canonical);
    if home.as_deref().is_some_and(|home| home.starts_with(path)) {
        return Some("it holds the home directory");
    }
    let text = path.to_string_lossy();
    if deny::denied_folder(&text, Access::Read).is_some() {
        return Some("it is a folder for credentials");
    }
    if deny::denied_folder(&text, Access::Write).is_some() {
        return Some("it belongs to git, an editor or an agent");
    }
    None
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn commands_are_given_no_folder_of_others() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap().join("home");
        for folder in [
            "shared/inner",
            ".ssh",
            ".config/tool",
            ".cache",
            "repo/.git",
            "x/.aws",
        ] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        symlink("shared", home.join("link")).unwrap();
        fs::write(home.join("file"), "").unwrap();
        for (path, said) in [
            ("shared", None),
            ("shared/", None),
            ("shared/inner", None),
            ("missing", Some("no such folder")),
            ("file", Some("no folder")),
            ("link", Some("/home/shared")),
            ("link/inner", Some("/home/shared/inner")),
            ("shared/../shared", Some("/home/shared")),
            (".ssh", Some("credentials")),
            (".config", Some("credentials")),
            (".config/tool", Some("credentials")),
            (".cache", Some("credentials")),
            ("repo/.git", Some("git")),
            ("x/.aws", Some("credentials")),
            ("", Some("holds the home")),
            ("..", Some("holds the home")),
            ("/", Some("whole file system")),
            ("/etc", Some("system")),
            ("/etc/ssl", Some("system")),
            ("/usr/lib", Some("system")),
            ("/proc/self", Some("system")),
            ("/dev", Some("system")),
            ("/tmp", Some("many owners")),
            ("/home", Some("many owners")),
        ] {
            let refused = refused_to_commands(&home.join(path), Some(&home));
            let refused = refused.as_deref();
            match said {
                None => assert_eq!(refused, None, "{path}"),
                Some(said) => assert!(
                    refused.is_some_and(|it| it.contains(said)),
                    "{path} {refused:?}"
                ),
            }
        }
    }

    #[test]
    fn people_work_in_some_folders_of_the_system() {
        for (path, refused) in [
            ("/usr/src/linux", false),
            ("/usr/local/src/tool", false),
            ("/dev/shm/work", false),
            ("/usr/src", true),
            ("/usr/srcs", true),
            ("/usr/local", true),
            ("/dev/shmem", true),
            ("/work", false),
        ] {
            assert_eq!(of_the_system(Path::new(path)).is_some(), refused, "{path}");
        }
    }
}
