//! The thread that writes. What it is given to do is in `queue`, what it does when nothing else is to do in `growth`.

mod connect;
#[cfg(all(unix, debug_assertions))]
mod deaths;
mod following;
mod growth;
mod import;
mod log;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _};

use super::apply::Failure;
use super::queue::{Handle, Work};
use super::{Sync, apply, file};
use crate::bounds::RETRY;
use crate::clock::Clock;
use crate::held::HeldSessions;
use crate::queue::{FOLLOWS, Gate, HealthState, Holes, Lasts, Room, Waiting, follows};
use crate::upkeep::{EVERY, Upkeep};
use crate::user::own_id;
use crate::{Change, Error, User};
pub(super) use connect::connect;
use following::Following;
use log::Log;

/// Starts the thread, which opens the file when there is something to do.
pub(super) fn start(
    path: &Path,
    sync: Sync,
    exclusive: bool,
    (held, lock): (HeldSessions, Arc<file::Lock>),
) -> Result<Handle, Error> {
    let failed = |problem: std::io::Error| Error::Open {
        path: path.display().to_string(),
        problem: problem.to_string(),
    };
    let (send, work) = mpsc::channel();
    let gate = Gate::default();
    let mut writer = Writer {
        path: path.to_owned(),
        identity: file::Identity::from(&std::fs::metadata(path).map_err(failed)?),
        has_content: false,
        sync,
        exclusive,
        connection: None,
        backlog: Vec::new(),
        room: Arc::clone(&gate.room),
        health: Arc::clone(&gate.health),
        holes: Holes::new(&gate),
        retry: RETRY[0],
        retry_at: None,
        has_removed: false,
        has_broken_off: false,
        clock: None,
        log: Log::default(),
        held,
        imports: HashSet::new(),
        upkeep: Upkeep::default(),
        _lock: lock,
    };
    let thread = std::thread::Builder::new().name("store".to_owned());
    let log_bytes = Arc::clone(&writer.log.bytes);
    let started = thread.spawn(move || writer.run(&work));
    started.map_err(failed)?;
    Ok(Handle::new(send, gate, log_bytes))
}

struct Writer {
    path: PathBuf,
    /// Which file it is: another one in its place has none of the sessions.
    identity: file::Identity,
    /// Whether there was anything in it: an empty one is not it any more.
    has_content: bool,
    sync: Sync,
    exclusive: bool,
    connection: Option<Connection>,
    /// What the disk has not taken; whoever gave it was told so.
    backlog: Vec<Waiting>,
    room: Arc<Room>,
    health: Arc<Mutex<HealthState>>,
    holes: Holes,
    retry: Duration,
    /// When the disk is tried again, where it failed.
    retry_at: Option<Instant>,
    /// Whether messages were removed since the start.
    has_removed: bool,
    /// Whether what ran when the process before ended was noted as broken off.
    has_broken_off: bool,
    /// There once the file was opened.
    clock: Option<Clock>,
    log: Log,
    held: HeldSessions,
    /// The sessions whose import is under way.
    imports: HashSet<String>,
    upkeep: Upkeep,
    _lock: Arc<file::Lock>,
}

impl Writer {
    fn run(&mut self, work: &mpsc::Receiver<Work>) {
        // Opened with the first that there is to do: what opens it is not part of a daemon's way to ready.
        let Ok(first) = work.recv() else {
            return;
        };
        if let Err(problem) = self.connect() {
            self.fails(&problem);
        }
        let mut first = Some(first);
        loop {
            let next = match self.retry_at.is_none() {
                _ if first.is_some() => first.take(),
                true if self.upkeep.is_due() => match work.try_recv() {
                    Err(mpsc::TryRecvError::Empty) => {
                        self.keep_up();
                        self.checkpoint();
                        continue;
                    }
                    Err(mpsc::TryRecvError::Disconnected) => break,
                    Ok(next) => Some(next),
                },
                true => match self.idle_for() {
                    Some(most) => match work.recv_timeout(most) {
                        Err(mpsc::RecvTimeoutError::Timeout) => {
                            self.upkeep.look();
                            self.checkpoint();
                            continue;
                        }
                        next => next.ok(),
                    },
                    None => work.recv().ok(),
                },
                false => match work.recv_timeout(self.until_retry()) {
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        self.retry_at = None;
                        self.commit(|_| None);
                        continue;
                    }
                    next => next.ok(),
                },
            };
            let Some(next) = next else {
                break;
            };
            let other = match next {
                // All before it was written, or its owner was told that it fails.
                Work::Now => continue,
                Work::Job(job) => {
                    // What the disk did not take is not held up further.
                    let may_wait = self.backlog.is_empty() && job.may_wait();
                    let mut following = Following::new(work, may_wait);
                    self.backlog.push(job.into());
                    // Where the disk takes nothing, all that is there is told so at once, not each job by itself.
                    while !may_wait && let Some(job) = following.next(self.backlog.len()) {
                        self.backlog.push(job);
                    }
                    self.commit(|waiting| following.next(waiting));
                    following.other()
                }
                other => {
                    self.commit(|_| None);
                    Some(other)
                }
            };
            match other {
                Some(Work::Open(user, session, reply)) => {
                    drop(reply.send(self.open(&user, &session)));
                }
                Some(Work::Read(read)) => {
                    if let Some(connection) = &self.connection {
                        read(connection);
                    }
                }
                Some(Work::Slice(slice, reply)) => drop(reply.send(self.slice(&slice))),
                Some(Work::BreakOff(session)) => self.break_off(&session),
                Some(Work::Limit(limits, tell)) => self.limit(limits, tell),
                Some(Work::Flush(reply)) => drop(reply.send(self.is_well())),
                Some(Work::Close(reply)) => {
                    if self.is_in_place().is_ok() {
                        self.remove_last();
                        self.forget_words();
                        self.give_back_last();
                    } else if let Some(connection) = &self.connection {
                        // The log of changes is all that is left.
                        let keep = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
                        connection.set_db_config(keep, true).ok();
                    }
                    // Closing the last connection takes the log of changes in and removes it.
                    self.connection = None;
                    drop(reply.send(self.is_well()));
                    // Nobody opens the file again: it may be another one's now.
                    return;
                }
                Some(Work::Job(_) | Work::Now) | None => {}
            }
            self.checkpoint();
        }
        self.commit(|_| None);
        if let Some(connection) = self.connection.take() {
            connection
                .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
                .ok();
        }
    }

    /// Returns after which time something is to be done though nothing is written.
    fn idle_for(&self) -> Option<Duration> {
        let look = self.upkeep.is_limited().then_some(EVERY);
        self.log.cut_again().into_iter().chain(look).min()
    }

    fn until_retry(&self) -> Duration {
        let at = self.retry_at;
        at.map_or(Duration::ZERO, |at| {
            at.saturating_duration_since(Instant::now())
        })
    }

    fn is_well(&self) -> Result<(), Error> {
        self.is_in_place().map_err(Error::Failing)?;
        match &self.health.lock().failing {
            Some(problem) => Err(Error::Failing(problem.clone())),
            None => Ok(()),
        }
    }

    /// Writes all that waits in one transaction, and what `more` returns meanwhile, which is told how many wait; then tells
    /// everybody.
    fn commit(&mut self, mut more: impl FnMut(usize) -> Option<Waiting>) {
        // What comes before it is time is not a reason to write all that waits once more.
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return self.tell_failing();
        }
        if let Err(problem) = self.is_in_place() {
            return self.fails(&problem);
        }
        if self.connection.is_none()
            && let Err(problem) = self.connect()
        {
            return self.fails(&problem);
        }
        if self.backlog.is_empty() {
            return self.heals();
        }
        let Some(connection) = &mut self.connection else {
            return;
        };
        let behind = self.clock.as_ref().and_then(Clock::if_behind);
        match write(
            connection,
            (&mut self.backlog, &mut more),
            behind,
            &self.holes,
        ) {
            Ok(refused) => {
                self.heals();
                self.upkeep.committed();
                for (index, job) in self.backlog.drain(..).enumerate() {
                    let removes = job.changes.iter().any(Change::removes);
                    self.has_removed |= removes;
                    self.upkeep.has_left |= removes;
                    self.upkeep.has_free |= removes;
                    let problem = refused.iter().find(|(at, _)| *at == index);
                    let problem = problem.map(|(_, problem)| problem);
                    job.settle(problem, (&self.room, &mut self.holes, &self.health));
                }
            }
            Err(error) => {
                let problem = problem(&self.path, &error).to_string();
                // A connection whose disk failed is opened anew. Where the disk is full nothing is wrong with it, and what would be
                // needed to open it again, the index of the log of changes, may find no room: then nobody could read.
                if error.sqlite_error_code() != Some(ErrorCode::DiskFull) {
                    self.connection = None;
                }
                self.fails(&problem);
            }
        }
    }

    fn heals(&mut self) {
        (self.retry, self.retry_at) = (RETRY[0], None);
        self.health.lock().set(None);
    }

    /// Tells everybody who waits that it is not safe, and tries again later what is tried for long.
    fn fails(&mut self, problem: &str) {
        self.retry_at = Instant::now().checked_add(self.retry);
        self.retry = (self.retry * 2).min(RETRY[1]);
        self.health.lock().set(Some(problem.to_owned()));
        self.tell_failing();
    }

    fn tell_failing(&mut self) {
        let problem = self.health.lock().failing.clone().unwrap_or_default();
        for job in &mut self.backlog {
            if let Some(done) = job.done.take() {
                done(Err(Error::Failing(problem.clone())));
            }
        }
        let room = &self.room;
        self.backlog.retain(|job| {
            // One that was emptied does not wait on beyond the bound of what waits.
            let stays = job.lasts == Lasts::Long && !job.is_refused;
            if !stays {
                room.give_back(&job.session, &job.changes);
            }
            stays
        });
    }

    fn open(&mut self, user: &User, session: &str) -> Result<Option<i64>, Error> {
        self.is_well()?;
        let Some(connection) = &self.connection else {
            return Err(Error::Failing("it is not open".to_owned()));
        };
        let opened = apply::open(connection, user, session);
        let opened = opened.map_err(|error| problem(&self.path, &error))?;
        self.holes.is_opened(user, session);
        Ok(opened)
    }

    fn connect(&mut self) -> Result<(), String> {
        self.is_in_place()?;
        let connect = || {
            let mut connection = connect(&self.path, self.sync, self.exclusive)?;
            if !self.has_broken_off {
                apply::break_off(&mut connection)?;
            }
            Ok(connection)
        };
        let failed = |error: rusqlite::Error| problem(&self.path, &error).to_string();
        let connection = connect().map_err(failed)?;
        if self.clock.is_none() {
            let kept = connection
                .query_row("SELECT at_ms FROM clock", [], |row| row.get(0))
                .optional();
            self.clock = Some(Clock::from(kept.map_err(failed)?));
        }
        (self.has_broken_off, self.has_content) = (true, true);
        self.connection = Some(connection);
        self.upkeep.has_left = true;
        Ok(())
    }

    /// Fails where the file was moved, removed, replaced or emptied: what is written then would be lost, or be another one's.
    fn is_in_place(&self) -> Result<(), String> {
        match std::fs::metadata(&self.path) {
            Err(error) => Err(format!("{error}; put it back")),
            Ok(found) if file::Identity::from(&found) != self.identity => {
                Err("another file is in its place; put it back".to_owned())
            }
            Ok(found) if found.len() == 0 && self.has_content => {
                Err("it was emptied; end the daemon and put a backup in its place".to_owned())
            }
            Ok(_) => Ok(()),
        }
    }
}

/// Writes jobs in one transaction, and those that `more` adds to them, of sessions that changed at `behind` or later where
/// the clock is behind that. Returns those that were refused, by their place; an error says that nothing was written.
fn write(
    connection: &mut Connection,
    (jobs, more): (&mut Vec<Waiting>, &mut impl FnMut(usize) -> Option<Waiting>),
    behind: Option<i64>,
    known: &Holes,
) -> rusqlite::Result<Vec<(usize, Error)>> {
    let behavior = rusqlite::TransactionBehavior::Immediate;
    let mut transaction = connection.transaction_with_behavior(behavior)?;
    let (mut refused, mut holes) = (Vec::new(), HashSet::new());
    let mut next = 0;
    loop {
        if next == jobs.len() {
            match more(next) {
                Some(job) => jobs.push(job),
                None => break,
            }
        }
        let (Some(job), index) = (jobs.get(next), next) else {
            break;
        };
        next += 1;
        let session = own_id(&job.user, &job.session);
        if known.refuses(job) || holes.contains(&session) && follows(job) {
            refused.push((index, Error::Refused(FOLLOWS.to_owned())));
            continue;
        }
        let savepoint = transaction.savepoint()?;
        let applied = apply::all(&savepoint, (&job.user, &job.session), &job.changes);
        let dated = applied.and_then(|()| match behind {
            Some(at_ms) => Ok(apply::changed(
                &savepoint,
                (&job.user, &job.session),
                at_ms,
            )?),
            None => Ok(()),
        });
        match dated {
            Ok(()) => savepoint.commit()?,
            Err(Failure::Sqlite(error)) if is_of_the_disk(&error) => return Err(error),
            Err(failure) => {
                drop(savepoint);
                let problem = match failure {
                    Failure::Misfit(misfit) => misfit,
                    Failure::Sqlite(error) => Error::Refused(error.to_string()),
                };
                if job.leaves_a_hole(&problem) {
                    holes.insert(session);
                }
                refused.push((index, problem));
            }
        }
    }
    transaction.commit()?;
    Ok(refused)
}

/// Returns what is wrong with the file, where it is damaged; what else the disk says may pass.
pub(super) fn problem(path: &Path, error: &rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    match code {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Corrupt {
            path: path.display().to_string(),
            problem: described(error),
        },
        _ => Error::Failing(described(error)),
    }
}

/// Returns what SQLite says, with its own number where that says more: "disk I/O error" may be a read, a write, or a lock.
fn described(error: &rusqlite::Error) -> String {
    match error.sqlite_error() {
        Some(code) if code.extended_code > 0xff => {
            format!("{error} (SQLite's extended code {})", code.extended_code)
        }
        _ => error.to_string(),
    }
}

/// Returns whether trying again may help.
fn is_of_the_disk(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    code.is_some_and(|code| {
        matches!(
            code,
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::PermissionDenied
                | ErrorCode::OutOfMemory
        )
    })
}
