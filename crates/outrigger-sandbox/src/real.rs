//! Opens a place by the path that was canonical when it was chosen, and nothing else.
//!
//! A root may lie in what another command may change: the project of one session in that of another, central storage
//! in the project. There a name on the way may be a link by now, and whatever it leads to would be handed out.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use cap_std::fs::Dir;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Opens what is at a canonical path as a place, neither for reading nor for writing.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let Ok(below) = path.strip_prefix("/") else {
        return Err(not_there(path, &io::ErrorKind::InvalidInput.into()));
    };
    let root = step(CWD, OsStr::new("/"))?;
    walk(root, below).map_err(|error| not_there(path, &error))
}

/// The same from the innermost of these open folders that the path lies in, where there is one.
pub(super) fn open_from<'f>(
    folders: impl Iterator<Item = (&'f Path, BorrowedFd<'f>)>,
    path: &Path,
) -> io::Result<OwnedFd> {
    let around = folders.filter(|(folder, _)| path.starts_with(folder));
    let innermost = around.max_by_key(|(folder, _)| folder.components().count());
    let Some((folder, opened)) = innermost else {
        return open(path);
    };
    let below = path.strip_prefix(folder).unwrap_or(path);
    // Not by its `.`, to which a command may have closed the way.
    opened
        .try_clone_to_owned()
        .and_then(|place| walk(place, below))
        .map_err(|error| not_there(path, &error))
}

pub(super) fn readable(place: &OwnedFd) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(place, ".", flags, Mode::empty())?;
    Ok(Dir::from_std_file(opened.into()))
}

/// Whether two descriptors are of one folder. Both are open, so that no number can have been given away again.
pub(super) fn is_same(one: impl AsFd, other: impl AsFd) -> io::Result<bool> {
    let (one, other) = (rustix::fs::fstat(one)?, rustix::fs::fstat(other)?);
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

/// Returns the rights to what is open.
pub(super) fn mode_of(opened: impl AsFd) -> rustix::io::Result<Mode> {
    Ok(Mode::from_raw_mode(
        rustix::fs::fstat(opened)?.st_mode & 0o7777,
    ))
}

/// Sets them, also of a place; what is at its name may be another by now.
pub(super) fn set_mode(opened: &impl AsRawFd, mode: Mode) -> rustix::io::Result<()> {
    rustix::fs::chmod(format!("/proc/self/fd/{}", opened.as_raw_fd()), mode)
}

/// Does something while the owner of a folder, who this has to be, has all rights to it.
pub(super) fn with_rights<T, E: From<Errno>>(
    folder: &(impl AsFd + AsRawFd),
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let mode = mode_of(folder)?;
    let open = mode | Mode::RWXU;
    if open == mode {
        // Perhaps another helper's doing, who makes it again what it was.
        return work();
    }
    set_mode(folder, open)?;
    let done = work();
    set_mode(folder, mode)?;
    done
}

/// Removes a file or a link, or a folder that is empty.
pub(super) fn remove(dir: impl AsFd, name: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR),
        removed => removed,
    }
}

fn not_there(path: &Path, error: &io::Error) -> io::Error {
    let reason = format!("{} is not the place it was: {error}", path.display());
    io::Error::new(error.kind(), reason)
}

fn walk(from: OwnedFd, below: &Path) -> io::Result<OwnedFd> {
    // By hand, since older kernels and the filters of some containers know no `openat2`.
    below.components().try_fold(from, |place, component| {
        let Component::Normal(name) = component else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        step(&place, name)
    })
}

/// Opens what has a name in a folder, as a place; what is no link.
pub(super) fn step(place: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(place, name, flags, Mode::empty())?;
    let mode = rustix::fs::fstat(&opened)?.st_mode;
    if FileType::from_raw_mode(mode) == FileType::Symlink {
        let reason = format!("{} is a link", name.display());
        return Err(io::Error::other(reason));
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_is_followed_nowhere_on_the_way() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        fs::create_dir_all(place.join("a/b")).unwrap();
        fs::write(place.join("a/b/file"), "").unwrap();
        symlink("a", place.join("link")).unwrap();
        symlink("b", place.join("a/last")).unwrap();
        for (path, opens) in [
            ("a/b", true),
            ("a/b/file", true),
            ("link/b", false),
            ("a/last", false),
            ("a/missing", false),
            ("a/b/file/x", false),
            ("a/../a", false),
        ] {
            assert_eq!(open(&place.join(path)).is_ok(), opens, "{path}");
        }
        let opened = open(&place.join("a/b")).unwrap();
        assert!(readable(&opened).unwrap().exists("file"));
        let error = open(&place.join("link/b")).unwrap_err().to_string();
        assert!(error.ends_with("/link/b is not the place it was: link is a link"));
        assert!(open(Path::new("relative")).is_err());
    }
}
