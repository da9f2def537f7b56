//! The view of the file system in full mode: a new root with nothing in it but the system, read-only, private places,
//! empty, and the roots.
//!
//! Each tree that is to be seen is cloned, by descriptor, from the old root; then the old root is gone, and the clones
//! are attached at the paths they came from. So no link that a command left behind can send a mount somewhere else.
//!
//! The folders of a pod come last ([`shared`]): other commands write to them meanwhile, and until then nobody can change
//! what a path in the new root leads to.

mod masks;
mod pins;
mod shared;

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode as FileMode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, move_mount, open_tree, unmount,
};

use super::identity::Identity;
use super::opened::Opened;
use super::{During, SetupError, places, raw};
use crate::layers::Step;
use crate::policy::Policy;
use crate::real;

/// Where the new root is put together. Any directory would do, it is covered in this namespace only.
const NEW_ROOT: &str = "/usr";

const ROOT_OPTIONS: &CStr = c"size=1m,nr_inodes=4096,mode=0755";

const PRIVATE_FILES: u32 = 65_536;

/// Links that programs rely on, beside those of the system's own top level.
const LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/var/run", "/run"),
];

/// What is there, though empty, because programs look for it.
const EMPTY: [&str; 2] = ["/run", "/var/lib"];

/// A mount that is not attached anywhere yet, or a link that is made anew.
enum What {
    Mount(OwnedFd),
    Link(PathBuf),
}

pub(super) fn build(
    policy: &Policy,
    opened: &Opened,
    identity: Option<&Identity>,
) -> Result<(), SetupError> {
    View::begin(policy, opened, identity)?.finish(policy)
}

/// A view that is not finished: all is attached that does not depend on the command, and what hides files from it is not.
pub(super) struct View {
    kept: Vec<(PathBuf, What)>,
    /// The folders of the pod, which are attached last.
    shared: Vec<(PathBuf, OwnedFd)>,
    masks: masks::Masks,
    /// What files about names say.
    names: Vec<(PathBuf, OwnedFd)>,
}

impl View {
    /// Makes the new root and enters it. No process of a command is in this namespace yet.
    pub(super) fn begin(
        policy: &Policy,
        opened: &Opened,
        identity: Option<&Identity>,
    ) -> Result<Self, SetupError> {
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )
        .during(Step::Mounts, "detaching from the system's mounts")?;
        let kept = keep(policy, opened, identity)?;
        let shared = shared::keep(policy, identity)?;
        if let Some(identity) = identity {
            identity.assume()?;
        }
        enter_new_root().during(Step::Mounts, "entering the new root")?;
        make_private(policy)?;
        let masks = masks::Masks::prepare(policy.command.git)
            .during(Step::Mounts, "preparing what hides files")?;
        for (path, what) in &kept {
            put_back(path, what).during(Step::Mounts, path.display())?;
        }
        let mut names = Vec::new();
        for (number, (path, text)) in policy.names.iter().enumerate() {
            let text = mount_text(number, text).during(Step::Mounts, path.display())?;
            names.push((path.clone(), text));
        }
        Ok(Self {
            kept,
            shared,
            masks,
            names,
        })
    }

    /// What will be at these paths, and is not yet.
    pub(super) fn to_come(&self) -> impl Iterator<Item = (&Path, &OwnedFd)> {
        let all = self.shared.iter().chain(&self.names);
        all.map(|(path, mount)| (path.as_path(), mount))
    }

    /// Puts what depends on the command into it, and closes it. What is hidden is looked for here, at the last moment.
    pub(super) fn finish(self, policy: &Policy) -> Result<(), SetupError> {
        for (number, (path, text)) in self.names.iter().enumerate() {
            real::open(path)
                .and_then(|place| cover_opened(text, &place))
                .and_then(|()| fs::remove_file(text_file(number)))
                .during(Step::Mounts, path.display())?;
        }
        for pin in &policy.pins {
            pins::pin(pin).during(Step::Mounts, pin.path.display())?;
        }
        self.masks.cover(policy)?;
        shared::put(&self.shared, &self.kept)?;
        let read_only = libc::MOUNT_ATTR_RDONLY;
        open("/")
            .and_then(|root| raw::set_mount_attributes(root.as_fd(), read_only, false))
            .during(Step::Mounts, "closing the new root")
    }
}

/// Clones what is to be seen, in the order in which it goes back: outer directories first.
fn keep(
    policy: &Policy,
    opened: &Opened,
    identity: Option<&Identity>,
) -> Result<Vec<(PathBuf, What)>, SetupError> {
    let mapped = identity.map_or(&[][..], Identity::all_given);
    let is_mapped = |path: &Path| mapped.iter().any(|(other, _)| other == path);
    let read_only = policy
        .command
        .read_only
        .iter()
        .filter(|path| !places::is_in_system(path));
    let system = places::SYSTEM.iter().chain(&places::DEVICES).map(Path::new);
    let mut kept = Vec::new();
    let plain = system.chain(read_only.map(PathBuf::as_path));
    for path in plain.filter(|path| !is_mapped(path)) {
        let place = match opened.get(path) {
            Some(_) => opened.reopen(path),
            None if path.exists() => open(path),
            None => continue,
        };
        let what = place.and_then(|place| match file_type(&place)? {
            FileType::Symlink => Ok(What::Link(fs::read_link(path)?)),
            _ => clone_tree(&place, libc::MOUNT_ATTR_RDONLY),
        });
        let what = what.during(Step::Mounts, path.display())?;
        kept.push((path.to_owned(), what));
    }
    for (path, mount) in mapped {
        let mount = mount.try_clone().during(Step::Mounts, path.display())?;
        kept.push((path.clone(), What::Mount(mount)));
    }
    for path in policy
        .command
        .read_write
        .iter()
        .filter(|path| !is_mapped(path))
    {
        let what = opened.reopen(path).and_then(|place| clone_tree(&place, 0));
        let what = what.during(Step::Mounts, "a directory to be changed")?;
        kept.push((path.clone(), what));
    }
    for cache in &policy.caches {
        // The user may have removed it meanwhile.
        if let Some(what) = shared::cache(cache).during(Step::Mounts, cache.place.display())? {
            kept.push((cache.place.clone(), what));
        }
    }
    // Stable: of two at one path the writable one, or the cache, comes last and is seen.
    kept.sort_by_key(|(path, _)| path.components().count());
    Ok(kept)
}

/// Makes an empty file system the root of everything, with a `/proc` that shows this namespace only.
fn enter_new_root() -> io::Result<()> {
    let plain = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", NEW_ROOT, "tmpfs", plain, ROOT_OPTIONS)?;
    std::env::set_current_dir(NEW_ROOT)?;
    fs::create_dir("proc")?;
    // While the old one is still there: without a fully visible `/proc` the kernel gives no new one.
    let flags = plain | MountFlags::NOEXEC | MountFlags::RDONLY;
    mount("proc", "proc", "proc", flags, None)?;
    // Both names at once: the old root ends up on top of the new one, at the same place, and is taken off.
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}

fn make_private(policy: &Policy) -> Result<(), SetupError> {
    let bytes = policy.private_bytes;
    let options = CString::new(format!("size={bytes},nr_inodes={PRIVATE_FILES},mode=0700"))
        .during(Step::Mounts, "bounding private directories")?;
    let shared = places::shared(policy);
    for place in places::private(policy) {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        fs::create_dir_all(&place).during(Step::Mounts, place.display())?;
        if shared.iter().any(|(other, _)| *other == place) {
            continue;
        }
        mount("tmpfs", &place, "tmpfs", flags, options.as_c_str())
            .during(Step::Mounts, place.display())?;
    }
    if let Some(place) = &policy.private_tmp {
        let mut folder = fs::DirBuilder::new();
        folder
            .mode(0o700)
            .create(place)
            .during(Step::Mounts, place.display())?;
    }
    for place in EMPTY {
        fs::create_dir_all(place).during(Step::Mounts, place)?;
    }
    for (name, target) in LINKS {
        symlink(target, name).during(Step::Mounts, name)?;
    }
    Ok(())
}

/// Opens what is at a path itself, not what a link there names.
pub(super) fn open(path: impl AsRef<Path>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path.as_ref(), flags, FileMode::empty())?)
}

pub(super) fn file_type(opened: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(opened)?.st_mode))
}

/// Clones a tree, with attributes in addition to `nosuid`.
fn clone_tree(opened: &OwnedFd, attributes: u64) -> io::Result<What> {
    let mount = clone_opened(opened)?;
    raw::set_mount_attributes(mount.as_fd(), attributes | libc::MOUNT_ATTR_NOSUID, true)?;
    Ok(What::Mount(mount))
}

pub(super) fn clone_opened(opened: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(opened, "", flags)?)
}

/// Attaches a clone where it came from, making the mount point where there is none yet.
fn put_back(path: &Path, what: &What) -> io::Result<()> {
    let is_missing = !path.exists();
    if let (true, Some(parent)) = (is_missing, path.parent()) {
        fs::create_dir_all(parent)?;
    }
    let mount = match what {
        What::Link(target) if is_missing => return symlink(target, path),
        What::Link(_) => return Ok(()),
        What::Mount(mount) => mount,
    };
    match file_type(mount)? {
        FileType::Directory => fs::create_dir_all(path)?,
        _ if is_missing => fs::write(path, "")?,
        _ => {}
    }
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(mount, "", CWD, path, flags)?)
}

/// Returns a text, to be mounted over a file.
fn mount_text(number: usize, text: &str) -> io::Result<OwnedFd> {
    let file = text_file(number);
    fs::write(&file, text)?;
    let mount = clone_opened(&open(&file)?)?;
    raw::set_mount_attributes(mount.as_fd(), libc::MOUNT_ATTR_RDONLY, false)?;
    Ok(mount)
}

/// Where it is until then.
fn text_file(number: usize) -> PathBuf {
    PathBuf::from(format!("/.text-{number}"))
}

pub(super) fn cover_opened(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", place, "", flags)?)
}
