//! The first process of a command, and the group that it leads.
//!
//! The group's number is that process's own: when it is reaped, both may be given to somebody else. So one owner has both, and
//! there is one order: it has ended and is not reaped, the group is killed, whoever has noted the number is told to forget it, it
//! is reaped.

use std::fmt::Debug;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{self, SignalKind};

/// Whoever notes which groups there are.
pub(crate) trait Register: Debug + Send + Sync {
    /// There is such a group from now on.
    fn add(&self, group: Pid);
    /// There is none any more. When this returns, its number may become another one's.
    fn remove(&self, group: Pid);
}

/// The owner. Where it is dropped, the group is killed.
#[derive(Debug)]
pub(crate) struct Leader {
    /// `None` once the process may be reaped.
    group: Option<Pid>,
    child: Child,
    register: Arc<dyn Register>,
    /// Says that a child of the daemon's has ended.
    ended: unix::Signal,
}

pub(crate) type Pipes = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);

impl Leader {
    /// Starts a program in a group of its own.
    pub(crate) fn start(program: &mut Command, register: Arc<dyn Register>) -> io::Result<Self> {
        // Before the program, so that its end is not missed.
        let ended = unix::signal(SignalKind::child())?;
        let child = program.process_group(0).kill_on_drop(true).spawn()?;
        let number = child.id().and_then(|number| number.try_into().ok());
        let group = number.and_then(Pid::from_raw);
        group.inspect(|group| register.add(*group));
        Ok(Self {
            group,
            child,
            register,
            ended,
        })
    }

    /// Takes the daemon's ends of its pipes.
    pub(crate) fn pipes(&mut self) -> Pipes {
        let child = &mut self.child;
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    }

    /// Sends the group a signal, as long as it is known to be there.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Fails only where there is nobody any more.
            kill_process_group(group, signal).unwrap_or_default();
        }
    }

    /// Waits for the end of the first process, and kills what it left in its group.
    ///
    /// Cancel-safe; gives the same answer when called again.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        while self.group.is_some_and(|group| !has_ended(group)) {
            self.ended.recv().await;
        }
        self.let_go();
        self.child.wait().await
    }

    fn let_go(&mut self) {
        self.signal(Signal::KILL);
        if let Some(group) = self.group.take() {
            self.register.remove(group);
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        // The process is reaped after this, when its fields are dropped.
        self.let_go();
    }
}

/// Returns whether a child has ended, and leaves it to be reaped.
fn has_ended(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // It fails where there is no such child, for whatever reason: then there is nothing to wait for.
    waitid(WaitId::Pid(child), options).map_or(true, |ended| ended.is_some())
}

#[cfg(test)]
mod tests;
