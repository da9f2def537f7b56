//! The process above the program: it starts it, listens to the daemon, and sees to it that nothing outlives it.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::control::Control;
use super::raw::{self, Fork};
use super::worker::{self, Above};
use super::{During, Launch, SetupError, tree};
use crate::layers::Step;
use crate::policy::{Notice, TERMINATE};
use crate::{Exit, Mode};

/// Runs the program to its end and reports it. Returns when nothing of it is left, or will be once this process ends,
/// also with an error.
pub(super) fn run(launch: Launch<'_>) -> Result<(), SetupError> {
    let mut above = Above {
        supervisor: rustix::process::getpid(),
        origin: None,
    };
    let has_namespace = launch.policy.mode == Mode::Full;
    if !has_namespace {
        above.origin = Some(launch.origin);
        become_reaper(above.supervisor)?;
    }
    let (status, report) = io::pipe().during(Step::Prepare, "making the status pipe")?;
    match raw::fork().during(Step::Prepare, "starting the worker")? {
        Fork::Child => {
            drop(status);
            let report = File::from(OwnedFd::from(report));
            worker::become_program(launch, above, report);
            // Not a return: the child must not go on as a second supervisor.
            std::process::exit(super::FAILED.into());
        }
        Fork::Parent(program) => {
            drop(report);
            let outcome = be_ready().and_then(|children| {
                supervise(program, status, launch.control, (children, has_namespace))
            });
            if outcome.is_err() && !has_namespace {
                // Nobody else would, and what comes next relies on it.
                kill_what_is_left().during(Step::Prepare, "ending the program")?;
            }
            outcome
        }
    }
}

/// Has what loses its parent become a child of this process.
fn become_reaper(own: Pid) -> Result<(), SetupError> {
    match rustix::process::set_child_subreaper(Some(own)) {
        // qemu-user does not know it, nor any layer of a stronger mode than `none`: what leaves the tree is not found there.
        Err(Errno::INVAL) if raw::is_emulated() => Ok(()),
        done => done.during(Step::Prepare, "becoming the reaper"),
    }
}

/// Makes of the process that has started the worker one that only watches. Returns what tells of the ends of its children.
pub(super) fn be_ready() -> Result<OwnedFd, SetupError> {
    super::step_aside().during(Step::Prepare, "stepping aside")?;
    raw::child_signals().during(Step::Prepare, "listening to the kernel")
}

pub(super) fn supervise(
    program: Pid,
    status: PipeReader,
    control: &Control,
    (children, has_namespace): (OwnedFd, bool),
) -> Result<(), SetupError> {
    let supervisor = Supervisor {
        program,
        status: Some(status),
        control,
        is_connected: true,
        children,
        has_namespace,
    };
    let exit = supervisor
        .attend()
        .during(Step::Prepare, "waiting for the program")?;
    control.send(&Notice::Exited(exit));
    Ok(())
}

/// What the supervisor waits for, in one thread: no thread has to be started for each command, and none can miss that
/// a process id was given to somebody else.
struct Supervisor<'a> {
    program: Pid,
    /// What the worker has to say before it executes the program; nothing once that has been passed on.
    status: Option<PipeReader>,
    control: &'a Control,
    is_connected: bool,
    children: OwnedFd,
    /// Whether this is the first process of a namespace, and the kernel kills all in it when this ends. Elsewhere all
    /// are descendants of this process, which is their subreaper.
    has_namespace: bool,
}

impl Supervisor<'_> {
    /// Attends to everybody until the program has ended, then makes an end of the rest.
    fn attend(mut self) -> io::Result<Exit> {
        let exit = loop {
            let (requested, announced) = self.wait()?;
            if announced {
                self.announce()?;
            }
            if requested {
                self.handle_request();
            }
            if let Some(exit) = self.reap()? {
                break exit;
            }
        };
        self.announce()?;
        if !self.has_namespace {
            kill_what_is_left()?;
        }
        Ok(exit)
    }

    /// Waits for anything to happen; returns whether the daemon asks for something, and whether the worker is done.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut descriptors = vec![PollFd::new(&self.children, PollFlags::IN)];
        if self.is_connected {
            descriptors.push(PollFd::new(self.control, PollFlags::IN));
        }
        let status = self.status.iter();
        descriptors.extend(status.map(|status| PollFd::new(status, PollFlags::IN)));
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut descriptors, None))?;
        let mut ready = descriptors
            .iter()
            .skip(1)
            .map(|it| !it.revents().is_empty());
        let mut next_if = |expected: bool| expected && ready.next().unwrap_or_default();
        Ok((next_if(self.is_connected), next_if(self.status.is_some())))
    }

    /// Passes on what the worker said until it executed the program, which closes the pipe. Once.
    fn announce(&mut self) -> io::Result<()> {
        let Some(mut status) = self.status.take() else {
            return Ok(());
        };
        let mut lines = Vec::new();
        status.read_to_end(&mut lines)?;
        let group = (!self.has_namespace).then(|| self.program.as_raw_pid());
        lines.extend(super::control::line(&Notice::Started { group }));
        self.control.forward(&lines);
        Ok(())
    }

    /// Does what the daemon asks; makes an end of everything when it asks no more.
    fn handle_request(&mut self) {
        match self.control.request() {
            // Every process of the namespace but this one, its first: the kernel's meaning of `kill(-1)`.
            Some(TERMINATE) if self.has_namespace => {
                rustix::process::kill_process_group(Pid::INIT, Signal::TERM).unwrap_or_default();
            }
            Some(TERMINATE) => tree::terminate_descendants(),
            Some(_) => {}
            None => {
                self.is_connected = false;
                match self.has_namespace {
                    true => rustix::process::kill_process(self.program, Signal::KILL)
                        .unwrap_or_default(),
                    // All at once, while each has its parent: under qemu-user no orphan becomes a child of this process.
                    false => tree::kill_descendants(),
                }
            }
        }
    }

    /// Takes in all children that have ended: the program, or orphans that became ours.
    fn reap(&self) -> io::Result<Option<Exit>> {
        // One read takes all that is pending: the signals of many children are one.
        let mut signal = [0_u8; 128];
        match rustix::io::read(&self.children, &mut signal) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some((process, exit)) = raw::wait(None, false)? {
            if process == self.program {
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }
}

fn kill_what_is_left() -> io::Result<()> {
    loop {
        tree::kill_descendants();
        if raw::wait(None, true)?.is_none() {
            return Ok(());
        }
        // Whatever else is dead by now needs no look of its own at the whole tree.
        while raw::wait(None, false)?.is_some() {}
    }
}
