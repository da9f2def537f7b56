//! Control groups: the only limit on all processes of a command together, and the only one that holds for root.
//!
//! Used where a part of the tree was handed to the daemon (`Delegate=yes` in a systemd unit marks it). The daemon moves
//! into a leaf, since a group that hands out controllers may hold no process, and each command gets a group beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Limits;

const NEEDED: [&str; 2] = ["memory", "pids"];

const OWN_LEAF: &str = "outrigger-daemon";

/// What systemd sets on a group it has handed over; the first for users, the second for the system.
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];

#[derive(Debug)]
pub(super) struct Delegated {
    directory: PathBuf,
}

impl Delegated {
    /// Finds the daemon's group and prepares it; nothing where none was handed over or it cannot be used.
    pub(super) fn find() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let directory = directory(&own, &mounts)?;
        if !is_marked(&directory) {
            return None;
        }
        match prepare(&directory, std::process::id()) {
            Ok(()) => Some(Self { directory }),
            Err(error) => {
                tracing::info!(%error, group = %directory.display(), "the delegated control group cannot be used");
                None
            }
        }
    }

    /// Makes a group for one command. The helper's worker joins it, and the helper removes it.
    pub(super) fn make(&self, limits: &Limits) -> io::Result<PathBuf> {
        let number = getrandom::u64().map_err(io::Error::other)?;
        let group = self.directory.join(format!("outrigger-{number:016x}"));
        fs::create_dir(&group)?;
        match set_limits(&group, limits) {
            Ok(()) => Ok(group),
            Err(error) => {
                fs::remove_dir(&group).unwrap_or_default();
                Err(error)
            }
        }
    }
}

/// The daemon's group as a directory, from its line in `/proc/self/cgroup` and the place the tree is mounted at.
fn directory(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        if source.split(' ').next()? != "cgroup2" {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(place).join(below))
    })
}

fn is_marked(directory: &Path) -> bool {
    MARKS.iter().any(|mark| {
        let mut value = [0_u8; 8];
        rustix::fs::getxattr(directory, *mark, &mut value)
            .is_ok_and(|length| value.get(..length) == Some(b"1"))
    })
}

/// Moves the daemon into a leaf and has the group hand out its controllers; undoes both when the latter is refused,
/// because there are other processes in it.
fn prepare(directory: &Path, daemon: u32) -> io::Result<()> {
    let offered = fs::read_to_string(directory.join("cgroup.controllers"))?;
    if let Some(missing) = NEEDED
        .iter()
        .find(|needed| !offered.split_whitespace().any(|one| one == **needed))
    {
        return Err(io::Error::other(format!(
            "the {missing} controller is not in it"
        )));
    }
    let leaf = directory.join(OWN_LEAF);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::write(leaf.join("cgroup.procs"), daemon.to_string())?;
    fs::write(directory.join("cgroup.subtree_control"), "+memory +pids").inspect_err(|_| {
        fs::write(directory.join("cgroup.procs"), daemon.to_string()).unwrap_or_default();
        fs::remove_dir(&leaf).unwrap_or_default();
    })
}

fn set_limits(group: &Path, limits: &Limits) -> io::Result<()> {
    if let Some(processes) = limits.processes {
        fs::write(group.join("pids.max"), processes.to_string())?;
    }
    let memory = limits.memory.unwrap_or_else(three_quarters_of_the_machine);
    fs::write(group.join("memory.max"), memory.to_string())?;
    // Without swap to count there is no such file.
    match fs::write(group.join("memory.swap.max"), "0") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn three_quarters_of_the_machine() -> u64 {
    let machine = rustix::system::sysinfo();
    let bytes = machine.totalram.saturating_mul(machine.mem_unit.into());
    bytes / 4 * 3
}

#[cfg(test)]
mod tests;
