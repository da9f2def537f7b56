//! Sessions in one SQLite file: one thread writes, others read.
//!
//! - One process has the file, by a lock beside it (`NAME.lock`); SQLite's own locks are not relied upon.
//! - The thread takes all that waits into one transaction, commits, and then tells everybody: while one commit waits for
//!   the disk, the next ones gather.
//! - Where the disk does not take a transaction, it is tried again with what came meanwhile, in order.
//! - An import is written in slices, and what others say between them.
//! - Readers have connections of their own, and end with their page: a long read would keep the log of changes growing.

mod apply;
mod checkup;
mod file;
mod import;
mod offline;
mod queue;
mod read;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{Semaphore, oneshot};

use crate::held::HeldSessions;
use crate::queue::{Job, Lasts};
use crate::share::Shares;
use crate::user::Whose;
use crate::{
    CallListing, CallPage, Change, Changes, Done, Each, Error, FilePage, FileQuery, Growth, Hash,
    Health, Held, Limits, Listing, Page, Ran, Session, Stats, Store, UsageQuery, UsageSum, User,
};
pub use checkup::{Checkup, check_up};
pub use offline::{Reader, vacuum};
use queue::{Handle, Work};

/// The oldest SQLite that is sound: before it a checkpoint could lose committed pages (fixed 2026-03).
pub const OLDEST_SQLITE: i32 = 3_051_003;

/// The newest schema.
pub const SCHEMA: i64 = 3;

/// Reads at once: each has a connection, with its cache.
const READERS: usize = 2;

/// Pages that a connection keeps in memory, in KiB. With four times as much the writer is no faster.
const CACHE_KIB: u32 = 2048;

/// How sure a commit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// It outlives a loss of power: each commit waits for the disk.
    #[default]
    Full,
    /// It outlives the process, not a loss of power.
    Normal,
}

/// A store in a file, as one user has it: what another one has is not there. Clones share it.
#[derive(Clone, Debug)]
pub struct Sqlite(Arc<Shared>, User);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    writer: Handle,
    held: HeldSessions,
    shares: Shares,
    /// Held by the import whose slice waits.
    slices: Mutex<()>,
    readers: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    /// Whether the file is the writer's alone, on a file system whose locks and shared memory cannot be relied upon.
    exclusive: bool,
    moved_away: Option<PathBuf>,
    /// Held until the last clone is gone and the writer has ended.
    _lock: Arc<file::Lock>,
}

impl Sqlite {
    /// Takes the file at `path` for this process, and opens it with the first that it is asked; its folder is made with
    /// mode 0700, the file with 0600.
    ///
    /// Fails where another process has it, it is newer than this program, or its folder cannot be made. What else is
    /// wrong with it is what [`Store::write`] and the others say. A file that is no database is moved away, see
    /// [`moved_away`](Self::moved_away).
    pub fn start(path: &Path, sync: Sync) -> Result<Self, Error> {
        Self::begin(path, sync, file::is_on_a_network)
    }

    /// The same, where who asks says whether the file is on a network.
    fn begin(
        path: &Path,
        sync: Sync,
        is_on_a_network: impl FnOnce(&Path) -> bool,
    ) -> Result<Self, Error> {
        let lock = Arc::new(file::lock(path)?);
        let moved_away = file::look(path)?;
        let exclusive = is_on_a_network(path);
        let held = HeldSessions::default();
        let writer = writer::start(path, sync, exclusive, (held.clone(), Arc::clone(&lock)))?;
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            writer,
            held,
            shares: Shares::default(),
            slices: Mutex::default(),
            readers: Mutex::default(),
            permits: Arc::new(Semaphore::new(READERS)),
            exclusive,
            moved_away,
            _lock: lock,
        });
        Ok(Self(shared, User::default()))
    }

    /// Returns the same store as this user has it.
    pub fn of(&self, user: &User) -> Self {
        Self(Arc::clone(&self.0), user.clone())
    }

    /// Returns whose a session is; `None` where there is none.
    pub fn owner(&self, session: &str) -> BoxFuture<'static, Result<Option<User>, Error>> {
        let session = session.to_owned();
        self.read_all(move |connection| read::owner(connection, &session))
    }

    /// Returns what requests to models of all users come to, those first that cost most.
    pub fn usage_of_all(
        &self,
        wanted: UsageQuery,
    ) -> BoxFuture<'static, Result<Vec<UsageSum>, Error>> {
        self.read_all(move |connection| read::usage(connection, Whose::Everybodys, &wanted))
    }

    /// Returns where the file is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns where a damaged file was moved to when this one was begun.
    pub fn moved_away(&self) -> Option<&Path> {
        self.0.moved_away.as_deref()
    }

    /// Returns how many bytes its log of changes had when the thread that writes looked last: after each commit.
    pub fn log_bytes(&self) -> u64 {
        self.0.writer.log_bytes.load(Ordering::Relaxed)
    }

    /// Returns why what is written is not safe now; `None` where it is.
    pub fn failing(&self) -> Option<String> {
        self.0.writer.gate.health.lock().failing.clone()
    }

    /// Has it told to `tell` what becomes of what is written.
    pub fn watch(&self, tell: impl Fn(Health<'_>) + Send + 'static) {
        self.0.writer.gate.health.lock().tell = Some(Box::new(tell));
    }

    /// Holds what is kept to limits from now on, and tells what comes of it.
    pub fn limit(&self, limits: Limits, tell: impl Fn(Growth) + Send + 'static) {
        self.0.writer.send(Work::Limit(limits, Box::new(tell)));
    }

    /// Runs a read on a connection of its own, on a thread for blocking work.
    fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let shared = Arc::clone(&self.0);
        async move {
            let path = shared.path.clone();
            let refused = move |error: rusqlite::Error| match writer::problem(&path, &error) {
                Error::Failing(problem) => Error::Refused(problem),
                damaged => damaged,
            };
            if shared.exclusive {
                let (reply, answer) = oneshot::channel();
                shared.writer.send(Work::Read(Box::new(move |connection| {
                    drop(reply.send(read(connection)));
                })));
                return answer.await.map_err(|_| Error::Closed)?.map_err(refused);
            }
            // The permit goes with the work, which goes on where nobody waits for it any more.
            let permit = Arc::clone(&shared.permits).acquire_owned().await;
            let permit = permit.map_err(|_| Error::Closed)?;
            let work = move || {
                let _permit = permit;
                let kept = shared.readers.lock().pop();
                let connection = match kept {
                    Some(connection) => connection,
                    None => reader(&shared.path)?,
                };
                let value = read(&connection);
                shared.readers.lock().push(connection);
                value
            };
            let done = tokio::task::spawn_blocking(work).await;
            done.map_err(|_| Error::Closed)?.map_err(refused)
        }
        .boxed()
    }

    /// Waits until what was given before is safe, or cannot be now, then reads.
    fn read_all<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let store = self.clone();
        async move {
            // What is not safe is not found, which is no reason to find nothing.
            store.flush().await.ok();
            store.read(read).await
        }
        .boxed()
    }
}

impl Store for Sqlite {
    fn write(&self, session: &str, changes: Vec<Change>, done: Done) {
        let done = self.0.shares.note(&self.1, &changes, done);
        let job = Job::new((&self.1, session), changes, Lasts::Long, done);
        self.0.writer.send(Work::Job(job));
    }

    fn hurry(&self) {
        self.0.writer.send(Work::Now);
    }

    fn attempt(
        &self,
        session: &str,
        changes: Vec<Change>,
    ) -> BoxFuture<'static, Result<(), Error>> {
        let (done, written) = oneshot::channel();
        let done = Box::new(move |result| drop(done.send(result)));
        let done = self.0.shares.note(&self.1, &changes, done);
        let job = Job::new((&self.1, session), changes, Lasts::Once, done);
        self.0.writer.send(Work::Job(job));
        async move { written.await.map_err(|_| Error::Closed)? }.boxed()
    }

    fn open(&self, session: &str) -> BoxFuture<'static, Result<Option<Session>, Error>> {
        let (store, session) = (self.clone(), session.to_owned());
        async move {
            let (reply, answer) = oneshot::channel();
            let id = session.clone();
            store.0.writer.send(Work::Open(store.1.clone(), id, reply));
            let reserved = answer.await.map_err(|_| Error::Closed)??;
            let Some(key) = reserved else {
                return Ok(None);
            };
            store
                .read(move |connection| read::session(connection, key))
                .await
                .map(Some)
        }
        .boxed()
    }

    fn is_here(&self, _: &str) -> BoxFuture<'static, Result<(), Error>> {
        // The file is one process's.
        async { Ok(()) }.boxed()
    }

    fn hold(&self, session: &str) -> Held {
        Box::new(self.0.held.hold(&self.1, session))
    }

    fn export(&self, session: &str, mut each: Each) -> BoxFuture<'static, Result<bool, Error>> {
        let (user, session) = (self.1.clone(), session.to_owned());
        self.read_all(move |connection| {
            read::export(connection, (Whose::Of(&user), &session), &mut each)
        })
    }

    fn import(&self, session: &str, changes: Changes) -> BoxFuture<'static, Result<(), Error>> {
        let (store, session) = (self.clone(), session.to_owned());
        let import = move || {
            let made = import::run(&store.0, (&store.1, &session), changes);
            store.0.shares.turn(&store.1);
            made
        };
        async move {
            let done = tokio::task::spawn_blocking(import).await;
            done.map_err(|_| Error::Closed)?
        }
        .boxed()
    }

    fn has(&self, session: &str) -> BoxFuture<'static, Result<bool, Error>> {
        let (user, session) = (self.1.clone(), session.to_owned());
        self.read_all(move |connection| read::has(connection, &user, &session))
    }

    fn has_exchange(&self, session: &str, id: &str) -> BoxFuture<'static, Result<bool, Error>> {
        let (user, session, id) = (self.1.clone(), session.to_owned(), id.to_owned());
        self.read_all(move |connection| read::has_exchange(connection, &user, &session, &id))
    }

    fn list(&self, wanted: Listing) -> BoxFuture<'static, Result<Page, Error>> {
        let user = self.1.clone();
        self.read_all(move |connection| read::list(connection, Whose::Of(&user), &wanted))
    }

    fn calls(&self, wanted: CallListing) -> BoxFuture<'static, Result<CallPage, Error>> {
        let user = self.1.clone();
        self.read_all(move |connection| read::calls(connection, &user, &wanted))
    }

    fn ran(&self, from_day: i64) -> BoxFuture<'static, Result<Ran, Error>> {
        let user = self.1.clone();
        self.read_all(move |connection| read::ran(connection, &user, from_day))
    }

    fn usage(&self, wanted: UsageQuery) -> BoxFuture<'static, Result<Vec<UsageSum>, Error>> {
        let user = self.1.clone();
        self.read_all(move |connection| read::usage(connection, Whose::Of(&user), &wanted))
    }

    fn rules(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, Error>> {
        let user = self.1.clone();
        self.read_all(move |connection| read::rules(connection, &user))
    }

    fn files(&self, wanted: FileQuery) -> BoxFuture<'static, Result<FilePage, Error>> {
        let user = self.1.clone();
        self.read_all(move |connection| read::files::page(connection, &user, &wanted))
    }

    fn attachment(&self, hash: Hash) -> BoxFuture<'static, Result<Option<Vec<u8>>, Error>> {
        let user = self.1.clone();
        self.read_all(move |connection| read::files::attachment(connection, &user, hash))
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.0.writer.gate.has_room(bytes)
    }

    fn is_silent(&self) {
        self.0.writer.gate.is_silent();
        // Whoever writes heals it when he comes to this.
        let (reply, _) = oneshot::channel();
        self.0.writer.send(Work::Flush(reply));
    }

    fn is_one_of_several(&self) -> bool {
        false
    }

    fn not_kept(&self) -> Vec<String> {
        self.0.writer.gate.not_kept()
    }

    fn kept(&self, most: u64) -> BoxFuture<'static, Result<u64, Error>> {
        let (user, share) = (self.1.clone(), self.0.shares.of(&self.1));
        let store = self.clone();
        let count = async move {
            // What waits to be written is not given again after the count. Where it cannot be, what is there counts.
            store.flush().await.ok();
            store
                .read_all(move |connection| read::kept(connection, &user))
                .await
        };
        async move { share.kept(most, count).await }.boxed()
    }

    fn stats(&self) -> BoxFuture<'static, Result<Stats, Error>> {
        let path = self.0.path.clone();
        self.read_all(move |connection| read::stats(connection, &path))
    }

    fn close(&self) -> BoxFuture<'static, Result<(), Error>> {
        // Those of readers would keep the log of changes.
        self.0.readers.lock().clear();
        let (reply, answer) = oneshot::channel();
        self.0.writer.send(Work::Close(reply));
        async move { answer.await.map_err(|_| Error::Closed)? }.boxed()
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), Error>> {
        let (reply, answer) = oneshot::channel();
        self.0.writer.send(Work::Flush(reply));
        async move { answer.await.map_err(|_| Error::Closed)? }.boxed()
    }
}

/// Opens a connection that only reads.
fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch(&format!(
        "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA cache_size = -{CACHE_KIB};"
    ))?;
    Ok(connection)
}

#[cfg(test)]
mod tests;
