//! The processes that the daemon started, and those that became its children because it is process 1.
//!
//! In a container the daemon is process 1 itself. What loses its parent there, say what a command left behind where
//! the sandbox has no supervisor of its own any more, becomes the daemon's child and stays as a zombie until it is
//! waited for. The daemon's own children are waited for by whoever started them, so they are known by number.

use std::collections::BTreeSet;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::process::{Child, Command};
use tokio::sync::Notify;

use crate::helper::raw;

/// Numbers of processes that somebody in the daemon waits for. For the whole process, as its children are.
static STARTED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Told when one of them is waited for no longer.
static LEFT: Notify = Notify::const_new();

/// A process that its owner waits for.
#[derive(Debug)]
pub(crate) struct Started {
    child: Child,
    // After the child: dropped in this order.
    _entry: Entry,
}

/// A number in the list, for as long as this lives.
#[derive(Debug)]
struct Entry(Option<u32>);

impl Started {
    /// Starts a process.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        // Held meanwhile: nobody may take the new process for an orphan.
        let mut started = started();
        let child = command.spawn()?;
        let number = child.id();
        started.extend(number);
        Ok(Self {
            child,
            _entry: Entry(number),
        })
    }
}

impl Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            started().remove(&number);
            LEFT.notify_one();
        }
    }
}

fn started() -> MutexGuard<'static, BTreeSet<u32>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes in processes that ended and that nobody in the daemon started, for as long as the daemon runs.
///
/// # Errors
///
/// The system's, where the daemon cannot be told of ended children.
pub(crate) async fn take_in_orphans() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut ended = signal(SignalKind::child())?;
    loop {
        take_in();
        tokio::select! {
            _ = ended.recv() => {}
            // One that was in the way of others may be gone now.
            () = LEFT.notified() => {}
        }
    }
}

/// Takes in what has ended, up to one of the daemon's own, which its owner takes in.
fn take_in() {
    let started = started();
    while let Ok(Some(ended)) = raw::ended_child() {
        let number = u32::try_from(ended.as_raw_pid()).unwrap_or_default();
        if started.contains(&number) || !matches!(raw::wait(Some(ended), false), Ok(Some(_))) {
            return;
        }
    }
}
