//! Full mode: the command lives in namespaces of its own.
//!
//! The guard stays outside of them; its child is process 1 and supervises the program. When that ends, for whatever
//! reason, the kernel kills every process in there.

use std::fs;
use std::io;

use rustix::process::{DumpableBehavior, Signal};
use rustix::thread::UnshareFlags;

use super::raw::{self, Fork};
use super::{During, Launch, SetupError, limits, mounts, supervisor};
use crate::Network;
use crate::layers::Step;
use crate::policy::Notice;

/// Runs the program in new namespaces. Returns when none of its processes is left.
pub(super) fn guard(launch: Launch<'_>) -> Result<(), SetupError> {
    let user = rustix::process::geteuid().as_raw();
    let own_group = rustix::process::getegid().as_raw();
    raw::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID)
        .during(Step::Namespaces, "unshare")?;
    map_own_ids(user, own_group).during(Step::Namespaces, "mapping the user into its namespace")?;
    match raw::fork().during(Step::Namespaces, "starting the first process")? {
        Fork::Child => {
            if let Err(error) = init(launch) {
                launch.control.send(&Notice::Failed(error));
            }
            // Not a return: the child must not go on as a second guard.
            std::process::exit(0);
        }
        Fork::Parent(init) => {
            let aside = super::step_aside().during(Step::Prepare, "stepping aside");
            if aside.is_err() {
                rustix::process::kill_process(init, Signal::KILL).unwrap_or_default();
            }
            // Ends after the kernel has killed and reaped the whole namespace, not before.
            raw::wait(Some(init), true)
                .during(Step::Namespaces, "waiting for the first process")?;
            aside
        }
    }
}

/// Maps the user to itself, so that files keep their owner, and nobody else.
fn map_own_ids(user: u32, group: u32) -> io::Result<()> {
    // The files belong to root while the process is not dumpable, and the daemon is not.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    // Here, since the view of the file system has a `/proc` that is not written to.
    limits::give_way();
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

fn init(launch: Launch<'_>) -> Result<(), SetupError> {
    // The guard's death is ours, and so everybody's.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .during(Step::Namespaces, "tying the namespace to its guard")?;
    let mut namespaces =
        UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS | UnshareFlags::NEWCGROUP;
    if launch.policy.command.network == Network::Off {
        namespaces |= UnshareFlags::NEWNET;
    }
    raw::unshare(namespaces).during(Step::Namespaces, "unshare")?;
    mounts::build(launch.policy, launch.opened)?;
    supervisor::run(launch)
}
