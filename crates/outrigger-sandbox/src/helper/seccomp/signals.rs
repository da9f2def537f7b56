//! Signals, where the kernel's Landlock does not keep them to the command's own processes.
//!
//! The end of a command depends on its supervisor, and everything on the daemon: no signal reaches these. A filter
//! knows numbers only, so other processes of the user, and threads that the daemon starts later, are not covered.

use std::collections::BTreeSet;

use rustix::process::{Pid, RawPid};
use seccompiler::{BackendError, SeccompRule};

use super::rules::{Calls, all, is, whatever};
use crate::helper::tree::{GROUP, number_of};

/// Most threads of a process that are looked at: the daemon has about ten, and each is a row in the filter.
const MAX_THREADS: usize = 64;

/// "All processes that I may".
const EVERYBODY: RawPid = -1;

/// Calls that send a signal to a process, with the argument that names it. Most take a thread's number as well.
const SENDING: [(i64, u8); 4] = [
    (libc::SYS_kill, 0),
    (libc::SYS_tgkill, 0),
    (libc::SYS_rt_sigqueueinfo, 0),
    (libc::SYS_rt_tgsigqueueinfo, 0),
];

/// Requests of `fcntl` that name who is sent a signal for a descriptor: with the number, and behind a pointer.
const OWNER: u64 = 8;
const OWNER_BY_POINTER: u64 = 15;

/// Requests of `ioctl` for the same, behind a pointer: `FIOSETOWN` and `SIOCSPGRP`.
const OWNER_BY_IOCTL: [u64; 2] = [0x8901, 0x8902];

#[derive(Debug, Default)]
pub(in crate::helper) struct Spared {
    /// Numbers of processes and their threads, and those of their groups, negative.
    numbers: BTreeSet<RawPid>,
}

impl Spared {
    pub(in crate::helper) fn of(processes: impl Iterator<Item = Pid>) -> Self {
        let mut spared = Self::default();
        processes.for_each(|process| spared.add(process));
        spared
    }

    /// Adds a process, by all the numbers it can be named by now.
    fn add(&mut self, process: Pid) {
        self.numbers.insert(process.as_raw_pid());
        // A supervisor goes into a session of its own, with its number, after its worker was started.
        self.numbers.insert(-process.as_raw_pid());
        // Not by `getpgid`: a group of processes outside of the container has the number 0.
        let group = number_of(process.as_raw_pid(), GROUP).filter(|group| *group > 0);
        self.numbers.extend(group.map(|group| -group));
        let threads = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_pid()));
        let threads = threads.into_iter().flatten().flatten();
        let numbers =
            threads.filter_map(|thread| thread.file_name().to_str()?.parse::<RawPid>().ok());
        self.numbers.extend(numbers.take(MAX_THREADS));
    }

    fn named_by(&self, argument: u8) -> Result<Vec<SeccompRule>, BackendError> {
        let named = self.numbers.iter().chain(&[EVERYBODY]);
        named
            .map(|number| all([is(argument, as_argument(*number))?]))
            .collect()
    }
}

fn as_argument(number: RawPid) -> u64 {
    u64::from(u32::from_ne_bytes(number.to_ne_bytes()))
}

/// Calls that look as if the kernel did not know them: who is meant is behind a descriptor. Libraries fall back to `kill`.
pub(super) fn absent() -> Calls {
    whatever([libc::SYS_pidfd_send_signal])
}

pub(super) fn denied(spared: &Spared) -> Result<Calls, BackendError> {
    // One thread by its number, whosever it is: `tgkill` has replaced it.
    let mut calls = whatever([libc::SYS_tkill]);
    for (call, argument) in SENDING {
        calls.insert(call, spared.named_by(argument)?);
    }
    let mut owners = Vec::new();
    for number in spared.numbers.iter().chain(&[EVERYBODY]) {
        owners.push(all([is(1, OWNER)?, is(2, as_argument(*number))?])?);
    }
    owners.push(all([is(1, OWNER_BY_POINTER)?])?);
    calls.insert(libc::SYS_fcntl, owners);
    let ioctl = OWNER_BY_IOCTL.map(|request| all([is(1, request)?]));
    calls.insert(
        libc::SYS_ioctl,
        ioctl.into_iter().collect::<Result<_, _>>()?,
    );
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn a_process_is_named_by_number_thread_and_group() {
        // Of its own, since that of the tests may be outside of the container.
        let group_of = |group| {
            let mut cat = std::process::Command::new("cat");
            cat.stdin(std::process::Stdio::piped());
            cat.process_group(group).spawn().unwrap()
        };
        let mut leader = group_of(0);
        let leader_number = RawPid::try_from(leader.id()).unwrap();
        let mut member = group_of(leader_number);
        let own = rustix::process::getpid();
        let other = Pid::from_child(&member);
        let spared = Spared::of([own, other].into_iter());
        let number = own.as_raw_pid();
        let thread = rustix::thread::gettid().as_raw_pid();
        for named in [number, -number, thread, other.as_raw_pid(), -leader_number] {
            assert!(spared.numbers.contains(&named), "{named}");
        }
        drop((leader.stdin.take(), member.stdin.take()));
        assert!(leader.wait().unwrap().success() && member.wait().unwrap().success());
        assert_eq!(as_argument(EVERYBODY), 0xffff_ffff);
        assert_eq!(as_argument(7), 7);
        // One row for each and for everybody.
        let rows = spared.named_by(0).unwrap().len();
        assert_eq!(rows, spared.numbers.len() + 1);
    }
}
