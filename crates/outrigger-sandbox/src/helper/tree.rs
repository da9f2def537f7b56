//! Finds and kills every descendant of this process, those that left its session and group too.
//!
//! It works because the supervisor is a subreaper: whatever loses its parent becomes its child.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;

use rustix::process::{Pid, RawPid, Signal};

/// Places of numbers in `/proc/PID/stat`, counted from behind the name.
const PARENT: usize = 1;
pub(super) const GROUP: usize = 2;

/// Kills all descendants that exist now. What they started meanwhile is left to the next call.
pub(super) fn kill_descendants() {
    let mut stopped = Vec::new();
    let mut known = BTreeSet::new();
    // Stopped first, so that the set can be known: a stopped process starts nothing. Each one before its children are
    // looked up, or a storm would grow faster than it is read. A new round is needed for those whose parent died and
    // who moved up; it ends since each round leaves fewer that run.
    loop {
        let before = stopped.len();
        visit_descendants(|process| {
            if known.insert(process.as_raw_pid()) {
                signal(process, Signal::STOP);
                stopped.push(process);
            }
        });
        if stopped.len() == before {
            break;
        }
    }
    for process in stopped {
        signal(process, Signal::KILL);
    }
}

pub(super) fn terminate_descendants() {
    let mut found = Vec::new();
    visit_descendants(|process| found.push(process));
    for process in found {
        signal(process, Signal::TERM);
    }
}

fn signal(process: Pid, signal: Signal) {
    // One that has ended meanwhile needs no signal.
    rustix::process::kill_process(process, signal).unwrap_or_default();
}

/// Calls `visit` with each descendant, and only then looks for that one's children.
fn visit_descendants(mut visit: impl FnMut(Pid)) {
    let own = rustix::process::getpid().as_raw_pid();
    match children(own) {
        Some(first) => by_children_files(first, |pid| {
            Pid::from_raw(pid).into_iter().for_each(&mut visit);
        }),
        None => by_parents(own)
            .into_iter()
            .filter_map(Pid::from_raw)
            .for_each(visit),
    }
}

fn by_children_files(first: Vec<RawPid>, mut visit: impl FnMut(RawPid)) {
    let mut waiting = VecDeque::from(first);
    while let Some(pid) = waiting.pop_front() {
        visit(pid);
        waiting.extend(children(pid).unwrap_or_default());
    }
}

/// The children of all threads of a process; `None` when the process is gone or the kernel has no such file.
fn children(pid: RawPid) -> Option<Vec<RawPid>> {
    let mut found = None;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // One that ends meanwhile has no file any more, and the process goes on without it.
        if let Ok(list) = fs::read_to_string(thread.path().join("children")) {
            let pids = list.split_whitespace();
            let pids = pids.filter_map(|pid| pid.parse::<RawPid>().ok());
            found.get_or_insert_with(Vec::new).extend(pids);
        }
    }
    found
}

/// For kernels without the `children` file: every process whose parents lead here.
fn by_parents(own: RawPid) -> Vec<RawPid> {
    let parents: BTreeMap<RawPid, RawPid> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: RawPid| Some((pid, number_of(pid, PARENT)?)))
        .collect();
    let mut found: Vec<RawPid> = Vec::new();
    let mut generation = vec![own];
    while !generation.is_empty() {
        generation = parents
            .iter()
            .filter(|(pid, parent)| generation.contains(parent) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        found.extend(&generation);
    }
    found
}

/// Returns a number from `/proc/PID/stat`, by its place behind the name.
pub(super) fn number_of(pid: RawPid, place: usize) -> Option<RawPid> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    number_in(&stat, place)
}

/// The same from the text: the name in brackets may hold anything.
fn number_in(stat: &str, place: usize) -> Option<RawPid> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        for (stat, parent) in [
            ("7 (sh) S 3 7 7 0", Some(3)),
            ("7 (a) b) R 4 7 7 0", Some(4)),
            ("7 (sh) S", None),
            ("7 sh S 3", None),
            ("", None),
        ] {
            assert_eq!(number_in(stat, PARENT), parent, "{stat:?}");
        }
    }

    /// Of this process, whose threads are tests that end at any time.
    #[test]
    fn a_thread_that_ends_hides_no_children() {
        let mut child = std::process::Command::new("/bin/cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let number: RawPid = child.id().try_into().unwrap();
        let own = std::process::id().try_into().unwrap();
        let ending = || drop(std::thread::spawn(|| {}));
        let seen = std::iter::repeat_with(|| {
            ending();
            children(own).is_some_and(|found| found.contains(&number))
        });
        let always = seen.take(2_000).all(|is_seen| is_seen);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(always);
    }

    #[test]
    fn both_ways_find_the_same_processes() {
        let own = std::process::id().try_into().unwrap();
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "sleep 60 & echo started; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        let shell: RawPid = child.id().try_into().unwrap();
        let below = |found: Vec<RawPid>| -> BTreeSet<RawPid> {
            let under = by_parents(shell);
            found
                .into_iter()
                .filter(|pid| *pid == shell || under.contains(pid))
                .collect()
        };
        let mut by_files = Vec::new();
        by_children_files(children(own).unwrap(), |pid| by_files.push(pid));
        let by_files = below(by_files);
        let by_scan = below(by_parents(own));
        let inner: Vec<Pid> = by_parents(shell)
            .into_iter()
            .filter_map(Pid::from_raw)
            .collect();
        for process in inner {
            signal(process, Signal::KILL);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(by_files, by_scan);
        assert!(by_files.len() >= 2, "{by_files:?}");
    }
}
