//! Overlays of a pod: what the user has is seen, and what a command writes is the pod's.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode as FileMode, OFlags, StatVfsMountFlags};
use rustix::mount::{MountFlags, mount as mount_at};

use super::SetupError;
use super::identity::Identity;
use super::mounts::cover_opened;
use crate::policy::Overlay;
use crate::real;

/// Mounts an overlay, in a mount namespace of the caller's own.
///
/// `userxattr` is what a user namespace may have; with it the kernel follows nothing that a file's attributes name, so that
/// what a command writes leads nowhere else. The lower folder is only read, by the kernel too. With `volatile` nothing waits
/// for the disk: what is written there goes with the conversation.
pub(super) fn mount(overlay: &Overlay) -> io::Result<()> {
    mount_folders(&Folders {
        lower: real::open(&overlay.lower)?,
        upper: real::open(&overlay.upper)?,
        work: real::open(&overlay.work)?,
        merged: real::open(&overlay.merged)?,
        around: real::open(around(overlay)?)?,
        name: overlay.merged.file_name(),
    })
}

/// Mounts overlays as another user: of folders whose owners are mapped, in the namespaces that `enter` enters.
pub(super) fn mount_as(
    overlays: &[Overlay],
    identity: &Identity,
    enter: impl FnOnce() -> Result<(), SetupError>,
) -> Result<Vec<io::Result<()>>, SetupError> {
    // While this is still the daemon's user, in its namespaces.
    let trees = overlays.iter().map(|overlay| {
        let tree = |place: &Path| identity.tree(&real::open(place)?, libc::MOUNT_ATTR_NODEV);
        Ok((tree(&overlay.lower)?, tree(around(overlay)?)?))
    });
    let trees: Vec<io::Result<_>> = trees.collect();
    enter()?;
    // An overlay is made of what is attached where it is mounted. It covers what is there in no view but this one.
    let attached = overlays.iter().zip(trees).map(|(overlay, trees)| {
        let (lower, around_it) = trees?;
        cover_opened(&lower, &real::open(&overlay.lower)?)?;
        cover_opened(&around_it, &real::open(around(overlay)?)?)?;
        let below = |folder: &Path| open_in(&around_it, folder.file_name());
        let (upper, work) = (below(&overlay.upper)?, below(&overlay.work)?);
        Ok(Folders {
            merged: below(&overlay.merged)?,
            lower,
            upper,
            work,
            around: around_it,
            name: overlay.merged.file_name(),
        })
    });
    let attached: Vec<io::Result<_>> = attached.collect();
    identity.assume()?;
    let mounted = attached.into_iter().map(|folders| mount_folders(&folders?));
    Ok(mounted.collect())
}

/// The folder that holds those of an overlay.
fn around(overlay: &Overlay) -> io::Result<&Path> {
    let folder = overlay.upper.parent();
    folder.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// The folders of an overlay.
struct Folders<'o> {
    lower: OwnedFd,
    upper: OwnedFd,
    work: OwnedFd,
    merged: OwnedFd,
    /// What all but the lower one are in, and the name of the merged one there.
    around: OwnedFd,
    name: Option<&'o OsStr>,
}

fn mount_folders(folders: &Folders<'_>) -> io::Result<()> {
    let Folders {
        lower,
        upper,
        work,
        merged,
        around,
        name,
    } = folders;
    // By descriptors: no link on the way counts, and no character of a path means anything.
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr,volatile",
        path(lower),
        path(upper),
        path(work)
    );
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount_at(
        "overlay",
        path(merged),
        "overlay",
        flags,
        options.as_c_str(),
    )?;
    // What is there by now.
    let seen = rustix::fs::fstatvfs(open_in(around, *name)?)?;
    if seen.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(io::Error::other(
            "the file system of the temporary files cannot hold what is written to one",
        ));
    }
    Ok(())
}

/// Opens what has this name in a folder, and no link.
fn open_in(folder: &OwnedFd, name: Option<&OsStr>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = name.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::fs::openat(folder, name, flags, FileMode::empty())?)
}

fn path(place: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", place.as_raw_fd())
}
