//! A command that runs: its pipes, its end, and the means to end it.

#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(target_os = "linux")]
pub(super) mod supervised;

#[cfg(not(target_os = "linux"))]
use portable as platform;
#[cfg(target_os = "linux")]
use supervised as platform;

use std::io;
use std::path::PathBuf;

use tokio::process::{ChildStderr, ChildStdout};

use super::layers::Layers;
use super::{Command, Mode, Shared, Step};

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
    #[error("cannot confine the command ({step:?}): {reason}")]
    Refused {
        /// The step that failed.
        step: Step,
        /// What it was doing and the system's word for it.
        reason: String,
    },
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
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it, if one did. SIGSYS (31) is a forbidden system call of a foreign architecture.
    pub signal: Option<i32>,
    /// What it and the processes it waited for used.
    pub resources: Resources,
}

/// What a command used; zeroes where the platform does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// Processor time in milliseconds.
    pub cpu_ms: u64,
    /// Most memory resident at once in one of its processes, in bytes.
    pub max_rss_bytes: u64,
}

/// What a command changed of what git runs, and what of that was changed back after its end. Where nothing can be
/// mounted; in [`Mode::Full`] nothing can be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Paths below their root, the first few.
    pub paths: Vec<String>,
    /// What could not be changed back, the first of it, and why.
    pub failure: Option<String>,
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
    layers: Layers,
    tree: platform::Tree,
}

impl Process {
    /// Waits for the end of the program and the death of all it left running. Does not wait for the end of its output.
    ///
    /// Cancel-safe; gives the same answer when called again.
    pub async fn wait(&mut self) -> Exit {
        self.tree.wait().await
    }

    /// Waits for the end of the program, not for what it left running.
    #[cfg(target_os = "linux")]
    pub(super) async fn exited(&mut self) -> Exit {
        self.tree.exited().await
    }

    /// Returns what was changed back in a repository; known once [`Process::wait`] has returned.
    pub fn restored(&self) -> Option<&Restored> {
        self.tree.restored()
    }

    /// Asks every process of the command to end (SIGTERM).
    pub fn terminate(&self) {
        self.tree.terminate();
    }

    /// Kills every process of the command, those that left its session too.
    pub fn kill(&self) {
        self.tree.kill();
    }

    pub(super) fn layers(&self) -> Layers {
        self.layers
    }
}

/// Starts a command in the given mode, from which the `closed` paths are hidden besides its own.
pub(super) async fn spawn(
    shared: &Shared,
    command: &Command,
    mode: Mode,
    closed: &[PathBuf],
) -> Result<Process, SpawnError> {
    platform::spawn(shared, command, mode, closed).await
}

/// Makes ready for a command that comes soon; costs nothing that anybody waits for.
pub(super) fn prepare_helper(shared: &Shared) {
    platform::prepare_helper(shared);
}
