//! Folders that the daemon holds open, and what it opens below them for a command.
//!
//! A command that was given the roots' paths would work in whatever is there by now. So the handles go with it,
//! everything below them is opened from them, and a command is refused once a path leads elsewhere.

#[cfg(target_os = "linux")]
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;

#[cfg(target_os = "linux")]
use super::real;

/// A folder that is held open, with its canonical path of when it was opened.
#[derive(Debug, Clone)]
pub struct Held {
    path: PathBuf,
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "commands are not confined there")
    )]
    dir: Arc<Dir>,
}

impl Held {
    /// Returns a folder by the path it was opened at.
    pub fn new(path: impl Into<PathBuf>, dir: Arc<Dir>) -> Self {
        Self {
            path: path.into(),
            dir,
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(target_os = "linux")]
impl Held {
    /// Opens what is at a canonical path as a place, as [`real::open_from`] does.
    pub(crate) fn open(path: &Path, held: &[Self]) -> io::Result<OwnedFd> {
        let folders = held.iter();
        real::open_from(folders.map(|it| (it.path(), it.dir.as_fd())), path)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        real::is_same(&self.dir, &other.dir).unwrap_or(false)
    }

    /// Whether another folder is at its path by now.
    pub(crate) fn is_moved(&self) -> bool {
        let there = real::open(&self.path);
        !there.is_ok_and(|there| real::is_same(&there, &self.dir).unwrap_or(false))
    }
}

/// By the path alone: commands are not confined there.
#[cfg(not(target_os = "linux"))]
impl Held {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.path == other.path
    }

    pub(crate) fn is_moved(&self) -> bool {
        !crate::canonicalize(&self.path).is_ok_and(|real| real == self.path)
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;

    use cap_std::ambient_authority;

    use super::*;

    fn hold(path: &Path) -> Held {
        let dir = Dir::open_ambient_dir(path, ambient_authority()).unwrap();
        Held::new(path, Arc::new(dir))
    }

    #[test]
    fn what_is_below_a_folder_is_opened_from_it_wherever_it_is() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let project = place.join("project");
        fs::create_dir_all(project.join("inner/deep")).unwrap();
        fs::create_dir(project.join("inner2")).unwrap();
        let held = [hold(&project), hold(&project.join("inner"))];
        assert!(!held[0].is_moved() && !held[1].is_moved());
        fs::rename(&project, place.join("old")).unwrap();
        assert!(held[0].is_moved());
        fs::create_dir_all(project.join("inner")).unwrap();
        assert!(held[0].is_moved());
        let open_dir = |held: &[Held]| real::readable(&Held::open(&project, held)?);
        assert!(open_dir(&held).unwrap().exists("inner/deep"));
        assert!(open_dir(&[]).unwrap().exists("inner"));
        assert!(!open_dir(&[]).unwrap().exists("inner/deep"));
        assert!(Held::open(&project.join("inner/deep"), &held).is_ok());
        assert!(Held::open(&project.join("inner/missing"), &held).is_err());
        assert!(Held::open(&project.join("inner/../inner"), &held).is_err());
        assert!(Held::open(&project.join("inner2"), &held).is_ok());
        assert!(Held::open(&place, &held).is_ok());
        // The innermost one counts.
        fs::rename(place.join("old/inner"), place.join("elsewhere")).unwrap();
        assert!(Held::open(&project.join("inner/deep"), &held).is_ok());
    }
}
