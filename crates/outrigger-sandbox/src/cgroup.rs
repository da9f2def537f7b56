//! Control groups: the only limits on all processes of a command together, and the only ones that hold for root.
//!
//! - Version 2, where a part of the tree was handed to the daemon: `Delegate=yes` in a systemd unit marks it, and the top of
//!   what a container sees is the container's. The daemon moves into a leaf, since a group that hands out controllers may
//!   hold no process.
//! - Version 1, where the folder of the daemon's group can be written, as by root.
//!
//! There the daemon has a group of its own, locked as long as it lives, and in it each command has one. A command's group
//! goes with the command; what a killed daemon left, the next one removes when it looks for its groups.

mod places;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};

use self::places::{Place, places};
use super::layers::Ungrouped;
use super::process::Reached;
use super::{Limits, pod};

/// How groups of daemons are called, with a random number behind it.
const PREFIX: &str = "outrigger-";

/// The leaf that the daemon itself is in, in version 2.
const LEAF: &str = "outrigger-daemon";

/// How often a group is made once more because another daemon took it for an abandoned one.
const ATTEMPTS: usize = 4;

/// How deep groups of daemons and commands in one another are looked for.
const DEPTH: usize = 8;

/// How often processes are moved out of a group that go on forking meanwhile.
const ROUNDS: usize = 8;

/// Processor time is counted in periods of so many microseconds.
const PERIOD_US: u64 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controller {
    Memory,
    Pids,
    Cpu,
}

impl Controller {
    const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

/// The groups of this daemon, one in each tree that is of use.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    owned: Vec<Owned>,
    /// Why not all is bounded by them.
    missing: Option<Ungrouped>,
    next: AtomicU64,
}

/// A group of this daemon. Goes with it, if no command is in it.
#[derive(Debug)]
struct Owned {
    place: Place,
    directory: PathBuf,
    /// Says that a daemon lives that needs the group.
    _lock: File,
}

impl Drop for Owned {
    fn drop(&mut self) {
        fs::remove_dir(&self.directory).unwrap_or_default();
    }
}

/// The groups of one command, removed when this is dropped unless they were [kept](Self::keep).
#[derive(Debug, Default)]
pub(crate) struct Made {
    paths: Vec<PathBuf>,
    pub(crate) bounds_memory: bool,
}

impl Made {
    /// Returns the groups. Whoever takes them removes them.
    pub(crate) fn keep(mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.paths)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        remove(&self.paths);
    }
}

/// Removes groups that hold no process any more. What looks like files in them goes with them.
pub(crate) fn remove(groups: &[PathBuf]) {
    for group in groups {
        remove_tree(group, DEPTH);
    }
}

/// Removes a group and those in it, as another daemon makes them that is run as a command.
fn remove_tree(group: &Path, depth: usize) {
    if fs::remove_dir(group).is_ok() || depth == 0 {
        return;
    }
    for inside in fs::read_dir(group).into_iter().flatten().flatten() {
        if inside.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&inside.path(), depth - 1);
        }
    }
    fs::remove_dir(group).unwrap_or_default();
}

impl Groups {
    /// Finds out where groups can be made, makes the daemon's, and removes those that no daemon needs any more.
    pub(crate) fn find() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let found = places(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
        let mut owned: Vec<Owned> = Vec::new();
        let mut missing = Ungrouped::Absent;
        for place in found {
            if place.controllers.is_empty() {
                // Version 2 without any. Where they are in version 1, that has the last word.
                missing = Ungrouped::NotDelegated;
            }
            // Version 2 comes first; what it has is not looked for elsewhere.
            let wanted = |it: &Controller| !owned.iter().any(|own| own.place.has(*it));
            let place = place.only(wanted);
            if place.controllers.is_empty() {
                continue;
            }
            match Owned::make(place) {
                Ok(made) => owned.push(made),
                Err(reason) => missing = reason,
            }
        }
        let lacking = Controller::ALL.into_iter();
        let lacking: Vec<_> = lacking
            .filter(|it| !owned.iter().any(|own| own.place.has(*it)))
            .map(Controller::name)
            .collect();
        let missing = match (owned.is_empty(), lacking.is_empty()) {
            (true, _) => Some(missing),
            (false, false) => Some(Ungrouped::Lacks(lacking)),
            (false, true) => None,
        };
        if let Some(reason) = &missing {
            tracing::info!(%reason, "commands are not bounded by control groups in all");
        }
        Self {
            owned,
            missing,
            next: AtomicU64::new(0),
        }
    }

    pub(crate) fn bounds(&self, controller: Controller) -> bool {
        self.owned.iter().any(|own| own.place.has(controller))
    }

    pub(crate) fn version(&self) -> Option<Version> {
        self.owned.first().map(|own| own.place.version)
    }

    pub(crate) fn missing(&self) -> Option<&Ungrouped> {
        self.missing.as_ref()
    }

    /// Makes the groups of one command. The helper's worker joins them, and the helper removes them.
    pub(crate) fn make(&self, limits: &Limits) -> io::Result<Made> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut made = Made::default();
        for own in &self.owned {
            let settings = own.place.settings(limits);
            if settings.is_empty() {
                continue;
            }
            let group = own.directory.join(format!("command-{number}"));
            fs::create_dir(&group)?;
            made.paths.push(group.clone());
            for setting in settings {
                setting.apply(&group)?;
            }
            made.bounds_memory |= own.place.has(Controller::Memory);
        }
        Ok(made)
    }
}

impl Owned {
    fn make(place: Place) -> Result<Self, Ungrouped> {
        if place.version == Version::Two {
            hand_out(&place, std::process::id())?;
        }
        sweep(&place.directory);
        let failed = |error: io::Error| Ungrouped::of(&place.directory, &error);
        for _ in 0..ATTEMPTS {
            let number = getrandom::u64().map_err(|error| failed(io::Error::other(error)))?;
            let directory = place.directory.join(format!("{PREFIX}{number:016x}"));
            fs::create_dir(&directory).map_err(failed)?;
            // Between the two another daemon may take it for one that is left.
            let Some(lock) = lock(&directory).filter(|_| directory.exists()) else {
                continue;
            };
            let own = Self {
                directory,
                _lock: lock,
                place,
            };
            if own.place.version == Version::Two {
                let handed = own.place.hand_out_to(&own.directory);
                handed.map_err(|error| Ungrouped::of(&own.directory, &error))?;
            }
            return Ok(own);
        }
        Err(failed(io::ErrorKind::ResourceBusy.into()))
    }
}

/// Locks a folder, where nobody has it locked.
fn lock(directory: &Path) -> Option<File> {
    let folder = pod::open(directory).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

/// Removes the groups of daemons that are gone, and in them those of commands, where they are empty.
fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_ours = number
            .is_some_and(|it| it.len() == 16 && it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let group = entry.path();
        if is_ours && let Some(_lock) = lock(&group) {
            remove_tree(&group, DEPTH);
        }
    }
}

/// Has a group of version 2 hand out its controllers, for which it must hold no process: those that it holds move into a
/// leaf. Undone where it cannot be done.
fn hand_out(place: &Place, daemon: u32) -> Result<(), Ungrouped> {
    if !place.is_handed_over() {
        return Err(Ungrouped::NotDelegated);
    }
    let directory = &place.directory;
    let failed = |error: io::Error| Ungrouped::of(directory, &error);
    // The root of the whole tree has no such file, and may hold processes.
    let is_root = !directory.join("cgroup.events").exists();
    let leaf = directory.join(LEAF);
    if !is_root {
        match fs::create_dir(&leaf) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
        move_all(directory, &leaf, Some(daemon)).map_err(failed)?;
    }
    place.hand_out_to(directory).map_err(|error| {
        if !is_root {
            move_all(&leaf, directory, None).unwrap_or_default();
            fs::remove_dir(&leaf).unwrap_or_default();
        }
        failed(error)
    })
}

/// Moves all processes of a group, and one that must be among them.
fn move_all(from: &Path, to: &Path, certain: Option<u32>) -> io::Result<()> {
    let list = to.join("cgroup.procs");
    if let Some(process) = certain {
        write(&list, &process.to_string())?;
    }
    for _ in 0..ROUNDS {
        let left = fs::read_to_string(from.join("cgroup.procs"))?;
        if left.trim().is_empty() {
            break;
        }
        for process in left.lines() {
            // It may have ended meanwhile.
            write(&list, process).unwrap_or_default();
        }
    }
    Ok(())
}

/// Opens the list by which a process of one thread joins a group.
///
/// Version 1 has one of threads, too. A thread that adds itself there is moved at once; whoever moves a process waits until
/// all processors have come by (a grace period of RCU, 10 to 20 ms), unless somebody did so just before.
pub(crate) fn joined_by(group: &Path) -> io::Result<File> {
    let open = |list| File::options().write(true).open(group.join(list));
    open("tasks").or_else(|_| open("cgroup.procs"))
}

/// Writes to a file that is there: to make one is refused here in a way that does not say that it is missing.
fn write(file: &Path, value: &str) -> io::Result<()> {
    io::Write::write_all(
        &mut File::options().write(true).open(file)?,
        value.as_bytes(),
    )
}

/// Returns which limits the processes of a command ran into, from what the kernel counted in its groups.
pub(crate) fn reached(groups: &[PathBuf]) -> Reached {
    let count = |group: &PathBuf, file: &str, name: &str| {
        let text = fs::read_to_string(group.join(file)).ok()?;
        counted(&text, name)
    };
    let mut reached = Reached::default();
    for group in groups {
        // Version 2; version 1 since Linux 4.13, and before.
        let killed = count(group, "memory.events", "oom_kill")
            .or_else(|| count(group, "memory.oom_control", "oom_kill"))
            .or_else(|| count(group, "memory.failcnt", ""));
        reached.memory |= killed.is_some_and(|times| times > 0);
        let refused = count(group, "pids.events", "max");
        reached.processes |= refused.is_some_and(|times| times > 0);
    }
    reached
}

/// The number behind a name, one in a line; without a name, the only number.
fn counted(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

impl Ungrouped {
    fn of(directory: &Path, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable(directory.to_owned())
            }
            _ => Self::Failed(format!("{}: {error}", directory.display())),
        }
    }
}

#[cfg(test)]
mod tests;
