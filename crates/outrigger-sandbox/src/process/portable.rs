//! Other systems: a process group that is killed as a whole, and no confinement. Never run, only compiled.

use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, ChildStdin, Command as Spawner};

use super::{Exit, Process, SpawnError};
use crate::layers::Layers;
use crate::{Command, Mode, Shared, Stdin};

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

impl Tree {
    pub(super) async fn wait(&mut self) -> Exit {
        let status = self.child.wait().await.ok();
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
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

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.group {
            rustix::process::kill_process_group(group, signal).unwrap_or_default();
        }
    }

    pub(super) fn restored(&self) -> Option<super::Restored> {
        None
    }

    // Windows: dropping the child kills it, and there is nothing gentler.
    pub(super) fn terminate(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    pub(super) fn kill(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
    }
}

#[cfg(unix)]
impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn prepare_helper(_shared: &Shared) {}
