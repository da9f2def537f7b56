//! What a replaced file leaves to the one that takes its place: owner, rights, attributes.

use std::io;

use cap_std::fs::File;

/// Gives a file these rights, and no set-id bits.
#[cfg(unix)]
pub(super) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    let mode = rustix::fs::Mode::from_bits_truncate((mode & 0o777) as rustix::fs::RawMode);
    Ok(rustix::fs::fchmod(file, mode)?)
}

/// There are no such rights on this system.
#[cfg(not(unix))]
pub(super) fn set_mode(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Gives the new file the old one's owner, mode and attributes.
#[cfg(unix)]
pub(super) fn keep_attributes(old: &File, new: &File) -> io::Result<()> {
    use rustix::fs::{Gid, Mode, Uid, fchmod, fchown, fstat};
    let (was, is) = (fstat(old)?, fstat(new)?);
    let mut is_kept = true;
    if (was.st_uid, was.st_gid) != (is.st_uid, is.st_gid) {
        let owner = Some(Uid::from_raw(was.st_uid));
        let group = Some(Gid::from_raw(was.st_gid));
        // Only root may give a file away; the group alone may be allowed.
        is_kept = fchown(new, owner, group).is_ok() || fchown(new, None, group).is_ok();
        if !is_kept {
            tracing::debug!("a replaced file now belongs to the daemon's user");
        }
    }
    #[cfg(target_os = "linux")]
    let is_kept = keep_access_list(old, new) && is_kept;
    #[cfg(target_os = "linux")]
    copy_extended(old, new);
    let mut mode = was.st_mode & 0o777;
    if !is_kept {
        // Whom the group's rights now mean had those of others, and the old group is among the others.
        let both = mode & (mode >> 3) & 0o007;
        mode = mode & 0o700 | both << 3 | both;
    }
    fchmod(new, Mode::from_raw_mode(mode))?;
    Ok(())
}

/// Gives the new file the list of who may do what with the old one.
///
/// A disk without such lists has none to be lost; elsewhere the file is not written without it.
#[cfg(windows)]
pub(super) fn keep_attributes(old: &File, new: &File) -> io::Result<()> {
    match crate::windows::copy_access_list(old, new) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Err(error) => {
            tracing::debug!(%error, "the access list of a replaced file was not copied");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// The kernel's own limit for one extended attribute and for the list of their names, in bytes.
#[cfg(target_os = "linux")]
const MAX_ATTRIBUTE: usize = 64 * 1024;

/// Gives the new file the old one's access list, or none, in the place of the one that it has from its folder: that
/// names others, whom the mode would let in. Returns whether that was possible.
#[cfg(target_os = "linux")]
fn keep_access_list(old: &File, new: &File) -> bool {
    use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};
    use rustix::io::Errno;
    const NAME: &str = "system.posix_acl_access";
    let mut list = vec![0_u8; MAX_ATTRIBUTE];
    match fgetxattr(old, NAME, list.as_mut_slice()) {
        Ok(length) => {
            let list = list.get(..length).unwrap_or_default();
            fsetxattr(new, NAME, list, XattrFlags::empty()).is_ok()
        }
        // A list that cannot be read is lost: it is not the same as none.
        Err(error) => {
            let removed = fremovexattr(new, NAME);
            matches!(error, Errno::NODATA | Errno::NOTSUP)
                && matches!(removed, Ok(()) | Err(Errno::NODATA | Errno::NOTSUP))
        }
    }
}

/// Copies the user's own attributes; security labels are the system's to set.
#[cfg(target_os = "linux")]
fn copy_extended(old: &File, new: &File) {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    let mut names = vec![0_u8; MAX_ATTRIBUTE];
    // Most files have none, many file systems know none.
    let Ok(length) = flistxattr(old, names.as_mut_slice()) else {
        return;
    };
    let mut value = vec![0_u8; MAX_ATTRIBUTE];
    let names = names.get(..length).unwrap_or_default();
    for name in names.split(|byte| *byte == 0) {
        if name.starts_with(b"user.")
            && let Ok(length) = fgetxattr(old, name, value.as_mut_slice())
            && let Some(value) = value.get(..length)
            && fsetxattr(new, name, value, XattrFlags::empty()).is_err()
        {
            tracing::debug!("an extended attribute of a replaced file was lost");
        }
    }
}
