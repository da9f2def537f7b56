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

    pub(super) fn open_below(&self, path: &Path) -> io::Result<OwnedFd> {
        let folders = self.0.iter();
        real::open_from(
            folders.map(|(it, opened)| (it.as_path(), opened.as_fd())),
            path,
        )
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
