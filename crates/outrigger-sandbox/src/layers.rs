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

/// Where starting a program can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Reading the policy and preparing the helper itself.
    Prepare,
    /// Entering new namespaces.
    Namespaces,
    /// Building the view of the file system.
    Mounts,
    /// Joining the control group.
    Cgroup,
    /// Setting resource limits.
    Limits,
    /// Dropping capabilities.
    Capabilities,
    /// Restricting the file system and TCP with Landlock.
    Landlock,
    /// Filtering system calls.
    Seccomp,
    /// Entering the working directory.
    Directory,
    /// Executing the program.
    Execute,
}
