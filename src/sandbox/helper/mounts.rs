//! The view of the file system in full mode: everything read-only, the private places empty, the roots back in.
//!
//! Each tree to keep is cloned, by descriptor, before anything is covered; the clones are put back by descriptor or
//! at a path below a file system that was made empty just before. So no link that the command left behind in an
//! earlier run can send a mount somewhere else.

mod masks;
mod pins;

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode as FileMode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
    move_mount, open_tree,
};

use super::{During, SetupError, raw};
use crate::sandbox::policy::{Policy, Step};

/// Directories that become empty file systems of the command's own, which it may write to. So does the home.
pub(super) const PRIVATE_DIRECTORIES: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Becomes an empty file system that holds only mount points: sockets of the system's services live there.
const RUN: &str = "/run";

/// Bounds what a command can put into memory through one of the private file systems: 256 MiB, 64 Ki files.
const PRIVATE_OPTIONS: &CStr = c"size=256m,nr_inodes=65536,mode=0755";

const RESOLVER: &str = "/etc/resolv.conf";

/// A mount that is not attached anywhere yet, and where it is to go.
struct Kept {
    mount: OwnedFd,
    path: PathBuf,
    is_directory: bool,
}

/// Builds the view in this process's own mount namespace.
///
/// # Errors
/// With the step `Mounts`: a root that does not exist, or a kernel or container that refuses one of the mounts.
pub(super) fn build(policy: &Policy) -> Result<(), SetupError> {
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .during(Step::Mounts, "detaching from the system's mounts")?;
    let kept = keep(policy)?;
    let everything = open("/").during(Step::Mounts, "opening the root")?;
    raw::set_mount_attributes(
        everything.as_fd(),
        libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID,
        true,
    )
    .during(Step::Mounts, "making the system read-only")?;
    empty_private_directories(policy)?;
    let masks = masks::Masks::prepare(Path::new(RUN))?;
    for tree in &kept {
        put_back(tree).during(Step::Mounts, tree.path.display())?;
    }
    for root in &policy.read_write {
        pins::pin(root)?;
    }
    masks.cover(policy)?;
    let run = open(RUN).during(Step::Mounts, RUN)?;
    raw::set_mount_attributes(run.as_fd(), libc::MOUNT_ATTR_RDONLY, false)
        .during(Step::Mounts, RUN)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    mount("proc", "/proc", "proc", flags, None).during(Step::Mounts, "/proc")
}

/// Clones what has to survive, in the order in which it goes back: outer directories first.
fn keep(policy: &Policy) -> Result<Vec<Kept>, SetupError> {
    let mut kept = Vec::new();
    for path in policy.read_write.iter().chain(&policy.private_tmp) {
        kept.push(clone(path, false).during(Step::Mounts, path.display())?);
    }
    for gitdir in policy
        .read_write
        .iter()
        .filter_map(|root| pins::outside_directory(root))
    {
        kept.push(clone(&gitdir, false).during(Step::Mounts, gitdir.display())?);
    }
    let mut read_only = policy.read_only.clone();
    if policy.ports.is_some() {
        read_only.extend(fs::canonicalize(RESOLVER));
    }
    for path in read_only {
        // Only what was covered has to be put back, and a path that lies in a root must not become read-only there.
        let is_covered = covered(policy).iter().any(|place| path.starts_with(place));
        let in_root = policy.read_write.iter().any(|root| path.starts_with(root));
        if is_covered && !in_root && path.exists() {
            kept.push(clone(&path, true).during(Step::Mounts, path.display())?);
        }
    }
    kept.sort_by_key(|tree| tree.path.components().count());
    Ok(kept)
}

/// The directories whose contents the command does not see.
fn covered(policy: &Policy) -> Vec<PathBuf> {
    PRIVATE_DIRECTORIES
        .iter()
        .chain(&[RUN])
        .map(PathBuf::from)
        .chain(policy.home.clone())
        .filter(|path| path.is_dir() && path.parent().is_some())
        .collect()
}

fn empty_private_directories(policy: &Policy) -> Result<(), SetupError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    for path in covered(policy) {
        // The link's target: `/var/run`-like links would be refused as mount points.
        let place = fs::canonicalize(&path).during(Step::Mounts, path.display())?;
        mount("tmpfs", &place, "tmpfs", flags, PRIVATE_OPTIONS)
            .during(Step::Mounts, path.display())?;
    }
    Ok(())
}

fn open(path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path.as_ref(), flags, FileMode::empty())?)
}

/// Clones the tree at a path, without following a link at its end.
fn clone(path: &Path, read_only: bool) -> io::Result<Kept> {
    let place = open(path)?;
    let is_directory = rustix::fs::fstat(&place).map(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
    })?;
    let mount = clone_opened(&place)?;
    let mut attributes = libc::MOUNT_ATTR_NOSUID;
    if read_only {
        attributes |= libc::MOUNT_ATTR_RDONLY;
    }
    raw::set_mount_attributes(mount.as_fd(), attributes, true)?;
    Ok(Kept {
        mount,
        path: path.to_owned(),
        is_directory,
    })
}

fn clone_opened(place: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(place, "", flags)?)
}

/// Attaches a clone where it came from, making the mount point where that was covered.
fn put_back(tree: &Kept) -> io::Result<()> {
    if !tree.path.exists() {
        if let Some(parent) = tree.path.parent() {
            fs::create_dir_all(parent)?;
        }
        if tree.is_directory {
            fs::create_dir(&tree.path)?;
        } else {
            fs::write(&tree.path, "")?;
        }
    }
    Ok(move_mount(
        &tree.mount,
        "",
        CWD,
        &tree.path,
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
    )?)
}

/// Attaches a clone over the very file or directory that is open.
fn cover_opened(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", place, "", flags)?)
}
