//! The process that becomes the program: it puts the layers around itself, then executes.
//!
//! The order matters: the system call filter comes last, and rights are dropped before Landlock and seccomp, which need
//! `no_new_privs` for that.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::control::{Order, line};
use super::mounts::View;
use super::opened::Opened;
use super::seccomp::Spared;
use super::zygote::Origin;
use super::{During, Launch, SetupError, landlock, limits, raw, seccomp};
use crate::Mode;
use crate::layers::{Layers, Step};
use crate::policy::{Notice, Policy};

/// The processes above the program, on which its end depends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Above {
    pub(super) supervisor: Pid,
    /// The daemon and the zygote; `None` in a namespace of the command's own, where they have no numbers.
    pub(super) origin: Option<Origin>,
}

impl Above {
    /// Whom the program must not send signals to. Process 1 is one of them: in a container its end is the daemon's.
    fn spared(self) -> Spared {
        let zygote = self.origin.map(|it| it.zygote);
        let above = [
            Some(Pid::INIT),
            Some(self.supervisor),
            zygote,
            self.daemon(),
        ];
        Spared::of(above.into_iter().flatten())
    }

    fn daemon(self) -> Option<Pid> {
        self.origin.and_then(|it| it.daemon)
    }
}

/// Becomes the program. Returns only when that failed; until then everything is said through `status`, which the
/// execution closes.
pub(super) fn become_program(launch: Launch<'_>, above: Above, mut status: File) {
    let mut send = |notice: Notice| status.write_all(&line(&notice)).unwrap_or_default();
    let failure = match confine(launch, above) {
        Ok(_) if !is_let_through(launch.gate) => return,
        Ok(layers) => {
            send(Notice::Confined(layers));
            execute(launch.policy)
        }
        Err(error) => error,
    };
    send(Notice::Failed(failure));
}

/// The same for a command that is not known yet: confines itself, then waits on `orders` for it. Ends without a word where
/// there will be none.
pub(super) fn become_some_program(
    launch: Launch<'_>,
    supervisor: Pid,
    view: &View,
    orders: &UnixStream,
    mut status: File,
) {
    let failure = prepare(launch, supervisor, view).and_then(|layers| {
        let Some(order) = Order::receive(orders)? else {
            return Ok(None);
        };
        let task = order.task()?;
        let mut given = order.given.into_iter();
        let gate = task.waits.then(|| given.next()).flatten();
        let groups: Vec<_> = given.map(File::from).collect();
        let Some(policy) = task.policy() else {
            return Ok(None);
        };
        enter(policy, launch.opened).during(Step::Directory, policy.command.cwd.display())?;
        join(&groups)?;
        limits::apply(&policy.command.limits, policy.mode)
            .during(Step::Limits, "setting resource limits")?;
        give_up_capabilities().during(Step::Capabilities, "dropping capabilities")?;
        if !is_let_through(gate.as_ref()) {
            return Ok(None);
        }
        status
            .write_all(&line(&Notice::Confined(layers)))
            .unwrap_or_default();
        Ok(Some(execute(policy)))
    });
    if let Some(failure) = failure.unwrap_or_else(Some) {
        status
            .write_all(&line(&Notice::Failed(failure)))
            .unwrap_or_default();
    }
}

/// Waits at the gate, where there is one. False where the daemon wants the program to run no more, or is gone.
///
/// Nothing is said through the status before: the supervisor waits for the end of that, and would hear nothing else.
fn is_let_through(gate: Option<&OwnedFd>) -> bool {
    let mut word = [0];
    let mut read = |gate| retry_on_intr(|| rustix::io::read(gate, &mut word));
    gate.is_none_or(|gate| read(gate) == Ok(1))
}

/// Puts on what can be before there is a command. Capabilities are given up with the rest of it: until then they let this
/// process enter a folder.
fn prepare(launch: Launch<'_>, supervisor: Pid, view: &View) -> Result<Layers, SetupError> {
    let Launch { policy, opened, .. } = launch;
    begin(supervisor)?;
    bound_capabilities().during(Step::Capabilities, "dropping capabilities")?;
    rustix::thread::set_no_new_privs(true).during(Step::Capabilities, "setting no_new_privs")?;
    let to_come: Vec<_> = view.to_come().collect();
    let landlock = Some(landlock::restrict(policy, opened, &to_come)?);
    if let Some(calls) = launch.calls {
        seccomp::stop_at(&policy.stops, calls)?;
    }
    Ok(Layers {
        namespaces: true,
        landlock,
        seccomp: seccomp::restrict(policy, landlock, &Spared::default())?,
        rlimits: true,
        unverified: &[],
    })
}

fn begin(supervisor: Pid) -> Result<(), SetupError> {
    die_with(supervisor)?;
    // Away from the daemon's terminal, and into a group in which `kill 0` spares the supervisor.
    rustix::process::setsid().during(Step::Prepare, "starting a session")?;
    raw::set_signals_blocked(false).during(Step::Prepare, "unblocking signals")
}

fn join(groups: &[File]) -> Result<(), SetupError> {
    for mut group in groups {
        // This process, and so all it starts.
        let joined = group.write_all(b"0");
        joined.during(Step::Cgroup, "joining the control group")?;
    }
    Ok(())
}

fn confine(launch: Launch<'_>, above: Above) -> Result<Layers, SetupError> {
    let Launch {
        policy,
        opened,
        groups,
        ..
    } = launch;
    begin(above.supervisor)?;
    enter(policy, opened).during(Step::Directory, policy.command.cwd.display())?;
    if policy.mode < Mode::Full {
        limits::give_way().during(Step::Prepare, "giving way")?;
    }
    if policy.mode == Mode::None {
        return spare_first_process(policy, above);
    }
    join(groups)?;
    limits::apply(&policy.command.limits, policy.mode)
        .during(Step::Limits, "setting resource limits")?;
    bound_capabilities()
        .and_then(|()| give_up_capabilities())
        .during(Step::Capabilities, "dropping capabilities")?;
    rustix::thread::set_no_new_privs(true).during(Step::Capabilities, "setting no_new_privs")?;
    // Read while the daemon's part of `/proc` may be.
    let spared = match policy.mode {
        Mode::Full => Spared::default(),
        _ => above.spared(),
    };
    let landlock = match policy.mode >= Mode::Fallback {
        true => Some(landlock::restrict(policy, opened, &[])?),
        false => None,
    };
    if let Some(calls) = launch.calls {
        seccomp::stop_at(&policy.stops, calls)?;
    }
    let seccomp = seccomp::restrict(policy, landlock, &spared)?;
    Ok(Layers {
        namespaces: policy.mode == Mode::Full,
        landlock,
        seccomp,
        rlimits: true,
        unverified: &[],
    })
}

/// Keeps signals from a daemon that is process 1, as it is in a container: its end is the container's. Elsewhere a
/// command without a sandbox may do what its user may, `sudo` too, which the filter would rule out.
fn spare_first_process(policy: &Policy, above: Above) -> Result<Layers, SetupError> {
    if above.daemon() != Some(Pid::INIT) {
        return Ok(Layers::default());
    }
    rustix::thread::set_no_new_privs(true).during(Step::Capabilities, "setting no_new_privs")?;
    Ok(Layers {
        seccomp: seccomp::restrict(policy, None, &above.spared())?,
        ..Layers::default()
    })
}

/// Enters the working directory: by its path where the view of the file system was made of what is open.
fn enter(policy: &Policy, opened: &Opened) -> rustix::io::Result<()> {
    match opened.get(&policy.command.cwd) {
        Some(directory) if policy.mode < Mode::Full => rustix::process::fchdir(directory),
        Some(_) | None => rustix::process::chdir(&policy.command.cwd),
    }
}

/// Dies when the supervisor does, and at once if it is dead already.
fn die_with(parent: Pid) -> Result<(), SetupError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .during(Step::Prepare, "tying the program to its supervisor")?;
    if rustix::process::getppid() != Some(parent) {
        let reason = "it has ended already";
        return Err(SetupError::new(Step::Prepare, "supervisor", reason));
    }
    Ok(())
}

/// Keeps this process from ever getting a capability that it has not. Only one that holds `CAP_SETPCAP` can lower the
/// bounding set; for the others `no_new_privs` keeps it from being of use.
fn bound_capabilities() -> rustix::io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    if rustix::thread::capabilities(None)?
        .effective
        .contains(CapabilitySet::SETPCAP)
    {
        for bit in 0..u64::BITS {
            let capability = CapabilitySet::from_bits_retain(1 << bit);
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                Ok(()) => {}
                // The first number this kernel does not know.
                Err(rustix::io::Errno::INVAL) => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn give_up_capabilities() -> rustix::io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none)
}

fn execute(policy: &Policy) -> SetupError {
    let error = Command::new(&policy.command.program)
        .args(&policy.command.args)
        .env_clear()
        .envs(&policy.command.env)
        .exec();
    SetupError::new(Step::Execute, &policy.command.program, error)
}
