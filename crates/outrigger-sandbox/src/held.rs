//! Folders that the daemon holds open, and what it opens below them for a command.
//!
//! The file tools work from the handles of the roots. A command that was given their paths would work in whatever is
//! there by now: another folder, once somebody has moved the root and put one in its place. So the handles go with a
//! command, everything below them is opened from them, and a command is refused once a path leads elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;

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

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path && Arc::ptr_eq(&self.dir, &other.dir)
    }
}

impl Eq for Held {}

#[cfg(target_os = "linux")]
pub(super) use linux::{is_same, moved, open, open_dir, within};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::path::Path;

    use cap_std::fs::Dir;

    use super::Held;
    use crate::real;

    /// The innermost of the folders that a path lies in.
    pub(crate) fn within<'h>(path: &Path, held: &'h [Held]) -> Option<&'h Held> {
        held.iter()
            .filter(|folder| path.starts_with(&folder.path))
            .max_by_key(|folder| folder.path.components().count())
    }

    /// Opens what is at a canonical path as a place: from the folder it lies in where that is held, else as
    /// [`real::open`] does.
    ///
    /// # Errors
    ///
    /// The system's, in words that name the path; also where a name on the way is a link.
    pub(crate) fn open(path: &Path, held: &[Held]) -> io::Result<OwnedFd> {
        match within(path, held) {
            Some(folder) => {
                let below = path.strip_prefix(&folder.path).unwrap_or(path);
                real::open_below(folder.dir.as_fd(), below, path)
            }
            None => real::open(path),
        }
    }

    /// The same for a directory that is looked into.
    pub(crate) fn open_dir(path: &Path, held: &[Held]) -> io::Result<Dir> {
        real::readable(&open(path, held)?)
    }

    /// The first of the folders that is not at its path any more.
    pub(crate) fn moved(held: &[Held]) -> Option<&Held> {
        held.iter().find(|folder| {
            let there = real::open(&folder.path);
            let is_same = there.and_then(|there| is_same(&there, folder.dir.as_fd()));
            !is_same.unwrap_or(false)
        })
    }

    /// Whether two descriptors are of one folder. Both are open, so that no number can have been given away again.
    pub(crate) fn is_same(one: impl AsFd, other: impl AsFd) -> io::Result<bool> {
        let (one, other) = (rustix::fs::fstat(one)?, rustix::fs::fstat(other)?);
        Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
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
        assert_eq!(within(&project.join("inner/deep"), &held), Some(&held[1]));
        assert_eq!(within(&project.join("inner2"), &held), Some(&held[0]));
        assert_eq!(within(&place, &held), None);
        assert_eq!(moved(&held), None);
        fs::rename(&project, place.join("old")).unwrap();
        assert_eq!(moved(&held), Some(&held[0]));
        fs::create_dir_all(project.join("inner")).unwrap();
        assert_eq!(moved(&held), Some(&held[0]));
        assert!(open_dir(&project, &held).unwrap().exists("inner/deep"));
        assert!(open_dir(&project, &[]).unwrap().exists("inner"));
        assert!(!open_dir(&project, &[]).unwrap().exists("inner/deep"));
        assert!(open(&project.join("inner/deep"), &held).is_ok());
        assert!(open(&project.join("inner/missing"), &held).is_err());
        assert!(open(&project.join("inner/../inner"), &held).is_err());
    }
}
