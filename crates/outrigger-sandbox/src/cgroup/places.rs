//! Where the daemon's group is in each tree, and what a command's group is given there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Controller, LEAF, PERIOD_US, Version, write};
use crate::Limits;

/// What systemd sets on a group it has handed over; the first for users, the second for the system.
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// A group in which groups are made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) version: Version,
    pub(super) directory: PathBuf,
    pub(super) controllers: Vec<Controller>,
    /// Whether it is the top of what can be seen of the tree: in a container, the container's.
    pub(super) is_top: bool,
}

/// A file of a group, and what is written to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    file: &'static str,
    value: String,
    /// What may stand in its way.
    pardoned: Option<io::ErrorKind>,
}

impl Setting {
    fn new(file: &'static str, value: String) -> Self {
        Self {
            file,
            value,
            pardoned: None,
        }
    }

    fn pardon(mut self, kind: io::ErrorKind) -> Self {
        self.pardoned = Some(kind);
        self
    }

    pub(super) fn apply(&self, group: &Path) -> io::Result<()> {
        match write(&group.join(self.file), &self.value) {
            Err(error) if Some(error.kind()) != self.pardoned => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns the daemon's groups, version 2 first, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub(super) fn places(own: &str, mounts: &str) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(names), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let version = match names {
            "" => Version::Two,
            _ => Version::One,
        };
        let named = |it: &Controller| names.split(',').any(|name| name == it.name());
        let controllers: Vec<_> = Controller::ALL.into_iter().filter(named).collect();
        if version == Version::One && controllers.is_empty() {
            continue;
        }
        let Some((directory, is_top)) = directory(names, Path::new(path), mounts) else {
            continue;
        };
        match version {
            Version::Two => found.insert(0, Place::second(directory, is_top)),
            Version::One => found.push(Place {
                version,
                directory,
                controllers,
                is_top,
            }),
        }
    }
    found
}

/// Where a group is in the file system, and whether it is the top of what is mounted.
fn directory(names: &str, path: &Path, mounts: &str) -> Option<(PathBuf, bool)> {
    mounts.lines().find_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let mut source = source.split(' ');
        let (kind, options) = (source.next()?, source.nth(1)?);
        let is_it = match names {
            "" => kind == "cgroup2",
            _ => {
                let mut names = names.split(',');
                kind == "cgroup" && names.all(|name| options.split(',').any(|it| it == name))
            }
        };
        if !is_it {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        let below = path.strip_prefix(root).ok()?;
        // Joined to nothing, a path gets a slash at its end.
        Some(match below.as_os_str().is_empty() {
            true => (PathBuf::from(place), true),
            false => (Path::new(place).join(below), false),
        })
    })
}

impl Place {
    /// That of version 2. Whoever is in the leaf of a daemon is in its group.
    fn second(directory: PathBuf, is_top: bool) -> Self {
        let (directory, is_top) = match directory.parent() {
            Some(parent) if directory.ends_with(LEAF) => {
                let is_top = !parent.join("../cgroup.procs").exists();
                (parent.to_owned(), is_top)
            }
            _ => (directory, is_top),
        };
        let offered = fs::read_to_string(directory.join("cgroup.controllers")).unwrap_or_default();
        let is_offered = |it: &Controller| offered.split_whitespace().any(|one| one == it.name());
        Self {
            version: Version::Two,
            controllers: Controller::ALL.into_iter().filter(is_offered).collect(),
            directory,
            is_top,
        }
    }

    pub(super) fn has(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
    }

    pub(super) fn only(mut self, wanted: impl FnMut(&Controller) -> bool) -> Self {
        self.controllers.retain(wanted);
        self
    }

    /// Whether a group of version 2 is the daemon's to divide.
    pub(super) fn is_handed_over(&self) -> bool {
        let is_marked = |mark: &&str| {
            let mut value = [0_u8; 8];
            rustix::fs::getxattr(&self.directory, *mark, &mut value)
                .is_ok_and(|length| value.get(..length) == Some(b"1"))
        };
        self.is_top || MARKS.iter().any(is_marked)
    }

    /// Has a group of version 2 give the controllers to the groups in it.
    pub(super) fn hand_out_to(&self, directory: &Path) -> io::Result<()> {
        let names: Vec<_> = self.controllers.iter().map(|it| it.name()).collect();
        let text = format!("+{}", names.join(" +"));
        write(&directory.join("cgroup.subtree_control"), &text)
    }

    /// Returns what a command's group is given; nothing where there is nothing that it would bound.
    pub(super) fn settings(&self, limits: &Limits) -> Vec<Setting> {
        let mut settings = Vec::new();
        for controller in &self.controllers {
            match (controller, self.version) {
                (Controller::Memory, Version::Two) => settings.extend([
                    Setting::new("memory.max", limits.total_memory().to_string()),
                    // Without swap to count there is no such file, nor the one below.
                    Setting::new("memory.swap.max", "0".to_owned()).pardon(io::ErrorKind::NotFound),
                ]),
                (Controller::Memory, Version::One) => settings.extend([
                    Setting::new("memory.limit_in_bytes", limits.total_memory().to_string()),
                    Setting::new(
                        "memory.memsw.limit_in_bytes",
                        limits.total_memory().to_string(),
                    )
                    .pardon(io::ErrorKind::NotFound),
                ]),
                (Controller::Pids, _) => {
                    let processes = limits.processes.iter();
                    settings
                        .extend(processes.map(|most| Setting::new("pids.max", most.to_string())));
                }
                (Controller::Cpu, version) => {
                    let quota = limits
                        .cpu_percent
                        .map(|it| it.saturating_mul(PERIOD_US) / 100);
                    settings.extend(quota.map(|quota| {
                        match version {
                            Version::Two => Setting::new("cpu.max", format!("{quota} {PERIOD_US}")),
                            // More than the groups around it have, whose limit holds then.
                            Version::One => Setting::new("cpu.cfs_quota_us", quota.to_string())
                                .pardon(io::ErrorKind::InvalidInput),
                        }
                    }));
                }
            }
        }
        settings
    }
}
