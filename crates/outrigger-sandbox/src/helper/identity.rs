//! A command as another user of the system than the daemon, one for each user of the daemon's own.
//!
//! In its user namespace it is still the daemon's user, and so are its files: the trees that it is given are mounted with
//! their owners mapped. What is the daemon's on the disk is the command's where it sees it, and what it makes there is the
//! daemon's on the disk. So nothing that the kernel keeps of files has the other number, and nothing else of the daemon
//! has to know of it: neither its file tools, nor what counts, cleans up or removes.
//!
//! Only root may mount so. A helper does it before it enters the namespace, and becomes the other user when it has opened
//! all that the new view of the file system is made of.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Uid, getegid, geteuid};
use rustix::thread::{
    LinkNameSpaceType, UnshareFlags, move_into_link_name_space, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use super::opened::Opened;
use super::raw::{self, Fork};
use super::{During, SetupError, mounts, places};
use crate::layers::Step;
use crate::policy::{Outside, Policy};

const MAKING: &str = "making a user namespace for another user, which only root may";

/// Whom a command is to be, and what was mounted for that.
pub(super) struct Identity {
    outside: Outside,
    user: Uid,
    group: Gid,
    /// A user namespace that maps owners of files; it holds nothing else.
    owners: OwnedFd,
    /// What the command is given.
    given: Vec<(PathBuf, OwnedFd)>,
    /// The folders of its pod.
    pod: Vec<(PathBuf, OwnedFd)>,
}

impl Identity {
    /// Prepares it, as the daemon's user and in the daemon's namespaces.
    pub(super) fn prepare(outside: Outside) -> Result<Self, SetupError> {
        let (user, group) = (geteuid(), getegid());
        let (users, groups) = (
            owners(user.as_raw(), outside),
            owners(group.as_raw(), outside),
        );
        Ok(Self {
            outside,
            user,
            group,
            owners: user_namespace(&users, &groups).during(Step::Identity, MAKING)?,
            given: Vec::new(),
            pod: Vec::new(),
        })
    }

    /// Mounts what a command is given, but for the system, which is everybody's. Each path once: a mount is in one place.
    pub(super) fn mount(&mut self, policy: &Policy, opened: &Opened) -> Result<(), SetupError> {
        for path in &policy.command.read_write {
            if self.given(path).is_none() {
                let tree = opened
                    .open(path)
                    .and_then(|place| self.tree(&place, libc::MOUNT_ATTR_NOSUID))
                    .during(Step::Identity, cannot_map(path))?;
                self.given.push((path.clone(), tree));
            }
        }
        for path in &policy.command.read_only {
            if !places::is_in_system(path)
                && self.given(path).is_none()
                && let Some(tree) = self
                    .read_only(path, opened)
                    .during(Step::Identity, cannot_map(path))?
            {
                self.given.push((path.clone(), tree));
            }
        }
        for (_, folder) in places::shared(policy) {
            let attributes = libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;
            let tree = crate::real::open(folder)
                .and_then(|place| self.tree(&place, attributes))
                .during(Step::Identity, cannot_map(folder))?;
            self.pod.push((folder.to_owned(), tree));
        }
        Ok(())
    }

    /// The same of what is only read. Where its file system knows no mapping, it is seen as others see it.
    fn read_only(&self, path: &Path, opened: &Opened) -> io::Result<Option<OwnedFd>> {
        let place = match opened.get(path) {
            Some(place) => place.try_clone_to_owned()?,
            // It may be a link, which is made anew, or missing.
            None => match mounts::open(path) {
                Ok(place) => place,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        if mounts::file_type(&place)? == FileType::Symlink {
            return Ok(None);
        }
        match self.tree(&place, libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_RDONLY) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => Ok(None),
            tree => tree.map(Some),
        }
    }

    /// Clones a tree with its owners mapped.
    pub(super) fn tree(&self, place: &OwnedFd, attributes: u64) -> io::Result<OwnedFd> {
        let mount = mounts::clone_opened(place)?;
        raw::map_owners(mount.as_fd(), self.owners.as_fd(), attributes)?;
        Ok(mount)
    }

    /// What was mounted of all that the command is given.
    pub(super) fn all_given(&self) -> &[(PathBuf, OwnedFd)] {
        &self.given
    }

    /// What was mounted of a path that it is given.
    pub(super) fn given(&self, path: &Path) -> Option<BorrowedFd<'_>> {
        find(&self.given, path)
    }

    /// What was mounted of a folder of its pod.
    pub(super) fn of_pod(&self, folder: &Path) -> Option<BorrowedFd<'_>> {
        find(&self.pod, folder)
    }

    /// Enters a user namespace in which the daemon's user is the other one, and namespaces of these kinds.
    pub(super) fn enter(&self, others: UnshareFlags) -> Result<(), SetupError> {
        let map = |id: u32| format!("{id} {} 1\n", self.outside.id);
        let own = user_namespace(&map(self.user.as_raw()), &map(self.group.as_raw()))
            .during(Step::Identity, MAKING)?;
        move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::User))
            .during(Step::Namespaces, "entering the user namespace")?;
        raw::unshare(others).during(Step::Namespaces, "unshare")
    }

    /// Becomes the other user, in the user namespace. What could be opened as the daemon's user cannot be any more.
    ///
    /// The kernel forgets by that with whose death this process is to end.
    pub(super) fn assume(&self) -> Result<(), SetupError> {
        let assume = || {
            set_thread_groups(&[])?;
            set_thread_res_gid(self.group, self.group, self.group)?;
            set_thread_res_uid(self.user, self.user, self.user)?;
            rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        };
        assume().during(Step::Identity, "becoming another user")
    }

    /// Gives the pipes of the program to it, so that it can open them by name (`/dev/stderr`).
    pub(super) fn give_pipes(outside: Outside) -> Result<(), SetupError> {
        let (user, group) = (Uid::from_raw(outside.id), Gid::from_raw(outside.id));
        let streams = [
            rustix::stdio::stdin(),
            rustix::stdio::stdout(),
            rustix::stdio::stderr(),
        ];
        for stream in streams {
            let give = || {
                let mode = rustix::fs::fstat(stream)?.st_mode;
                match FileType::from_raw_mode(mode) {
                    FileType::Fifo => rustix::fs::fchown(stream, Some(user), Some(group)),
                    // The null device is everybody's.
                    _ => Ok(()),
                }
            };
            give().during(Step::Identity, "giving the pipes to the command")?;
        }
        Ok(())
    }
}

fn find<'t>(trees: &'t [(PathBuf, OwnedFd)], path: &Path) -> Option<BorrowedFd<'t>> {
    let (_, tree) = trees.iter().find(|(place, _)| place == path)?;
    Some(tree.as_fd())
}

fn cannot_map(path: &Path) -> String {
    format!(
        "mounting {} for another user (sandbox.user_ids; ext4, xfs, btrfs and tmpfs can, overlayfs and NFS cannot)",
        path.display()
    )
}

/// Which owner on the disk is seen as which: the daemon's as the other one, everybody else's as it is. Those of the range
/// are nobody's there.
fn owners(own: u32, outside: Outside) -> String {
    let mut map = format!("{own} {} 1\n", outside.id);
    let (first, last) = (outside.range.first(), outside.range.last());
    // The last number of all is none.
    for (from, to) in [(0, first), (last.saturating_add(1), u32::MAX)] {
        let parts = match (from..to).contains(&own) {
            true => [(from, own), (own + 1, to)],
            false => [(from, to), (to, to)],
        };
        for (from, to) in parts.into_iter().filter(|(from, to)| from < to) {
            map.push_str(&format!("{from} {from} {}\n", to - from));
        }
    }
    map
}

/// Makes a user namespace with these maps. A process that ends at once makes it, and this one, which keeps its rights,
/// writes them.
fn user_namespace(users: &str, groups: &str) -> io::Result<OwnedFd> {
    let (mut made, ready) = io::pipe()?;
    let (wait, done) = io::pipe()?;
    match raw::fork()? {
        Fork::Child => {
            drop((made, done));
            let unshared = raw::unshare(UnshareFlags::NEWUSER).and_then(|()| {
                // Nothing of it is anybody's secret, and its files in `/proc` are this user's by that.
                Ok(rustix::process::set_dumpable_behavior(
                    DumpableBehavior::Dumpable,
                )?)
            });
            if unshared.is_ok() {
                (&ready).write_all(&[0]).unwrap_or_default();
            }
            drop(ready);
            // Until the other end is closed.
            (&wait).read_exact(&mut [0]).unwrap_or_default();
            std::process::exit(0);
        }
        Fork::Parent(child) => {
            drop((ready, wait));
            let opened = made.read_exact(&mut [0]).and_then(|()| {
                let place = format!("/proc/{}", child.as_raw_pid());
                fs::write(format!("{place}/uid_map"), users)?;
                fs::write(format!("{place}/gid_map"), groups)?;
                Ok(fs::File::open(format!("{place}/ns/user"))?.into())
            });
            drop(done);
            raw::wait(Some(child), true)?;
            opened
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_as_they_are_but_for_the_daemons_and_those_of_the_range() {
        let outside = |id| Outside {
            id,
            range: "100000-165535".parse().unwrap(),
        };
        assert_eq!(
            owners(0, outside(100_007)),
            "0 100007 1\n1 1 99999\n165536 165536 4294801759\n"
        );
        assert_eq!(
            owners(1000, outside(100_000)),
            "1000 100000 1\n0 0 1000\n1001 1001 98999\n165536 165536 4294801759\n"
        );
        assert_eq!(
            owners(200_000, outside(165_535)),
            "200000 165535 1\n0 0 100000\n165536 165536 34464\n200001 200001 4294767294\n"
        );
    }
}
