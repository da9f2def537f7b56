//! What can be done for a command of a pod before it is known: its namespaces, the view of the file system without what
//! hides files in it, the worker with Landlock and the filters around it.
//!
//! Nothing is decided here: the daemon lets a command run in what was made ready only where it comes from the same
//! ([`Policy::surroundings`](crate::policy::Policy)), and throws it away otherwise. All that depends on the command, or on
//! files that may come and go meanwhile, is done when the command has come: placeholders, pins and masks, the folders of the
//! pod, the working directory, limits, control groups. No process of a command ever sees the view before that.
//!
//! Each of the three processes waits for the order of the one above it, and ends with that one.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::Pid;

use super::control::Order;
use super::mounts::View;
use super::raw::{self, Fork};
use super::{During, Launch, SetupError, namespaces, supervisor, worker};
use crate::layers::Step;
use crate::policy::Notice;

/// Fails where the process below has ended. The daemon has a new helper run the command then.
const HANDING_OVER: &str = "handing the command over";

/// The guard's part of it.
pub(super) struct Prepared {
    init: Pid,
    orders: UnixStream,
    left: PipeReader,
}

impl Prepared {
    /// Has the other processes begin.
    pub(super) fn begin(launch: Launch<'_>) -> Result<Self, SetupError> {
        namespaces::become_guard(launch)?;
        let (left, alone) = io::pipe().during(Step::Prepare, "making a pipe")?;
        let (orders, theirs) = UnixStream::pair().during(Step::Prepare, "making a socket")?;
        match raw::fork().during(Step::Namespaces, "starting the first process")? {
            Fork::Child => {
                // Its end is how the others hear that there is no command.
                drop((left, orders));
                if let Err(error) = init(launch, &theirs, alone) {
                    launch.control.send(&Notice::Failed(error));
                }
                // Not a return: the child must not go on as a second guard.
                std::process::exit(0);
            }
            Fork::Parent(init) => {
                drop((alone, theirs));
                super::step_aside().during(Step::Prepare, "stepping aside")?;
                Ok(Self { init, orders, left })
            }
        }
    }

    /// Has them run the command. Returns when nothing of it is left.
    pub(super) fn run(self, order: &Order, groups: &[File]) -> Result<(), SetupError> {
        let own = order.given.iter().map(AsFd::as_fd);
        let given: Vec<_> = own.chain(groups.iter().map(AsFd::as_fd)).collect();
        order
            .hand_on(&self.orders, &given)
            .during(Step::Prepare, HANDING_OVER)?;
        namespaces::until_nothing_is_left(self.init, self.left)
    }
}

fn init(launch: Launch<'_>, orders: &UnixStream, alone: PipeWriter) -> Result<(), SetupError> {
    namespaces::become_init(launch)?;
    let view = View::begin(launch.policy, launch.opened, None)?;
    let own = rustix::process::getpid();
    let (status, report) = io::pipe().during(Step::Prepare, "making the status pipe")?;
    let (starting, theirs) = UnixStream::pair().during(Step::Prepare, "making a socket")?;
    let program = match raw::fork().during(Step::Prepare, "starting the worker")? {
        Fork::Child => {
            drop((status, starting));
            let report = File::from(OwnedFd::from(report));
            worker::become_some_program(launch, own, &view, &theirs, report);
            // Not a return: the child must not go on as a second supervisor.
            std::process::exit(super::FAILED.into());
        }
        Fork::Parent(program) => program,
    };
    drop((report, theirs));
    let children = supervisor::be_ready()?;
    let Some(order) = Order::receive(orders)? else {
        return Ok(());
    };
    let task = order.task()?;
    let Some(policy) = task.policy() else {
        return Ok(());
    };
    view.finish(policy)?;
    order
        .hand_on(&starting, &order.given)
        .during(Step::Prepare, HANDING_OVER)?;
    drop((order, starting));
    supervisor::supervise(program, status, launch.control, (children, true))?;
    namespaces::say_if_alone(alone);
    Ok(())
}
