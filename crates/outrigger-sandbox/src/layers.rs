//! The words for what is put around a command, and for where that can fail.

use serde::{Deserialize, Serialize};

/// What is in force around a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Layers {
    pub(super) namespaces: bool,
    /// The version (ABI) of Landlock's rules, where they are in force.
    pub(super) landlock: Option<u8>,
    pub(super) seccomp: bool,
    pub(super) rlimits: bool,
    pub(super) cgroup: bool,
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
