//! The process above the program: it starts it, listens to the daemon, and sees to it that nothing outlives it.
//!
//! The main thread reaps; a second one waits for the daemon. Both only end by ending the process.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};

use super::control::Control;
use super::raw::{self, Ended, Fork};
use super::{During, SetupError, tree, worker};
use crate::sandbox::policy::{Notice, Policy, Step, TERMINATE};

/// What belongs to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    /// Every process of the namespace whose first process this is. The kernel kills them when it ends.
    Namespace,
    /// Every descendant of this process, which is their subreaper.
    Descendants,
}

/// Runs the program to its end and reports it. Returns when nothing of it is left, or will be once this process ends.
pub(super) fn run(policy: &Policy, control: &Control, tree: Tree) -> Result<(), SetupError> {
    let own = rustix::process::getpid();
    if tree == Tree::Descendants {
        rustix::process::set_child_subreaper(Some(own))
            .during(Step::Prepare, "becoming the reaper")?;
    }
    let (status, report) = io::pipe().during(Step::Prepare, "making the status pipe")?;
    match raw::fork().during(Step::Prepare, "starting the worker")? {
        Fork::Child => {
            drop(status);
            worker::become_program(policy, own, File::from(OwnedFd::from(report)));
            // Not a return: the child must not go on as a second supervisor.
            std::process::exit(super::FAILED.into());
        }
        Fork::Parent(program) => {
            drop(report);
            supervise(program, status, control, tree)
        }
    }
}

fn supervise(
    program: Pid,
    status: PipeReader,
    control: &Control,
    tree: Tree,
) -> Result<(), SetupError> {
    release_standard_streams().during(Step::Prepare, "closing the program's output")?;
    let handle = rustix::process::pidfd_open(program, PidfdFlags::empty())
        .during(Step::Prepare, "opening the worker")?;
    let ear = control
        .duplicate()
        .during(Step::Prepare, "listening to the daemon")?;
    thread::Builder::new()
        .spawn(move || listen(&ear, &handle, tree))
        .during(Step::Prepare, "listening to the daemon")?;
    announce(status, program, control, tree)
        .during(Step::Prepare, "waiting for the program to start")?;
    let ended = reap(program, tree).during(Step::Prepare, "waiting for the program")?;
    control.send(&Notice::Exited {
        status: ended.status,
        cpu_ms: ended.cpu_ms,
        max_rss_bytes: ended.max_rss_bytes,
    });
    Ok(())
}

/// Lets go of the output: as long as this process held it, it would never end.
pub(super) fn release_standard_streams() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Passes on what the worker said until it executed the program, which closes the pipe.
fn announce(mut status: PipeReader, program: Pid, control: &Control, tree: Tree) -> io::Result<()> {
    let mut lines = Vec::new();
    status.read_to_end(&mut lines)?;
    let group = (tree == Tree::Descendants).then(|| program.as_raw_pid());
    lines.extend(super::control::line(&Notice::Started { group }));
    control.forward(&lines);
    Ok(())
}

/// Reaps until the program has ended, then makes an end of the rest.
fn reap(program: Pid, tree: Tree) -> io::Result<Ended> {
    let ended = loop {
        match raw::wait(None)? {
            Some(ended) if ended.pid == program => break ended,
            Some(_) => {}
            None => return Err(io::Error::other("the program was reaped by someone else")),
        }
    };
    if tree == Tree::Descendants {
        loop {
            tree::kill_descendants();
            if raw::wait(None)?.is_none() {
                break;
            }
            // Whatever else is dead by now needs no look of its own at the whole tree.
            while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        }
    }
    Ok(ended)
}

/// Does what the daemon asks; kills everything when it asks no more.
fn listen(control: &Control, program: &OwnedFd, tree: Tree) {
    while let Some(request) = control.request() {
        if request == TERMINATE {
            match tree {
                Tree::Namespace => signal_namespace(Signal::TERM),
                Tree::Descendants => tree::terminate_descendants(),
            }
        }
    }
    // By its handle, which cannot name another process if the program has just been reaped. The main thread then
    // wakes up and makes an end of the rest.
    rustix::process::pidfd_send_signal(program.as_fd(), Signal::KILL).unwrap_or_default();
}

/// Signals every process of the namespace but this one, its first: the kernel's meaning of `kill(-1)`.
fn signal_namespace(signal: Signal) {
    rustix::process::kill_process_group(Pid::INIT, signal).unwrap_or_default();
}
