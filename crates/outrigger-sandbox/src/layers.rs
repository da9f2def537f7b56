//! The words for what is put around a command, and for where that can fail.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is in force around a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layers {
    pub(super) namespaces: bool,
    /// The version (ABI) of Landlock's rules, where they are in force.
    pub(super) landlock: Option<u8>,
    pub(super) seccomp: bool,
    pub(super) rlimits: bool,
    /// Those of [`Mode::Unverified`](crate::Mode::Unverified), by the names that are reported.
    #[serde(skip)]
    pub(super) unverified: &'static [&'static str],
}

/// What holds a command to its limits here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LimitsReport {
    /// The version of control groups in use: 1 or 2; nothing where there are none.
    pub cgroup: Option<u8>,
    /// Memory.
    pub memory: HeldBy,
    /// Processor time, in percent.
    pub cpu: HeldBy,
    /// The number of processes and threads.
    pub processes: HeldBy,
    /// The size of a file.
    pub file_size: HeldBy,
    /// Why control groups do not hold all of them that they could.
    pub ungrouped: Option<Ungrouped>,
}

impl LimitsReport {
    /// That of a command that nothing holds.
    pub const NONE: Self = Self {
        cgroup: None,
        memory: HeldBy::None,
        cpu: HeldBy::None,
        processes: HeldBy::None,
        file_size: HeldBy::None,
        ungrouped: None,
    };
}

/// What holds a command to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldBy {
    /// A control group, all its processes together.
    Cgroup,
    /// A resource limit, each of its processes by itself.
    Rlimit,
    /// A job object (Windows), all its processes together.
    Job,
    /// Nothing.
    None,
}

/// Why control groups do not hold commands, or not in all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Ungrouped {
    /// The kernel has none, or none are mounted.
    Absent,
    /// There is version 2, and no part of the tree was handed to the daemon.
    NotDelegated,
    /// The folder of the daemon's group cannot be written.
    NotWritable(PathBuf),
    /// These controllers are not in what was handed to the daemon.
    Lacks(Vec<&'static str>),
    /// Something else.
    Failed(String),
}

impl fmt::Display for Ungrouped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(formatter, "no control groups are mounted"),
            Self::NotDelegated => {
                write!(formatter, "no control group was handed to the daemon")
            }
            Self::NotWritable(group) => {
                write!(formatter, "this user may not write {}", group.display())
            }
            Self::Lacks(controllers) => write!(
                formatter,
                "the daemon's control group lacks {}",
                controllers.join(" and ")
            ),
            Self::Failed(reason) => write!(formatter, "control groups cannot be used: {reason}"),
        }
    }
}

/// Why a program did not start.
#[cfg(target_os = "linux")]
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SetupError {
    pub(super) step: Step,
    pub(super) reason: String,
}

/// Where starting a program can fail.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Step {
    Prepare,
    Identity,
    Namespaces,
    Mounts,
    Cgroup,
    Limits,
    Capabilities,
    Landlock,
    Seccomp,
    Directory,
    Execute,
}
