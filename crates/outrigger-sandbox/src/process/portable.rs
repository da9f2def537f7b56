//! Other systems: a process group that is killed as a whole, and no confinement unless it is asked for
//! ([`Mode::Unverified`]). Never run on a real machine, only compiled.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, ChildStdin, Command as Spawner};

use super::{Exit, Process, Purpose, SpawnError};
use crate::layers::{Layers, LimitsReport};
use crate::{Command, Mode, Pod, Shared, Stdin};

pub(super) type StdinPipe = ChildStdin;

#[derive(Debug)]
pub(super) struct Tree {
    child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

#[derive(Debug)]
pub(crate) struct State;

impl State {
    pub(crate) fn new(_helper: &Path) -> Self {
        Self
    }
}

pub(crate) async fn spawn(
    _shared: &Shared,
    command: &Command,
    _mode: Mode,
    _purpose: Purpose,
) -> Result<Process, SpawnError> {
    let mut spawner = Spawner::new(&command.program);
    spawner
        .args(&command.args)
        .current_dir(&command.cwd)
        .env_clear()
        .envs(&command.env)
        .stdin(match command.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Piped => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    spawner.process_group(0);
    let mut child = spawner.spawn().map_err(|error| SpawnError::Program {
        reason: format!("{}: {error}", command.program),
    })?;
    Ok(Process {
        stdin: child.stdin.take(),
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        layers: Layers::default(),
        tree: Tree {
            #[cfg(unix)]
            group: child
                .id()
                .and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?)),
            child,
        },
    })
}

impl Process {
    /// Waits for the program's end, and kills what it left running.
    pub async fn wait(&mut self) -> Exit {
        let status = self.tree.child.wait().await.ok();
        self.kill();
        Exit {
            code: status.and_then(|status| status.code()),
            #[cfg(unix)]
            signal: status
                .and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status)),
            #[cfg(not(unix))]
            signal: None,
            cpu_ms: 0,
            max_rss_bytes: 0,
        }
    }

    /// Returns what was changed back in a repository: nothing, on this system.
    pub fn restored(&self) -> Option<super::Restored> {
        None
    }

    /// Returns which limits it ran into: none are known, on this system.
    pub fn reached(&self) -> super::Reached {
        super::Reached::default()
    }

    /// Returns whether the folders of its pod hold too much: there are none, on this system.
    pub fn overfull(&self) -> Option<crate::Overfull> {
        None
    }

    /// Asks the group to end, where there is a way to ask.
    pub fn terminate(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    /// Kills the group; on Windows dropping the child does that.
    pub fn kill(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.tree.group {
            rustix::process::kill_process_group(group, signal).unwrap_or_default();
        }
    }
}

/// Describes a shell that exits with 7, to try with.
pub(crate) fn trial(_shared: &Shared) -> Command {
    let (shell, ends) = match cfg!(windows) {
        true => ("cmd.exe", ["/d", "/c", "exit 7"].as_slice()),
        false => ("/bin/sh", ["-c", "exit 7"].as_slice()),
    };
    Command {
        args: ends.iter().map(ToString::to_string).collect(),
        ..Command::new(shell, std::env::temp_dir())
    }
}

pub(crate) fn pod(_shared: &Shared) -> Pod {
    Pod::default()
}

#[expect(clippy::unused_async, reason = "asynchronous on Linux")]
pub(crate) async fn limits(_shared: &Shared) -> LimitsReport {
    LimitsReport::NONE
}

pub(crate) async fn try_caches(_shared: &Shared) -> Result<Vec<(PathBuf, bool)>, SpawnError> {
    Ok(Vec::new())
}

pub(crate) async fn pods_removed(_shared: &Shared) {}

pub(crate) async fn sweep(_shared: &Shared) {}

pub(crate) fn prepare_helper(_shared: &Shared) {}
