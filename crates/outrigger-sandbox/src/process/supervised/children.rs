//! The processes that the daemon started, and those that became its children because it is process 1.
//!
//! What loses its parent in a container becomes the child of a daemon that is process 1 there, and stays as a zombie until
//! it is waited for. The daemon's own children are waited for by whoever started them, so they are known by number.

use std::collections::BTreeSet;
use std::io;

use parking_lot::Mutex;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::process::{Child, Command};
use tokio::sync::Notify;

use crate::helper::raw;

/// Numbers of processes that somebody in the daemon waits for. For the whole process, as its children are.
static STARTED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Notified when one of them is waited for no longer.
static REMOVED: Notify = Notify::const_new();

#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) child: Child,
    // After the child: dropped in this order.
    _entry: Entry,
}

/// A number in the list, for as long as this lives.
#[derive(Debug)]
struct Entry(Option<u32>);

impl Started {
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        // Held meanwhile: nobody may take the new process for an orphan.
        let mut started = STARTED.lock();
        let child = command.spawn()?;
        let number = child.id();
        started.extend(number);
        Ok(Self {
            child,
            _entry: Entry(number),
        })
    }
}

/// Begins a child that nobody waits for, and has a task take it in at its end.
pub(crate) fn adopt(begin: impl FnOnce() -> io::Result<Pid>) -> io::Result<()> {
    let (process, entry) = {
        // As in `Started::spawn`.
        let mut started = STARTED.lock();
        let process = begin()?;
        let number = u32::try_from(process.as_raw_pid()).ok();
        started.extend(number);
        (process, Entry(number))
    };
    tokio::spawn(async move {
        let ended = async {
            let process = raw::readable(pidfd_open(process, PidfdFlags::empty())?)?;
            process.readable().await.map(drop)
        };
        // Where it cannot be watched, it stays as a zombie when it ends before the daemon.
        if ended.await.is_ok() {
            raw::wait(Some(process), false).map_or_else(drop, drop);
        }
        drop(entry);
    });
    Ok(())
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            STARTED.lock().remove(&number);
            REMOVED.notify_one();
        }
    }
}

/// Takes in processes that ended and that nobody in the daemon started, for as long as the daemon runs.
pub(crate) async fn take_in_orphans() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut ended = signal(SignalKind::child())?;
    loop {
        take_in();
        tokio::select! {
            _ = ended.recv() => {}
            // One that was in the way of others may be gone now.
            () = REMOVED.notified() => {}
        }
    }
}

/// Takes in what has ended, up to one of the daemon's own, which its owner takes in.
fn take_in() {
    let started = STARTED.lock();
    while let Ok(Some(ended)) = raw::ended_child() {
        let number = u32::try_from(ended.as_raw_pid()).unwrap_or_default();
        if started.contains(&number) || !matches!(raw::wait(Some(ended), false), Ok(Some(_))) {
            return;
        }
    }
}
