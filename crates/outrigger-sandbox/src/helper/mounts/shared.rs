//! The folders of a pod in the view of one command, and what is mounted in them: a root below the home, a cache.
//!
//! Other commands of the pod write to these folders while the view is made. So all else is put together first, in places
//! that nobody can change; then each folder is attached, and what lies below it is moved there, by descriptors. A link or a
//! folder that is moved meanwhile can at most have the command miss something. It is never seen without what hides secrets
//! in it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode as FileMode, OFlags};
use rustix::io::Errno;

use super::{What, clone_opened, clone_tree, cover_opened, file_type};
use crate::helper::identity::Identity;
use crate::helper::{During, SetupError, places, raw};
use crate::layers::Step;
use crate::policy::{Policy, SeenCache};
use crate::real;

/// How often something that is in the way of a mount is removed before that is given up.
const ATTEMPTS: usize = 8;

/// Clones the folders of the pod, outer places first.
pub(super) fn keep(
    policy: &Policy,
    identity: Option<&Identity>,
) -> Result<Vec<(PathBuf, OwnedFd)>, SetupError> {
    let mut kept = Vec::new();
    for (path, folder) in places::shared(policy) {
        let clone = || {
            if let Some(mount) = identity.and_then(|identity| identity.of_pod(folder)) {
                return mount.try_clone_to_owned();
            }
            let mount = clone_opened(&real::open(folder)?)?;
            let attributes = libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;
            raw::set_mount_attributes(mount.as_fd(), attributes, true)?;
            Ok::<_, io::Error>(mount)
        };
        let mount = clone().during(Step::Mounts, "a folder of the pod")?;
        kept.push((path.to_owned(), mount));
    }
    kept.sort_by_key(|(path, _)| path.components().count());
    Ok(kept)
}

/// Clones what a command sees of a cache; `None` where there is nothing.
pub(super) fn cache(cache: &SeenCache) -> io::Result<Option<What>> {
    let (place, attributes) = match &cache.merged {
        Some(merged) => (real::open(merged)?, libc::MOUNT_ATTR_NODEV),
        None => match real::open(&cache.place) {
            Ok(place) => (place, libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_RDONLY),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        },
    };
    clone_tree(&place, attributes).map(Some)
}

/// Attaches the folders, and moves what is mounted below their places into them.
pub(super) fn put(
    shared: &[(PathBuf, OwnedFd)],
    kept: &[(PathBuf, What)],
) -> Result<(), SetupError> {
    for (number, (path, folder)) in shared.iter().enumerate() {
        let before = shared.get(..number).unwrap_or_default();
        let place = place_for(path, FileType::Directory, before);
        place
            .and_then(|place| cover_opened(folder, &place))
            .during(Step::Mounts, path.display())?;
    }
    // Of what lies in each other the outer one takes the inner ones along.
    let mut moved: Vec<&Path> = Vec::new();
    for (path, what) in kept {
        let is_below = shared.iter().any(|(place, _)| is_within(path, place));
        if !is_below || moved.iter().any(|other| path.starts_with(other)) {
            continue;
        }
        put_in(path, what, shared).during(Step::Mounts, path.display())?;
        moved.push(path);
    }
    Ok(())
}

fn is_within(path: &Path, folder: &Path) -> bool {
    path != folder && path.starts_with(folder)
}

fn put_in(path: &Path, what: &What, shared: &[(PathBuf, OwnedFd)]) -> io::Result<()> {
    match what {
        What::Mount(mount) => cover_opened(mount, &place_for(path, file_type(mount)?, shared)?),
        What::Link(target) => {
            let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
                return Ok(());
            };
            let above = place_for(above, FileType::Directory, shared)?;
            match rustix::fs::symlinkat(target, &above, name) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// Opens a place for a mount, in the innermost of these folders that it lies in, and else in the new root.
fn place_for(path: &Path, kind: FileType, shared: &[(PathBuf, OwnedFd)]) -> io::Result<OwnedFd> {
    let around = shared.iter().filter(|(place, _)| is_within(path, place));
    let Some((place, folder)) = around.max_by_key(|(place, _)| place.components().count()) else {
        return real::open(path);
    };
    let names: Vec<Component<'_>> = path
        .strip_prefix(place)
        .unwrap_or(path)
        .components()
        .collect();
    let mut opened = folder.try_clone()?;
    for (number, name) in names.iter().enumerate() {
        let kind = match number + 1 == names.len() {
            true => kind,
            false => FileType::Directory,
        };
        opened = step(&opened, Path::new(name), kind)?;
    }
    Ok(opened)
}

/// Opens what is there, made where it is missing. What a command put in its place, a link or a file, is removed.
fn step(above: &OwnedFd, name: &Path, kind: FileType) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..ATTEMPTS {
        match rustix::fs::openat(above, name, flags, FileMode::empty()) {
            Ok(there) => match (file_type(&there)?, kind) {
                (FileType::Directory, FileType::Directory) => return Ok(there),
                (FileType::RegularFile, wanted) if wanted != FileType::Directory => {
                    return Ok(there);
                }
                _ => rustix::fs::unlinkat(above, name, AtFlags::empty())?,
            },
            Err(Errno::NOENT) => match make(above, name, kind) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other(
        "other commands of this conversation change this place all the time",
    ))
}

fn make(above: &OwnedFd, name: &Path, kind: FileType) -> rustix::io::Result<()> {
    let mode = FileMode::RWXU;
    if kind == FileType::Directory {
        return rustix::fs::mkdirat(above, name, mode);
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(above, name, flags, FileMode::RUSR | FileMode::WUSR).map(drop)
}
