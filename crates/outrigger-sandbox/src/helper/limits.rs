//! Resource limits of the worker: rlimits always, the control group where the daemon made one.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit};

use super::as_dumpable;
use crate::{Limits, Mode};

/// Has the kernel end this process and all it will start before anything else, where memory runs out: what a command
/// took, in files in memory too, goes with it, and the daemon stays.
pub(super) fn give_way() -> io::Result<()> {
    as_dumpable(|| {
        // Refused nowhere known, and no reason not to run.
        fs::write("/proc/self/oom_score_adj", "1000").unwrap_or_default();
        Ok(())
    })
}

/// Sets the limits, never above what the daemon itself may use.
pub(super) fn apply(limits: &Limits, mode: Mode) -> io::Result<()> {
    let cpu = limits
        .cpu
        .map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0));
    // One second between the signal that can be handled and the one that cannot.
    set(Resource::Cpu, cpu, 1)?;
    set(Resource::Fsize, limits.file_size, 0)?;
    set(Resource::Nofile, limits.open_files, 0)?;
    set(Resource::Data, limits.data, 0)?;
    set(Resource::Core, Some(0), 0)?;
    let processes = match mode {
        Mode::Full => limits.processes,
        // Without a user namespace every process of the user counts, those outside too.
        Mode::Fallback | Mode::Limits | Mode::Unverified | Mode::None => match limits.processes {
            Some(processes) => Some(processes + tasks_of_the_machine()?),
            None => None,
        },
    };
    set(Resource::Nproc, processes, 0)
}

fn set(resource: Resource, limit: Option<u64>, slack: u64) -> io::Result<()> {
    let Some(limit) = limit else { return Ok(()) };
    let now = rustix::process::getrlimit(resource);
    let within = |wanted: u64| now.maximum.map_or(wanted, |maximum| wanted.min(maximum));
    let wanted = Rlimit {
        current: Some(within(limit)),
        maximum: Some(within(limit + slack)),
    };
    Ok(rustix::process::setrlimit(resource, wanted)?)
}

/// How many processes and threads exist: at least as many as the user has, and one read instead of hundreds.
fn tasks_of_the_machine() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    total_tasks(&text).ok_or_else(|| io::Error::other("/proc/loadavg has an unknown form"))
}

/// From `0.20 0.18 0.12 1/80 11206`: 80.
fn total_tasks(loadavg: &str) -> Option<u64> {
    let (_, total) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    total.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_tasks_is_read_from_loadavg() {
        for (text, expected) in [
            ("0.20 0.18 0.12 1/80 11206\n", Some(80)),
            ("0.20 0.18 0.12 1/ 11206\n", None),
            ("0.20 0.18", None),
            ("", None),
        ] {
            assert_eq!(total_tasks(text), expected, "{text:?}");
        }
    }
}
