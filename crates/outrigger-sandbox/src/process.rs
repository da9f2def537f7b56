//! A command that runs: its pipes, its end, and the means to end it.

#[cfg(all(unix, any(not(target_os = "linux"), test)))]
mod leader;
#[cfg(all(unix, any(not(target_os = "linux"), test)))]
pub(super) mod lifeline;
#[cfg(all(unix, not(target_os = "linux")))]
mod portable;
#[cfg(target_os = "linux")]
pub(super) mod supervised;
#[cfg(windows)]
mod windows;
#[cfg(not(target_os = "linux"))]
mod without;

#[cfg(not(target_os = "linux"))]
pub(super) use platform::trial;

#[cfg(all(unix, not(target_os = "linux")))]
use portable as platform;
#[cfg(target_os = "linux")]
use supervised as platform;
#[cfg(windows)]
use windows as platform;

#[cfg(target_os = "linux")]
use supervised as on_linux;
#[cfg(not(target_os = "linux"))]
use without as on_linux;

pub use on_linux::Zygote;
pub(super) use on_linux::{State, pod, pods_removed, prepare_helper, sweep, try_users};
pub(super) use platform::{limits, spawn};

use std::future::ready;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio::process::{ChildStderr, ChildStdout};

use super::layers::Layers;
#[cfg(target_os = "linux")]
use super::layers::Step;
use super::{Command, Mode, Shared};

/// Writes to the standard input of a command.
pub type StdinPipe = platform::StdinPipe;

/// Why a command did not start. Nothing of it runs.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program could not be executed: not found, not executable, or its arguments too long.
    #[error("cannot run {reason}")]
    Program {
        /// The program and the system's word for it.
        reason: String,
    },
    /// The sandbox could not be put in place.
    #[error("cannot confine the command {0}")]
    Refused(String),
    /// A folder that the daemon holds is not at its path any more, so that nothing may be run there.
    #[error(
        "not run: {0:?} is no longer the folder that was opened when the daemon started, it was moved or replaced; file tools still work in the one that was opened; move it back, or start the daemon again"
    )]
    Moved(PathBuf),
    /// The helper process could not be started, or ended without a word.
    #[error("cannot start the sandbox helper: {0}")]
    Helper(#[source] io::Error),
    /// The command cannot be handed over.
    #[error("cannot describe the command to the sandbox helper: {0}")]
    Command(String),
    /// It may not begin after all.
    #[error("not run: nobody wants it any more")]
    Unwanted,
}

/// What a command is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// For what it does.
    Run,
    /// To find out what works. It reads nothing, so root's files need not be hidden; and it joins no control group, which
    /// takes 14 ms where nothing did lately.
    Probe,
}

/// Starts a command to find out what works.
pub(crate) async fn probe(
    shared: &Shared,
    command: &Command,
    mode: Mode,
) -> Result<Process, SpawnError> {
    spawn(shared, command, mode, Purpose::Probe, ready(true)).await
}

impl SpawnError {
    #[cfg(target_os = "linux")]
    pub(crate) fn refused(step: Step, reason: impl std::fmt::Display) -> Self {
        Self::Refused(format!("({step:?}): {reason}"))
    }
}

/// How a command ended, and what it and the processes it waited for used: zeroes where the platform does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it, if one did. SIGSYS (31) is a forbidden system call of a foreign architecture.
    pub signal: Option<i32>,
    /// Processor time in milliseconds.
    pub cpu_ms: u64,
    /// Most memory resident at once in one of its processes, in bytes.
    pub max_rss_bytes: u64,
}

impl Exit {
    /// That of a command whose end nobody reported.
    #[cfg(target_os = "linux")]
    const KILLED: Self = Self {
        code: None,
        signal: Some(rustix::process::Signal::KILL.as_raw()),
        cpu_ms: 0,
        max_rss_bytes: 0,
    };
}

/// What a command changed of what git runs, and what of that was changed back after its end. Where nothing can be
/// mounted; in [`crate::Mode::Full`] nothing can be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Paths below their root, the first few.
    pub paths: Vec<String>,
    /// What could not be changed back, the first of it, and why.
    pub failure: Option<String>,
}

/// Which of its limits a command ran into, as far as a control group counted that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The kernel killed at least one of its processes: together they had all the memory they may have.
    pub memory: bool,
    /// No further process or thread was started.
    pub processes: bool,
}

/// A running command. Dropping it kills every process of it.
#[derive(Debug)]
pub struct Process {
    /// The write end of its standard input, when the command asked for one.
    pub stdin: Option<StdinPipe>,
    /// Its standard output.
    pub stdout: Option<ChildStdout>,
    /// Its standard error.
    pub stderr: Option<ChildStderr>,
    pub(super) layers: Layers,
    tree: platform::Tree,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
