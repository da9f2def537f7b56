//! The whole output of executions, on disk, for as long as there is room: text that its writer has cleaned of secrets.
//!
//! One file for the daemon, of mode 0600 and without a name, so that no command finds it and nothing stays behind however
//! the daemon ends (where the file system knows no such files, its name is removed as soon as it is open). It is used in blocks; where they run out, the oldest output goes of the owner who has
//! most, so that one session's flood does not push out another's.

mod file;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::output::Stream;
use file::State;

/// Most bytes on disk for one daemon: twice what the longest output may have.
pub const QUOTA_BYTES: u64 = 256 * 1024 * 1024;

/// Most bytes that wait to be written, for the daemon: what a command writes in a tenth of a second.
const MAX_QUEUED: usize = 16 * 1024 * 1024;

/// What a job in the queue costs besides its text, in bytes.
const JOB_BYTES: usize = 128;

/// How long a writer waits for a place in the queue before its output is given up.
const PATIENCE: Duration = Duration::from_secs(1);

/// The place where outputs are kept, for one owner. Clones share it.
///
/// A thread of its own does what touches the disk, which may hang; only [`Recorded::read`] waits for it.
#[derive(Clone, Debug)]
pub struct Spill {
    writer: Arc<Writer>,
    owner: u64,
}

/// The way to the thread that writes; it ends with the last handle.
#[derive(Debug)]
struct Writer {
    /// Bounded by `queued`; what ends an output always goes in, once for each that was begun.
    jobs: mpsc::Sender<(usize, Job)>,
    queued: Arc<Queued>,
    /// The next output's number, or owner's.
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Queued {
    bytes: Mutex<usize>,
    freed: Condvar,
}

type Job = Box<dyn FnOnce(&mut State) + Send>;

/// One output that is kept; forgotten when dropped.
#[derive(Debug)]
pub struct Recorded {
    spill: Spill,
    number: u64,
    /// Half of an output would be taken for the whole: once a piece was refused, all of it is.
    given_up: AtomicBool,
}

/// A piece of an output, of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Where it was written.
    pub stream: Stream,
    /// The text, cut between characters.
    pub text: String,
    /// Its first byte.
    pub offset: u64,
    /// Where the next piece begins; absent at the end of an output that is whole.
    pub next: Option<u64>,
    /// Bytes of the output so far.
    pub total: u64,
}

/// The output is no longer kept, because newer ones needed the room or the disk had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the output is no longer kept")]
pub struct Gone;

/// Too much waits to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more waits to be written than the queue holds")]
pub struct QueueFull;

impl Spill {
    /// Will keep outputs of up to `quota` bytes in a file in `folder`, which has to exist by then.
    pub fn new(folder: PathBuf, quota: u64) -> Self {
        let (jobs, todo) = mpsc::channel::<(usize, Job)>();
        let queued = Arc::<Queued>::default();
        let freed = Arc::clone(&queued);
        let mut state = State::new(folder, quota);
        let work = move || {
            for (bytes, job) in todo {
                job(&mut state);
                freed.remove(bytes);
            }
        };
        let thread = std::thread::Builder::new().name("spill".to_owned());
        if let Err(error) = thread.spawn(work) {
            // Without it every job is refused, and no output is kept.
            tracing::warn!(%error, "no thread to keep outputs with");
        }
        Self {
            writer: Arc::new(Writer {
                jobs,
                queued,
                next: AtomicU64::new(1),
            }),
            owner: 0,
        }
    }

    /// Returns the same place for another owner.
    #[must_use]
    pub fn for_another(&self) -> Self {
        Self {
            writer: Arc::clone(&self.writer),
            owner: self.writer.next.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Begins to keep an output. Nothing is written yet.
    pub fn record(&self) -> Recorded {
        self.begin(None)
    }

    /// Begins to keep the last bytes of an output, at least `most` of them; the oldest make room. Nothing is written yet.
    pub fn record_last(&self, most: u64) -> Recorded {
        self.begin(Some(most))
    }

    fn begin(&self, most: Option<u64>) -> Recorded {
        let number = self.writer.next.fetch_add(1, Ordering::Relaxed);
        let owner = self.owner;
        let begun = self
            .writer
            .offer(0, move |state| state.begin(number, owner, most));
        Recorded {
            spill: self.clone(),
            number,
            given_up: AtomicBool::new(begun.is_err()),
        }
    }
}

impl Writer {
    /// Queues a job, with so many bytes of text, where there is room.
    fn offer(
        &self,
        text: usize,
        job: impl FnOnce(&mut State) + Send + 'static,
    ) -> Result<(), QueueFull> {
        let bytes = JOB_BYTES + text;
        {
            let mut queued = self.queued.bytes.lock();
            if *queued + bytes > MAX_QUEUED {
                return Err(QueueFull);
            }
            *queued += bytes;
        }
        let sent = self.jobs.send((bytes, Box::new(job)));
        sent.map_err(|_| QueueFull)
    }

    /// Queues a job that must not be lost.
    fn send(&self, job: impl FnOnce(&mut State) + Send + 'static) {
        *self.queued.bytes.lock() += JOB_BYTES;
        // Without a thread nothing is kept.
        drop(self.jobs.send((JOB_BYTES, Box::new(job))));
    }
}

impl Queued {
    fn remove(&self, bytes: usize) {
        *self.bytes.lock() -= bytes;
        self.freed.notify_all();
    }

    /// Waits until so many bytes have room, but not for ever.
    fn wait_for(&self, bytes: usize) {
        let is_full = |queued: &mut usize| *queued + bytes > MAX_QUEUED;
        let mut queued = self.bytes.lock();
        self.freed.wait_while_for(&mut queued, is_full, PATIENCE);
    }
}

impl Recorded {
    /// Appends text; nothing where the queue is full. Where it cannot be kept the whole output is forgotten.
    pub fn push(&self, stream: Stream, text: &str) -> Result<(), QueueFull> {
        if self.given_up.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (number, bytes, text) = (self.number, text.len(), text.to_owned());
        let append = move |state: &mut State| state.append(number, stream, &text);
        self.spill.writer.offer(bytes, append)
    }

    /// Appends text. Blocks for a moment while the queue is full; where it stays full, the output is given up.
    pub fn push_waiting(&self, stream: Stream, text: &str) {
        self.spill.writer.queued.wait_for(JOB_BYTES + text.len());
        if self.push(stream, text).is_err() {
            tracing::warn!("an output is not kept: the disk is too slow");
            self.given_up.store(true, Ordering::Relaxed);
            self.forget();
        }
    }

    /// Says that nothing more will come.
    pub fn finish(&self) {
        let number = self.number;
        self.spill.writer.send(move |state| state.finish(number));
    }

    /// Returns up to `limit` bytes of one stream from `offset` on, or from the first one that is kept. Blocks until the
    /// disk has answered.
    ///
    /// A character is never cut: a range begins with the character that `offset` lies in, ends before one that would
    /// go beyond `limit`, and holds one at least. Past the end it is empty.
    pub fn read(&self, offset: u64, limit: usize) -> Result<Range, Gone> {
        self.range(offset, limit, false)
    }

    /// The same of both streams, as they came; [`Range::stream`] is the first one's.
    pub fn read_both(&self, offset: u64, limit: usize) -> Result<Range, Gone> {
        self.range(offset, limit, true)
    }

    fn range(&self, offset: u64, limit: usize, across: bool) -> Result<Range, Gone> {
        let (reply, range) = mpsc::sync_channel(1);
        let number = self.number;
        self.spill.writer.send(move |state| {
            // Who asked may be gone.
            drop(reply.try_send(state.read(number, offset, limit, across)));
        });
        range.recv().unwrap_or(Err(Gone))
    }

    fn forget(&self) {
        let number = self.number;
        self.spill.writer.send(move |state| state.forget(number));
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests;
