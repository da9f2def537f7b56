//! The control groups of commands, and what is said of them.

use std::io;
use std::sync::Arc;

use crate::cgroup::{Controller, Groups, Made, Version};
use crate::layers::{HeldBy, LimitsReport};
use crate::{Command, Shared};

/// The control groups for the command, where there can be any. It is not refused for want of them, but where it cannot
/// join those that were made.
pub(super) async fn make_group(shared: &Shared, command: &Command, is_wanted: bool) -> Made {
    if !is_wanted {
        return Made::default();
    }
    let (groups, limits) = (Arc::clone(groups(shared).await), command.limits.clone());
    tokio::task::spawn_blocking(move || groups.make(&limits))
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .inspect_err(|error| tracing::warn!(%error, "no control group for a command"))
        .unwrap_or_default()
}

/// The daemon's control groups, looked for on the first call.
async fn groups(shared: &Shared) -> &Arc<Groups> {
    let find = || async {
        let found = tokio::task::spawn_blocking(Groups::find).await;
        Arc::new(found.unwrap_or_default())
    };
    shared.state.groups.get_or_init(find).await
}

/// Returns what holds commands to their limits, in the modes that have any.
pub(crate) async fn limits(shared: &Shared) -> LimitsReport {
    let groups = groups(shared).await;
    let held = |by, otherwise| match groups.bounds(by) {
        true => HeldBy::Cgroup,
        false => otherwise,
    };
    // The kernel does not count those of root.
    let processes = match rustix::process::geteuid().is_root() {
        true => HeldBy::None,
        false => HeldBy::Rlimit,
    };
    LimitsReport {
        cgroup: groups.version().map(|version| match version {
            Version::One => 1,
            Version::Two => 2,
        }),
        memory: held(Controller::Memory, HeldBy::Rlimit),
        cpu: held(Controller::Cpu, HeldBy::None),
        processes: held(Controller::Pids, processes),
        file_size: HeldBy::Rlimit,
        ungrouped: groups.missing().cloned(),
    }
}
