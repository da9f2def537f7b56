//! The folders of a pod on the disk.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::POD_PREFIX;
use crate::policy::{Overlay, PodFolders};
use crate::quota::Quota;

/// The folders of overlays, in that of the pod.
const OVERLAYS: &str = "caches";

/// How often folders are made anew where another daemon's sweep took them before they were locked.
const ATTEMPTS: usize = 3;

/// The runtime directory (`XDG_RUNTIME_DIR`), below the temporary files.
pub(crate) const RUNTIME: &str = ".runtime";

/// Folders that exist, with the lock that says that somebody needs them, and what they may hold.
#[derive(Debug)]
pub(super) struct Folders {
    pub(super) place: PathBuf,
    pub(super) quota: Arc<Quota>,
}

/// Opens a folder, and no link to one.
pub(crate) fn open(folder: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(folder)
}

impl Folders {
    /// Makes them, with room for so many overlays.
    pub(super) fn make(temporary: &Path, most_bytes: u64, overlays: usize) -> io::Result<Self> {
        let is_swept = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::NotFound
            )
        };
        let mut made = Self::try_make(temporary, most_bytes, overlays);
        for _ in 1..ATTEMPTS {
            if !made.as_ref().is_err_and(is_swept) {
                break;
            }
            made = Self::try_make(temporary, most_bytes, overlays);
        }
        made
    }

    fn try_make(temporary: &Path, most_bytes: u64, overlays: usize) -> io::Result<Self> {
        let number = getrandom::u64().map_err(io::Error::other)?;
        let place = temporary.join(format!("{POD_PREFIX}{number:016x}"));
        // Fails if it exists: nobody can have put one there for us.
        DirBuilder::new().mode(0o700).create(&place)?;
        // Nobody else has written to what is half made.
        Self::fill(&place, most_bytes, overlays)
            .inspect_err(|_| fs::remove_dir_all(&place).unwrap_or_default())
    }

    fn fill(place: &Path, most_bytes: u64, overlays: usize) -> io::Result<Self> {
        let lock = open(place)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let folders = Self {
            quota: Arc::new(Quota::new(lock, most_bytes)?),
            place: place.to_owned(),
        };
        let mut private = DirBuilder::new();
        private.mode(0o700).recursive(true);
        for folder in Self::all(place, overlays) {
            private.create(folder)?;
        }
        Ok(folders)
    }

    /// Returns the folders that are made in it, outer ones first.
    fn all(place: &Path, overlays: usize) -> Vec<PathBuf> {
        let PodFolders { home, tmp, var_tmp } = Self::paths(place);
        let mut all = vec![home, tmp.clone(), tmp.join(RUNTIME), var_tmp];
        let caches = place.join(OVERLAYS);
        for number in 0..overlays {
            let overlay = Self::overlay(place, number, Path::new(""));
            all.extend([caches.clone(), caches.join(number.to_string())]);
            all.extend([overlay.upper, overlay.work, overlay.merged]);
        }
        all
    }

    /// Makes those of commands anew where a command removed them. Does file I/O.
    ///
    /// Not where a command put something else in the place of one, or removed what is around them: it has what comes of that.
    pub(super) fn remake(place: &Path) {
        let mut private = DirBuilder::new();
        private.mode(0o700);
        for folder in Self::all(place, 0) {
            private.create(folder).unwrap_or_default();
        }
    }

    /// Removes one that nothing was ever put in, as where no helper works.
    pub(super) fn remove_unused(place: &Path) {
        let overlays = fs::read_dir(place.join(OVERLAYS)).map_or(0, Iterator::count);
        let all = Self::all(place, overlays);
        for folder in all.iter().rev().map(PathBuf::as_path).chain([place]) {
            fs::remove_dir(folder).unwrap_or_default();
        }
    }

    /// Returns the folders of an overlay.
    pub(super) fn overlay(place: &Path, number: usize, lower: &Path) -> Overlay {
        let place = place.join(OVERLAYS).join(number.to_string());
        Overlay {
            lower: lower.to_owned(),
            upper: place.join("upper"),
            work: place.join("work"),
            merged: place.join("merged"),
        }
    }

    pub(super) fn paths(place: &Path) -> PodFolders {
        PodFolders {
            home: place.join("home"),
            tmp: place.join("tmp"),
            var_tmp: place.join("var-tmp"),
        }
    }
}
