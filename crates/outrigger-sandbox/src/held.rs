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
    /// Returns the innermost of the folders that a path lies in.
    pub(crate) fn around<'h>(path: &Path, held: &'h [Self]) -> Option<&'h Self> {
        held.iter()
            .filter(|folder| path.starts_with(&folder.path))
            .max_by_key(|folder| folder.path.components().count())
    }

    /// Opens what is at a canonical path as a place: from the folder it lies in where that is held, else as
    /// [`real::open`] does.
    pub(crate) fn open(path: &Path, held: &[Self]) -> io::Result<OwnedFd> {
        match Self::around(path, held) {
            Some(folder) => {
                let below = path.strip_prefix(&folder.path).unwrap_or(path);
                real::open_below(folder.dir.as_fd(), below, path)
            }
            None => real::open(path),
        }
    }

    /// Whether another folder is at its path by now.
    pub(crate) fn is_moved(&self) -> bool {
        let there = real::open(&self.path);
        !there.is_ok_and(|there| real::is_same(&there, &self.dir).unwrap_or(false))
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
        let held = [hold(&project), hold(&project.join("inner"))];
        let around = |path: &Path| Held::around(path, &held).map(|folder| folder.path.clone());
        assert_eq!(
            around(&project.join("inner/deep")),
            Some(project.join("inner"))
        );
        assert_eq!(around(&project.join("inner2")), Some(project.clone()));
        assert_eq!(around(&place), None);
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
    }
}
