//! Folders that the daemon opened from the handles of its roots, and that came with the policy.
//!
//! Where the descriptor itself can be used, it is; in a mount namespace of its own, where it cannot, what is opened by the
//! path must be the same folder.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::real;

#[derive(Debug, Default)]
pub(super) struct Opened(Vec<(PathBuf, OwnedFd)>);

impl Opened {
    pub(super) fn receive(
        places: Vec<PathBuf>,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> io::Result<Self> {
        let with_descriptor = |path| match descriptors.next() {
            Some(descriptor) => Ok((path, descriptor)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        places
            .into_iter()
            .map(with_descriptor)
            .collect::<io::Result<_>>()
            .map(Self)
    }

    pub(super) fn get(&self, path: &Path) -> Option<BorrowedFd<'_>> {
        let mut places = self.0.iter();
        let (_, descriptor) = places.find(|(place, _)| place == path)?;
        Some(descriptor.as_fd())
    }

    /// The descriptor of a path; where none came, what is there now, no link followed.
    pub(super) fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.get(path) {
            Some(descriptor) => descriptor.try_clone_to_owned(),
            None => real::open(path),
        }
    }

    /// Returns the innermost folder that came on the way to a path, and what of the path lies below it. Where none came, that is
    /// the root of the file system.
    pub(super) fn nearest<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p Path)> {
        let around = self.0.iter().filter(|(folder, _)| path.starts_with(folder));
        match around.max_by_key(|(folder, _)| folder.components().count()) {
            Some((folder, opened)) => {
                let below = path.strip_prefix(folder).unwrap_or(path);
                Ok((opened.try_clone()?, below))
            }
            None => {
                let below = path.strip_prefix("/").map_err(io::Error::other)?;
                Ok((real::open(Path::new("/"))?, below))
            }
        }
    }

    /// What is at the path in this mount namespace: the folder that came, where one did.
    pub(super) fn reopen(&self, path: &Path) -> io::Result<OwnedFd> {
        let there = real::open(path)?;
        match self.get(path) {
            Some(descriptor) if !real::is_same(&there, descriptor)? => {
                Err(io::Error::other(format!(
                    "{} is another folder than the daemon opened",
                    path.display()
                )))
            }
            Some(_) | None => Ok(there),
        }
    }
}
