//! The commands in the background of a conversation: started by `bash`, read and ended by tools of their own.
//!
//! Each is run by a task of its own ([`super::exec`] starts it), which outlives the call. The conversation owns the table:
//! its end, or its drop, ends them all.

mod ports;
pub mod tools;
mod unconnected;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Duration, Instant};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::exec::Remarks;
use super::{Output, OutputStream};
use crate::message::{BackgroundCommand, BackgroundStatus, ListeningPort, Metadata, ToolId};
use crate::sandbox::spill::{Gone, Range};
use crate::sandbox::{Exit, Pod, RefusedPorts};
use crate::terminal_text::shown;
use ports::Exposed;
pub use ports::{NotExposed, OpenPort};
use unconnected::Connections;
pub(super) use unconnected::Unconnected;

/// Most commands in the background of one conversation at once: each is a process tree and keeps its output on the disk.
pub const MAX_RUNNING: usize = 16;

/// Most commands of a conversation that have ended and can still be read; the oldest is forgotten first.
const MAX_ENDED: usize = 16;

/// Most ports of a command that the machine's loopback leads to.
const MAX_EXPOSED: usize = 16;

/// How many new ports of a command are announced to clients in [`ANNOUNCED_PERIOD`]; the rest is in the list alone.
const MAX_ANNOUNCED: usize = 32;
const ANNOUNCED_PERIOD: Duration = Duration::from_secs(1);

/// Most ports of a command that are kept, and may be exposed.
pub(super) const MAX_PORTS: usize = 32;

/// What a call is given to leave a command behind.
#[derive(Clone, Copy)]
pub struct Background<'a> {
    /// The conversation's.
    pub jobs: &'a Jobs,
    /// Takes the output of the call from here on, which outlives it.
    pub detach: &'a (dyn Fn() -> Arc<dyn Outlet> + Send + Sync),
}

/// Where the output of a command in the background goes and is read again, and who is told of it.
pub trait Outlet: Send + Sync {
    /// Returns what is known of the command that begins now.
    fn describe(&self, line: &str) -> BackgroundCommand;

    /// Takes a piece of output as it comes.
    fn push(&self, stream: OutputStream, chunk: &str);

    /// Says that no more output comes.
    fn finish(&self);

    /// Tells that the command began to listen on a port.
    fn announce_port(&self, command: &BackgroundCommand, port: u16);

    /// Tells that the command began or ended, or what leads to its ports.
    fn announce(&self, command: &BackgroundCommand);

    /// Returns output without secrets, of both streams as it came; see [`Range`]. Blocks until the disk has answered.
    fn read(&self, offset: u64, limit: usize) -> Result<Range, Gone>;
}

/// The commands in the background of one conversation. Dropping it ends them.
#[derive(Debug)]
pub struct Jobs {
    slots: Arc<Semaphore>,
    /// Oldest first. Held for a look-up, never across an await or an event.
    jobs: Mutex<VecDeque<Arc<Job>>>,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(MAX_RUNNING)),
            jobs: Mutex::default(),
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.jobs.get_mut().iter().for_each(|job| job.kill());
    }
}

impl Jobs {
    /// Takes a place for a command, given back when nothing is left of it; the error is for the model.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, String> {
        Arc::clone(&self.slots).try_acquire_owned().map_err(|_| {
            let running = self.list().into_iter().filter(BackgroundCommand::is_running);
            let ids: Vec<String> = running.map(|command| command.id.to_string()).collect();
            format!(
                "not run: {MAX_RUNNING} commands run in the background of this conversation, and no more may; end one with `bash_kill` ({})",
                ids.join(", ")
            )
        })
    }

    pub(super) fn add(&self, job: Arc<Job>) {
        let mut jobs = self.jobs.lock();
        jobs.push_back(job);
        let has_ended = |job: &Arc<Job>| !job.known().is_running();
        let mut excess = jobs.iter().filter(|job| has_ended(job)).count();
        excess = excess.saturating_sub(MAX_ENDED);
        jobs.retain(|job| {
            let goes = excess > 0 && has_ended(job);
            excess -= usize::from(goes);
            !goes
        });
    }

    /// Finds a command by its id; the error is for the model.
    pub(super) fn get(&self, id: &str) -> Result<Arc<Job>, String> {
        let jobs = self.jobs.lock();
        let known = |job: &&Arc<Job>| job.known().id.as_str() == id;
        jobs.iter().find(known).cloned().ok_or_else(|| {
            let ids: Vec<String> = jobs.iter().map(|job| job.known().id.to_string()).collect();
            match ids.as_slice() {
                [] => format!("there is no command {id:?} in the background, nor any other: each ends with its conversation, and with the daemon; start one with `bash` and `background`"),
                ids => format!("there is no command {id:?} in the background of this conversation (one ends with the daemon at the latest); those there are: {}", ids.join(", ")),
            }
        })
    }

    /// Returns what is known of each, oldest first: those that run and the last that have ended.
    pub fn list(&self) -> Vec<BackgroundCommand> {
        self.jobs.lock().iter().map(|job| job.known()).collect()
    }

    /// Finds a port on which one of them listens; the error is for the client.
    pub fn on_port(&self, port: u16) -> Result<OpenPort, String> {
        let jobs = self.jobs.lock();
        let ports = |job: &Arc<Job>| job.known().ports.into_iter().map(|it| it.port);
        // The one that began last, where one took over from another.
        let found = jobs
            .iter()
            .rev()
            .find(|job| ports(job).any(|it| it == port));
        found.cloned().map(|job| OpenPort { job, port }).ok_or_else(|| {
            let open: BTreeSet<u16> = jobs.iter().flat_map(ports).collect();
            let open: Vec<String> = open.iter().map(u16::to_string).collect();
            match open.as_slice() {
                [] => format!("no command in the background of this conversation listens on port {port}, or on any"),
                open => format!(
                    "no command in the background of this conversation is known to listen on port {port} (the last {MAX_PORTS} ports of each are known); those there are: {}",
                    open.join(", ")
                ),
            }
        })
    }

    /// Ends the command that a call started; returns false where none runs.
    pub fn kill_of(&self, call: &ToolId) -> bool {
        let jobs = self.jobs.lock();
        let its = |job: &&Arc<Job>| {
            let known = job.known();
            known.tool_id == *call && known.is_running()
        };
        let found = jobs.iter().find(its);
        found.inspect(|job| job.kill()).is_some()
    }

    /// Ends all, and waits until nothing is left of them.
    pub async fn end(&self) {
        let jobs: Vec<Arc<Job>> = self.jobs.lock().iter().cloned().collect();
        jobs.iter().for_each(|job| job.kill());
        join_all(jobs.iter().map(|job| job.ended.cancelled())).await;
    }
}

/// One command, as its task and the conversation share it.
pub(super) struct Job {
    known: Mutex<Known>,
    /// Where it runs.
    pod: Pod,
    pub(super) outlet: Arc<dyn Outlet>,
    killed: CancellationToken,
    ended: CancellationToken,
    /// Up to where the model has read the output.
    read: AtomicU64,
}

struct Known {
    command: BackgroundCommand,
    /// What leads to its ports.
    exposed: BTreeMap<u16, Exposed>,
    /// When the period began, and how many ports were announced in it.
    announced: (Instant, usize),
    connections: Connections,
    /// What is said of its end besides how it ended.
    remarks: Remarks,
}

impl Known {
    /// Returns whether one more port may be announced now.
    fn may_announce(&mut self) -> bool {
        if self.announced.0.elapsed() >= ANNOUNCED_PERIOD {
            self.announced = (Instant::now(), 0);
        }
        self.announced.1 += 1;
        self.announced.1 <= MAX_ANNOUNCED
    }

    fn set_url(&mut self, port: u16, url: Option<String>) {
        let mut ports = self.command.ports.iter_mut();
        if let Some(open) = ports.find(|it| it.port == port) {
            open.url = url;
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}

impl Job {
    pub(super) fn new(line: &str, pod: Pod, outlet: Arc<dyn Outlet>, ports: RefusedPorts) -> Self {
        Self {
            pod,
            known: Mutex::new(Known {
                command: outlet.describe(line),
                exposed: BTreeMap::new(),
                announced: (Instant::now(), 0),
                connections: Connections::new(ports),
                remarks: Remarks::default(),
            }),
            outlet,
            killed: CancellationToken::new(),
            ended: CancellationToken::new(),
            read: AtomicU64::new(0),
        }
    }

    pub(super) fn known(&self) -> BackgroundCommand {
        self.known.lock().command.clone()
    }

    /// Has it asked to end, and killed where it does not.
    pub(super) fn kill(&self) {
        self.killed.cancel();
    }

    pub(super) async fn killed(&self) {
        self.killed.cancelled().await;
    }

    /// Returns what says that it has ended when dropped, also where its task panics.
    pub(super) fn ends(&self) -> DropGuard {
        self.ended.clone().drop_guard()
    }

    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Takes note of a port on which it began to listen, and tells everybody.
    pub(super) fn note_port(&self, port: u16) {
        let command = {
            let mut known = self.known.lock();
            let is_running = known.command.is_running();
            let ports = &mut known.command.ports;
            let is_known = ports.iter().any(|it| it.port == port);
            if is_known || !is_running {
                return;
            }
            // The oldest goes, which may be closed by now, but for those that are looked at.
            let oldest = ports.iter().position(|it| it.url.is_none());
            if let Some(oldest) = oldest.filter(|_| ports.len() >= MAX_PORTS) {
                ports.remove(oldest);
            }
            ports.push(ListeningPort { port, url: None });
            if !known.may_announce() {
                return;
            }
            known.command.clone()
        };
        self.outlet.announce_port(&command, port);
    }

    /// Returns where the machine's loopback leads to a port of it.
    fn url(&self, port: u16) -> Option<String> {
        let known = self.known.lock();
        known.exposed.get(&port).map(Exposed::url)
    }

    /// Takes what leads to a port of it, and tells everybody; returns the URL. The error says why not.
    fn expose(&self, port: u16, exposed: Exposed) -> Result<String, String> {
        let (url, command) = {
            let mut known = self.known.lock();
            if !known.command.is_running() {
                return Err(format!("{} has ended", known.command.id));
            }
            let id = &known.command.id;
            // It may have had to make room for others meanwhile.
            if !known.command.ports.iter().any(|it| it.port == port) {
                return Err(format!(
                    "{id} is not known to listen on port {port} any more"
                ));
            }
            // Another request may have been faster.
            let is_new = !known.exposed.contains_key(&port);
            if is_new && known.exposed.len() >= MAX_EXPOSED {
                return Err(format!(
                    "{MAX_EXPOSED} ports of {id} are exposed; close one first"
                ));
            }
            let url = known.exposed.entry(port).or_insert(exposed).url();
            known.set_url(port, Some(url.clone()));
            (url, known.command.clone())
        };
        self.outlet.announce(&command);
        Ok(url)
    }

    /// Has nothing lead to a port of it any more, and tells everybody.
    fn close(&self, port: u16) {
        let command = {
            let mut known = self.known.lock();
            if known.exposed.remove(&port).is_none() {
                return;
            }
            known.set_url(port, None);
            known.command.clone()
        };
        self.outlet.announce(&command);
    }

    /// Takes note of a host that it was not connected to.
    pub(super) fn note_unconnected(&self, host: String, why: Unconnected) {
        self.known.lock().connections.note(host, why);
    }

    /// Notes how it ended, once all of its output was taken, and tells everybody.
    pub(super) fn end(&self, status: BackgroundStatus, exit: &Exit, remarks: Remarks) {
        self.outlet.finish();
        let command = {
            let mut known = self.known.lock();
            known.command.status = status;
            known.command.ports.clear();
            known.exposed.clear();
            known.command.exit_code = exit.code;
            known.command.signal = exit.signal;
            known.remarks = remarks;
            known.command.clone()
        };
        // Not under the lock: whoever looks at it may hold the log.
        self.outlet.announce(&command);
    }

    /// Returns how it stands, what is said of that, and the settings that it changed. Connections that were not made are said
    /// once.
    fn stands(&self) -> (BackgroundCommand, String, Vec<String>) {
        let mut known = self.known.lock();
        let changed = known.remarks.settings_changed.clone();
        let remarks = known.remarks.texts.concat() + &known.connections.news();
        (known.command.clone(), remarks, changed)
    }

    /// Returns how it stands, and says that with its output from `since` on, or from where the model had read to.
    pub(super) async fn look(&self, since: Option<u64>, cap: usize) -> (BackgroundCommand, Output) {
        // Before its output: what has ended is then read to its end.
        let (command, remarks, settings_changed) = self.stands();
        let from = since.unwrap_or_else(|| self.read.load(Ordering::Relaxed));
        let outlet = Arc::clone(&self.outlet);
        let read = tokio::task::spawn_blocking(move || Excerpt::read(&*outlet, from, cap)).await;
        let metadata = Metadata {
            background: Some(command.id.clone()),
            exit_code: command.exit_code,
            signal: command.signal,
            settings_changed,
            ..Metadata::default()
        };
        let id = &command.id;
        let excerpt = match read {
            Ok(Ok(excerpt)) => excerpt,
            Ok(Err(Gone)) | Err(_) => {
                let output = Output::error(format!(
                    "the output of {id} is no longer kept: newer output needed the room, or the disk had none\n[{command}]{remarks}"
                ));
                return (command, output.with(metadata));
            }
        };
        if from > excerpt.next {
            let output = Output::error(format!(
                "`since` {from} is beyond the end of the output of {id}, which is {} now; leave it out for what is new{remarks}",
                excerpt.next
            ));
            return (command, output.with(metadata));
        }
        self.read.store(excerpt.next, Ordering::Relaxed);
        let mut text = excerpt.text;
        if text.is_empty() {
            text.push_str("[no new output]");
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{command}; next: {}]{remarks}", excerpt.next));
        let metadata = Metadata {
            truncated: excerpt.left_out > 0,
            omitted_bytes: Some(excerpt.left_out).filter(|bytes| *bytes > 0),
            total_bytes: Some(excerpt.next),
            ..metadata
        };
        (command, Output::text(text).with(metadata))
    }
}

/// A part of an output as the model reads it: what a terminal would show of it, shortened in the middle.
struct Excerpt {
    text: String,
    /// Bytes that are not shown.
    left_out: u64,
    /// Where what comes next begins.
    next: u64,
}

impl Excerpt {
    /// Blocks.
    fn read(outlet: &dyn Outlet, from: u64, cap: usize) -> Result<Self, Gone> {
        let first = outlet.read(from, cap)?;
        let dropped = first.offset.saturating_sub(from);
        let mut text = match dropped {
            0 => String::new(),
            dropped => format!("… {dropped} older bytes are no longer kept …\n"),
        };
        let end = end_of(&first);
        if end >= first.total {
            text.push_str(&shown(&first.text));
            return Ok(Self {
                text,
                left_out: dropped,
                next: end,
            });
        }
        let half = cap / 2;
        let head = first.text.floor_char_boundary(half);
        let head = first.text.get(..head).unwrap_or_default();
        let tail = outlet.read(first.total.saturating_sub(half as u64), half)?;
        let between = tail.offset.saturating_sub(first.offset + head.len() as u64);
        text.push_str(&shown(head));
        text.push_str(&format!("\n… {between} bytes left out …\n"));
        text.push_str(&shown(&tail.text));
        Ok(Self {
            text,
            left_out: dropped + between,
            next: end_of(&tail),
        })
    }
}

fn end_of(range: &Range) -> u64 {
    range.offset + range.text.len() as u64
}

#[cfg(test)]
mod tests;
