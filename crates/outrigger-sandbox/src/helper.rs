//! The other side of the sandbox: a fork of this program's first moment, or the program executed again as
//! `outrigger __sandbox-exec`.
//!
//! A small, single-threaded process may do what the daemon's own child after a fork may not (allocate, open,
//! report), and starting it costs the same however big the daemon is. There is one, the zygote, which takes
//! orders from no one but its parent; each helper is a fork of it, takes its policy from a socket of its own, and then
//! plays one of three parts:
//!
//! ```text
//! daemon ── zygote ── guard ── init (pid 1 of the namespace) ── worker -> exec     full
//! daemon ── zygote ── supervisor (subreaper) ── worker -> exec                     fallback, limits, none
//! ```
//!
//! In full mode all three may be there before the command is known (`prepared`). Where it is not known yet that the program may
//! begin, the worker does all but the execution, and then waits at a pipe of the daemon's, its gate.
//!
//! Read `worker` for the layers, `supervisor` for how the tree ends, `namespaces` for the full mode.

mod control;
mod identity;
mod landlock;
mod limits;
mod mounts;
mod namespaces;
mod opened;
mod overlays;
mod placeholders;
pub(crate) mod places;
mod prepared;
pub(crate) mod raw;
mod seccomp;
mod supervisor;
mod tree;
mod worker;
mod zygote;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;

use rustix::process::DumpableBehavior;

use self::control::{Control, Order};
use self::identity::Identity;
use self::namespaces::Pod;
use self::opened::Opened;
use self::placeholders::Placeholders;
use self::zygote::Origin;
pub use self::zygote::{Split, Zygote, split};
use super::layers::{SetupError, Step};
use super::policy::{Cleanup, Notice, Policy, Work};
use super::process::Reached;
use super::{Mode, Stdin, cgroup};

/// Exit code of a helper that could not do its work; what went wrong is in the notice it sent.
const FAILED: u8 = 126;

impl SetupError {
    fn new(step: Step, doing: impl fmt::Display, source: impl fmt::Display) -> Self {
        Self {
            step,
            reason: format!("{doing}: {source}"),
        }
    }
}

trait During<T> {
    fn during(self, step: Step, doing: impl fmt::Display) -> Result<T, SetupError>;
}

impl<T, E: fmt::Display> During<T> for Result<T, E> {
    fn during(self, step: Step, doing: impl fmt::Display) -> Result<T, SetupError> {
        self.map_err(|source| SetupError::new(step, doing, source))
    }
}

/// Runs the zygote, and in its forks the helpers. To be called first thing in `main`, while the process has one thread.
///
/// The exit code means nothing to the daemon, which listens to the notices instead.
pub fn main() -> ExitCode {
    match zygote::serve() {
        Ok(Some((control, origin))) => help(&control, origin),
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            // The one place where there is nobody else to tell: a person ran the helper by hand.
            report_to_terminal(&error);
            ExitCode::from(FAILED)
        }
    }
}

fn help(control: &Control, origin: Origin) -> ExitCode {
    let (task, mut descriptors) = match control.receive() {
        Ok(received) => received,
        Err(error) => {
            control.send(&Notice::Failed(error));
            return ExitCode::from(FAILED);
        }
    };
    let policy = task.policy();
    let input = match policy.map(|policy| policy.command.stdin) {
        Some(Stdin::Piped) => descriptors.next(),
        Some(Stdin::Null) | None => None,
    };
    let pod = task.pod();
    let pod = pod.map(|pod| Pod::receive(&mut descriptors, pod.has_mounts));
    let pod = pod.transpose();
    let stops = policy.is_some_and(|policy| !policy.stops.is_empty());
    let calls = stops.then(|| descriptors.next()).flatten();
    let places = policy.map(|policy| policy.places.clone());
    let received = Opened::receive(places.unwrap_or_default(), &mut descriptors)
        .during(Step::Prepare, "receiving the folders of the command");
    let gate = task.waits.then(|| descriptors.next()).flatten();
    let mut placeholders = Placeholders::default();
    let mut cleanup = task.cleanup;
    let outcome = received.and_then(|opened| {
        let pod = pod.during(Step::Prepare, "receiving the namespaces of the pod")?;
        let mut take = |cleanup: &Cleanup| {
            let taken = Placeholders::take(&cleanup.placeholders, &opened);
            placeholders = taken.during(
                Step::Prepare,
                "keeping names that git reads from the command",
            )?;
            open_groups(cleanup)
        };
        let groups = take(&cleanup)?;
        let launch = |policy| Launch {
            policy,
            opened: &opened,
            identity: None,
            pod: pod.as_ref(),
            calls: calls.as_ref(),
            gate: gate.as_ref(),
            control,
            origin,
            groups: &groups,
        };
        match &task.work {
            Work::Command(policy) => {
                if let Some(pipe) = input {
                    // Only the worker needs it.
                    rustix::stdio::dup2_stdin(pipe).during(Step::Prepare, "taking the input")?;
                }
                let identity = identity(policy, &opened)?;
                run(Launch {
                    identity: identity.as_ref(),
                    ..launch(policy)
                })
            }
            Work::Prepare(policy) => {
                let prepared = prepared::Prepared::begin(launch(policy))?;
                let Some(order) = Order::receive(control)? else {
                    // Nobody needs it any more.
                    return Ok(());
                };
                cleanup = order.task()?.cleanup;
                let groups = take(&cleanup)?;
                prepared.run(&order, &groups)
            }
            Work::Pod { overlays, outside } => Pod::make(control, overlays, *outside),
            Work::BeginPod => {
                Pod::begin(control)?;
                let order = Order::receive(control)?;
                let task = order.map(|order| order.task()).transpose()?;
                match task.map(|task| task.work) {
                    Some(Work::Pod { overlays, .. }) => Pod::add_overlays(control, &overlays),
                    // There are none, or nobody needs the pod.
                    _ => Ok(()),
                }
            }
            Work::Sockets { loopback, .. } => {
                pod.map_or(Ok(()), |pod| pod.send_sockets(*loopback, control))
            }
            Work::Cleanup => Ok(()),
        }
    });
    let code = match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            control.send(&Notice::Failed(error));
            ExitCode::from(FAILED)
        }
    };
    placeholders.release();
    let reached = cgroup::reached(&cleanup.cgroups);
    if reached != Reached::default() {
        control.send(&Notice::Reached(reached));
    }
    // As a rule nothing was put into it, and nobody has to wait for what comes next.
    let is_tidy = cleanup.has_empty_tmp();
    control.send(&Notice::Dead { is_tidy });
    // What may still be about to end.
    raw::wait(None, true).map_or_else(drop, drop);
    clean_up(&cleanup);
    code
}

/// Opens the lists by which the command's control groups are joined, before the view of the file system changes; the worker
/// alone joins them, so that they can be removed here.
fn open_groups(cleanup: &Cleanup) -> Result<Vec<File>, SetupError> {
    let open = |group: &PathBuf| cgroup::joined_by(group).during(Step::Cgroup, group.display());
    cleanup.cgroups.iter().map(open).collect()
}

#[derive(Clone, Copy)]
struct Launch<'a> {
    policy: &'a Policy,
    opened: &'a Opened,
    /// Whom it is to be, if not the daemon's user.
    identity: Option<&'a Identity>,
    /// Where it lives, if not in namespaces of its own.
    pod: Option<&'a Pod>,
    /// Who is told of its calls at which it is stopped.
    calls: Option<&'a OwnedFd>,
    /// Where the program waits before it runs.
    gate: Option<&'a OwnedFd>,
    control: &'a Control,
    origin: Origin,
    /// The lists by which its control groups are joined.
    groups: &'a [File],
}

/// Prepares another user for the command, where it is to be one.
fn identity(policy: &Policy, opened: &Opened) -> Result<Option<Identity>, SetupError> {
    let Some(outside) = policy.outside else {
        return Ok(None);
    };
    let mut identity = Identity::prepare(outside)?;
    identity.mount(policy, opened)?;
    Identity::give_pipes(outside)?;
    Ok(Some(identity))
}

fn run(launch: Launch<'_>) -> Result<(), SetupError> {
    match launch.policy.mode {
        Mode::Full => namespaces::guard(launch),
        Mode::Fallback | Mode::Limits | Mode::Unverified | Mode::None => supervisor::run(launch),
    }
}

fn clean_up(cleanup: &Cleanup) {
    if let Some(directory) = &cleanup.private_tmp {
        crate::removal::remove(directory);
    }
    // Empty by now.
    cgroup::remove(&cleanup.cgroups);
}

/// Does something with files of this process in `/proc`. They belong to root while it is not dumpable, and no helper is;
/// the view of the file system that comes later has a `/proc` that is not written to.
fn as_dumpable(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let done = work();
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    done
}

/// Makes of a process that has started its child one that only watches: it lets go of the output, which would never
/// end as long as it held it, and goes into a session of its own.
///
/// Its own, not the program's: sessions are what the scheduler shares the processor among, and in the program's the one
/// that has to kill a fork storm would wait in line behind all of it.
fn step_aside() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    rustix::process::setsid()?;
    Ok(())
}

#[expect(
    clippy::print_stderr,
    reason = "no daemon is connected, so the terminal is the only reader"
)]
fn report_to_terminal(error: &SetupError) {
    eprintln!("outrigger sandbox helper: {}", error.reason);
}
