//! Overlays of a pod: what the user has is seen, and what a command writes is the pod's.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::StatVfsMountFlags;
use rustix::mount::{MountFlags, mount as mount_at};

use crate::policy::Overlay;
use crate::real;

/// Mounts an overlay, in a mount namespace of the caller's own.
///
/// `userxattr` is what a user namespace may have; with it the kernel follows nothing that a file's attributes name, so that
/// what a command writes leads nowhere else. The lower folder is only read, by the kernel too. With `volatile` nothing waits
/// for the disk: what is written there goes with the conversation.
pub(super) fn mount(overlay: &Overlay) -> io::Result<()> {
    let [lower, upper, work, merged] = [
        &overlay.lower,
        &overlay.upper,
        &overlay.work,
        &overlay.merged,
    ]
    .map(|folder| real::open(folder));
    let (lower, upper, work, merged) = (lower?, upper?, work?, merged?);
    // By descriptors: no link on the way counts, and no character of a path means anything.
    let options = format!(
        "lowerdir={},upperdir={},workdir={},userxattr,volatile",
        path(&lower),
        path(&upper),
        path(&work)
    );
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount_at(
        "overlay",
        path(&merged),
        "overlay",
        flags,
        options.as_c_str(),
    )?;
    let seen = rustix::fs::statvfs(&overlay.merged)?;
    if seen.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(io::Error::other(
            "the file system of the temporary files cannot hold what is written to one",
        ));
    }
    Ok(())
}

fn path(place: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", place.as_raw_fd())
}
