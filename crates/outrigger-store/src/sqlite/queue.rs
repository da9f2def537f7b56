//! What the thread that writes is given to do.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, mpsc};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::queue::{Gate, Job};
use crate::slices::Slice;
use crate::upkeep::Tell;
use crate::{Error, Limits, User};

pub(super) enum Work {
    Job(Job),
    /// Somebody waits for the jobs before it.
    Now,
    /// Counts the epoch of a session; returns its key.
    Open(User, String, oneshot::Sender<Result<Option<i64>, Error>>),
    Read(Box<dyn FnOnce(&Connection) + Send>),
    /// Writes a slice of a session that is imported, in a transaction of its own.
    Slice(Slice, oneshot::Sender<Result<(), Error>>),
    /// The import of a session goes no further.
    BreakOff(String),
    Limit(Limits, Tell),
    Flush(oneshot::Sender<Result<(), Error>>),
    /// The same for the last time: the log of changes is taken in and gone afterwards.
    Close(oneshot::Sender<Result<(), Error>>),
}

/// The way to the thread, which ends with the last one.
pub(super) struct Handle {
    work: mpsc::Sender<Work>,
    pub(super) gate: Gate,
    /// How many bytes the log of changes had when it was looked at last.
    pub(super) log_bytes: Arc<AtomicU64>,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Handle {
    pub(super) fn new(work: mpsc::Sender<Work>, gate: Gate, log_bytes: Arc<AtomicU64>) -> Self {
        Self {
            work,
            gate,
            log_bytes,
        }
    }

    pub(super) fn send(&self, mut work: Work) {
        if let Work::Job(job) = &mut work {
            self.gate.take(job);
        }
        if let Err(mpsc::SendError(Work::Job(job))) = self.work.send(work) {
            (job.done)(Err(Error::Closed));
        }
    }
}
