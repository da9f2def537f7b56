//! Other systems: a process group that is killed as a whole, and no confinement. Never run, only compiled.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::{Child, ChildStdin, Command as Spawner};

use super::{Exit, Process, Resources, SpawnError};
use crate::layers::Layers;
use crate::{Command, Mode, Shared, Stdin};

pub(super) type StdinPipe = ChildStdin;

#[derive(Debug)]
pub(super) struct Tree {
    child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

pub(super) async fn spawn(
    _shared: &Shared,
    command: &Command,
    _mode: Mode,
    _closed: &[PathBuf],
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
            resources: Resources::default(),
        }
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.group {
            rustix::process::kill_process_group(group, signal).unwrap_or_default();
        }
    }

    pub(super) fn restored(&self) -> Option<&super::Restored> {
        None
    }

    pub(super) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    #[cfg(unix)]
    pub(super) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    // Windows: dropping the child kills it, and there is nothing gentler.
    #[cfg(not(unix))]
    pub(super) fn terminate(&self) {}

    #[cfg(not(unix))]
    pub(super) fn kill(&self) {}
}

#[cfg(unix)]
impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Nothing can be made ready here.
pub(super) fn prepare_helper(_shared: &Shared) {}
